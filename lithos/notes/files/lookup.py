"""Lookup of single note files, by the same rules as a listing, and the other files of a vault.

The other files are images, PDFs and the like. All functions block.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence, Set
from io import FileIO

from attrs import frozen

from lithos.notes.files.files import NoteFiles
from lithos.notes.files.placeholders import find_in_cloud
from lithos.notes.files.tree import is_text
from lithos.notes.files.values import FileState, FoundFile, state_of


def list_attachments(root: str) -> Iterator[str]:
    """Return the paths of all other files below `root`, with `/`, in no order.

    Dot-names and files that only symlinked folders lead to are left out. A folder that cannot be listed has
    no files.
    """
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        prefix = os.path.relpath(folder, root).replace(os.sep, "/") + "/" if folder != root else ""
        for name in names:
            if not name.startswith(".") and not name.endswith(".md"):
                yield prefix + name


def compare_attachments(root: str, known: Set[str]) -> tuple[tuple[str, bool], ...]:
    """Return new paths, each with true, and missing paths of `known`, with false."""
    found = set(list_attachments(root))
    return (*((path, False) for path in known - found), *((path, True) for path in found - known))


@frozen
class Attachment:
    """An open file of the vault: its name and size in bytes. The owner of this object closes `file`."""

    file: FileIO
    name: str
    size: int


def open_attachment(files: NoteFiles, path: str) -> Attachment | None:
    """Open a file below the notes folder by its relative path; None if it does not exist or is not shown.

    Paths with a part that begins with a dot, ignored files and irregular files are not shown. A symlink
    counts as its target, which must be shown. The real path is opened part by part without following
    symlinks, so that a symlink which appears meanwhile cannot lead elsewhere.
    """
    parts = path.split("/")
    if not all(_is_shown(part) for part in parts) or files.ignored.covers(path):
        return None
    root = os.path.realpath(files.root)
    try:
        real = os.path.realpath(os.path.join(root, path))
        if not real.startswith(root + os.sep):
            return None
        inside = os.path.relpath(real, root).split(os.sep)
        if not all(_is_shown(part) for part in inside) or files.ignored.covers("/".join(inside)):
            return None
        descriptor = _open_below(root, inside)
    except (OSError, ValueError):  # not there, closed to us, changed meanwhile, or no name of a file at all
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return None
    return Attachment(FileIO(descriptor), parts[-1], status.st_size)


def _is_shown(part: str) -> bool:
    return bool(part) and not part.startswith(".") and "\\" not in part and part.isprintable()


def _open_below(root: str, parts: Sequence[str]) -> int:
    """Open a file by the parts of its path, none of which may be a symlink."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        # O_NONBLOCK: opening a named pipe would wait for a writer, possibly without end.
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


#: State of a file that exists but whose `stat` fails.
UNKNOWN_STATE = FileState(0, 0)


class AliasedPath(Exception):
    """The path leads through a symlinked folder: only a listing knows the names of the files in it."""


def find_note(files: NoteFiles, path: str) -> FoundFile | None:
    """Return the note file at this path, or None when a listing would not show it.

    Raises `OSError` when that cannot be decided, and `AliasedPath`.
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
    """Return True while a known note file or its placeholder has its name, or when that cannot be determined.

    On a disk that ignores case an old spelling can be opened, but is not listed.
    """
    target = os.path.join(files.root, path)
    folder, name = os.path.split(target)
    try:
        return stat.S_ISREG(os.stat(target).st_mode) and name in os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return find_in_cloud(target, path) is not None
    except OSError:
        return True


def current_state(files: NoteFiles, path: str) -> FileState | None:
    """Return the current size and time of a file; None when it was deleted."""
    try:
        return state_of(os.stat(os.path.join(files.root, path)))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return UNKNOWN_STATE


def is_same_file(files: NoteFiles, one: str, other: str) -> bool:
    """Return True when both names are spellings of one directory entry, as on a disk that ignores case."""
    try:
        first, second = (os.lstat(os.path.join(files.root, path)) for path in (one, other))
    except OSError:
        return False
    return os.path.samestat(first, second) and first.st_nlink == 1 and not stat.S_ISLNK(first.st_mode)


def is_note_name(path: str) -> bool:
    """Return whether a listing may show this name: `.md`, not a dot-name, valid text."""
    if not path.endswith(".md") or any(part.startswith(".") for part in path.split("/")):
        return False
    return is_text(path)


def folder_identity(files: NoteFiles) -> tuple[int, int] | None:
    """Return device and inode of `knowledge/`, by which a replaced folder is detected; None if it does not
    exist.
    """
    try:
        status = os.stat(files.root)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
