"""The owner record of a data directory: one process at a time (lifecycle spec, section 2).

`.lithos/lock` is held by an operating-system lock that dies with its process, so a leftover file
is no obstacle; its content tells others who holds it. Where the file system knows no locks,
`lockless` decides.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lithos.stores import lockless
from lithos.stores.lockless import NO_LOCKS
from lithos.stores.owner_record import OwnerRecord, encode_owner, read_owner

__all__ = ["AlreadyOwned", "OwnerLock", "OwnerRecord", "is_owned", "read_owner"]

_TRIES = 10
_PAUSE = 0.01


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
    """Holds `.lithos/lock` from `acquire` to `release`; `clock` gives Unix time."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._descriptor: int | None = None
        self._record: OwnerRecord | None = None
        self._needs_refresh = False

    @property
    def needs_refresh(self) -> bool:
        """Whether the file system knows no locks: then `refresh` must be called every `REFRESH` seconds."""
        return self._needs_refresh

    def acquire(self, started_at: str) -> None:
        """Take the lock or raise `AlreadyOwned`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        record = OwnerRecord(os.getpid(), socket.gethostname(), None, started_at)
        try:
            if not self._take(descriptor, record):
                raise AlreadyOwned(self.path, read_owner(self.path))
            os.fchmod(descriptor, 0o600)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self.publish(record)

    def _take(self, descriptor: int, record: OwnerRecord) -> bool:
        try:
            return _try_lock(descriptor)
        except OSError as failure:
            if failure.errno not in NO_LOCKS:
                raise
        self._needs_refresh = lockless.hold(self.path, self._clock(), partial(_write, descriptor, record))
        return self._needs_refresh

    def publish(self, record: OwnerRecord) -> None:
        """Replace the record others read, once the address is known."""
        assert self._descriptor is not None
        _write(self._descriptor, record)
        self._record = record
        if self._needs_refresh:
            lockless.refresh(self.path, self._clock())

    def refresh(self) -> None:
        """Say that the owner is alive; raises `AlreadyOwned` when another one took the directory meanwhile.

        That happens to a process that was stopped for longer than `FRESH` seconds.
        """
        assert self._record is not None
        if not lockless.is_ours(self.path, self._record):
            raise AlreadyOwned(self.path, read_owner(self.path))
        lockless.refresh(self.path, self._clock())

    def release(self) -> None:
        """Give the lock up; calling it twice is harmless."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            if self._record is not None and (
                not self._needs_refresh or lockless.is_ours(self.path, self._record)
            ):
                os.ftruncate(descriptor, 0)
        finally:
            lockless.drop(self.path)
            os.close(descriptor)


def _write(descriptor: int, record: OwnerRecord) -> None:
    data = encode_owner(record)
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))


def _try_lock(descriptor: int) -> bool:
    """Take the lock; tries again for a moment, since who only asks (`is_owned`) holds it for an instant."""
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


def is_owned(path: Path, clock: Callable[[], float] = time.time) -> bool:
    """True while a live process holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared: many may ask at once, and none takes another for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as failure:
        if failure.errno not in NO_LOCKS:
            raise
        return lockless.owns(path, clock())
    else:
        return False
    finally:
        os.close(descriptor)
