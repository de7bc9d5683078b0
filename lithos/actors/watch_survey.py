"""Looking at the folder for the watcher. Everything here blocks; run it in a worker thread."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from attrs import frozen

from lithos.core.plan import plan_files
from lithos.stores.files import FileState, FoundFile, NoteFiles
from lithos.stores.note_lookup import UNKNOWN_STATE, AliasedPath, find_note, is_note_name


@frozen
class Survey:
    """Files that may have changed, names without a file; `is_unclear`: only a full comparison tells."""

    found: tuple[FoundFile, ...]
    absent: tuple[str, ...]
    is_unclear: bool = False


def survey_tree(files: NoteFiles, known: Mapping[str, FileState]) -> Survey:
    """Compare size and time of every file with what is known: the incremental scan of a running server."""
    found = {file.path: file for file in files.list_notes()}
    plan = plan_files(known, {path: file.state for path, file in found.items()})
    return Survey(tuple(found[path] for path in plan.examine), plan.missing)


def survey_paths(files: NoteFiles, paths: Iterable[str]) -> Survey:
    """Look at single paths that something happened to."""
    found: list[FoundFile] = []
    absent: list[str] = []
    is_unclear = False
    for path in paths:
        target = os.path.join(files.root, path)
        if not is_note_name(path):
            # A folder, or something that was one: nobody reports the files in it.
            is_unclear |= os.path.isdir(target) or not os.path.lexists(target)
            continue
        try:
            file = find_note(files, path)
        except AliasedPath:
            is_unclear = True
            continue
        except OSError:
            file = FoundFile(path, UNKNOWN_STATE)  # reading it will say why
        if file is not None:
            found.append(file)
            continue
        absent.append(path)
        is_unclear |= os.path.isdir(target)
    return Survey(tuple(found), tuple(absent), is_unclear)


def is_watched(path: str) -> bool:
    """True unless some part of a relative path is dot-named: such things are nobody's notes."""
    return bool(path) and not any(part.startswith(".") for part in path.split("/"))
