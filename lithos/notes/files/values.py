"""Values of the note store: file states, changes and their failures, and the names of private files.

After a crash, the name of a private file shows the purpose of the file and the note it belongs to (recovery).
All private files have dot-names, so no program takes them for notes. Swap files are in a `PrivateFolder`,
hidden from other programs, if the file system allows it. All other private files are next to their notes.

* `.lithos-….tmp`: a file of Lithos that may be partial, and is worthless without its process. New bytes are
  in such a file only if files cannot be written without a name (`Protection.unnamed`).
* `.lithos-….swap`: new bytes that will become a note, or a file that lost its name. The file may be deleted
  if its bytes are known.
* `.lithos-….aside`: the same, but the note may be without a file meanwhile. In that case the aside file is
  renamed back.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from functools import cached_property
from typing import Literal

from attrs import field, frozen

from lithos.notes.files.system_calls import SystemCalls

TEMPORARY_PREFIX = ".lithos-"
TEMPORARY_SUFFIX = ".tmp"

Kind = Literal["swap", "aside"]

#: Maximum length of a file name in bytes.
_LONGEST = 255
#: Placeholder for a missing digest in a file name.
_NONE = "0"


@frozen
class PrivateName:
    """A parsed name: the digests of bytes that need not be kept, and the note's name if it fitted in."""

    kind: Kind
    known: frozenset[str]
    note: str | None


@frozen
class PrivateFolder:
    """A folder for the private files of all notes below `root`, on the same volume. Both are real paths."""

    folder: str
    root: str

    def stand_in(self, target: str) -> str:
        """Return a path in the folder for a note. Its name is the note's path with `/` as `%2F`."""
        name = os.path.relpath(target, self.root).replace("%", "%25").replace(os.sep, "%2F")
        return os.path.join(self.folder, name)

    def note_of(self, name: str) -> str:
        """Return the path of the note that belongs to a name made by `stand_in`."""
        return os.path.join(self.root, name.replace("%2F", os.sep).replace("%25", "%"))


def temporary_name(calls: SystemCalls, folder: str) -> str:
    """Return a path for a private file that may be partial."""
    return os.path.join(folder, f"{TEMPORARY_PREFIX}{calls.token()}{calls.token()}{TEMPORARY_SUFFIX}")


def private_name(
    calls: SystemCalls, target: str, kind: Kind, *known: str, place: PrivateFolder | None = None
) -> str:
    """Return a private path for a complete file that is, was or will be the note `target`.

    `known` are up to two digests.

    The path is in `place`, or next to the note if there is no `place` or the note's path is too long for a
    name there.
    """
    folder, name = os.path.split(target if place is None else place.stand_in(target))
    digests = [digest or _NONE for digest in (*known, "", "")[:2]]
    stem = f"{TEMPORARY_PREFIX}{calls.token()}.{digests[0]}.{digests[1]}."
    if len(os.fsencode(stem + name)) + len(kind) + 1 > _LONGEST:
        if place is not None:
            return private_name(calls, target, kind, *known)
        name = ""
    return os.path.join(folder, f"{stem}{name}.{kind}")


def parse_name(name: str) -> PrivateName | None:
    """Parse the name of a swap or aside file. Return None for all other names."""
    stem, _, kind = name.rpartition(".")
    parts = stem.split(".", 4)
    if not name.startswith(TEMPORARY_PREFIX) or len(parts) != 5 or kind not in ("swap", "aside"):
        return None
    known = frozenset(part for part in parts[2:4] if part != _NONE)
    return PrivateName("swap" if kind == "swap" else "aside", known, parts[4] or None)


def is_temporary(name: str) -> bool:
    """Return whether a name belongs to a private file that may be partial."""
    return name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)


#: Maximum time in nanoseconds, because SQLite's integers end here. Later times are never compared.
_LATEST_NS = 2**63 - 1


#: Grace periods in seconds of a displaced file, with and without a lease. With a lease, only a program that
#: looked the path up before the exchange could still open and write the file. Without a lease, any program
#: that had the file open could still write to it.
GRACE, LONG_GRACE = 1.0, 60.0
#: Grace period in seconds of a displaced file with a lease, next to its note where other programs see it.
#: Still far longer than an open() takes.
LEAST_GRACE = 0.1


@frozen
class FileState:
    """The stat fingerprint of a file: size in bytes and mtime in nanoseconds."""

    size: int
    mtime_ns: int


