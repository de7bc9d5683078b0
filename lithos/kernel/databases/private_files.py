"""Access to files and folders: private modes, durable writes, and regular files only.

Every function may block.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from lithos.kernel.operating_system import CLOSE_ON_EXEC, FOLDER, NO_WAIT, SYNCS_FOLDERS, write_at

#: Mode of new folders that contain texts of notes and agents: only the owner can read them.
PRIVATE_FOLDER: Final = 0o700
#: The token file and its lock. A backup contains both. Without them, a restored server would be open to all
#: callers.
TOKEN_FILES: Final = ("tokens.json", "tokens.lock")


@contextmanager
def opened(path: str | Path, flags: int, mode: int = 0o600) -> Iterator[int]:
    """Open a file descriptor while the block runs."""
    descriptor = os.open(path, flags | CLOSE_ON_EXEC, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Sync one folder, so that its file names are durable."""
    if not SYNCS_FOLDERS:
        return
    with opened(folder, os.O_RDONLY | FOLDER) as descriptor:
        os.fsync(descriptor)


def overwrite(descriptor: int, data: bytes) -> None:
    """Replace the content of an open file with a single write, which a kill does not interrupt."""
    write_at(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))


def replace_file(path: Path, data: bytes, temporary: Path | None = None, mode: int = 0o666) -> None:
    """Write a file durably under a temporary name, then rename it. The default name ends in `.tmp`.

    The folder is not synced, so the new name may be lost. Raises `OSError`.
    """
    fresh = temporary or path.with_suffix(".tmp")
    with open(fresh, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


class NotRegular(OSError):
    """Error for a path that is a folder, a pipe or similar instead of a regular file."""


def open_regular(path: str | Path, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading. Raises `NotRegular` and `OSError`."""
    # Without O_NONBLOCK, opening a named pipe would wait indefinitely for a writer.
    descriptor = os.open(path, os.O_RDONLY | NO_WAIT | CLOSE_ON_EXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return open(descriptor, "rb", buffering=buffering)
    os.close(descriptor)
    raise NotRegular("the path is not a regular file")


def state_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder with the user's Lithos state, below `$XDG_STATE_HOME`."""
    state = Path(environment.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():  # The XDG specification says that relative paths must be ignored.
        state = Path(os.path.expanduser("~/.local/state"))
    return state / "lithos"
