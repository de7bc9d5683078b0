"""Detection of notes in a folder that Lithos does not serve yet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FOLDER: Final = ".obsidian"


def find_own_notes(folder: Path) -> str | None:
    """Return evidence that a folder contains notes (Obsidian settings or Markdown files).

    Without evidence, return None.

    Only the folder itself and its direct subfolders are searched.
    """
    if (folder / FOLDER).is_dir():
        return FOLDER
    try:
        with os.scandir(folder) as entries:
            shown = sorted(
                (each for each in entries if not each.name.startswith(".")), key=lambda each: each.name
            )
        for entry in shown:
            if entry.is_dir(follow_symlinks=False):
                inside = next((name for name in sorted(os.listdir(entry.path)) if name.endswith(".md")), None)
                if inside is not None:
                    return f"{entry.name}/{inside}"
            elif entry.name.endswith(".md"):
                return entry.name
    except OSError:
        return None  # The later opening of the folder reports why it cannot be read.
    return None
