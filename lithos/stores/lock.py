"""The owner record of a data directory: one process at a time (lifecycle spec, section 2).

`.lithos/lock` is held by an operating-system lock that dies with its process, so a leftover file
is no obstacle; its content tells others who holds it.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

_TRIES = 10
_PAUSE = 0.01


@frozen
class OwnerRecord:
    """Who owns the data directory; `started_at` is ISO 8601 in UTC."""

    pid: int
    host: str
    url: str | None
    started_at: str
    token: str | None = None


class AlreadyOwned(Exception):
    """Another live process owns the data directory."""

    def __init__(self, path: Path, owner: OwnerRecord | None) -> None:
        who = (
            f"process {owner.pid} on {owner.host} since {owner.started_at}"
            + (f", serving {owner.url}" if owner.url else "")
            if owner
            else "another process"
        )
        super().__init__(
            f"The data directory is in use by {who}. Connect to that server, stop it first, "
            "or choose another data directory with --data-dir."
        )
        self.path = path
        self.owner = owner


class OwnerLock:
    """Holds `.lithos/lock` from `acquire` to `release`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, started_at: str) -> None:
        """Take the lock or raise `AlreadyOwned`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _try_lock(descriptor):
                raise AlreadyOwned(self.path, read_owner(self.path))
        except BaseException:
            os.close(descriptor)
            raise
        os.fchmod(descriptor, 0o600)
        self._descriptor = descriptor
        self.publish(OwnerRecord(os.getpid(), socket.gethostname(), None, started_at))

    def publish(self, record: OwnerRecord) -> None:
        """Replace the record others read, once the address is known."""
        assert self._descriptor is not None
        content: dict[str, Any] = {key: value for key, value in asdict(record).items() if value is not None}
        data = json.dumps(content).encode()
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))

    def release(self) -> None:
        """Give the lock up; calling it twice is harmless."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def _try_lock(descriptor: int) -> bool:
    """Take the lock; tries again for a moment, since who only asks (`is_owned`) holds it for an instant."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        else:
            return True
    return False


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
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_owned(path: Path) -> bool:
    """True while a live process holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
