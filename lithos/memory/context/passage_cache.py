"""A cache of notes that are already divided into passages.

A briefing of 2,000 tokens scans 66 notes, and agents that work on one task mostly request the same notes. An
entry is valid only for one text, so a changed note is split again.
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

#: Maximum size of the cache in bytes, without the contents of notes. This is enough for about 10,000 ordinary
#: notes.
SPLIT_BYTES: Final = 16 * 1024 * 1024
#: Maximum number of characters of a cached note. A longer note is split for each request.
LONGEST_SPLIT: Final = 64 * 1024
#: Estimated bytes of a split note, of a passage, of a section without its path, and of a character.
_NOTE, _PASSAGE, _SECTION, _CHARACTER = 400, 120, 60, 4


@frozen
class _Split:
    title: str
    content: str
    frame: Frame
    split: SplitNote
    size: int


class Splits(Fitting[int, _Split]):
    """A thread-safe LRU cache of split notes by serial number, with a limit in bytes.

    Contents of notes also count towards the limit, because `NoteTexts` does not always share them.
    """

    def __init__(self, size: int, maximum: int) -> None:
        """Create a cache. `size` and `maximum` are the chunk sizes."""
        super().__init__(SPLIT_BYTES, attrgetter("size"))
        self._sizes = (size, maximum)
        self._lock = threading.RLock()

    def split(self, serial: int, title: str, content: str, frame: Frame = NO_FRAME) -> SplitNote:
        """Return the passages of a note with this content.

        Blocks that it shares with other notes are left out.
        """
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
