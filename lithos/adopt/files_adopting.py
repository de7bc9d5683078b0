"""Linking of memory folders to the vault, and copying of their files. All functions block."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import define, frozen

from lithos.adopt.files_memory import MemoryFolder
from lithos.adopt.model_clients import ALL, TOP, name_in_path
from lithos.kernel.databases.private_files import PRIVATE_FOLDER
from lithos.kernel.settings import StorageConfig
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.tree import is_inside, walk_notes
from lithos.notes.files.values import FileOccupied, Put
from lithos.notes.linked.linked_folders import LINKED_NAME, LinkedFolder, LinkedFolders
from lithos.notes.model.ignored import Ignored
from lithos.notes.opening import open_notes


class CannotAdopt(Exception):
    """A folder cannot be adopted. Nothing was changed. The message says why, and what to do."""


@frozen
class Copied:
    """The number of files that were copied, and the paths that already had other bytes."""

    path: str
    files: int
    differing: tuple[str, ...] = ()


def linked_of(storage: StorageConfig) -> LinkedFolders:
    """Return the linked folders of a vault."""
    linked = LinkedFolders(storage.data_dir / ".lithos" / LINKED_NAME)
    linked.refresh()
    return linked


@define(eq=False)
class Adoption:
    """The adopted folders of one vault."""

    storage: StorageConfig
    linked: LinkedFolders

    @classmethod
    def of(cls, storage: StorageConfig) -> Adoption:
        """Return the adopted folders of a vault."""
        return cls(storage, linked_of(storage))

    def adopt(self, client: str, found: Iterable[MemoryFolder]) -> list[tuple[LinkedFolder, bool]]:
        """Link folders. Return each with whether it is new. Raises `CannotAdopt` and `OSError`."""
        listed = list(self.linked.listed)
        made = list[tuple[LinkedFolder, bool]]()
        for each in found:
            folder = os.path.realpath(each.folder)
            known = next((one for one in listed if os.path.realpath(one.folder) == folder), None)
            if known is None:
                self._check_apart(folder, listed)
                prefix = self._free_prefix(client, each.project, {one.prefix for one in listed})
                known = LinkedFolder(prefix=prefix, folder=folder, client=client, project=each.project)
                listed.append(known)
                made.append((known, True))
            else:
                made.append((known, False))
        self._store(listed, self.linked.former)
        return made

    def remove(self, gone: Iterable[LinkedFolder]) -> None:
        """Unlink folders. Their files are not touched. Raises `OSError`."""
        left = set(gone)
        listed = [each for each in self.linked.listed if each not in left]
        self._store(listed, (*self.linked.former, *(each.prefix for each in left)))

    def copy(self, client: str, found: Iterable[MemoryFolder]) -> Iterator[Copied]:
        """Copy the files of folders into the vault, and yield what was done. Raises `CannotAdopt`.

        A file that already has the same bytes is not copied. A file with other bytes is not replaced.
        """
        files = open_notes(self.storage)
        try:
            taken = set[str]()
            for each in found:
                prefix = self._prefix(client, each.project, taken)
                taken.add(prefix)
                if files.linked.find(f"{prefix}/x.md") is not None:
                    raise CannotAdopt(
                        f"{prefix} is adopted in place. Nothing was copied. First run lithos adopt --remove."
                    )
                yield _copy(files, each.folder, prefix)
        finally:
            files.close()

    def _store(self, listed: Iterable[LinkedFolder], former: Iterable[str]) -> None:
        private = self.storage.data_dir / ".lithos"
        private.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        try:
            self.linked.replace(listed, former)
        except ValueError as refusal:
            raise CannotAdopt(f"{refusal} Nothing was changed. Remove some with --remove.") from refusal

    def _check_apart(self, folder: str, listed: Iterable[LinkedFolder]) -> None:
        """Raise `CannotAdopt` if a folder overlaps with the vault, its data or an adopted folder."""
        vault = os.path.realpath(self.storage.notes_folder)
        if is_inside(vault, folder) or (is_inside(folder, vault) and _is_visible(folder, vault)):
            raise CannotAdopt(
                f"{folder} and the notes folder {vault} contain each other, so its files would be notes "
                "twice. Nothing was changed. If the folder is in the vault, its files are notes already."
            )
        data = os.path.realpath(self.storage.data_dir)
        if is_inside(folder, data) or is_inside(data, folder):
            raise CannotAdopt(
                f"{folder} and the data directory {data} contain each other. Nothing was changed. Choose "
                "another data directory with --data-dir."
            )
        for each in listed:
            real = os.path.realpath(each.folder)
            if is_inside(folder, real) or is_inside(real, folder):
                raise CannotAdopt(
                    f"{folder} overlaps with {real}, which is adopted as {each.prefix}. Nothing was changed."
                )

    def _free_prefix(self, client: str, project: str, taken: set[str]) -> str:
        """Return an unused prefix. Raise `CannotAdopt` if the vault has notes of its own below it."""
        prefix = self._prefix(client, project, taken)
        own = os.path.join(self.storage.notes_folder, prefix)
        if next(walk_notes(os.path.realpath(own), Ignored()), None) is not None:
            raise CannotAdopt(
                f"The vault already has notes in {prefix}, which the adopted files would hide. Nothing was "
                f"changed. Move these notes to another folder first."
            )
        return prefix

    def _prefix(self, client: str, project: str, taken: set[str]) -> str:
        name = name_in_path(project) if project else ALL
        names = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
        folded = {each.casefold() for each in taken}
        return next(prefix for each in names if (prefix := f"{TOP}/{client}/{each}").casefold() not in folded)


def _is_visible(folder: str, vault: str) -> bool:
    """Return whether the vault serves the files of a folder in it. Folders with a dot are not served."""
    return not any(part.startswith(".") for part in os.path.relpath(folder, vault).split(os.sep))


def _copy(files: NoteFiles, folder: Path, prefix: str) -> Copied:
    real = os.path.realpath(folder)
    puts = []
    for path, _ in walk_notes(real, Ignored()):
        with open(os.path.join(real, path), "rb") as file:
            puts.append(Put(f"{prefix}/{path}", file.read(), None))
    puts.sort(key=lambda put: put.path)
    copied, differing = 0, []
    for put, result in zip(puts, files.apply(puts), strict=True):
        if isinstance(result, FileOccupied):
            if files.read(put.path).data != put.data:
                differing.append(put.path)
        elif isinstance(result, Exception):
            raise CannotAdopt(
                f"{put.path} could not be written: {result}. {copied} files were copied. Check free space "
                "and permissions, then run the command again."
            ) from result
        else:
            copied += 1
    return Copied(prefix, copied, tuple(differing))
