"""Ownership where the file system knows no locks, as on some network shares (lifecycle spec, section 2).

The record in the lock file then decides: its process lives on this host, or another host refreshed
the file less than `FRESH` seconds ago. Who owns must therefore refresh it every `REFRESH` seconds.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from lithos.stores.owner_record import OwnerRecord, read_owner

FRESH: Final = 60.0
REFRESH: Final = 20.0
#: What `flock` fails with where there are no locks.
NO_LOCKS: Final = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS})

#: Lock files that this process holds: a leftover record may name our own number (containers start at 1).
_held: set[Path] = set()


def owns(path: Path, now: float) -> bool:
    """Whether the record at `path` names a living owner; `now` is Unix time."""
    record = read_owner(path)
    if record is None:
        return False
    if record.host != socket.gethostname():
        return _age(path, now) < FRESH
    if record.pid == os.getpid():
        return path.resolve() in _held
    return _is_alive(record.pid)


def hold(path: Path, now: float, write_record: Callable[[], None]) -> bool:
    """Take the file for this process; False when it has an owner or another process just takes it."""
    with _entered(path, now) as entered:
        if not entered or owns(path, now):
            return False
        write_record()
        refresh(path, now)
        _held.add(path.resolve())
        return True


def refresh(path: Path, now: float) -> None:
    """Say that the owner is alive. The own clock decides: the file server's may be another."""
    os.utime(path, (now, now))


def is_ours(path: Path, record: OwnerRecord) -> bool:
    """Whether the file still names this owner."""
    found = read_owner(path)
    return found is not None and (found.pid, found.host) == (record.pid, record.host)


def drop(path: Path) -> None:
    """Forget that this process holds the file."""
    _held.discard(path.resolve())


@contextmanager
def _entered(path: Path, now: float) -> Iterator[bool]:
    """One process at a time decides who owns; only the creation of a file is atomic without locks."""
    door = path.with_name(f"{path.name}.taking")
    try:
        os.close(os.open(door, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        refresh(door, now)
    except FileExistsError:
        if _age(door, now) >= FRESH:  # left by a crash in the few instructions below
            with suppress(FileNotFoundError):
                door.unlink()
        yield False
        return
    try:
        yield True
    finally:
        with suppress(FileNotFoundError):
            door.unlink()


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
