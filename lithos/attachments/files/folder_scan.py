"""Scan of the notes folder for attachments that can be read or shown, with their sizes and times.

Scanning blocks. It follows the rules of `open_attachment`: names with a leading dot, ignored files, and
symlinks that lead out of the folder are excluded. Folders that are only reachable through a symlink are
skipped too.
"""

from __future__ import annotations

import os
import stat

from lithos.attachments.model.kinds import kind_of
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import open_attachment
from lithos.notes.files.tree import is_text
from lithos.notes.files.values import FileState, state_of


def survey_attachments(files: NoteFiles) -> dict[str, FileState]:
    """Return every file of a known kind by its path, relative to the notes folder and with `/`.

    Raises `OSError` if a folder cannot be listed, because deleted files could then not be recognised.
    """
    root = os.path.realpath(files.root)
    found: dict[str, FileState] = {}
    folders = [""]
    while folders:
        prefix = folders.pop()
        try:
            with os.scandir(os.path.join(root, prefix)) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or not is_text(entry.name):
                        continue
                    path = prefix + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if not files.ignored.covers_folder(f"{path}/"):
                            folders.append(f"{path}/")
                    elif kind_of(path) is not None and (state := look_at(files, path, root)) is not None:
                        found[path] = state
        except OSError:
            if not prefix:
                raise
    return found


def look_at(files: NoteFiles, path: str, root: str | None = None) -> FileState | None:
    """Return size and time of a file. Return None if it is missing, excluded or not a regular file."""
    if files.ignored.covers(path):
        return None
    target = os.path.join(os.path.realpath(files.root) if root is None else root, path)
    try:
        status = os.lstat(target)
        if stat.S_ISLNK(status.st_mode):
            opened = open_attachment(files, path)
            if opened is None:
                return None
            with opened.file:
                status = os.fstat(opened.file.fileno())
    except OSError:
        return None
    return state_of(status) if stat.S_ISREG(status.st_mode) else None
