"""Lookup of single note files, by the same rules as a listing. Everything here blocks."""

from __future__ import annotations

import os
import stat

from lithos.stores.notes.files import NoteFiles
from lithos.stores.notes.values import FileState, FoundFile, state_of

#: State of a file that exists but whose `stat` fails.
UNKNOWN_STATE = FileState(0, 0)


class AliasedPath(Exception):
    """The path leads through a symlinked folder: only a listing tells by which name its files go."""


def find_note(files: NoteFiles, path: str) -> FoundFile | None:
    """The note file at this path, or None when a listing would not show it.

    Raises `OSError` when that cannot be told, and `AliasedPath`.
    """
    root = os.path.realpath(files.root)
    target = os.path.join(root, path)
    folder = os.path.dirname(target)
    if not is_note_name(path) or files.ignored.covers(path):
        return None
    if os.path.realpath(folder) != folder:
        raise AliasedPath(path)
    try:
        status = os.lstat(target)
        if stat.S_ISLNK(status.st_mode):
            if not os.path.realpath(target).startswith(root + os.sep):
                return None
            status = os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FoundFile(path, state_of(status)) if stat.S_ISREG(status.st_mode) else None


def is_there(files: NoteFiles, path: str) -> bool:
    """True while a known note file has its name, or when that cannot be determined.

    On a disk that ignores case an old spelling can be opened, but is not listed.
    """
    target = os.path.join(files.root, path)
    folder, name = os.path.split(target)
    try:
        return stat.S_ISREG(os.stat(target).st_mode) and name in os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def current_state(files: NoteFiles, path: str) -> FileState | None:
    """Size and time of a file now; None when it is gone."""
    try:
        return state_of(os.stat(os.path.join(files.root, path)))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return UNKNOWN_STATE


def is_same_file(files: NoteFiles, one: str, other: str) -> bool:
    """True when both names are spellings of one directory entry, as on a disk that ignores case."""
    try:
        first, second = (os.lstat(os.path.join(files.root, path)) for path in (one, other))
    except OSError:
        return False
    return os.path.samestat(first, second) and first.st_nlink == 1 and not stat.S_ISLNK(first.st_mode)


def is_note_name(path: str) -> bool:
    """True for what a listing may show: `.md`, no dot-names, nothing that is no text."""
    if not path.endswith(".md") or any(part.startswith(".") for part in path.split("/")):
        return False
    return not any("\udc80" <= character <= "\udcff" for character in path)


def folder_identity(files: NoteFiles) -> tuple[int, int] | None:
    """Device and inode of `knowledge/`, by which a replaced folder is detected; None while there is none."""
    try:
        status = os.stat(files.root)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
