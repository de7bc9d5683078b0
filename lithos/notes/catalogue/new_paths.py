"""Paths for new files. They are spelled like the existing folders and are valid on every disk.

Disks differ in which names they treat as equal: many disks ignore case, some ignore the Unicode form. Lithos
never creates a second spelling of an existing name, or a name that Windows reserves (docs/spec/notes.md §7).
If a person created files with such names, Lithos still serves them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from unicodedata import normalize

from attrs import define, field

from lithos.kernel.operating_system import name_problem
from lithos.kernel.values.errors import InvalidInput
from lithos.notes.model.paths import folder_of, is_portable, portable_path
from lithos.text.words.analysis import name_key


def path_to_make(path: str, folders: Collection[str]) -> str:
    """Return the path for a new note requested at `path`. `folders` are the folders that contain notes.

    Raises `InvalidInput` for a new name that some disks cannot store.
    """
    known = _spelled(folder_of(path), folders)
    parts = path.split("/")
    new = [normalize("NFC", part) for part in parts[len(known) :]]
    for part in new:
        if not is_portable(part):
            raise InvalidInput(
                f"The path {path[:300]!r} cannot be stored on every disk: {part[:100]!r} is the "
                "name of a device on Windows, or ends in a full stop or a blank. Nothing was "
                f"changed; use {portable_path(part)[:100]!r} instead."
            )
        if problem := name_problem(part):
            raise InvalidInput(
                f"The path {path[:300]!r} cannot be stored on this machine: {problem}. Nothing was changed; "
                "use another name."
            )
    return "/".join([*known, *new])


def prefix_as_spelled(prefix: str, folders: Collection[str]) -> str:
    """Return a path prefix spelled like the existing folders.

    If a folder of the prefix does not exist, return the prefix unchanged.
    """
    folder, slash, name = prefix.rpartition("/")
    known = _spelled(folder, folders)
    return "/".join([*known, name]) if slash and len(known) == folder.count("/") + 1 else prefix


def _spelled(folder: str, folders: Collection[str]) -> list[str]:
    """Return the parts of a folder path that exist, spelled as on disk."""
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
    """Return the folders at a depth whose paths are spellings of the path with this key."""
    tops = {"/".join(parts) for folder in folders if len(parts := folder.split("/")[:depth]) == depth}
    return {top for top in tops if name_key(top) == key}


@define
class NewPaths:
    """The paths that one round of changes creates. All spellings of a path have the same key."""

    _files: set[str] = field(factory=set)
    _folders: dict[str, str] = field(factory=dict)

    def take(self, path: str | None) -> bool:
        """Register the path that a change creates. `path` is None if the change does not create a path.

        Return False if the round already creates the file, or one of its folders, in another spelling. The
        caller must decide about the change again once that path exists.
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
