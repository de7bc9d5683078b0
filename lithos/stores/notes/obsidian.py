"""The settings of Obsidian that say which files of a vault are no notes. Reading blocks.

They belong to somebody else: what is missing, broken or too large is logged and left out.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from lithos.core.notes.ignored import Ignored, read_filters
from lithos.telemetry import get_logger

log = get_logger("lithos.vault")

FOLDER: Final = ".obsidian"
#: Bytes of a settings file that is still read.
LARGEST: Final = 1_000_000
#: What is ignored when nothing else is said.
TEMPLATES: Final = "templates/**"


def find_own_notes(folder: Path) -> str | None:
    """What shows that somebody keeps notes in a folder: settings of Obsidian, or Markdown files; else None.

    Files are looked for right in it, and in the folders right in it.
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
        return None  # who opens it says why it cannot be read
    return None


def read_ignored(vault: Path, globs: Iterable[str] | None) -> Ignored:
    """What is no note in a vault; `globs` None: the folder of templates, as Obsidian knows it."""
    filters, complaints = read_filters(_read(vault / FOLDER / "app.json", {}))
    for complaint in complaints:
        log.warning("setting of Obsidian not used", file=str(vault / FOLDER / "app.json"), reason=complaint)
    return Ignored.of((_templates(vault),) if globs is None else globs, filters)


def _templates(vault: Path) -> str:
    document = _read(vault / FOLDER / "templates.json", {})
    named = document.get("folder") if isinstance(document, dict) else None
    folder = named.strip().strip("/") if isinstance(named, str) else ""
    if not folder or len(folder) > 1_000:
        return TEMPLATES
    return f"{folder}/**" if not set(folder) & set("*?") else TEMPLATES


def _read(path: Path, otherwise: Any) -> Any:
    """The parsed file, or `otherwise`."""
    try:
        # O_NONBLOCK: opening a named pipe would wait for a writer, for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                raise ValueError(f"it is no file of at most {LARGEST} bytes")
            return json.loads(file.read(LARGEST + 1))
    except (FileNotFoundError, NotADirectoryError):
        return otherwise
    except (OSError, ValueError, RecursionError) as failure:
        log.warning("settings of Obsidian not used", file=str(path), reason=str(failure))
        return otherwise
