"""Ownership lock: only one process may own a data directory and serve a vault (docs/spec/lifecycle.md §2).

An owner uses `flock` to lock `.lithos/lock`, the data directory and the folder of its vault. These locks end
with the process, so a file left behind never blocks a start. The owner record in the lock file names the
owner. The owner record of a vault is stored in the state folder of the user, because Lithos creates no files
of its own in a vault.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from attrs import asdict, field, frozen

from lithos.kernel.databases.private_files import PRIVATE_FOLDER, opened, overwrite, state_folder
from lithos.kernel.log import get_logger
from lithos.kernel.operating_system import CLOSE_ON_EXEC, FOLDER, NO_FOLLOW, set_mode, try_lock, unlock

log = get_logger("lithos.lock")

#: Seconds between two calls of `confirm`.
CONFIRM_EVERY: Final = 20.0
#: Errors of `flock` that mean that the file system has no locks. Network file systems cannot lock folders.
NO_LOCKS: Final = frozenset(
    {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EBADF}
)
#: Number of attempts to take a lock, and seconds between two attempts. A probe may hold the lock for an
#: instant.
_TRIES: Final = 10
_PAUSE: Final = 0.01
#: Seconds between two checks of a vault while its owner may be starting.
_STARTING: Final = 0.05

#: Device number and inode number, which identify a file.
Identity = tuple[int, int]


@frozen
class OwnerRecord:
    """The owner of a data directory. `started_at` is an ISO 8601 time in UTC."""

    pid: int
    host: str
    url: str | None
    started_at: str
    #: Token for commands and hooks of the same user, who can read the lock file (mode 0600).
    token: str | None = field(default=None, repr=False)
    #: Whether only those commands use the address, as for a server on stdio. Clients then use another
    #: address.
    private: bool = False
    #: Address for remote clients.
    public_url: str | None = None

    def __str__(self) -> str:
        serving = f", serving {self.url}" if self.url else ""
        return f"process {self.pid} on {self.host} since {self.started_at}{serving}"


def encode_owner(record: OwnerRecord) -> bytes:
    """Return the content of the lock file."""
    content: dict[str, Any] = {key: value for key, value in asdict(record).items() if value is not None}
    return json.dumps(content).encode()


def read_owner(path: Path) -> OwnerRecord | None:
    """Return the owner record in a lock file, or None if there is no readable record."""
    try:
        content = json.loads(path.read_bytes())
        return OwnerRecord(
            pid=int(content["pid"]),
            host=str(content["host"]),
            url=content.get("url"),
            started_at=str(content["started_at"]),
            token=content.get("token"),
            # Servers of earlier versions had a token only for a private address.
            private=bool(content.get("private", content.get("token") is not None)),
            public_url=content.get("public_url"),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


class AlreadyOwned(Exception):
    """Error because another live process owns the data directory."""

    def __init__(self, path: Path, owner: OwnerRecord | None) -> None:
        super().__init__(
            f"Another process uses the data directory: {owner or 'another process'}. Connect to "
            "that server, stop it first, or choose another data directory with --data-dir."
        )
        self.path = path
        self.owner = owner


class VaultOwned(AlreadyOwned):
    """Error because another live process serves the vault from another data directory."""

    def __init__(self, vault: Path, owner: OwnerRecord | None, data: str | None) -> None:
        super().__init__(vault, owner)
        who, way_out = str(owner or "another process"), "or stop it first"
        if data:
            who += f" with the data directory {data}"
            way_out = f"stop it first, or share it: give the same --data-dir {data}"
        self.args = (f"The vault {vault} is in use by {who}. Connect to that server, {way_out}.",)


class NoLocks(OSError):
    """Error because the file system has no locks, so Lithos could not prevent a second server."""

    def __init__(self, path: Path, failure: OSError) -> None:
        super().__init__(
            f"The file system of {path} has no locks ({failure.strerror}), so a second server could not be "
            "kept out, and nothing was started. Use a local disk, or start with --no-lock and make sure that "
            "only one server runs"
        )


class OwnerLock:
    """The lock on a data directory and on the served vault, from `acquire` to `release`.

    `confirm` may run in a different thread than the other methods.
    """

    def __init__(
        self,
        path: Path,
        vault: Path | None = None,
        vault_record: Path | None = None,
        *,
        needs_locks: bool = True,
    ) -> None:
        """Prepare the lock without acquiring it.

        `vault_record` is the file for the owner record of the vault.

        With `needs_locks`, file systems without locks are refused.
        """
        self.path = path
        self._vault = vault
        self._vault_record = vault_record
        self._needs_locks = needs_locks
        self._turn = threading.Lock()
        self._descriptor: int | None = None
        self._record: OwnerRecord | None = None
        #: Descriptors of the locked folders: the data directory and the vault.
        self._folders: dict[Path, int] = {}
        #: Description for `/health` of how another program changed the lock file, and how to recover.
        self.trouble: str | None = None

    def acquire(self, started_at: str) -> None:
        """Acquire the lock.

        Raises `AlreadyOwned` at once if another process owns the directory, and `NoLocks`.
        """
        if self._descriptor is not None:
            raise AlreadyOwned(self.path, self._record)
        self.path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        with ExitStack() as undo:
            undo.callback(self.release)
            # The folder is locked first. If the lock file of an owner was removed, the owner can therefore
            # write it again without a rival.
            self._hold(self.path.parent.parent)
            self._descriptor = self._open_file()
            if self._vault is not None:
                self._hold(self._vault)
            self.publish(OwnerRecord(os.getpid(), socket.gethostname(), None, started_at))
            undo.pop_all()

    def publish(self, record: OwnerRecord) -> None:
        """Write the owner record. Call this again when the address of the server is known."""
        with self._turn:
            assert self._descriptor is not None
            overwrite(self._descriptor, encode_owner(record))
            self._record = record
            if self._vault_record is not None:
                self._publish_vault(self._vault_record, record)

    def confirm(self) -> None:
        """Check that the locked files are still in place. If they were replaced, lock the new files.

        Call every `CONFIRM_EVERY` s.

        Raises `AlreadyOwned` if another process has taken the data directory or the vault.
        """
        with self._turn:
            if self._descriptor is None or self._record is None:
                return
            try:
                self._confirm_places(self._descriptor, self._record)
            except OSError as failure:
                self.trouble = (
                    f"{self.path} or a folder was removed or replaced by another program, and cannot be "
                    f"locked again ({failure}). Stop the server, put back what is missing, and start it again"
                )
            else:
                self.trouble = None

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        with self._turn:
            descriptor, self._descriptor = self._descriptor, None
            record, self._record = self._record, None
            try:
                if descriptor is not None and record is not None:
                    os.ftruncate(descriptor, 0)
                    if self._vault_record is not None:
                        with suppress(OSError):
                            self._vault_record.unlink()
            finally:
                while self._folders:
                    os.close(self._folders.popitem()[1])
                if descriptor is not None:
                    os.close(descriptor)

    def _hold(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY | FOLDER | CLOSE_ON_EXEC)
        with ExitStack() as undo:
            undo.callback(os.close, descriptor)
            if not self._try(descriptor, folder):
                raise self._refusal(folder)
            undo.pop_all()
        if folder in self._folders:
            os.close(self._folders[folder])
        self._folders[folder] = descriptor

    def _refusal(self, folder: Path) -> AlreadyOwned:
        if folder != self._vault or self._vault_record is None:
            return AlreadyOwned(self.path, read_owner(self.path))
        data: Any = None
        with suppress(OSError, ValueError, AttributeError):
            data = json.loads(self._vault_record.read_bytes()).get("data_dir")
        return VaultOwned(folder, read_owner(self._vault_record), data)

    def _open_file(self) -> int:
        """Open or create the lock file and lock it. Raises `AlreadyOwned`."""
        for _ in range(_TRIES):
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | CLOSE_ON_EXEC, 0o600)
            with ExitStack() as undo:
                undo.callback(os.close, descriptor)
                if not self._try(descriptor, self.path):
                    raise AlreadyOwned(self.path, read_owner(self.path))
                if identity_of(self.path) == _identity_of_open(descriptor):
                    set_mode(descriptor, 0o600)
                    undo.pop_all()
                    return descriptor
        raise OSError(f"{self.path} is replaced again and again by another program")

    def _try(self, descriptor: int, path: Path) -> bool:
        try:
            return _try_flock(descriptor)
        except OSError as failure:
            if failure.errno not in NO_LOCKS:
                raise
            if self._needs_locks:
                raise NoLocks(path, failure) from failure
            return True

    def _confirm_places(self, descriptor: int, record: OwnerRecord) -> None:
        for folder, held in [*self._folders.items()]:
            if identity_of(folder) not in (None, _identity_of_open(held)):
                self._hold(folder)
        if identity_of(self.path) != _identity_of_open(descriptor):
            self._descriptor = self._open_file()
            os.close(descriptor)
            descriptor = self._descriptor
        elif read_owner(self.path) == record:
            return
        log.warning("lock file written again", path=str(self.path))
        overwrite(descriptor, encode_owner(record))

    def _publish_vault(self, path: Path, record: OwnerRecord) -> None:
        """Write the owner record of the vault. It is only used in the message of a refusal.

        The record never contains the token.
        """
        told = {
            name: getattr(record, name) for name in ("pid", "host", "url", "started_at")
        }  # The token is never written here.
        places = {"vault": str(self._vault), "data_dir": str(self.path.parent.parent.absolute())}
        try:
            path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            with opened(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW) as descriptor:
                overwrite(descriptor, json.dumps(told | places).encode())
        except OSError as failure:
            log.warning("owner of the vault not recorded", path=str(path), reason=str(failure))


def lock_of(
    data: Path,
    vault: Path | None,
    environment: Mapping[str, str] | None = None,
    *,
    needs_locks: bool = True,
) -> OwnerLock:
    """Return the lock of a data directory and of its vault, without acquiring it."""
    path = data / ".lithos" / "lock"
    if vault is None:
        return OwnerLock(path, needs_locks=needs_locks)
    record = vault_record_of(vault, os.environ if environment is None else environment)
    return OwnerLock(path, vault, record, needs_locks=needs_locks)


def vault_record_of(vault: Path, environment: Mapping[str, str]) -> Path:
    """Return the file with the owner record of a vault. It exists while a server serves the vault."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(vault))).hexdigest()[:16]
    return state_folder(environment) / "vaults" / name


