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


class TreeMemory:
    """The tree as the last look found it, for a watcher that compares every second.

    Times of change of the file itself count as well, which no program can set back: a file that was
    replaced by one of the same size and mtime has changed. As numbers a tree of 10,000 notes is small.
    """

    def __init__(self, files: NoteFiles) -> None:
        self._files = files
        self._seen: dict[str, int] | None = None

    def look(self) -> list[str] | None:
        """Paths that are new, changed or gone since the last look; None at the first."""
        now = {
            path: hash((status.st_size, status.st_mtime_ns, status.st_ctime_ns))
            for path, status in self._files.walk()
        }
        before, self._seen = self._seen, now
        if before is None:
            return None
        if now == before:
            return []
        changed = [path for path, seen in now.items() if before.get(path) != seen]
        return changed + [path for path in before if path not in now]

    def forget(self) -> None:
        """The next look is the first."""
        self._seen = None


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
