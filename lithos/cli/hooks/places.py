"""Where a session works: its folder, and the repository around it."""

from __future__ import annotations

import os
from pathlib import Path


def folder_of(told: Path | None) -> Path:
    """The folder that the client told, if it is one, else the current one: a hook may run elsewhere."""
    return told if told is not None and told.is_absolute() and told.is_dir() else Path.cwd()


def repository_of(folder: Path) -> Path:
    """The repository that holds the folder; outside of one the folder itself."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)


def name_of(path: str) -> str:
    """The characters of a name: those of folders are bytes, and the server wants characters."""
    return os.fsencode(path).decode(errors="replace")
