"""Additional locks beside the lock file, which programs that sync or clean folders remove or replace.

An owner also holds its folders, by `flock`, and its database, by a byte that SQLite never locks: so one
whose lock file was taken away still keeps others out (docs/spec/lifecycle.md §2). `flock` on the database
itself would not do: BSD systems and network file systems take it for a lock of SQLite. Where the file
system supports none of these, the lock file alone counts.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import frozen

from lithos.stores import opened

DATABASE: Final = "coordination.db"
#: SQLite locks bytes at 1 GiB; its files end long before this one.
BYTE: Final = 1 << 62
#: What holding fails with where there is no lock of the kind: network file systems have none for folders.
UNKNOWN: Final = frozenset(
    {
        *(errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL),
        *(errno.EBADF, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS),
    }
)
#: The lock of an open file, which stays when SQLite closes the same database; those of a process go.
_SET_OFD: Final[int | None] = getattr(fcntl, "F_OFD_SETLK", None)
_KNOWS_STRUCT: Final = sys.platform == "linux" and struct.calcsize("P") == 8
_LOCKS: Final = Path("/proc/locks")

_TRIES: Final = 10
_PAUSE: Final = 0.01

Identity = tuple[int, int]


class Held(Exception):
    """Another process holds it; `pid` is its number where the system tells."""

    def __init__(self, path: Path, pid: int | None) -> None:
        super().__init__(f"{path} is held by another process")
        self.pid = pid


@frozen
class Hold:
    """One lock held until `close`; `descriptor` is None where there is no such lock."""

    path: Path
    identity: Identity
    descriptor: int | None

    def close(self) -> None:
        """Release the lock."""
        if self.descriptor is not None:
            os.close(self.descriptor)


def identity_of(path: Path) -> Identity | None:
    """Device and inode of what is at `path`; None when there is nothing."""
    with suppress(FileNotFoundError, NotADirectoryError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def places_of(lock: Path) -> tuple[Path, Path, Path]:
    """What is held beside a lock file: the data directory first, then the folder and the database in it."""
    return lock.parent.parent, lock.parent, lock.with_name(DATABASE)


def hold(path: Path) -> Hold | None:
    """Lock a folder or the database; None when there is nothing. Raises `Held` and `OSError`.

    A database must not be open in this process yet, or never be given up before it is closed: closing
    any descriptor of it ends the locks that SQLite holds.
    """
    identity = identity_of(path)
    if identity is None:
        return None
    try:
        descriptor = os.open(path, (os.O_RDONLY if path.is_dir() else os.O_RDWR) | os.O_CLOEXEC)
    except OSError as failure:
        return _without(path, identity, failure)
    try:
        identity = identity_of_open(descriptor)
        is_kept = try_flock(descriptor) if path.is_dir() else _try_byte(descriptor)
    except OSError as failure:
        os.close(descriptor)
        return _without(path, identity, failure)
    if not is_kept:
        os.close(descriptor)
        raise Held(path, _find_holder(identity))
    return Hold(path, identity, descriptor)


def _without(path: Path, identity: Identity, failure: OSError) -> Hold:
    if failure.errno not in UNKNOWN:
        raise failure
    return Hold(path, identity, None)


def is_held(path: Path) -> bool:
    """Whether some process holds a folder. (Of a database it must not be asked: see `hold`.)"""
    try:
        return path.is_dir() and is_locked(path)
    except OSError as failure:
        if failure.errno not in {*UNKNOWN, errno.ENOENT, errno.ENOTDIR}:
            raise
        return False


def is_locked(path: Path) -> bool:
    """Whether some process has an exclusive lock of a file or folder. Raises `OSError`."""
    with opened(path, os.O_RDONLY) as descriptor:
        try:
            # Shared: many may ask at once, and none takes another for the owner.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def try_flock(descriptor: int) -> bool:
    """Take an exclusive lock; retries for a moment, since a probe (`is_held`) holds it for an instant."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if _is_exclusive(descriptor):
                return False
            time.sleep(_PAUSE)
        else:
            return True
    return False


def _is_exclusive(descriptor: int) -> bool:
    """True when who holds the lock is an owner: those that only ask share it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def _try_byte(descriptor: int) -> bool:
    if _SET_OFD is None or not _KNOWS_STRUCT:
        raise OSError(errno.ENOSYS, "locks of open files are not known here")
    try:
        fcntl.fcntl(descriptor, _SET_OFD, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, BYTE, 1, 0))
    except BlockingIOError:
        return False
    return True


def identity_of_open(descriptor: int) -> Identity:
    """Device and inode of an open file."""
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _find_holder(identity: Identity) -> int | None:
    """The process that holds a `flock`, as Linux lists them; None where that cannot be seen."""
    device, inode = identity
    wanted = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    return next((pid for pid, place in _listed() if place == wanted and pid > 0), None)


def _listed() -> Iterator[tuple[int, str]]:
    with suppress(OSError, ValueError):
        for line in _LOCKS.read_text().splitlines():
            parts = line.split()
            if parts[1] == "FLOCK":
                yield int(parts[4]), parts[5]
