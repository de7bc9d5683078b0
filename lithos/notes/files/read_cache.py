"""Notes as they were last read, as long as their files are the same: a read without a thread and a parser.

Reading a note costs two changes of threads, some system calls and a parse of its frontmatter. Most notes that
are read were read before, and one look at the file (`Fingerprint`) tells whether it is still that file, with
those times: inode, size, time of change and time of status. Whoever edits a file, exchanges it, or sets its
times back changes at least the last. A file that was changed within the last seconds before it was read
is not remembered, since another change may have the same times on a file system with coarse ones.

The look is one system call on the event loop. Where looks take long (a network, a sleeping disk), no further
one is made for a while: then notes are read in threads. One that took somewhat long tells nothing: on a busy
machine the thread had to wait for a processor, and reads would get dearer just there.
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
#: A longer content is read anew each time.
LONGEST_RECALLED: Final = 64 * 1024
#: Seconds of a look from which on it is slow; after so many in a row, or one that takes as long as `ENDLESS`,
#: looks are taken to be slow here for the time of `REST`.
SLOW_LOOK: Final = 0.02
SLOW_LOOKS: Final = 3
ENDLESS: Final = 0.5
REST: Final = 60.0
#: Bytes of what is remembered beside the content, and of a link beside its texts.
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
        """`look` gives the fingerprint of the file at a path, at once; None for what is no file."""
        super().__init__(RECALLED_BYTES, attrgetter("size"))
        self._look = look
        self._timer = timer
        self._slow_looks = 0
        self._rests_until = float("-inf")

    def get(self, entry: CataloguedNote) -> CachedNote | None:
        """The note of an entry, if its file is now what it was when it was read."""
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
