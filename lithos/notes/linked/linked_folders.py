"""Linked folders: folders outside the notes folder whose files are notes below a path of the vault.

`linked-folders.json` in `.lithos` maps a path of the vault, such as `memory/claude-code/shop`, to an absolute
folder. A path below such a prefix leads to a file in that folder, with the same checks as in the vault. A
running server reads the file again within a second. A broken file is logged, and the last list applies.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import asdict, define, field, frozen

from lithos.kernel.databases.private_files import replace_file
from lithos.kernel.log import get_logger

log = get_logger("lithos.linked")

#: Name of the file with the linked folders, and the version of its format.
LINKED_NAME: Final = "linked-folders.json"
_FORMAT: Final = 1
#: Maximum number of linked folders, and of removed prefixes that are remembered.
MOST_LINKED: Final = 500
#: Maximum size of the file in bytes.
_LARGEST: Final = 4_000_000


@frozen(kw_only=True)
class LinkedFolder:
    """A folder whose notes have paths below `prefix`, with the client that writes it and its project.

    `prefix` has no final slash. `folder` is an absolute path. `project` is a key, or "" for none.
    """

    prefix: str
    folder: str
    client: str
    project: str = ""

    @property
    def is_there(self) -> bool:
        """Return whether the folder exists and has a file. An empty folder may be an unmounted one."""
        try:
            with os.scandir(self.folder) as entries:
                return next(entries, None) is not None
        except OSError:
            return False


@define(eq=False)
class LinkedFolders:
    """The linked folders of a vault. Without a file, the list is empty. Reading and writing block."""

    _file: Path | None = None
    listed: tuple[LinkedFolder, ...] = field(default=(), init=False)
    #: Prefixes that were removed. Notes below them leave the vault without being guarded.
    former: tuple[str, ...] = field(default=(), init=False)
    _by_prefix: dict[str, LinkedFolder] = field(factory=dict, init=False)
    _depths: tuple[int, ...] = field(default=(), init=False)
    _seen: tuple[int, int, int] | None = field(default=None, init=False)

    def __bool__(self) -> bool:
        return bool(self.listed)

    def refresh(self) -> bool:
        """Read the file again if it has changed. Return whether the linked folders have changed."""
        if self._file is None:
            return False
        try:
            status = os.stat(self._file)
            seen = (status.st_ino, status.st_size, status.st_mtime_ns)
        except (FileNotFoundError, NotADirectoryError):
            seen = None
        except OSError as failure:
            log.error("list of linked folders unreadable", reason=str(failure))
            return False
        if seen == self._seen:
            return False
        self._seen = seen
        found = ((), ()) if seen is None else _read(self._file)
        if found is None or found == (self.listed, self.former):
            return False
        self._set(*found)
        return True

    def replace(self, listed: Iterable[LinkedFolder], former: Iterable[str]) -> None:
        """Store another list durably. Raises `OSError`, and `ValueError` if the list is too long."""
        assert self._file is not None
        kept = tuple(sorted(listed, key=lambda each: each.prefix))
        if len(kept) > MOST_LINKED:
            raise ValueError(f"At most {MOST_LINKED} folders can be linked.")
        prefixes = {each.prefix for each in kept}
        gone = tuple(each for each in dict.fromkeys(former) if each not in prefixes)[-MOST_LINKED:]
        written = {"format": _FORMAT, "folders": [asdict(each) for each in kept], "former": list(gone)}
        replace_file(self._file, json.dumps(written, ensure_ascii=False, indent=1).encode())
        self._set(kept, gone)

    def find(self, path: str) -> LinkedFolder | None:
        """Return the linked folder that contains a path of the vault, or None."""
        if not self._by_prefix:
            return None
        parts = path.split("/")
        for depth in self._depths:
            if depth < len(parts):
                found = self._by_prefix.get("/".join(parts[:depth]))
                if found is not None:
                    return found
        return None

    def project_of(self, path: str) -> str:
        """Return the key of the linked folder that contains a path, or "" for none."""
        found = self.find(path)
        return "" if found is None else found.project

    def has_left(self, path: str) -> bool:
        """Return whether a path was in a linked folder that is no longer linked."""
        return bool(self.former) and path.startswith(tuple(f"{each}/" for each in self.former))

    def away(self) -> tuple[str, ...]:
        """Return the prefixes, with a final slash, of folders that are missing or empty. Blocks."""
        return tuple(f"{each.prefix}/" for each in self.listed if not each.is_there)

    def _set(self, listed: Sequence[LinkedFolder], former: Sequence[str]) -> None:
        self.listed, self.former = tuple(listed), tuple(former)
        self._by_prefix = {each.prefix: each for each in listed}
        self._depths = tuple(sorted({each.prefix.count("/") + 1 for each in listed}, reverse=True))


def _read(file: Path) -> tuple[tuple[LinkedFolder, ...], tuple[str, ...]] | None:
    try:
        data = file.read_bytes()
        if len(data) > _LARGEST:
            raise ValueError(f"the file has more than {_LARGEST} bytes")
        known: dict[str, Any] = json.loads(data)
        if known["format"] != _FORMAT:
            raise ValueError(f"format {known['format']}")
        listed = tuple(_checked(each) for each in known["folders"][:MOST_LINKED])
        return listed, tuple(str(each) for each in known["former"][:MOST_LINKED])
    except (OSError, ValueError, KeyError, TypeError) as failure:
        log.error("list of linked folders unreadable", file=str(file), reason=str(failure))
        return None


def _checked(given: dict[str, Any]) -> LinkedFolder:
    folder = LinkedFolder(**{key: str(value) for key, value in given.items()})
    parts = folder.prefix.split("/")
    if not os.path.isabs(folder.folder) or any(part == "" or part.startswith(".") for part in parts):
        raise ValueError(f"{folder.prefix!r} does not lead to an absolute folder")
    return folder
