"""Notes as they were last read, for as long as their files are unchanged: reads need no thread and no parser.

Reading a note costs two changes of threads, some system calls and a parse of its frontmatter. Most notes that
are read were read before, and one check of the file (`Fingerprint`) shows whether it is still the same file
with the same inode, size, time of change and time of status. Editing or exchanging a file, or setting its
times back, changes at least the time of status. A file that was changed within the last seconds before it was
read is not remembered, since another change may have the same times on a file system with coarse ones.

The check is one system call on the event loop. Where checks take long (a network, a sleeping disk), they are
suspended for a while, and notes are read in threads. A single check that took somewhat long proves nothing:
on a busy machine the thread had to wait for a processor, and reads in threads would cost more at such times.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from operator import attrgetter
from time import perf_counter
from typing import Final, Protocol

from attrs import frozen

from lithos.kernel.values.limits import Fitting
from lithos.notes.files.values import Fingerprint
from lithos.notes.links.links import WikiLink
from lithos.notes.model.note import Note

#: Bytes of contents and links that are remembered: those of some 4,000 ordinary notes.
RECALLED_BYTES: Final = 12 * 1024 * 1024
#: Longer contents are read again each time.
LONGEST_RECALLED: Final = 64 * 1024
#: Seconds from which a check is slow. After several slow ones in a row, or one that takes as long as
#: `ENDLESS`, checks are suspended for the time of `REST`.
SLOW_LOOK: Final = 0.02
SLOW_LOOKS: Final = 3
ENDLESS: Final = 0.5
REST: Final = 60.0
#: Bytes of a remembered note in addition to its content, and of a link in addition to its texts.
_BESIDE: Final = 600
_LINK: Final = 250


class CataloguedNote(Protocol):
    """A note as the catalogue has it; `stamp` changes with its path and its bytes."""

    @property
    def serial(self) -> int: ...

    @property
    def path(self) -> str: ...

    @property
    def note(self) -> Note: ...

    @property
    def stamp(self) -> int: ...


@frozen
class CachedNote:
    """A note as its file says: the content of `note`, of which the catalogue has the very same object."""

    note: Note
    stamp: int
    fingerprint: Fingerprint
    content: str
    links: tuple[WikiLink, ...]

    @property
    def size(self) -> int:
        """Bytes, about."""
        texts = sum(len(link.target) + len(link.display) for link in self.links)
        return sys.getsizeof(self.content) + _BESIDE + _LINK * len(self.links) + 4 * texts


class Recall(Fitting[int, CachedNote]):
    """LRU cache of notes, bounded in bytes; each is valid for one state of its entry and of its file."""

    def __init__(self, look: Callable[[str], Fingerprint | None], timer: Callable[[], float] = perf_counter):
        """Use `look` to get a file's fingerprint by its path without waiting; None if there is no file."""
        super().__init__(RECALLED_BYTES, attrgetter("size"))
        self._look = look
        self._timer = timer
        self._slow_looks = 0
        self._rests_until = float("-inf")

    def get(self, entry: CataloguedNote) -> CachedNote | None:
        """Return the note of an entry, if its file is now what it was when it was read."""
        known = self._kept.get(entry.serial)
        if known is None:
            return None
        if known.note is not entry.note or known.stamp != entry.stamp:
            self.forget(entry.serial)
            return None
        began = self._timer()
        if began < self._rests_until:
            return None
        is_same = self._look(entry.path) == known.fingerprint
        ended = self._timer()
        self._slow_looks = self._slow_looks + 1 if ended - began > SLOW_LOOK else 0
        if self._slow_looks == SLOW_LOOKS or ended - began > ENDLESS:
            self._rests_until, self._slow_looks = ended + REST, 0
        if not is_same:
            self.forget(entry.serial)
            return None
        self._kept.move_to_end(entry.serial)
        return known

    def put(
        self, entry: CataloguedNote, fingerprint: Fingerprint, content: str, links: tuple[WikiLink, ...]
    ) -> None:
        """Remember what was read of an entry from a file that had this fingerprint before and after."""
        if len(content) <= LONGEST_RECALLED:
            self._keep(entry.serial, CachedNote(entry.note, entry.stamp, fingerprint, content, links))
