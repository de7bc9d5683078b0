"""Finds single note files by the rules of a listing, and finds the other files of a vault.

Other files are, for example, images and PDFs. All functions block.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence, Set
from io import FileIO

from attrs import frozen

from lithos.kernel.operating_system import CLOSE_ON_EXEC, FOLDER, NO_FOLLOW, NO_WAIT
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.placeholders import find_in_cloud
from lithos.notes.files.tree import is_text
from lithos.notes.files.values import FileState, FoundFile, state_of


def list_attachments(root: str) -> Iterator[str]:
    """Return the paths of all files below `root` that are not notes.

    Paths contain `/`, and their order is undefined.

    Files with dot-names are left out, and so are files that are reached only through symlinked folders. An
    unreadable folder counts as empty.
    """
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        prefix = os.path.relpath(folder, root).replace(os.sep, "/") + "/" if folder != root else ""
        for name in names:
            if not name.startswith(".") and not name.endswith(".md"):
                yield prefix + name


def compare_attachments(root: str, known: Set[str]) -> tuple[tuple[str, bool], ...]:
    """Return new paths with True, and missing paths with False. `known` are the paths found earlier."""
    found = set(list_attachments(root))
    return (*((path, False) for path in known - found), *((path, True) for path in found - known))


@frozen
class Attachment:
    """An open file of the vault, with its name and its size in bytes.

    The owner of this object must close `file`.
    """

    file: FileIO
    name: str
    size: int


def open_attachment(files: NoteFiles, path: str) -> Attachment | None:
    """Open a file below the notes folder by its relative path.

    Return None if the file does not exist or is hidden.

    A file is hidden if a part of the path begins with a dot, if the file is ignored, or if it is not a
    regular file. A symlink counts as its target, which must be visible. The real path is opened part by part
    without following symlinks. So a symlink created in the meantime cannot lead elsewhere.
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
    except (OSError, ValueError):  # the file is missing, unreadable or changed, or its name is invalid
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return None
    return Attachment(FileIO(descriptor), parts[-1], status.st_size)


def _is_shown(part: str) -> bool:
    return bool(part) and not part.startswith(".") and "\\" not in part and part.isprintable()


def _open_below(root: str, parts: Sequence[str]) -> int:
    """Open a file by the parts of its path. Raise `OSError` if a part is a symlink."""
    folder = os.open(root, os.O_RDONLY | FOLDER | CLOSE_ON_EXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | FOLDER | NO_FOLLOW | CLOSE_ON_EXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        # Without O_NONBLOCK, opening a named pipe could wait for a writer forever.
        return os.open(parts[-1], os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC, dir_fd=folder)
    finally:
        os.close(folder)


#: State of a file that exists, but for which `stat` fails.
UNKNOWN_STATE = FileState(0, 0)


class AliasedPath(Exception):
    """The path contains a symlinked folder, so only a listing can find the file."""


def find_note(files: NoteFiles, path: str) -> FoundFile | None:
    """Return the note file at this path, or None if a listing would not contain it.

    Raise `OSError` if the existence of the file cannot be determined. Raise `AliasedPath` if only a listing
    can find the file.
    """
    if not is_note_name(path) or files.ignored.covers(path):
        return None
    root, target = files.real_place(path)
    folder = os.path.dirname(target)
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
    """Return whether a known note file, or its placeholder, still exists under its name.

    The result is also True if the existence of the file cannot be determined.

    On a case-insensitive disk, an old spelling of a file name still opens the file, but a listing contains
    only the new spelling.
    """
    target = files.place(path)
    folder, name = os.path.split(target)
    try:
        return stat.S_ISREG(os.stat(target).st_mode) and name in os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return find_in_cloud(target, path) is not None
    except OSError:
        return True


def current_state(files: NoteFiles, path: str) -> FileState | None:
    """Return the current size and mtime of a file, or None if the file was deleted."""
    try:
        return state_of(os.stat(files.place(path)))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return UNKNOWN_STATE


def is_same_file(files: NoteFiles, one: str, other: str) -> bool:
    """Return whether both names refer to one directory entry. This is possible on a case-insensitive disk."""
    try:
        first, second = (os.lstat(files.place(path)) for path in (one, other))
    except OSError:
        return False
    return os.path.samestat(first, second) and first.st_nlink == 1 and not stat.S_ISLNK(first.st_mode)


def is_note_name(path: str) -> bool:
    """Return whether a listing may contain this name.

    Names of listed files end with `.md`, are valid text, and do not begin with a dot.
    """
    if not path.endswith(".md") or any(part.startswith(".") for part in path.split("/")):
        return False
    return is_text(path)


def folder_identity(files: NoteFiles) -> tuple[int, int] | None:
    """Return the device and inode of `knowledge/`, or None if it does not exist.

    Callers use them to detect a replaced folder.
    """
    try:
        status = os.stat(files.root)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def linked_identities(files: NoteFiles) -> tuple[tuple[str, int, int], ...]:
    """Return the linked folders that exist, each with its device and inode."""
    found = []
    for each in files.linked.listed:
        try:
            status = os.stat(each.folder)
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode):
            found.append((each.prefix, status.st_dev, status.st_ino))
    return tuple(found)
