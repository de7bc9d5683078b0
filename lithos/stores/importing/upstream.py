"""A data directory of upstream Lithos 0.2 to 0.4: its notes as they are, attachments, tables. Blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lithos.core.importing import ImportRefused, Item
from lithos.core.notes.ignored import Ignored
from lithos.stores.importing.markdown import _find_attachment, _read_note
from lithos.stores.notes.attachments import list_attachments
from lithos.stores.notes.tree import walk_notes
from lithos.stores.upstream.reading import database_path, read_tables

NOTES: Final = "knowledge"
_KEYS: Final = ("knowledge_dir", "knowledge_subdir")
#: Characters of `config.yaml` that are read.
_CONFIG_READ: Final = 64 * 1024


class UpstreamSource:
    """A data directory: notes below `knowledge/`, and the databases."""

    kind = "lithos"

    def recognises(self, path: Path) -> bool:
        """Whether it has notes in `knowledge/` and a database of tasks, or one of `.lithos` or `.chroma`."""
        if not find_notes(path).is_dir():
            return False
        signs = (path / ".lithos", path / ".chroma", database_path(path, "coordination.db"))
        return any(sign.exists() for sign in signs)

    def read(self, path: Path) -> Iterator[Item]:
        """Notes by path, attachments, rows of the tables. Raises `ImportRefused`."""
        notes = find_notes(path)
        if not notes.is_dir():
            raise ImportRefused(
                f"{path} has no folder {NOTES!r}, so it is no data directory of Lithos. Name the directory "
                "that holds it, or import the folder of notes with --from markdown."
            )
        root = os.path.realpath(notes)
        try:
            names = sorted(name for name, _ in walk_notes(root, Ignored()))
        except OSError as failure:
            raise ImportRefused(
                f"{notes} cannot be read: {failure.filename}: {failure.strerror or failure}. "
                "Check its permissions."
            ) from failure
        for name in names:
            yield from _read_note(root, name)
        for name in sorted(list_attachments(root)):
            yield from _find_attachment(root, name, Ignored())
        yield from read_tables(path)


def find_notes(data: Path) -> Path:
    """The folder of notes of a data directory; its `config.yaml` may name another one than `knowledge`."""
    try:
        with (data / "config.yaml").open(encoding="utf-8", errors="replace") as file:
            lines = file.read(_CONFIG_READ).splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.strip().partition(":")
        name = value.split(" #")[0].strip().strip("'\"")
        if key in _KEYS and name and not os.path.isabs(name) and ".." not in Path(name).parts:
            return data / name
    return data / NOTES
