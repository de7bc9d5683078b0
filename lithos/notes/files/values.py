"""Values of the note store: file states, changes to make and their failures; and names of our own files.

After a crash the names of our own files show what a file is and where it belongs (recovery). All are
dot-names, so that no program takes them for notes. Those of the second kind are in a `PrivateFolder`, hidden
from other programs, where the file system allows it. Otherwise they are next to their notes, like all others.

* `.lithos-….tmp`: ours, may be partial; worthless without the process that made it. Of new bytes
  only where files cannot be written before they have a name (`Protection.unnamed`).
* `.lithos-….swap`: new bytes on their way in, or a file that lost its name. It may be deleted if its
  bytes are known.
* `.lithos-….aside`: the same, but while it exists the note's own name may be free: then it is
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

#: Longest file name in bytes.
_LONGEST = 255
#: Stands for a missing digest.
_NONE = "0"


@frozen
class PrivateName:
    """A parsed name: the digests of bytes that need not be kept, and the note, if its name fitted in."""

    kind: Kind
    known: frozenset[str]
    note: str | None


@frozen
class PrivateFolder:
    """A folder for the private files of all notes below `root`, on the same volume; both are real paths."""

    folder: str
    root: str

    def stand_in(self, target: str) -> str:
        """Return a path in the folder whose name identifies the note: its path with `/` as `%2F`."""
        name = os.path.relpath(target, self.root).replace("%", "%25").replace(os.sep, "%2F")
        return os.path.join(self.folder, name)

    def note_of(self, name: str) -> str:
        """Return the path of the note that the name of a `stand_in` means."""
        return os.path.join(self.root, name.replace("%2F", os.sep).replace("%25", "%"))


def temporary_name(calls: SystemCalls, folder: str) -> str:
    """Return a path for a file of ours that may be partial."""
    return os.path.join(folder, f"{TEMPORARY_PREFIX}{calls.token()}{calls.token()}{TEMPORARY_SUFFIX}")


def private_name(
    calls: SystemCalls, target: str, kind: Kind, *known: str, place: PrivateFolder | None = None
) -> str:
    """Return a path for a whole file that is, was or will be the note `target`; `known` are up to two
    digests.

    The path is in the `place`, or next to the note if there is no place or its name would not hold the note's
    path.
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
    """Parse the name of a swap or aside file; None for all other names."""
    stem, _, kind = name.rpartition(".")
    parts = stem.split(".", 4)
    if not name.startswith(TEMPORARY_PREFIX) or len(parts) != 5 or kind not in ("swap", "aside"):
        return None
    known = frozenset(part for part in parts[2:4] if part != _NONE)
    return PrivateName("swap" if kind == "swap" else "aside", known, parts[4] or None)


def is_temporary(name: str) -> bool:
    """Return whether a file is ours and may be partial."""
    return name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)


#: The maximum of SQLite's integers; some file systems have later times, which are never compared.
_LATEST_NS = 2**63 - 1


#: Grace period in seconds of a displaced file. With a lease, only a program that looked the path up before
#: the exchange and opens it later could still write to it; without one, any program that had it open.
GRACE, LONG_GRACE = 1.0, 60.0
#: Seconds with a lease and next to its note, where others see it: still far more than an open() takes.
LEAST_GRACE = 0.1


@frozen
class FileState:
    """The stat fingerprint of a file: size in bytes, mtime in nanoseconds."""

    size: int
    mtime_ns: int


