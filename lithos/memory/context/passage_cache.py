"""Notes split into passages, kept from one briefing to the next.

A briefing of 2,000 tokens scans 66 notes, and agents of one task ask for mostly the same notes. An entry
is valid for one text only: a changed note has another content, and is split again.
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

#: Bytes of the cache without the contents of the notes: about 10,000 ordinary notes.
SPLIT_BYTES: Final = 16 * 1024 * 1024
#: Characters of a note that is cached; a longer one is split each time.
LONGEST_SPLIT: Final = 64 * 1024
#: Bytes of a split note, of a passage, of a section in addition to its path, and of a character.
_NOTE, _PASSAGE, _SECTION, _CHARACTER = 400, 120, 60, 4


@frozen
class _Split:
    title: str
    content: str
    frame: Frame
    split: SplitNote
    size: int


class Splits(Fitting[int, _Split]):
    """LRU cache of split notes by serial number, bounded in bytes; thread-safe.

    The contents themselves count too: `NoteTexts` usually shares them, but need not.
    """

    def __init__(self, size: int, maximum: int) -> None:
        """`size` and `maximum` are those of the chunks."""
        super().__init__(SPLIT_BYTES, attrgetter("size"))
        self._sizes = (size, maximum)
        self._lock = threading.RLock()

    def split(self, serial: int, title: str, content: str, frame: Frame = NO_FRAME) -> SplitNote:
        """The passages of a note with this content, without the blocks that others share."""
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
        """Drop what is kept of a note."""
        with self._lock:
            super().forget(serial)


def _size(content: str, sections: Sequence[str], passages: int) -> int:
    width = 1 if content.isascii() else _CHARACTER
    paths = sum(map(len, sections)) * width + _SECTION * len(sections)
    return _NOTE + len(content) * width + paths + _PASSAGE * passages
