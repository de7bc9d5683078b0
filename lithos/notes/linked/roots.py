"""The folders that contain the notes: the notes folder, and each linked folder below its prefix."""

from __future__ import annotations

import os
from collections.abc import Iterator

from attrs import define, field

from lithos.notes.files.replacing import Replacing
from lithos.notes.files.tree import is_inside
from lithos.notes.linked.linked_folders import LinkedFolder, LinkedFolders


@define(eq=False)
class Root:
    """A folder that contains notes. Note paths in it begin with `prefix`, which ends with `/` or is empty."""

    path: str
    prefix: str = ""
    #: Changes files in this folder. The first change makes it, because file systems differ.
    replacing: Replacing | None = field(default=None, init=False)
    _real: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._real = os.path.realpath(self.path)

    def find(self) -> str:
        """Return the current real path. If the folder is a symlink, its target may have changed."""
        try:
            if os.path.samestat(os.stat(self.path), os.stat(self._real)):
                return self._real
        except OSError:
            pass  # the folder was deleted or moved
        self._real = os.path.realpath(self.path)
        return self._real

    def refresh(self) -> None:
        """Resolve the path again, for example after the folder was created."""
        self._real = os.path.realpath(self.path)

    def below(self, target: str) -> str:
        """Return the note path of a real path in this folder, with `/` as separator."""
        return self.prefix + target[len(self.find()) + 1 :].replace(os.sep, "/")


class Roots:
    """All folders that contain notes. Methods block."""

    def __init__(self, path: str, linked: LinkedFolders) -> None:
        self.main = Root(path)
        self.linked = linked
        self._roots: dict[LinkedFolder, Root] = {}

    def __iter__(self) -> Iterator[Root]:
        """Yield the notes folder, then the linked folders that exist."""
        yield self.main
        yield from self.present()

    def present(self) -> Iterator[Root]:
        """Yield the linked folders that exist."""
        for each in self.linked.listed:
            if os.path.isdir(each.folder):
                yield self._root(each)

    def of(self, path: str) -> tuple[Root, str]:
        """Return the folder of a note path, and the path in this folder."""
        found = self.linked.find(path)
        return (self.main, path) if found is None else (self._root(found), path[len(found.prefix) + 1 :])

    def containing(self, target: str) -> Root:
        """Return the folder that contains a real path. Without one, return the notes folder."""
        linked = (root for root in map(self._root, self.linked.listed) if is_inside(target, root.find()))
        return next(linked, self.main)

    def _root(self, linked: LinkedFolder) -> Root:
        root = self._roots.get(linked)
        if root is None:
            # Folders that are no longer linked are dropped, so that the table stays small.
            self._roots = {each: self._roots[each] for each in self.linked.listed if each in self._roots}
            root = self._roots[linked] = Root(linked.folder, f"{linked.prefix}/")
        return root
