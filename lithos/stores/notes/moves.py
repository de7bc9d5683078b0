"""The journal of moves: `.lithos/moves/` has a file for each note that is being moved. It blocks.

It is written before the note's file is renamed and removed once all links to it are rewritten, so what a
killed process began is finished at the next start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs
from attrs import frozen

from lithos.core.events import TOOL
from lithos.core.notes.link_edit import Relinking
from lithos.stores import sync_folder
from lithos.stores.notes.values import digest_of
from lithos.telemetry import get_logger

log = get_logger("lithos.moves")

#: The name of the folder in `.lithos`.
MOVES: Final = "moves"
_FORMAT: Final = 1


@frozen(kw_only=True)
class MoveIntent:
    """A move that has begun: of which note, by whom, and what is left to do.

    `digest` is the hash of the note's bytes as it was moved, `identified` whether the file names its id,
    `sources` are the ids of the notes with links that have to be rewritten, `source` is that of the events.
    """

    id: str
    agent: str
    digest: str
    identified: bool
    relinking: Relinking
    update_links: bool = True
    sources: tuple[str, ...] = ()
    source: str = TOOL


class Moves:
    """The journal; one file a note, so at most as many as moves are under way."""

    def __init__(self, private: Path) -> None:
        self._folder = private / MOVES

    def write(self, intent: MoveIntent) -> None:
        """Make an intent durable, in the place of an earlier one of the note. Raises `OSError`."""
        if not self._folder.is_dir():
            self._folder.mkdir(parents=True, exist_ok=True)
            sync_folder(self._folder.parent)
        path = self._path(intent.id)
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            file.write(json.dumps({"format": _FORMAT, **attrs.asdict(intent)}).encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(self._folder)

    def remove(self, note_id: str) -> None:
        """Remove an intent; none is fine. Raises `OSError`."""
        with suppress(FileNotFoundError):
            self._path(note_id).unlink()
            sync_folder(self._folder)

    def find(self, note_id: str) -> MoveIntent | None:
        """The intent of a note."""
        path = self._path(note_id)
        return _read(path) if path.exists() else None

    def pending(self) -> list[MoveIntent]:
        """All intents, the earliest first; what cannot be read is set aside and logged."""
        if not self._folder.is_dir():
            return []
        paths = sorted(self._folder.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name))
        return [intent for path in paths if (intent := _read(path)) is not None]

    def _path(self, note_id: str) -> Path:
        return self._folder / f"{digest_of(note_id.encode('utf-8', 'surrogatepass'))}.json"


def _read(path: Path) -> MoveIntent | None:
    try:
        known: Mapping[str, Any] = json.loads(path.read_bytes())
        if known["format"] != _FORMAT:
            raise ValueError(f"format {known['format']}")
        known = {"source": TOOL, **known}  # older ones do not say it
        fields = {each.name: known[each.name] for each in attrs.fields(MoveIntent)}
        fields["sources"] = tuple(fields["sources"])
        return MoveIntent(**fields | {"relinking": Relinking(**fields["relinking"])})
    except (OSError, ValueError, KeyError, TypeError) as failure:
        log.error("move not finished: its record cannot be read", file=path.name, reason=str(failure))
        with suppress(OSError):
            path.rename(path.with_suffix(".unreadable"))
        return None
