"""The configuration file of a client on disk: read whole, replaced whole, and only while nobody changed it.

A link stays a link, since its target is what is replaced; permissions, owner and extended attributes stay.

Kept of an edited file are a backup beside it, and a record of what was written: in
`$XDG_STATE_HOME/lithos/connections/`, one per file and entry, so that `--remove` knows whether somebody else
changed the file since. Without it the entry alone is taken out.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import asdict, field, frozen

from lithos.stores import NotRegular, open_regular, sync_folder
from lithos.stores.notes.system_calls import KernelCalls
from lithos.stores.told import sessions_folder

SUFFIX: Final = ".lithos-backup"
_MOST_BACKUPS: Final = 100


@frozen
class Record:
    """An entry that was written to `path` under `name`: the digests of the file before and after it.

    `inserted` is the text that came in; `folders` are those that were made for the file, which was not there
    where `before` is None; `backup` has the bytes of `before`.
    """

    path: str
    name: str
    before: str | None
    after: str
    inserted: str
    parents: int
    entry: Mapping[str, Any]
    backup: str | None = None
    folders: tuple[str, ...] = field(factory=tuple)


def digest_of(data: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


class Keeper:
    """The record and the backup of one entry in one file."""

    def __init__(self, path: Path, name: str, environment: Mapping[str, str]) -> None:
        self._path = path
        self._name = name
        key = os.fsencode(os.path.abspath(path)) + b"\0" + name.encode()
        folder = sessions_folder(environment).with_name("connections")
        self._place = folder / f"{hashlib.sha256(key).hexdigest()[:32]}.json"

    def load(self) -> Record | None:
        """What was written; None where nothing was, or the record is damaged."""
        try:
            found = json.loads(self._place.read_bytes())
            record = Record(**found | {"folders": tuple(found["folders"])})
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        is_ours = (record.path, record.name) == (os.path.abspath(self._path), self._name)
        return record if is_ours and isinstance(record.entry, dict) else None

    def store(self, record: Record) -> None:
        """Remember it. Raises `CannotUse`."""
        try:
            self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = self._place.with_name(f"{self._place.name}.{os.getpid()}")
            new.unlink(missing_ok=True)
            write_new(new, json.dumps(asdict(record)).encode())
            new.replace(self._place)
        except OSError as error:
            raise CannotUse(f"{self._place} cannot be written: {error.strerror}.") from error

    def forget(self) -> None:
        """Drop the record."""
        self._place.unlink(missing_ok=True)

    def back_up(self, data: bytes, old: Record | None) -> Path:
        """Keep these bytes beside the file; a backup that already has them is used again."""
        if old is not None and old.backup is not None and self.backup_of(old) == data:
            return Path(old.backup)
        for number in range(1, _MOST_BACKUPS):
            path = self._path.with_name(self._path.name + SUFFIX + (f"-{number}" if number > 1 else ""))
            try:
                write_new(path, data)
            except FileExistsError:
                continue
            except OSError as error:
                raise CannotUse(f"The backup {path} cannot be written: {error.strerror}.") from error
            return path
        raise CannotUse(f"There are {_MOST_BACKUPS - 1} backups beside {self._path}. Move some elsewhere.")

    def backup_of(self, record: Record) -> bytes | None:
        """The bytes before the entry, where the backup still has them."""
        if record.backup is None:
            return None
        with suppress(OSError), open(record.backup, "rb") as file:
            data = file.read(LARGEST + 1)
            return data if digest_of(data) == record.before else None
        return None

    def drop_backup(self, record: Record) -> None:
        """Remove the backup; one that somebody changed stays."""
        if record.backup is not None and self.backup_of(record) is not None:
            with suppress(FileNotFoundError):
                os.unlink(record.backup)


#: Bytes of a configuration that is read; Claude Code keeps a history in its file, of a few megabytes.
LARGEST: Final = 32 * 1024 * 1024
_ONLY_OURS: Final = 0o600
_CALLS: Final = KernelCalls()


class CannotUse(Exception):
    """The file cannot be read or written; says why and what to do."""


class ChangedMeanwhile(Exception):
    """Somebody changed the file since it was read."""


@frozen
class ConfigFile:
    """What is in a file: `path` as the client names it, `real` behind all links, `data` None without one."""

    path: Path
    real: Path
    data: bytes | None

    @property
    def text(self) -> str:
        """Its characters; raises `CannotUse` for what is not UTF-8."""
        try:
            return (self.data or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            line = (self.data or b"")[: error.start].count(b"\n") + 1
            raise CannotUse(
                f"{self.path} is not UTF-8 (line {line}, byte {error.start + 1}), so it stays as it is. "
                "Save it as UTF-8 in an editor, then try again."
            ) from error


def read_config(path: Path) -> ConfigFile:
    """Read it. Raises `CannotUse` for what is no file, cannot be read, or is larger than `LARGEST`."""
    try:
        real = Path(os.path.realpath(path, strict=False))
        with open_regular(real) as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return ConfigFile(path, real, None)
    except NotRegular:
        raise CannotUse(f"{path} is no file.") from None
    except OSError as error:
        raise CannotUse(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > LARGEST:
        raise CannotUse(
            f"{path} is larger than {LARGEST // 1024 // 1024} MB, so it stays as it is. "
            "Paste what `lithos connect` prints without --write."
        )
    return ConfigFile(path, real, data)


def make_folders(path: Path) -> list[Path]:
    """Make the folders above a file; returns those that were missing, the innermost first."""
    missing = [folder for folder in path.parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotUse(f"The folder {path.parent} cannot be made: {error.strerror}.") from error
    return missing


def replace_config(file: ConfigFile, data: bytes) -> None:
    """Give the file other bytes. Raises `ChangedMeanwhile` and `CannotUse`; then it is as it was."""
    try:
        before = os.stat(file.real) if file.data is not None else None
        if before is not None and not before.st_mode & 0o222:
            raise CannotUse(
                f"{file.path} is read-only, so it stays as it is. Allow writing (chmod u+w), or if a program "
                "makes this file, add the entry there."
            )
        _replace(file, data, before)
    except OSError as error:
        raise CannotUse(f"{file.path} cannot be written: {error.strerror}.") from error


def remove_config(file: ConfigFile, folders: Sequence[Path]) -> None:
    """Remove the file, and those of `folders` that are empty then. Raises as `replace_config` does."""
    aside = _beside(file.real)
    try:
        os.rename(file.real, aside)
        if aside.read_bytes() != file.data:
            _put_back(aside, file.real)
            raise ChangedMeanwhile
        os.unlink(aside)
    except FileNotFoundError:
        raise ChangedMeanwhile from None
    except OSError as error:
        raise CannotUse(f"{file.path} cannot be removed: {error.strerror}.") from error
    remove_empty(folders)


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders, the innermost first, as far as nothing is in them."""
    for folder in folders:
        with suppress(OSError):  # something else is in it by now
            folder.rmdir()


