"""A cache of notes whose files have not changed since they were read.

A cached read needs neither a thread nor a parser.

An uncached read costs two thread changes, some system calls and a parse of the frontmatter. Most notes that
are read were read before. One check of the file (`Fingerprint`) compares the inode, the size, the mtime and
the ctime. If a program edits or exchanges the file, or sets its mtime back, at least the ctime changes. A
file that was changed seconds before the read is not cached, because a file system with coarse times may show
the same times after another change.

The check is one system call on the event loop. If checks take long (network, sleeping disk), they are
suspended for a while, and notes are read in threads. A single slow check is ignored. On a busy machine, the
thread may have waited for a processor, and reads in threads would then cost even more.
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

#: Maximum total size of cached contents and links in bytes. This is enough for about 4,000 ordinary notes.
RECALLED_BYTES: Final = 12 * 1024 * 1024
#: Maximum size of a cached content. Longer contents are not cached.
LONGEST_RECALLED: Final = 64 * 1024
#: Minimum duration in seconds of a slow check. Several slow checks in a row, or one check of at least
#: `ENDLESS` seconds, suspend the checks for `REST` seconds.
SLOW_LOOK: Final = 0.02
SLOW_LOOKS: Final = 3
ENDLESS: Final = 0.5
REST: Final = 60.0
#: Estimated size in bytes of a cached note without its content, and of a link without its texts.
_BESIDE: Final = 600
_LINK: Final = 250


class CataloguedNote(Protocol):
    """A note of the catalogue. Its `stamp` changes if the path or the bytes change."""

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
    """A note with its content, read from its file. `note` is the metadata object of the catalogue."""

    note: Note
    stamp: int
    fingerprint: Fingerprint
    content: str
    links: tuple[WikiLink, ...]

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        texts = sum(len(link.target) + len(link.display) for link in self.links)
        return sys.getsizeof(self.content) + _BESIDE + _LINK * len(self.links) + 4 * texts


class Recall(Fitting[int, CachedNote]):
    """LRU cache of notes, limited by the total size in bytes.

    A cached note is valid until its catalogue entry or its file changes.
    """

    def __init__(self, look: Callable[[str], Fingerprint | None], timer: Callable[[], float] = perf_counter):
        """Create an empty cache. `look` returns a file's fingerprint by path without blocking.

        `look` returns None if the file is missing.
        """
        super().__init__(RECALLED_BYTES, attrgetter("size"))
        self._look = look
        self._timer = timer
        self._slow_looks = 0
        self._rests_until = float("-inf")

    def get(self, entry: CataloguedNote) -> CachedNote | None:
        """Return the cached note of an entry, or None if its file has changed since it was read."""
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
        """Cache a note. Its file had this fingerprint before and after the read."""
        if len(content) <= LONGEST_RECALLED:
            self._keep(entry.serial, CachedNote(entry.note, entry.stamp, fingerprint, content, links))