@frozen
class Fingerprint:
    """The identity of a file version: device, inode, size, mtime and ctime, with times in nanoseconds.

    Programs cannot set the ctime.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    def is_old(self, now: float) -> bool:
        """Return whether the last change is long enough ago that another change will have different times.

        `now` is the current time in seconds, by the clock of file times.
        """
        latest = max(self.mtime_ns, self.ctime_ns)
        return now * 1e9 - latest > COARSEST * 1e9


#: The coarsest resolution of file times in seconds (2 on FAT), plus half a second.
COARSEST = 2.5


@frozen
class FoundFile:
    """A note file found by a listing. `path` is relative to `knowledge/`, with `/`."""

    path: str
    state: FileState


@frozen
class ReadFile:
    """The bytes of a note file, and the file's state when they were read."""

    data: bytes
    state: FileState

    @cached_property
    def digest(self) -> str:
        """The hash of the bytes."""
        return digest_of(self.data)


@frozen
class Put:
    """Write `data` to `path`.

    `expected` is the digest of the old bytes on which the caller based the change, or `None` if the file must
    not exist yet. `saves_old` means that the old bytes were never announced and must be kept in the displaced
    folder. `real` is the real path at the time of the decision, or `None` if `path` does not contain links.
    """

    path: str
    data: bytes
    expected: str | None
    saves_old: bool = False
    real: str | None = None


@frozen
class Remove:
    """Delete the file at `path` if it has the `expected` digest.

    `None` means that the file is already deleted.

    `real` is explained in `Put`. A file that is itself a link is not deleted (`LinkedFile`).
    """

    path: str
    expected: str | None
    saves_old: bool = False
    real: str | None = None


@frozen
class Move:
    """Rename the file at `path`, which has the `expected` digest, to the unused path `new`.

    `real` and `real_new` are explained in `Put`. A file that is itself a link is not moved (`LinkedFile`).
    """

    path: str
    new: str
    expected: str
    real: str | None = None
    real_new: str | None = None


def _without_empty(digests: Collection[str]) -> frozenset[str]:
    return frozenset(digests) - {""}


@frozen
class Kept:
    """A displaced file: its path, the path of its note, and the digests of bytes that need not be kept."""

    path: str
    note: str
    known: frozenset[str] = field(converter=_without_empty)
    is_leased: bool

    @classmethod
    def of(cls, path: str, note: str, known: Collection[str], is_leased: bool) -> Kept:
        """Return a displaced file.

        `is_leased` means that a program cannot open the file for writing unnoticed, because of a lease.
        """
        return cls(path, note, frozenset(known), is_leased)

    @property
    def grace(self) -> float:
        """The grace period in seconds, after which the file may be settled."""
        if not self.is_leased:
            return LONG_GRACE
        return LEAST_GRACE if self.is_beside else GRACE

    @property
    def is_beside(self) -> bool:
        """Return whether the file is in the folder of its note."""
        return os.path.dirname(self.path) == os.path.dirname(self.note)


class OutsideKnowledge(Exception):
    """The path leads out of `knowledge/` through a symlink (path traversal)."""


class PathRedirected(Exception):
    """The links in a path lead to another place than at the time when the change was decided."""

    def __init__(self, path: str, real: str) -> None:
        super().__init__(path)
        self.path = path
        #: The place to which the links lead now, relative to `knowledge/`.
        self.real = real


class LinkedFile(Exception):
    """The file is a symbolic link. Removals and moves do not follow links."""

    def __init__(self, path: str, real: str) -> None:
        super().__init__(f"{path} is a symbolic link to {real}")
        self.path = path
        self.real = real


class FileChanged(Exception):
    """The file is not the expected one any more (compare-and-swap). Read the file and decide again."""

    def __init__(self, path: str, kept: Kept | None = None) -> None:
        super().__init__(path)
        #: The file that the failed attempt displaced.
        self.kept = kept


class FileBusy(Exception):
    """Another program has the file open for writing, or changed it a moment ago. Retry later."""


class FileOccupied(Exception):
    """The file cannot be created, because it already exists."""


class NotSynced(OSError):
    """The change is visible but not durable (fsync failed). A power failure may undo it.

    `state` is the state of the written file, or `None` after a removal.
    """

    def __init__(self, failure: OSError, state: FileState | None) -> None:
        super().__init__(failure.errno, failure.strerror)
        self.state = state


def digest_of(data: bytes) -> str:
    """Return the content hash of a file: 128 bits of BLAKE2b in hex."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def state_of(status: os.stat_result) -> FileState:
    """Return the state of a file from its `stat` result."""
    return FileState(status.st_size, max(-_LATEST_NS, min(status.st_mtime_ns, _LATEST_NS)))
