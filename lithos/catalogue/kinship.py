"""Whose conflict copy a file is that names no id: its lines tell (docs/spec/copies.md §1).

One that names the id of its note is known by that alone (`note_reading.second_file`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from lithos.catalogue.catalogue import Entry
from lithos.core.notes.copies import Lines, are_kin, copy_names, lines_of, may_be_strong
from lithos.stores.notes.files import NoteFiles
from lithos.stores.notes.values import OutsideKnowledge

#: Kept versions of a note that are looked at, the newest first.
MOST_VERSIONS: Final = 50

#: The kept bytes of a note by its id, the newest first; read one by one.
VersionsOf = Callable[[str], Iterable[bytes]]
#: The note at a path.
At = Callable[[str], Entry | None]


def may_be_copy(path: str, at: At, *, is_note: bool) -> bool:
    """Whether a file without id has to be looked at: by its name it is the copy of a note that there is.

    One that `is_note` already stays so under a name that people give, too: nobody touched it.
    """
    if is_note and not may_be_strong(path):
        return False
    return any(at(each.original) is not None for each in copy_names(path) if not (is_note and each.is_weak))


def find_original(
    files: NoteFiles, path: str, at: At, versions: VersionsOf, data: bytes | None = None
) -> Entry | None:
    """The note whose conflict copy a file without id is, if it is one; `data` are its bytes. Blocks."""
    copy: Lines | None = None
    for name in copy_names(path):
        original = at(name.original)
        if original is None:
            continue
        if copy is None:
            copy = _read(files, path) if data is None else lines_of(data)
        lines = _read(files, original.path)
        kept = (lines_of(each) for each in versions(original.note.id))
        if are_kin(name, None, original.note.id, copy, lines, kept):
            return original
    return None


def _read(files: NoteFiles, path: str) -> Lines:
    """The lines of a file; none of one that cannot be read, which is nobody's kin."""
    try:
        return lines_of(files.read(path).data)
    except (OSError, OutsideKnowledge):
        return Lines()
