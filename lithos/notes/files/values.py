"""Values of the note store: file states, changes, failures of changes, and names of private files.

After a crash, the name of a private file shows its purpose and its note (recovery). All private files have
dot-names, so other programs do not treat them as notes. If possible, swap files are in a `PrivateFolder`,
which is hidden from other programs. All other private files are next to their notes.

* `.lithos-….tmp`: a file of Lithos that may be incomplete. Without the process that wrote it, the file is
  useless. New bytes are in such a file only if the file system cannot write files without a name
  (`Protection.unnamed`).
* `.lithos-….swap`: new bytes of a note, or a file that lost its name. The file may be deleted if its bytes
  are known.
* `.lithos-….aside`: a file that lost its name, like a swap file. But the note may not have a file at present.
  In that case, the aside file is renamed back.
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
#: Stands for a missing digest in a file name.
_NONE = "0"


@frozen
class PrivateName:
    """The parsed name of a private file.

    `known` are the digests of bytes that need not be kept, `note` the name of the note if it was short
    enough.
    """

    kind: Kind
    known: frozenset[str]
    note: str | None


@frozen
class PrivateFolder:
    """A folder for the private files of all notes below `root`, on the same volume. Both are real paths."""

    folder: str
    root: str

    def stand_in(self, target: str) -> str:
        """Return a path in this folder for a note.

        The file name is the path of the note, with `%2F` for `/`.
        """
        name = os.path.relpath(target, self.root).replace("%", "%25").replace(os.sep, "%2F")
        return os.path.join(self.folder, name)

    def note_of(self, name: str) -> str:
        """Return the path of the note for which `stand_in` made a name."""
        return os.path.join(self.root, name.replace("%2F", os.sep).replace("%25", "%"))


def temporary_name(calls: SystemCalls, folder: str) -> str:
    """Return a path for a private file that may be incomplete."""
    return os.path.join(folder, f"{TEMPORARY_PREFIX}{calls.token()}{calls.token()}{TEMPORARY_SUFFIX}")


def private_name(
    calls: SystemCalls, target: str, kind: Kind, *known: str, place: PrivateFolder | None = None
) -> str:
    """Return a private path for a complete file of the note `target`. The file will be, is or was the note.

    `known` are up to two digests of bytes that need not be kept.

    The path is in `place`. If there is no `place`, or the note's path is too long for a name there, the path
    is next to the note.
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
    """Parse the name of a swap or aside file. Return None for any other name."""
    stem, _, kind = name.rpartition(".")
    parts = stem.split(".", 4)
    if not name.startswith(TEMPORARY_PREFIX) or len(parts) != 5 or kind not in ("swap", "aside"):
        return None
    known = frozenset(part for part in parts[2:4] if part != _NONE)
    return PrivateName("swap" if kind == "swap" else "aside", known, parts[4] or None)


def is_temporary(name: str) -> bool:
    """Return whether a name belongs to a private file that may be incomplete."""
    return name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)


#: Maximum time in nanoseconds, because this is the largest integer in SQLite. Later times are never compared.
_LATEST_NS = 2**63 - 1


#: Grace periods of a displaced file in seconds, with and without a lease. With a lease, only a program that
#: looked up the path before the exchange can still open and write the file. Without a lease, any program that
#: had the file open can still write to it.
GRACE, LONG_GRACE = 1.0, 60.0
#: Grace period in seconds of a displaced file with a lease that is next to its note, where other programs see
#: it. This is still far longer than an open() takes.
LEAST_GRACE = 0.1


@frozen
class FileState:
    """The state of a file according to `stat`: size in bytes and mtime in nanoseconds."""

    size: int
    mtime_ns: int