def is_owned(path: Path) -> bool:
    """Return whether a live process has locked the file at `path`.

    If the lock file was removed, check the lock on its folder.

    On a file system without locks, a record in the file counts as an owner.
    """
    for place in (path, path.parent.parent):
        try:
            if is_locked(place):
                return True
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as failure:
            if failure.errno not in NO_LOCKS:
                raise
            if place == path:
                return read_owner(path) is not None
    return False


def serves_other(vault: Path) -> bool:
    """Return whether the owner of a data directory serves something other than this vault.

    Return False if folders cannot be locked, because the check then proves nothing.
    """
    for _ in range(_TRIES):  # A starting owner locks its data directory before its vault.
        try:
            if not vault.is_dir() or is_locked(vault):
                return False
        except OSError:
            return False
        time.sleep(_STARTING)
    return True


def is_locked(path: Path) -> bool:
    """Return whether a process holds an exclusive lock on a file or folder. Raises `OSError`."""
    with opened(path, os.O_RDONLY) as descriptor:
        # With a shared lock, many processes can probe at once without mistaking each other for the owner.
        return not try_lock(descriptor, shared=True)


def has_locks(folder: Path) -> bool:
    """Return whether the file system can lock this folder.

    Also return True if the folder cannot be opened.
    """
    try:
        is_locked(folder)
    except OSError as failure:
        return failure.errno not in NO_LOCKS
    return True


def identity_of(path: Path) -> Identity | None:
    """Return device and inode of the file at `path`, or None if it does not exist."""
    with suppress(FileNotFoundError, NotADirectoryError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def _identity_of_open(descriptor: int) -> Identity:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _try_flock(descriptor: int) -> bool:
    """Acquire an exclusive lock. Retry for a moment while probes (`is_locked`) hold a shared lock."""
    for _ in range(_TRIES):
        if try_lock(descriptor):
            return True
        if not try_lock(descriptor, shared=True):
            return False  # Another process owns the lock, because probes hold it only in shared mode.
        unlock(descriptor)
        time.sleep(_PAUSE)
    return False
