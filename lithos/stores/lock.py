"""The ownership lock of a data directory: mutual exclusion of processes (docs/spec/lifecycle.md §2).

`.lithos/lock` is held by an operating-system lock (`flock`) that dies with its process, so a leftover file
is no obstacle; its content, the owner record, tells others who holds it. Other programs may remove or replace
it: `holds` keep a second owner out then, and `confirm` writes it again. Where the file system has no locks,
`owner_record` decides.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from lithos.stores import PRIVATE_FOLDER, overwrite, owner_record
from lithos.stores.holds import (
    Held,
    Hold,
    Identity,
    hold,
    identity_of,
    identity_of_open,
    is_held,
    is_locked,
    places_of,
    try_flock,
)
from lithos.stores.owner_record import NO_LOCKS, OwnerRecord, encode_owner, read_owner
from lithos.telemetry import get_logger

__all__ = ["CONFIRM_EVERY", "AlreadyOwned", "OwnerLock", "OwnerRecord", "is_owned", "read_owner"]

log = get_logger("lithos.lock")

#: Seconds between two calls of `confirm`.
CONFIRM_EVERY: Final = owner_record.REFRESH
#: Seconds for which `/health` reports a lock file that had to be written again.
TOLD_FOR: Final = 3600.0
#: How often to follow a lock file that is replaced while it is being locked.
_TRIES: Final = 10

#: Lock files that this process holds, resolved.
_ours: set[Path] = set()


class AlreadyOwned(Exception):
    """Another live process owns the data directory."""

    def __init__(self, path: Path, owner: OwnerRecord | None, pid: int | None = None) -> None:
        who = "another process" if pid is None else f"process {pid}"
        if owner is not None:
            who = f"process {owner.pid} on {owner.host} since {owner.started_at}"
            who += f", serving {owner.url}" if owner.url else ""
        super().__init__(
            f"The data directory is in use by {who}. Connect to that server, stop it first, "
            "or choose another data directory with --data-dir."
        )
        self.path = path
        self.owner = owner


class FurtherLock(Protocol):
    """A lock that is taken after the data directory's and given up with it: that of a vault."""

    def acquire(self) -> None: ...

    def publish(self, record: OwnerRecord) -> None: ...

    def confirm(self) -> None: ...

    def release(self) -> None: ...