@frozen
class Fingerprint:
    """The identity of a file version: device, inode, size, mtime and ctime. Times are in nanoseconds.

    Programs cannot set the ctime.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    def is_old(self, now: float) -> bool:
        """Return whether another change would certainly get different times.

        Another change gets different times if the last change was long ago.

        `now` is the current time in seconds, according to the clock of file times.
        """
        latest = max(self.mtime_ns, self.ctime_ns)
        return now * 1e9 - latest > COARSEST * 1e9


#: The coarsest resolution of file times in seconds (2 on FAT), plus half a second as a margin.
COARSEST = 2.5


@frozen
class FoundFile:
    """A note file found by a listing. `path` is relative to `knowledge/`, with `/` as separator."""

    path: str
    state: FileState


@frozen
class ReadFile:
    """The bytes of a note file, with the file's state when it was read."""

    data: bytes
    state: FileState

    @cached_property
    def digest(self) -> str:
        """The content hash of the bytes."""
        return digest_of(self.data)


@frozen
class Put:
    """A change that writes `data` to `path`.

    `expected` is the digest of the old bytes on which the caller based the change. It is `None` if the file
    must not exist yet. `saves_old` means that the old bytes were never announced, so they must be kept in the
    displaced folder. `real` is the real path at the time of the decision, or `None` if `path` does not
    contain links.
    """

    path: str
    data: bytes
    expected: str | None
    saves_old: bool = False
    real: str | None = None


@frozen
class Remove:
    """A change that deletes the file at `path` if its digest is `expected`.

    If `expected` is `None`, the file is already deleted.

    For `real`, see `Put`. A file that is itself a symbolic link is not deleted (`LinkedFile`).
    """

    path: str
    expected: str | None
    saves_old: bool = False
    real: str | None = None


@frozen
class Move:
    """A change that renames the file at `path` to the unused path `new`.

    The digest of the file must be `expected`.

    For `real` and `real_new`, see `Put`. A file that is itself a symbolic link is not moved (`LinkedFile`).
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
    """A displaced file with its path and the path of its note.

    `known` are the digests of bytes that need not be kept.
    """

    path: str
    note: str
    known: frozenset[str] = field(converter=_without_empty)
    is_leased: bool

    @classmethod
    def of(cls, path: str, note: str, known: Collection[str], is_leased: bool) -> Kept:
        """Return the displaced file at a path.

        `is_leased` means that a lease reveals any program that opens the file for writing.
        """
        return cls(path, note, frozenset(known), is_leased)

    @property
    def grace(self) -> float:
        """The grace period of the file in seconds. After it, the caller may settle the file."""
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
    """The links in a path lead to another file now than when the change was decided."""

    def __init__(self, path: str, real: str) -> None:
        super().__init__(path)
        self.path = path
        #: The path to which the links lead now, relative to `knowledge/`.
        self.real = real


class LinkedFile(Exception):
    """The file itself is a symbolic link. Removals and moves do not follow links."""

    def __init__(self, path: str, real: str) -> None:
        super().__init__(f"{path} is a symbolic link to {real}")
        self.path = path
        self.real = real


class FileChanged(Exception):
    """The file is no longer the expected file (compare-and-swap). Read the file again and decide again."""

    def __init__(self, path: str, kept: Kept | None = None) -> None:
        super().__init__(path)
        #: The file that the failed attempt displaced, or None.
        self.kept = kept


class FileBusy(Exception):
    """Another program has the file open for writing, or changed the file a moment ago. Retry later."""


class FileOccupied(Exception):
    """The file cannot be created, because it already exists."""


class NotSynced(OSError):
    """The change is visible but not durable, because fsync failed. A power failure may undo the change.

    `state` is the state of the written file. It is `None` after a removal.
    """

    def __init__(self, failure: OSError, state: FileState | None) -> None:
        super().__init__(failure.errno, failure.strerror)
        self.state = state


def digest_of(data: bytes) -> str:
    """Return the BLAKE2b hash of a file's content. The hash has 128 bits, written in hex."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def state_of(status: os.stat_result) -> FileState:
    """Return the state of a file from its `stat` result."""
    return FileState(status.st_size, max(-_LATEST_NS, min(status.st_mtime_ns, _LATEST_NS)))
