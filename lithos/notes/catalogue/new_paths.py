"""Paths for new files: spelled like the existing folders, and valid on every disk.

Disks differ in which names they treat as equal: many ignore case, some Unicode forms. Lithos creates no
second spelling of a name, and no name that Windows reserves (docs/spec/notes.md §7). Files that a person made
are served.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from unicodedata import normalize

from attrs import define, field

from lithos.kernel.values.errors import InvalidInput
from lithos.notes.model.paths import folder_of, is_portable, portable_path
from lithos.text.words.analysis import name_key


def path_to_make(path: str, folders: Collection[str]) -> str:
    """Return the path at which a note is made that shall be at `path`; `folders` are those that hold notes.

    Raises `InvalidInput` for a new name that not every disk can store.
    """
    known = _spelled(folder_of(path), folders)
    parts = path.split("/")
    new = [normalize("NFC", part) for part in parts[len(known) :]]
    for part in new:
        if not is_portable(part):
            raise InvalidInput(
                f"The path {path[:300]!r} cannot be stored on every disk: {part[:100]!r} is the name of a "
                "device on Windows, or ends in a full stop or a blank. Nothing was changed; take "
                f"{portable_path(part)[:100]!r} instead."
            )
    return "/".join([*known, *new])


def prefix_as_spelled(prefix: str, folders: Collection[str]) -> str:
    """Return the beginning of paths spelled like the existing folders, unchanged if a folder is missing."""
    folder, slash, name = prefix.rpartition("/")
    known = _spelled(folder, folders)
    return "/".join([*known, name]) if slash and len(known) == folder.count("/") + 1 else prefix


def _spelled(folder: str, folders: Collection[str]) -> list[str]:
    """Return the existing parts of a folder, in their spelling on disk."""
    if not folder:
        return []
    below = f"{folder}/"
    if folder in folders or any(each.startswith(below) for each in folders):
        return folder.split("/")
    wanted = folder.split("/")
    found: list[str] = []
    for depth in range(1, len(wanted) + 1):
        exact, key = "/".join([*found, wanted[depth - 1]]), name_key("/".join(wanted[:depth]))
        same = sorted(_with_key(folders, depth, key))
        if not same:
            break
        found = (exact if exact in same else same[0]).split("/")
    return found


def _with_key(folders: Iterable[str], depth: int, key: str) -> set[str]:
    """Return the folders of a depth that are spellings of one."""
    tops = {"/".join(parts) for folder in folders if len(parts := folder.split("/")[:depth]) == depth}
    return {top for top in tops if name_key(top) == key}


@define
class NewPaths:
    """The paths that the changes of one round make, by what their spellings have in common."""

    _files: set[str] = field(factory=set)
    _folders: dict[str, str] = field(factory=dict)

    def take(self, path: str | None) -> bool:
        """Enter the path that a change makes; None makes none.

        False where the round makes the file, or a folder of it, in another spelling already: the change has
        to be decided again once that is there.
        """
        if path is None:
            return True
        parts = path.split("/")
        folders = ["/".join(parts[:end]) for end in range(1, len(parts))]
        key = name_key(path)
        if key in self._files or any(self._folders.get(name_key(each), each) != each for each in folders):
            return False
        self._files.add(key)
        self._folders.update((name_key(each), each) for each in folders)
        return True
