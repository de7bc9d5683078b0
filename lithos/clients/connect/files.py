"""A client's configuration file on disk. It is replaced as a whole, if unchanged since it was read.

Lithos keeps links, because it replaces the file behind a link. Permissions, owner and extended attributes are
kept too. Backups next to the file keep the bytes from before an entry.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import escape
from itertools import chain, count
from pathlib import Path
from typing import Final

from attrs import frozen

from lithos.kernel.databases.private_files import NotRegular, open_regular, sync_folder
from lithos.notes.files.system_calls import KernelCalls

SUFFIX: Final = ".lithos-backup"
DEFAULT_NAME: Final = "lithos"
#: Maximum bytes of a configuration file. Claude Code keeps a history of several megabytes in its file.
LARGEST: Final = 32 * 1024 * 1024
_CALLS: Final = KernelCalls()


class CannotUse(Exception):
    """Raised if the file cannot be read or written. The message says why and what to do next."""


class ChangedMeanwhile(Exception):
    """Raised if the file was changed after it was read."""


@frozen
class ConfigFile:
    """A file's content.

    `path` is the client's path, `real` the path behind all links, `data` is None without a file.
    """

    path: Path
    real: Path
    data: bytes | None

    @property
    def text(self) -> str:
        """The content as text. Raises `CannotUse` if it is not UTF-8."""
        data = self.data or b""
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise CannotUse(
                f"{self.path} is not UTF-8 (line {line}, byte {error.start + 1}), so it is "
                "unchanged. Save it as UTF-8 in an editor, then try again."
            ) from error


def read_config(path: Path) -> ConfigFile:
    """Read a file.

    Raises `CannotUse` if the path is not a regular file, cannot be read, or is larger than `LARGEST`.
    """
    try:
        real = Path(os.path.realpath(path, strict=False))
        with open_regular(real) as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return ConfigFile(path, real, None)
    except NotRegular:
        raise CannotUse(f"{path} is not a file. Move it away, or name another file with --file.") from None
    except OSError as error:
        raise CannotUse(f"{path} cannot be read: {error.strerror}. Check its permissions.") from error
    if len(data) > LARGEST:
        raise CannotUse(
            f"{path} is larger than {LARGEST // 1024 // 1024} MB, so it is unchanged. Paste the "
            "output of `lithos connect` without --write."
        )
    return ConfigFile(path, real, data)


def replace_config(file: ConfigFile, data: bytes | None) -> None:
    """Replace the content of the file, or delete it for None. Raises `ChangedMeanwhile` and `CannotUse`.

    Missing folders are created. Folders that become empty are deleted with the file.
    """
    if file.data is not None and os.path.exists(file.real) and not os.stat(file.real).st_mode & 0o222:
        raise CannotUse(
            f"{file.path} is read-only, so it is unchanged. Allow writing (chmod u+w). If a "
            "program generates this file, add the entry there."
        )
    try:
        file.real.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, data)
    except OSError as error:
        raise CannotUse(
            f"{file.path} cannot be written: {error.strerror}. Check its permissions and free space."
        ) from error
    finally:
        if not file.real.exists():
            _remove_empty(file.real)


def find_backups(path: Path, name: str) -> dict[Path, bytes]:
    """Return the backups of the file from before an entry of this name, newest first."""
    found = []
    usual = _backup(path, name)
    for backup in path.parent.glob(f"{escape(usual)}*"):
        if not re.fullmatch(r"(-\d+)?", backup.name.removeprefix(usual)):
            continue
        with suppress(OSError), open_regular(backup) as file:
            found.append((os.fstat(file.fileno()).st_mtime_ns, backup, file.read(LARGEST + 1)))
    return {backup: data for _, backup, data in sorted(found, reverse=True)}


def back_up(path: Path, name: str, data: bytes, backups: Mapping[Path, bytes]) -> Path:
    """Write a backup of these bytes next to the file, or reuse an equal one. Return its path."""
    if same := next((backup for backup, kept in backups.items() if kept == data), None):
        return same
    usual = path.with_name(_backup(path, name))
    names = (usual.with_name(f"{usual.name}-{number}") for number in count(2))
    backup = next(each for each in chain((usual,), names) if not os.path.lexists(each))
    try:
        _write_new(backup, data)
    except OSError as error:
        raise CannotUse(
            f"The backup {backup} cannot be written: {error.strerror}. Nothing was "
            "changed. Check permissions and free space."
        ) from error
    return backup


def _backup(path: Path, name: str) -> str:
    return path.name + (SUFFIX if name == DEFAULT_NAME else f".{name}{SUFFIX}")


def _remove_empty(real: Path) -> None:
    """Remove the empty folders above a file, but only below the home or current folder."""
    tops: Sequence[Path] = [Path(os.path.realpath(top)) for top in (Path.home(), Path.cwd())]
    for folder in real.parents:
        if folder in tops or not any(folder.is_relative_to(top) for top in tops):
            return
        with suppress(OSError):  # The folder still has other files.
            folder.rmdir()


def _write_new(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Create a file, readable only by the user unless `mode` is given.

    Raises `FileExistsError` or `OSError`.
    """
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, mode)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _replace(file: ConfigFile, data: bytes | None) -> None:
    swap = file.real.with_name(f".{file.real.name[:100]}.lithos-{secrets.token_hex(4)}")
    try:
        if data is None:
            os.rename(file.real, swap)
            if swap.read_bytes() != file.data:
                os.link(swap, file.real)
                raise ChangedMeanwhile
            return
        _write_new(swap, data, 0o666 if file.data is None else 0o600)
        if file.data is None:
            os.link(swap, file.real)  # A link never replaces an existing file.
        elif _dress(swap, file.real):
            _exchange(swap, file)
        else:
            _write_in_place(file, data)
    except (FileExistsError, FileNotFoundError):
        raise ChangedMeanwhile from None
    finally:
        swap.unlink(missing_ok=True)
        with suppress(OSError):  # Not every file system can do this.
            sync_folder(file.real.parent)


def _exchange(swap: Path, file: ConfigFile) -> None:
    """Put the new file in place of the old one. Undo this if the old one was changed meanwhile."""
    try:
        _CALLS.exchange(str(swap), str(file.real))
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP):
            raise
        if read_config(file.path) != file:
            raise ChangedMeanwhile from None
        swap.replace(file.real)
        return
    if swap.read_bytes() != file.data:
        _CALLS.exchange(str(swap), str(file.real))
        raise ChangedMeanwhile


def _write_in_place(file: ConfigFile, data: bytes) -> None:
    """Write into a file with several links or another owner, because replacing it would change these."""
    with open(file.real, "r+b") as target:
        if target.read(LARGEST + 1) != file.data:
            raise ChangedMeanwhile
        target.seek(0)
        target.write(data)
        target.truncate()
        target.flush()
        os.fsync(target.fileno())


def _dress(swap: Path, real: Path) -> bool:
    """Copy the metadata of the old file to the new one. Return False if that is not possible."""
    before = os.stat(real)
    try:
        if (before.st_uid, before.st_gid) != (os.geteuid(), os.stat(swap).st_gid):
            os.chown(swap, before.st_uid, before.st_gid)
        shutil.copystat(real, swap)
    except PermissionError:
        return False
    os.utime(swap)
    return before.st_nlink == 1
