"""Finds the original note of a conflict copy without an id (docs/spec/copies.md §1).

Lithos compares the lines of both files.

If a copy contains the id of its note, the id is sufficient to recognise the copy
(`note_reading.second_file`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

from attrs import frozen

from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import OutsideKnowledge
from lithos.notes.model.copies import (
    CopyName,
    LineCounts,
    all_copy_names,
    are_kin,
    is_named_after,
    lines_of,
    may_be_strong,
)
from lithos.notes.model.paths import folder_of

#: Maximum number of kept versions to examine per note, newest first.
MOST_VERSIONS: Final = 50
#: Maximum number of other files that are searched for lines of the copy. `MOST_OLDEST` is the maximum
#: number of notes whose oldest version is searched as well.
MOST_OTHERS: Final = 1_000
MOST_OLDEST: Final = 100
#: Maximum number of folders that are searched for templates, and the name parts that mark a template folder.
MOST_FOLDERS: Final = 1_000
_TEMPLATES: Final = ("templat", "vorlage", "modèle", "modele", "plantilla", "modelli", "szablon", "テンプレ")

#: Callback that returns the kept versions of a note by its id, newest first. Each version is read only when
#: needed.
VersionsOf = Callable[[str], Iterable[bytes]]
#: Callback that returns the note at a path.
At = Callable[[str], Entry | None]


@frozen
class Kinship:
    """Finds the notes to which conflict copies belong. `at` returns the note at a path.

    `is_own` returns whether a person has marked a file as a separate note. If an `undecided` file is named
    after the same note, it may be a copy as well. So a line that also occurs in that file can still prove
    that another file is a copy.
    """

    files: NoteFiles
    at: At
    is_own: Callable[[str], bool]
    versions: VersionsOf
    undecided: Container[str] = ()

    def may_be_copy(self, path: str, *, is_note: bool) -> bool:
        """Return whether a file without an id may be a conflict copy and must be examined.

        Whether the file must be examined depends on its name.

        A file that is already a note is not examined if a person could have chosen its name.
        """
        if self.is_own(path) or (is_note and not may_be_strong(path)):
            return False
        return any(True for _ in self._named(path, is_note=is_note))

    def find_original(
        self, path: str, own_id: str, data: bytes | None = None, *, is_note: bool = False
    ) -> Entry | None:
        """Return the note of which a file without an id is a conflict copy, or None. Blocks.

        `data` are the bytes of the file. `own_id` is the id that the file has as a note. A file with kept
        versions was a note earlier. If a person could also have chosen its name, the file does not count as a
        copy.
        """
        copy: LineCounts | None = None
        for name, original in self._named(path, is_note=is_note):
            if name.is_weak and any(True for _ in self.versions(own_id)):
                continue
            if copy is None:
                copy = self._read(path) if data is None else lines_of(data)
            lines, note_id = self._read(original.path), original.note.id
            kept = (lines_of(each) for each in self.versions(note_id))
            search = _Search(self, path, original.path)
            if are_kin(name, None, note_id, copy, lines, kept, search.unexplained):
                return original
        return None

    def _named(self, path: str, *, is_note: bool) -> Iterator[tuple[CopyName, Entry]]:
        """Yield the notes to which a file name refers. The most likely note comes first.

        The name of a copy of a copy also refers to the original note.
        """
        for name in all_copy_names(path):
            original = self.at(name.original)
            if original is not None and not (is_note and name.is_weak):
                yield name, original

    def _read(self, path: str) -> LineCounts:
        """Return the lines of a file.

        An unreadable file counts as a file without lines, so it is never a copy.
        """
        try:
            return lines_of(self.files.read(path).data)
        except (OSError, OutsideKnowledge):
            return LineCounts()

    def lines_in(self, path: str) -> LineCounts:
        """Return the lines of another file.

        If two files share a line with this file, the line does not prove that they are related.
        """
        return self._read(path)


@frozen
class _Search:
    """A search for lines of a copy in files other than its note. Lines found there do not prove a relation.

    The notes of a folder may be based on one template. A note may also have replaced a template line that
    another note still contains. So the oldest versions of these notes are searched as well. Templates may
    also be in a separate folder.
    """

    kinship: Kinship
    path: str
    original: str

    def unexplained(self, lines: frozenset[str]) -> frozenset[str]:
        """Return the lines that do not occur in any other file."""
        left = lines
        for other in islice(self._others(), MOST_OTHERS):
            left -= self.kinship.lines_in(other).keys()
            if not left:
                return left
        for entry in islice(self._notes(), MOST_OLDEST):
            oldest = None
            for data in islice(self.kinship.versions(entry.note.id), MOST_VERSIONS):
                oldest = data
            left -= lines_of(oldest).keys() if oldest is not None else frozenset[str]()
            if not left:
                return left
        return left

    def _others(self) -> Iterator[str]:
        """Yield the other notes of the folder, then the templates."""
        for entry in self._notes():
            yield entry.path
        root = str(self.kinship.files.root)
        for folder in _template_folders(self.kinship.files):
            for name in _names_in(root, folder):
                yield f"{folder}/{name}"

    def _notes(self) -> Iterator[Entry]:
        folder = folder_of(self.path)
        place = os.path.dirname(self.kinship.files.place(self.path))
        for name in _names_in(place, ""):
            path = f"{folder}/{name}" if folder else name
            entry = self.kinship.at(path)
            if entry is None or path in (self.path, self.original):
                continue
            if path not in self.kinship.undecided or not is_named_after(path, self.original):
                yield entry


def _names_in(root: str, folder: str) -> list[str]:
    """Return the names of the Markdown files in a folder, or an empty list if the folder cannot be listed."""
    with suppress(OSError):
        return sorted(name for name in os.listdir(os.path.join(root, folder)) if name.endswith(".md"))
    return []


def _template_folders(files: NoteFiles) -> Iterator[str]:
    """Yield the template folders.

    Template folders are recognised by their names, or because their files are not notes.
    """
    root = str(files.root)
    for folder, folders, _ in islice(os.walk(root), MOST_FOLDERS):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inner = os.path.relpath(folder, root).replace(os.sep, "/")
        if files.ignored.covers_folder(f"{inner}/") or any(word in inner.lower() for word in _TEMPLATES):
            yield inner
