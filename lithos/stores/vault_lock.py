"""The ownership lock of a vault: one owner, whatever data directory it keeps its state in.

Specified in docs/spec/vault.md §1.

The vault's folder itself is held by an operating-system lock, so that nothing is made in it. Who holds it is
written to a record under `$XDG_STATE_HOME/lithos/vaults/`, for the message that a second owner gets; where
folders cannot be locked (network file systems), the lock of that record is the one that counts. The record is
never taken for a lock that nobody holds.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from lithos.stores import overwrite, state_folder
from lithos.stores.holds import Held, Hold, hold, identity_of, is_locked, try_flock
from lithos.stores.lock import AlreadyOwned, OwnerLock
from lithos.stores.owner_record import OwnerRecord
from lithos.telemetry import get_logger

log = get_logger("lithos.lock")

#: Bytes of a record at most: four times the longest path.
_LARGEST: Final = 16_384
#: Looks at whether a vault is held, and seconds between two.
_TRIES: Final = 10
_PAUSE: Final = 0.05


class VaultOwned(AlreadyOwned):
    """Another live process serves the vault, with another data directory."""

    def __init__(self, vault: Path, record: Mapping[str, object], pid: int | None) -> None:
        super().__init__(vault, None, pid)
        who = "another process" if pid is None else f"process {pid}"
        way_out = "Connect to that server, or stop it first."
        if record and pid in (None, record.get("pid")):
            who = f"process {record.get('pid')} on {record.get('host')} since {record.get('started_at')}"
            if record.get("url"):
                who += f", serving {record['url']}"
            if record.get("data_dir"):
                who += f" with the data directory {record['data_dir']}"
                way_out = (
                    "Connect to that server, stop it first, or share it: give the same "
                    f"--data-dir {record['data_dir']}."
                )
        self.args = (f"The vault {vault} is in use by {who}. {way_out}",)


class VaultLock:
    """Holds a vault from `acquire` to `release`."""

    def __init__(self, vault: Path, data: Path, state: Path) -> None:
        """`data` is the data directory of the owner, `state` the folder of the records."""
        self._vault = vault
        self._data = data
        name = hashlib.sha256(os.fsencode(os.path.realpath(vault))).hexdigest()[:16]
        self._path = state / name
        self._hold: Hold | None = None
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the vault, or raise `VaultOwned` without waiting for its owner."""
        held = self._take_folder()
        if held is None:
            raise FileNotFoundError(2, "There is no folder to serve", str(self._vault))
        self._hold = held
        try:
            self._take_record(is_needed=held.descriptor is None)
        except BaseException:
            self.release()
            raise

    def _take_folder(self) -> Hold | None:
        try:
            return hold(self._vault)
        except Held as other:
            raise VaultOwned(self._vault, self._read(), other.pid) from other

    def _take_record(self, *, is_needed: bool) -> None:
        """Open and lock the record; one that only informs may fail."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
        except OSError as failure:
            if is_needed:
                raise
            log.warning("owner of the vault not recorded", path=str(self._path), reason=str(failure))
            return
        try:
            is_ours = try_flock(descriptor)
        except OSError:
            os.close(descriptor)
            if is_needed:
                raise
            return
        if is_ours:
            self._descriptor = descriptor
            return
        os.close(descriptor)
        if is_needed:
            raise VaultOwned(self._vault, self._read(), None)

    def publish(self, record: OwnerRecord) -> None:
        """Record who serves the vault, and where; never its token."""
        if self._descriptor is None:
            return
        told = {name: getattr(record, name) for name in ("pid", "host", "url", "started_at")}
        places = {"vault": str(self._vault), "data_dir": str(self._data.absolute())}
        data = json.dumps(told | places).encode()
        try:
            overwrite(self._descriptor, data)
        except OSError as failure:
            log.warning("owner of the vault not recorded", path=str(self._path), reason=str(failure))

    def confirm(self) -> None:
        """Follow a folder that was replaced, as by a mount; raises `VaultOwned` if another serves that."""
        now = identity_of(self._vault)
        if self._hold is None or now is None or now == self._hold.identity:
            return
        held = self._take_folder()
        if held is not None:
            self._hold.close()
            self._hold = held

    def release(self) -> None:
        """Give the vault up; idempotent."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)
        if self._hold is not None:
            held, self._hold = self._hold, None
            held.close()

    def _read(self) -> Mapping[str, object]:
        try:
            with self._path.open("rb") as file:
                found = json.loads(file.read(_LARGEST))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


def serves_other(vault: Path) -> bool:
    """Whether the owner of a data directory that is in use serves something else: nobody holds this vault.

    False where folders cannot be locked, which tells nothing.
    """
    for _ in range(_TRIES):  # one that starts takes its data directory first
        try:
            if not vault.is_dir() or is_locked(vault):
                return False
        except OSError:
            return False
        time.sleep(_PAUSE)
    return True


def lock_of(data: Path, vault: Path | None, environment: Mapping[str, str] | None = None) -> OwnerLock:
    """The lock of a data directory, with that of the vault it serves."""
    path = data / ".lithos" / "lock"
    if vault is None:
        return OwnerLock(path)
    state = state_folder(os.environ if environment is None else environment)
    return OwnerLock(path, vault=VaultLock(vault, data, state / "vaults"))
