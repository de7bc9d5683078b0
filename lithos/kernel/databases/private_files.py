"""Synchronous storage: the only importers of tantivy, usearch, rustworkx, apsw, model2vec and onnxruntime.

Actors change stores; services read them through handles. Every method may block.
Never here: trio, mailboxes, or decisions about requests.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

#: The mode of new folders that hold texts of notes and agents: only the owner can read them.
PRIVATE_FOLDER: Final = 0o700
#: The file of tokens, and its lock. A backup has both: without them its server would be open to all.
TOKEN_FILES: Final = ("tokens.json", "tokens.lock")


@contextmanager
def opened(path: str | Path, flags: int, mode: int = 0o600) -> Iterator[int]:
    """Open a descriptor for the block."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Sync one folder, so that the names of its files are durable."""
    with opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        os.fsync(descriptor)


def overwrite(descriptor: int, data: bytes) -> None:
    """Replace the bytes of an open file, by one write, which a kill does not interrupt."""
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))


def replace_file(path: Path, data: bytes, temporary: Path | None = None, mode: int = 0o666) -> None:
    """Write a file durably under a temporary name (ending in `.tmp` by default), then rename it.

    The folder is not synced. Raises `OSError`.
    """
    fresh = temporary or path.with_suffix(".tmp")
    with open(fresh, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


class NotRegular(OSError):
    """The path is not a regular file, but a folder, a pipe or similar."""


def open_regular(path: str | Path, buffering: int = -1) -> BinaryIO:
    """Open a file for reading. Raises `NotRegular`, and `OSError`."""
    # O_NONBLOCK: opening a named pipe would wait for a writer indefinitely.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return open(descriptor, "rb", buffering=buffering)
    os.close(descriptor)
    raise NotRegular("it is not a file")


def state_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of a person's Lithos state, below `$XDG_STATE_HOME`."""
    state = Path(environment.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():  # the XDG specification ignores relative ones
        state = Path(os.path.expanduser("~/.local/state"))
    return state / "lithos"
