"""Port to the place where memory files are kept: a folder, or the notes of a server."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from lithos.memory_tool.paths import MemoryPath

#: Maximum number of bytes of a file.
MOST_BYTES: Final = 8_000_000
#: Maximum number of files in a folder that a command lists, moves or deletes.
MOST_FILES: Final = 5_000


class MemoryText(NamedTuple):
    """The text of a file, and the version to which it belongs."""

    text: str
    version: str


class Listed(NamedTuple):
    """A file or folder below a listed folder. `name` is relative to that folder and has no trailing slash."""

    name: str
    is_folder: bool
    #: Size in bytes, or None if it is unknown.
    size: int | None


class Store(Protocol):
    """Memory files by path. All methods block. `Refusal` may be raised by each of them."""

    def hold(self) -> AbstractContextManager[None]:
        """Keep other writers of the same store out while a command runs, if the store has a lock."""

    def read(self, path: MemoryPath) -> MemoryText:
        """Return the text of a file. Raise `Missing` if there is no such file."""

    def is_folder(self, path: MemoryPath) -> bool:
        """Return whether the path is a folder. The root always is one."""

    def entries(self, path: MemoryPath) -> Sequence[Listed]:
        """Return all files and folders below a folder, sorted by name, at most `MOST_FILES` files.

        Raise `Missing` if there is no such folder.
        """

    def create(self, path: MemoryPath, text: str) -> None:
        """Write a new file and its folders. Raise `Exists` if the path is taken."""

    def replace(self, path: MemoryPath, text: str, version: str) -> str:
        """Replace the text that had this version, and return the text that is now stored.

        It differs from `text` if the store merged the change of another writer. Raise `Changed` if the file
        has another version and the two changes cannot be merged, and `Missing` if the file is gone.
        """

    def remove(self, path: MemoryPath) -> None:
        """Delete a file, or a folder with its files. Raise `Missing` if there is neither."""

    def move(self, path: MemoryPath, to: MemoryPath) -> None:
        """Move a file or a folder. Raise `Missing` or `Exists`."""