def write_new(path: Path, data: bytes) -> None:
    """Make a file that only the person can read; raises `FileExistsError`, and other `OSError`."""
    descriptor = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, _ONLY_OURS
    )
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise


def _replace(file: ConfigFile, data: bytes, before: os.stat_result | None) -> None:
    swap = _beside(file.real)
    write_new(swap, data)
    try:
        if before is None:
            _place_new(swap, file.real)
            return
        if before.st_nlink > 1 or not _dress(swap, file.real, before):
            _write_in_place(file, data)
            return
        _exchange(swap, file)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(swap)
        with suppress(OSError):  # not every file system can
            sync_folder(file.real.parent)


def _place_new(swap: Path, real: Path) -> None:
    """Give a new file its name, as any program would make it; never over another."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(swap, 0o666 & ~mask)
    try:
        os.link(swap, real)
    except FileExistsError:
        raise ChangedMeanwhile from None


def _exchange(swap: Path, file: ConfigFile) -> None:
    """Put the new file in the place of the old one, and back again if that was another by then."""
    try:
        _CALLS.exchange(str(swap), str(file.real))
    except FileNotFoundError:
        raise ChangedMeanwhile from None
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP):
            raise
        if _read(file.real) != file.data:
            raise ChangedMeanwhile from None
        os.replace(swap, file.real)
        return
    if _read(swap) != file.data:
        _CALLS.exchange(str(swap), str(file.real))
        raise ChangedMeanwhile


def _write_in_place(file: ConfigFile, data: bytes) -> None:
    """For a file of several names or of another owner, which a new one in its place would change."""
    with open(file.real, "r+b") as target:
        if target.read(LARGEST + 1) != file.data:
            raise ChangedMeanwhile
        target.seek(0)
        target.write(data)
        target.truncate()
        target.flush()
        os.fsync(target.fileno())


def _dress(swap: Path, real: Path, before: os.stat_result) -> bool:
    """Give the new file what the old one has beside its bytes; False where that is not allowed."""
    try:
        if (before.st_uid, before.st_gid) != (os.geteuid(), os.stat(swap).st_gid):
            os.chown(swap, before.st_uid, before.st_gid)
        shutil.copystat(real, swap)
    except PermissionError:
        return False
    os.utime(swap)
    return True


def _put_back(aside: Path, real: Path) -> None:
    try:
        os.link(aside, real)
    except FileExistsError:
        return  # a newer one has the name; this one stays under the other, for nothing may be lost
    os.unlink(aside)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _beside(real: Path) -> Path:
    return real.with_name(f".{real.name[:100]}.lithos-{secrets.token_hex(4)}")
