"""Cache of notes that are already divided into passages.

A briefing of 2,000 tokens scans 66 notes, and agents that work on one task ask for mostly the same notes. An
entry is valid for one text only, so a changed note is split again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from attrs import frozen

from lithos.kernel.values.limits import Fitting
from lithos.memory.briefing.passages import SplitNote, split_note
from lithos.text.hidden_text import NO_FRAME, Frame

#: Size of the cache in bytes, without note contents: about 10,000 ordinary notes.
SPLIT_BYTES: Final = 16 * 1024 * 1024
#: Maximum characters of a cached note. A longer note is split each time.
LONGEST_SPLIT: Final = 64 * 1024
#: Estimated bytes of a split note, a passage, a section without its path, and a character.
_NOTE, _PASSAGE, _SECTION, _CHARACTER = 400, 120, 60, 4


@frozen
class _Split:
    title: str
    content: str
    frame: Frame
    split: SplitNote
    size: int


class Splits(Fitting[int, _Split]):
    """LRU cache of split notes by serial number, limited in bytes. It is thread-safe.

    Note contents count towards the limit too, because `NoteTexts` does not always share them.
    """

    def __init__(self, size: int, maximum: int) -> None:
        """Make a cache. `size` and `maximum` are the chunk sizes."""
        super().__init__(SPLIT_BYTES, attrgetter("size"))
        self._sizes = (size, maximum)
        self._lock = threading.RLock()

    def split(self, serial: int, title: str, content: str, frame: Frame = NO_FRAME) -> SplitNote:
        """Return the passages of a note with this content, without blocks that other notes share."""
        with self._lock:
            known = self._kept.get(serial)
            if known is not None and (known.title, known.content, known.frame) == (title, content, frame):
                self._kept.move_to_end(serial)
                return known.split
        split = split_note(title, content, *self._sizes, frame)
        if len(content) <= LONGEST_SPLIT:
            with self._lock:
                size = _size(content, split.sections, len(split.passages))
                size += 0 if split.content is content else len(content) * _CHARACTER
                self._keep(serial, _Split(title, content, frame, split, size))
        return split

    def forget(self, serial: int) -> None:
        """Remove a note from the cache."""
        with self._lock:
            super().forget(serial)


def _size(content: str, sections: Sequence[str], passages: int) -> int:
    width = 1 if content.isascii() else _CHARACTER
    paths = sum(map(len, sections)) * width + _SECTION * len(sections)
    return _NOTE + len(content) * width + paths + _PASSAGE * passages
