"""The owner record in `.lithos/lock`, which is a lease where the file system has no locks (network shares).

There the record decides (docs/spec/lifecycle.md §2): its process lives on this host, or another host
refreshed the file less than `FRESH` seconds ago. The owner must refresh it every `REFRESH` seconds.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from attrs import asdict, field, frozen


@frozen
class OwnerRecord:
    """Who owns the data directory; `started_at` is ISO 8601 in UTC."""

    pid: int
    host: str
    url: str | None
    started_at: str
    #: Admits commands and hooks of the user who may read the lock file (mode 0600).
    token: str | None = field(default=None, repr=False)
    #: The address is for those alone, as that of a server on stdio; clients are given another.
    private: bool = False
    #: Where clients elsewhere see it.
    public_url: str | None = None


def encode_owner(record: OwnerRecord) -> bytes:
    """The content of the lock file."""
    content: dict[str, Any] = {key: value for key, value in asdict(record).items() if value is not None}
    return json.dumps(content).encode()


def read_owner(path: Path) -> OwnerRecord | None:
    """The record in a lock file, or None when there is none that can be read."""
    try:
        content = json.loads(path.read_bytes())
        return OwnerRecord(
            pid=int(content["pid"]),
            host=str(content["host"]),
            url=content.get("url"),
            started_at=str(content["started_at"]),
            token=content.get("token"),
            # Earlier servers had a token of their own only for such an address.
            private=bool(content.get("private", content.get("token") is not None)),
            public_url=content.get("public_url"),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


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
    return is_alive(record.pid)


def hold(path: Path, now: float, write_record: Callable[[], None]) -> bool:
    """Acquire ownership for this process; False when there is an owner or another process is acquiring it."""
    with _entered(path, now) as entered:
        if not entered or owns(path, now):
            return False
        write_record()
        refresh(path, now)
        _held.add(path.resolve())
        return True


def refresh(path: Path, now: float) -> None:
    """Heartbeat: set the file's mtime by the own clock, as that of the file server may differ."""
    os.utime(path, (now, now))


def is_ours(path: Path, record: OwnerRecord) -> bool:
    """Whether the file still names this owner."""
    found = read_owner(path)
    return found is not None and (found.pid, found.host) == (record.pid, record.host)


def drop(path: Path) -> None:
    """Release: forget that this process holds the file."""
    _held.discard(path.resolve())


@contextmanager
def _entered(path: Path, now: float) -> Iterator[bool]:
    """Critical section of processes: without locks only the exclusive creation of a file is atomic."""
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


def is_alive(pid: int) -> bool:
    """Whether this host has such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