class OwnerLock:
    """Holds `.lithos/lock` from `acquire` to `release`; `clock` gives Unix time.

    `confirm` may run in another thread than the rest.
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.time, vault: FurtherLock | None = None
    ) -> None:
        """`vault` is the lock of the vault that is served, if any."""
        self._vault = vault
        self.path = path
        self._clock = clock
        self._turn = threading.Lock()
        self._name = path
        self._descriptor: int | None = None
        self._record: OwnerRecord | None = None
        #: Whether the file system has no locks: then the record needs a heartbeat, by which others judge.
        self._needs_refresh = False
        #: Holds on the original folders and database, and on those that have replaced them since.
        self._holds: dict[Path, Hold] = {}
        self._later: dict[Path, Hold] = {}
        #: The current problem, and the last repaired one with its time.
        self._lasting: str | None = None
        self._passing: tuple[float, str] | None = None

    @property
    def trouble(self) -> str | None:
        """What other programs did to the lock, and what to do about it; for `/health`."""
        if self._lasting is not None or self._passing is None:
            return self._lasting
        at, what = self._passing
        return what if abs(self._clock() - at) < TOLD_FOR else None

    # -- taking and giving up --------------------------------------------------------------------

    def acquire(self, started_at: str) -> None:
        """Acquire the lock, or raise `AlreadyOwned` without waiting for its owner."""
        self.path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        name = self.path.resolve()
        if name in _ours:
            raise AlreadyOwned(self.path, read_owner(self.path), os.getpid())
        record = OwnerRecord(os.getpid(), socket.gethostname(), None, started_at)
        with ExitStack() as undo:
            undo.callback(self._give_places_up)
            for place in places_of(self.path):
                self._hold(place, self._holds)
            descriptor = self._open_locked(record)
            undo.pop_all()
        self._name, self._descriptor, self._record = name, descriptor, record
        self._lasting = self._passing = None
        _ours.add(name)
        with ExitStack() as undo:
            undo.callback(self.release)
            if self._vault is not None:
                self._vault.acquire()
            self.publish(record)
            undo.pop_all()

    def hold_database(self) -> None:
        """Lock the database too, once it has been created; it must be closed before `release`."""
        database = places_of(self.path)[-1]
        now, held = identity_of(database), self._holds.get(database)
        if held is not None and held.identity == now:
            return
        if now is None or not self._has_later(database, now):
            self._hold(database, self._holds)
            return
        self._holds[database] = self._later.pop(database)  # a heartbeat saw the new one first
        if held is not None:
            held.close()

    def publish(self, record: OwnerRecord) -> None:
        """Write the owner record, again once the address of the server is known."""
        with self._turn:
            assert self._descriptor is not None
            overwrite(self._descriptor, encode_owner(record))
            self._record = record
            if self._vault is not None:
                self._vault.publish(record)
            if self._needs_refresh:
                owner_record.refresh(self.path, self._clock())

    def release(self) -> None:
        """Release the lock; idempotent."""
        with self._turn:
            if self._descriptor is None:
                return
            descriptor, self._descriptor = self._descriptor, None
            try:
                if self._vault is not None:
                    self._vault.release()
                if self._record is not None and (
                    not self._needs_refresh or owner_record.is_ours(self.path, self._record)
                ):
                    os.ftruncate(descriptor, 0)
            finally:
                owner_record.drop(self.path)
                _ours.discard(self._name)
                self._give_places_up()
                os.close(descriptor)  # last: whoever sees it free finds everything free

    def _give_places_up(self) -> None:
        for held in (self._later, self._holds):
            for one in held.values():
                one.close()
            held.clear()

    def _hold(self, place: Path, among: dict[Path, Hold]) -> None:
        try:
            held = hold(place)
        except Held as other:
            raise AlreadyOwned(self.path, _living_owner(self.path), other.pid) from other
        if held is not None:
            if place in among:
                among[place].close()
            among[place] = held

    def _open_locked(self, record: OwnerRecord) -> int:
        """Open or create the file at the path, and lock it. Raises `AlreadyOwned`."""
        for _ in range(_TRIES):
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if not self._take(descriptor, record):
                    raise AlreadyOwned(self.path, read_owner(self.path))
                if identity_of(self.path) == identity_of_open(descriptor):
                    os.fchmod(descriptor, 0o600)
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
        raise OSError(f"{self.path} is replaced again and again by another program")

    def _take(self, descriptor: int, record: OwnerRecord) -> bool:
        try:
            return try_flock(descriptor)
        except OSError as failure:
            if failure.errno not in NO_LOCKS:
                raise
        write = partial(overwrite, descriptor, encode_owner(record))
        self._needs_refresh = owner_record.hold(self.path, self._clock(), write)
        return self._needs_refresh

    # -- keeping it ------------------------------------------------------------------------------

    def confirm(self) -> None:
        """Heartbeat, every `CONFIRM_EVERY` seconds: verify that the lock file is in its place, or restore it.

        Raises `AlreadyOwned` when another process got the directory meanwhile: one may where the file
        system has no locks and this process was stopped for longer than `FRESH` seconds, or where the
        whole data directory was replaced.
        """
        with self._turn:
            if self._descriptor is None or self._record is None:
                return
            try:
                if self._vault is not None:
                    self._vault.confirm()
                trouble = self._confirm_places()
                self._confirm_file(self._record, self._descriptor)
            except OSError as failure:
                trouble = (
                    f"The lock file {self.path} was removed or replaced by another program, and cannot be "
                    f"written again ({failure}). See that its folder may be written; it is tried again"
                )
            if trouble is not None and self._lasting is None:
                log.warning("lock not in its place", path=str(self.path), reason=trouble)
            self._lasting = trouble

    def _confirm_places(self) -> str | None:
        """Lock also folders and databases that replaced the held ones; returns the problem to report."""
        data, private, _ = places_of(self.path)
        found = identity_of(private)
        if found is None and identity_of(data) is not None:
            private.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        moved: str | None = None
        for place in places_of(self.path):
            first, now = self._holds.get(place), identity_of(place)
            if first is None or now == first.identity:
                continue
            moved = moved or _moved(place)
            if now is not None and not self._has_later(place, now):
                self._hold_later(place)
        return moved

    def _has_later(self, place: Path, now: Identity) -> bool:
        return place in self._later and self._later[place].identity == now

    def _hold_later(self, place: Path) -> None:
        try:
            self._hold(place, self._later)
        except AlreadyOwned:
            if not self._is_taken():
                return  # it may be this very process, on a file system that numbers its files anew
            raise

    def _confirm_file(self, record: OwnerRecord, descriptor: int) -> None:
        if self._needs_refresh and self._is_taken():
            raise AlreadyOwned(self.path, read_owner(self.path))
        if identity_of(self.path) != identity_of_open(descriptor):
            self._note("removed or replaced")
            owner_record.drop(self.path)  # else a copy of the record would look like another owner's
            try:
                self._descriptor = self._open_locked(record)
            except AlreadyOwned:
                if self._is_taken():
                    raise
                return
            os.close(descriptor)
            overwrite(self._descriptor, encode_owner(record))
        elif read_owner(self.path) != record:
            self._note("overwritten")
            overwrite(descriptor, encode_owner(record))
        if self._needs_refresh:
            owner_record.refresh(self.path, self._clock())

    def _is_taken(self) -> bool:
        """Whether the record names another owner that is alive."""
        found, ours = _living_owner(self.path), self._record
        if found is None or ours is None or (found.pid, found.host) == (ours.pid, ours.host):
            return False
        return not self._needs_refresh or owner_record.owns(self.path, self._clock())

    def _note(self, what: str) -> None:
        told = (
            f"The lock file {self.path} was {what} by another program, and has been written again. Keep "
            "programs that sync or clean folders away from .lithos"
        )
        log.warning("lock file written again", path=str(self.path), reason=what)
        self._passing = self._clock(), told


def _moved(place: Path) -> str:
    return (
        f"{place} was moved, removed or replaced while the server ran. Stop the server, put back what is "
        "missing or restore a backup, and start it again"
    )


def _living_owner(path: Path) -> OwnerRecord | None:
    """The owner in the record, unless that is a process of this host that has ended."""
    record = read_owner(path)
    if record is None or (record.host == socket.gethostname() and not owner_record.is_alive(record.pid)):
        return None
    return record


def is_owned(path: Path, clock: Callable[[], float] = time.time) -> bool:
    """True while a live process holds the lock, or the folders of one that was removed."""
    data, private, _ = places_of(path)
    return _is_file_owned(path, clock) or is_held(data) or is_held(private)


def _is_file_owned(path: Path, clock: Callable[[], float]) -> bool:
    try:
        return is_locked(path)
    except FileNotFoundError:
        return False
    except OSError as failure:
        if failure.errno not in NO_LOCKS:
            raise
        return owner_record.owns(path, clock())
