"""Memory files in a folder, without a server.

Every folder and file is opened relative to its parent folder and never through a symbolic link, so a link
that appears between a check and a use leads nowhere. A write is a new file that replaces the old one, and a
lock keeps other processes with the same folder out.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from lithos.kernel.operating_system import try_lock
from lithos.memory_tool.paths import MemoryPath
from lithos.memory_tool.refusals import Changed, Exists, Missing, Refusal, StoreProblem
from lithos.memory_tool.stores import MOST_BYTES, MOST_FILES, Listed, MemoryText

#: Name of the lock file. Names with a dot are hidden from the memory tool and from Lithos.
LOCK: Final = ".memory-lock"
#: Names of new files until they replace the old ones.
_TEMPORARY: Final = re.compile(r"\.memory-[0-9a-f]{16}\.tmp")
#: Seconds to wait for another process, and between two attempts.
_PATIENCE, _PAUSE = 10.0, 0.01
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: Error numbers of a path through a link, or through a file that is not a folder.
_NOT_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK})
#: Error numbers of file systems without hard links.
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
#: Maximum depth of folders below a listed folder. Deeper folders were not made by the memory tool.
_DEEPEST: Final = 32


class FolderStore:
    """The files of one folder, which is created with access only for its user."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.expanduser().absolute()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._is_swept = False

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the folder. Raise `Refusal` if another process holds the lock for too long."""
        with _translated(), self._open_folder(()) as root:
            lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=root)
        try:
            _take(lock)
            with _translated():
                self._sweep()
                yield
        finally:
            os.close(lock)

    def read(self, path: MemoryPath) -> MemoryText:
        """Return the text of a file, and its hash as the version."""
        data = self._load(path)
        try:
            return MemoryText(data.decode(), sha256(data).hexdigest())
        except UnicodeDecodeError:
            raise Refusal(f"The file {path.given} is not valid UTF-8 text, so it cannot be shown.") from None

    def is_folder(self, path: MemoryPath) -> bool:
        """Return whether the path is a folder. A link to a folder is not."""
        if path.is_root:
            return True
        found = self._stat(path)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def entries(self, path: MemoryPath) -> Sequence[Listed]:
        """Return all files and folders below a folder. Links and hidden names are left out."""
        return self._entries_of(path.names)

    def _entries_of(self, names: Sequence[str]) -> list[Listed]:
        found: list[Listed] = []
        with self._open_folder(names) as folder:
            _collect(folder, "", found, 0)
        return found

    def create(self, path: MemoryPath, text: str) -> None:
        """Write a new file, which never replaces another."""
        with self._open_folder(path.names[:-1], make=True) as folder:
            name = path.names[-1]
            if _lstat(name, folder) is not None:
                raise Exists
            _place(_write_new(folder, text.encode(), 0o600), name, folder)
            os.fsync(folder)

    def replace(self, path: MemoryPath, text: str, version: str) -> str:
        """Replace a file by a new one with the same permissions, if it still has this version."""
        with self._open_folder(path.names[:-1]) as folder:
            name = path.names[-1]
            found = _lstat(name, folder)
            if found is None:
                raise Missing
            swap = _write_new(folder, text.encode(), stat.S_IMODE(found.st_mode))
            try:
                # An editor takes no lock, so the file is compared when the new one is already on the disk.
                if sha256(self._load(path)).hexdigest() != version:
                    raise Changed
                os.rename(swap, name, src_dir_fd=folder, dst_dir_fd=folder)
            except (OSError, StoreProblem, Refusal):
                os.unlink(swap, dir_fd=folder)
                raise
            os.fsync(folder)
        return text

    def remove(self, path: MemoryPath) -> None:
        """Delete a file, or a folder with everything in it. A link itself is deleted, not its target."""
        with self._open_folder(path.names[:-1]) as folder:
            found = _lstat(path.names[-1], folder)
            if found is None:
                raise Missing
            _remove(path.names[-1], folder, stat.S_ISDIR(found.st_mode), 0)
            os.fsync(folder)

    def move(self, path: MemoryPath, to: MemoryPath) -> None:
        """Move a file or a folder, and make the folders of the new path."""
        found, taken = self._stat(path), self._stat(to)
        # On a disk without case, another spelling of the path is the file itself.
        is_spelling = path.names != to.names and path.relative.casefold() == to.relative.casefold()
        if taken is not None and not (is_spelling and _is_same(taken, found)):
            raise Exists
        if found is None:
            raise Missing
        if not stat.S_ISDIR(found.st_mode) and not stat.S_ISREG(found.st_mode):
            raise Refusal(f"The path {path.given} is not a regular file, so it was not moved.")
        with (
            self._open_folder(path.names[:-1]) as source,
            self._open_folder(to.names[:-1], make=True) as target,
        ):
            os.rename(path.names[-1], to.names[-1], src_dir_fd=source, dst_dir_fd=target)
            os.fsync(target)
            os.fsync(source)

    def _sweep(self) -> None:
        """Delete the temporary files of processes that were killed, once per object. The lock is held."""
        if self._is_swept:
            return
        self._is_swept = True
        folders = [each.name.split("/") for each in self._entries_of(()) if each.is_folder]
        for names in ([], *folders):
            with suppress(Missing), self._open_folder(names) as folder:
                for name in os.listdir(folder):
                    if _TEMPORARY.fullmatch(name):
                        os.unlink(name, dir_fd=folder)

    def _load(self, path: MemoryPath) -> bytes:
        with self._open_folder(path.names[:-1]) as folder:
            try:
                opened = os.open(path.names[-1], _FILE, dir_fd=folder)
            except OSError as failure:
                raise _missing_if_not_there(failure) from None
        try:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise Missing
            with open(opened, "rb", closefd=False) as file:
                data = file.read(MOST_BYTES + 1)
        finally:
            os.close(opened)
        if len(data) > MOST_BYTES:
            raise Refusal(f"The file {path.given} has more than {MOST_BYTES:,} bytes, so it cannot be shown.")
        return data

    def _stat(self, path: MemoryPath) -> os.stat_result | None:
        try:
            with self._open_folder(path.names[:-1]) as folder:
                return _lstat(path.names[-1], folder)
        except Missing:
            return None

    @contextmanager
    def _open_folder(self, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """Open a folder name by name. Raise `Missing` if it does not exist or a name is a link."""
        opened = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in names:
                outer, opened = opened, _step(opened, name, make=make)
                os.close(outer)
            yield opened
        finally:
            os.close(opened)


@contextmanager
def _translated() -> Iterator[None]:
    """Raise `Refusal` with a clear text for errors of the system."""
    try:
        yield
    except OSError as failure:
        raise Refusal(
            f"The memory folder could not be used: {failure.strerror}. "
            "Check its permissions and the free space."
        ) from failure


def _take(lock: int) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        if try_lock(lock):
            return
        if time.monotonic() > until:
            raise Refusal(
                f"Another process has used the memory folder for {_PATIENCE:.0f} s. Nothing was changed. "
                "Try again."
            )
        time.sleep(_PAUSE)


def _step(folder: int, name: str, *, make: bool) -> int:
    """Open a folder in an open folder. With `make`, create it if it does not exist."""
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as failure:
        if make and failure.errno in _NOT_THERE:
            raise Refusal(f"{name!r} is not a directory. Use another path for the file.") from None
        raise _missing_if_not_there(failure) from None


def _missing_if_not_there(failure: OSError) -> Exception:
    return Missing() if failure.errno in _NOT_THERE else failure


def _lstat(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _is_same(one: os.stat_result, other: os.stat_result | None) -> bool:
    """Return whether both are one file."""
    return other is not None and (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _write_new(folder: int, data: bytes, mode: int) -> str:
    """Write a durable file with a temporary name, which is returned."""
    name = f".memory-{secrets.token_hex(8)}.tmp"
    opened = os.open(name, _NEW, 0o600, dir_fd=folder)
    try:
        with open(opened, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except OSError:
        os.unlink(name, dir_fd=folder)
        raise
    return name


def _place(swap: str, name: str, folder: int) -> None:
    """Give a new file its name. Raise `Exists` if the name is taken. The file `swap` is gone afterwards."""
    try:
        os.link(swap, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise Exists from None
    except OSError as failure:
        if failure.errno not in _NO_LINKS or _lstat(name, folder) is not None:
            raise
        os.rename(swap, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    finally:
        with suppress(FileNotFoundError):
            os.unlink(swap, dir_fd=folder)


def _collect(folder: int, prefix: str, found: list[Listed], depth: int) -> None:
    """Add everything in an open folder, and in its folders, in order of the names."""
    if depth > _DEEPEST:
        return
    with os.scandir(folder) as scanned:
        names = sorted(each.name for each in scanned if not each.name.startswith("."))
    for name in names:
        about = _lstat(name, folder)
        if about is None or len(found) >= MOST_FILES:
            continue
        if stat.S_ISREG(about.st_mode):
            found.append(Listed(prefix + name, False, about.st_size))
        elif stat.S_ISDIR(about.st_mode):
            _collect_folder(folder, name, prefix, found, depth)


def _collect_folder(folder: int, name: str, prefix: str, found: list[Listed], depth: int) -> None:
    try:
        opened = os.open(name, _FOLDER, dir_fd=folder)
    except OSError as failure:
        if failure.errno in _NOT_THERE:
            return  # It was removed or replaced since it was listed.
        raise
    place = len(found)
    try:
        _collect(opened, f"{prefix}{name}/", found, depth + 1)
    finally:
        os.close(opened)
    size = sum(each.size or 0 for each in found[place:] if not each.is_folder)
    found.insert(place, Listed(prefix + name, True, size))


def _remove(name: str, folder: int, is_folder: bool, depth: int) -> None:
    if not is_folder:
        os.unlink(name, dir_fd=folder)
        return
    if depth > _DEEPEST:
        raise Refusal(f"The directory {name!r} has too many levels. Delete its directories first.")
    opened = os.open(name, _FOLDER, dir_fd=folder)
    try:
        for inner in os.listdir(opened):
            about = _lstat(inner, opened)
            if about is not None:
                _remove(inner, opened, stat.S_ISDIR(about.st_mode), depth + 1)
    finally:
        os.close(opened)
    os.rmdir(name, dir_fd=folder)