@frozen
class Fingerprint:
    """Identifies a version of a file: device, inode, size and both times in nanoseconds.

    No program can set the time of the status.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    def is_old(self, now: float) -> bool:
        """Return whether the file was last changed so long ago that a further change has other times.

        `now`: seconds of the clock that file times are in.
        """
        latest = max(self.mtime_ns, self.ctime_ns)
        return now * 1e9 - latest > COARSEST * 1e9


#: The coarsest file times, in seconds (FAT: 2), and half a second.
COARSEST = 2.5


@frozen
class FoundFile:
    """A note file met while listing; `path` is relative to `knowledge/`, with `/`."""

    path: str
    state: FileState


@frozen
class ReadFile:
    """The bytes of a note file and the state they were read in."""

    data: bytes
    state: FileState

    @cached_property
    def digest(self) -> str:
        """The hash of the bytes."""
        return digest_of(self.data)


@frozen
class Put:
    """Write `data` to `path`.

    `expected` is the digest of the bytes the caller decided upon; `None` means the file must not exist yet.
    `saves_old`: the old bytes were never announced, so that they have to be kept in the displaced folder.
    `real`: where links lead from `path`, as the change was decided; `None` where there is no link on the way.
    """

    path: str
    data: bytes
    expected: str | None
    saves_old: bool = False
    real: str | None = None


@frozen
class Remove:
    """Delete the file at `path`, if it has the `expected` digest; `None` means that it is gone already.

    `real` as in `Put`; a file that is itself a link is not deleted (`LinkedFile`).
    """

    path: str
    expected: str | None
    saves_old: bool = False
    real: str | None = None


@frozen
class Move:
    """Rename the file at `path`, which has the `expected` digest, to the unused path `new`.

    `real` and `real_new` as in `Put`; a file that is itself a link is not moved (`LinkedFile`).
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
    """A displaced file: its path, that of the note it was, and the digests of bytes that need not be kept."""

    path: str
    note: str
    known: frozenset[str] = field(converter=_without_empty)
    is_leased: bool

    @classmethod
    def of(cls, path: str, note: str, known: Collection[str], is_leased: bool) -> Kept:
        """Make one; `is_leased`: under a read lease, no program could open it for writing unnoticed."""
        return cls(path, note, frozenset(known), is_leased)

    @property
    def grace(self) -> float:
        """Grace period: seconds until it may be settled."""
        if not self.is_leased:
            return LONG_GRACE
        return LEAST_GRACE if self.is_beside else GRACE

    @property
    def is_beside(self) -> bool:
        """Whether the file is in the folder of its note."""
        return os.path.dirname(self.path) == os.path.dirname(self.note)


class OutsideKnowledge(Exception):
    """Path traversal: the path leads out of `knowledge/` through a symlink."""


class PathRedirected(Exception):
    """Links lead from a path to another place than the one for which the change was decided."""

    def __init__(self, path: str, real: str) -> None:
        super().__init__(path)
        self.path = path
        #: The current target of the links, relative to `knowledge/`.
        self.real = real


class LinkedFile(Exception):
    """The file is a symbolic link, which neither a removal nor a move follows."""

    def __init__(self, path: str, real: str) -> None:
        super().__init__(f"{path} is a symbolic link to {real}")
        self.path = path
        self.real = real


class FileChanged(Exception):
    """Compare-and-swap failed: the file is not the expected one any more; read it and decide again."""

    def __init__(self, path: str, kept: Kept | None = None) -> None:
        super().__init__(path)
        #: The file that was displaced by the attempt.
        self.kept = kept


class FileBusy(Exception):
    """Another program has the file open for writing, or changed it a moment ago: retry later."""


class FileOccupied(Exception):
    """Create failed: a file that must not exist exists."""


class NotSynced(OSError):
    """The change is visible but not durable (fsync failed): a power failure may undo it.

    `state` is that of the written file, `None` after a removal.
    """

    def __init__(self, failure: OSError, state: FileState | None) -> None:
        super().__init__(failure.errno, failure.strerror)
        self.state = state


def digest_of(data: bytes) -> str:
    """Content hash of a file: 128 bits of BLAKE2b in hex."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def state_of(status: os.stat_result) -> FileState:
    """Return the state of a file by its `stat` result."""
    return FileState(status.st_size, max(-_LATEST_NS, min(status.st_mtime_ns, _LATEST_NS)))
