"""The configuration file of a client. It is replaced as a whole, unless it has changed since it was read.

A link to the file is kept, because Lithos replaces the file that the link leads to. Permissions, owner and
extended attributes are kept too. Backups next to the file contain the bytes from before an entry was added.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import escape
from itertools import chain, count
from pathlib import Path
from typing import Final

from attrs import frozen

from lithos.kernel.databases.private_files import NotRegular, open_regular, sync_folder
from lithos.kernel.operating_system import NO_FOLLOW, set_owner, user_id
from lithos.notes.files.system_calls import KernelCalls

SUFFIX: Final = ".lithos-backup"
DEFAULT_NAME: Final = "lithos"
#: Maximum number of bytes in a configuration file. Claude Code stores a history of several megabytes in its
#: file.
LARGEST: Final = 32 * 1024 * 1024
_CALLS: Final = KernelCalls()


class CannotUse(Exception):
    """Raised if the file cannot be read or written. The message contains the reason and the next step."""


class ChangedMeanwhile(Exception):
    """Raised if another program changed the file after it was read."""


@frozen
class ConfigFile:
    """A configuration file with its content.

    `path` is the path that the client uses, and `real` is the path after all links are followed. If there is
    no file, `data` is None.
    """

    path: Path
    real: Path
    data: bytes | None

    @property
    def text(self) -> str:
        """The content as text. Raises `CannotUse` if the content is not UTF-8."""
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
    """Return the configuration file at a path.

    Raises `CannotUse` if the path is not a regular file, or if the file is unreadable or larger than
    `LARGEST`.
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
    """Replace the content of the file.

    If `data` is None, delete the file. Raises `ChangedMeanwhile` or `CannotUse`.

    Missing folders are created. If the file is deleted, folders that become empty are deleted too.
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
    """Return the backups that were made before an entry with this name was added, newest first."""
    found = []
    usual = _backup(path, name)
    for backup in path.parent.glob(f"{escape(usual)}*"):
        if not re.fullmatch(r"(-\d+)?", backup.name.removeprefix(usual)):
            continue
        with suppress(OSError), open_regular(backup) as file:
            found.append((os.fstat(file.fileno()).st_mtime_ns, backup, file.read(LARGEST + 1)))
    return {backup: data for _, backup, data in sorted(found, reverse=True)}


def back_up(path: Path, name: str, data: bytes, backups: Mapping[Path, bytes]) -> Path:
    """Write a backup of `data` next to the file.

    Return its path. An existing backup with the same bytes is reused.
    """
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


def encode_like(text: str, data: bytes | None) -> bytes:
    """Return the text as UTF-8, with a byte order mark if `data` has one."""
    return text.encode("utf-8-sig" if (data or b"").startswith(BOM_UTF8) else "utf-8")


def save_private(path: Path, data: bytes | None) -> None:
    """Replace a file of Lithos that only the user can read. If `data` is None, delete the file.

    Raises `CannotUse`.
    """
    swap = path.with_name(f".{path.name[:100]}.lithos-{secrets.token_hex(4)}")
    try:
        if data is None:
            path.unlink(missing_ok=True)
            _remove_empty(path)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_new(swap, data)
        os.replace(swap, path)
    except OSError as error:
        raise CannotUse(
            f"{path} cannot be written: {error.strerror}. Check permissions and free space."
        ) from error
    finally:
        swap.unlink(missing_ok=True)


def _backup(path: Path, name: str) -> str:
    return path.name + (SUFFIX if name == DEFAULT_NAME else f".{name}{SUFFIX}")


def _remove_empty(real: Path) -> None:
    """Remove the empty folders above a file.

    Only folders below the home folder or the current folder are removed.
    """
    tops: Sequence[Path] = [Path(os.path.realpath(top)) for top in (Path.home(), Path.cwd())]
    for folder in real.parents:
        if folder in tops or not any(folder.is_relative_to(top) for top in tops):
            return
        with suppress(OSError):  # The folder contains other files.
            folder.rmdir()


def _write_new(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Create a file. Unless `mode` is given, only the user can read it.

    Raises `FileExistsError` if the file exists, and `OSError` if it cannot be written.
    """
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags | NO_FOLLOW, mode)) as file:
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
            os.link(swap, file.real)  # Creating a link never replaces an existing file.
        elif _dress(swap, file.real):
            _exchange(swap, file)
        else:
            _write_in_place(file, data)
    except (FileExistsError, FileNotFoundError):
        raise ChangedMeanwhile from None
    finally:
        swap.unlink(missing_ok=True)
        with suppress(OSError):  # Some file systems cannot do this.
            sync_folder(file.real.parent)


def _exchange(swap: Path, file: ConfigFile) -> None:
    """Replace the old file with the new file. If the old file was changed meanwhile, undo this."""
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
    """Write into the existing file, because it has several links or another owner.

    Replacing it would change these.
    """
    with open(file.real, "r+b") as target:
        if target.read(LARGEST + 1) != file.data:
            raise ChangedMeanwhile
        target.seek(0)
        target.write(data)
        target.truncate()
        target.flush()
        os.fsync(target.fileno())


def _dress(swap: Path, real: Path) -> bool:
    """Copy the metadata of the old file to the new file. If this is not possible, return False."""
    before = os.stat(real)
    try:
        if (before.st_uid, before.st_gid) != (user_id(), os.stat(swap).st_gid):
            set_owner(swap, before.st_uid, before.st_gid)
        shutil.copystat(real, swap)
    except PermissionError:
        return False
    os.utime(swap)
    return before.st_nlink == 1
