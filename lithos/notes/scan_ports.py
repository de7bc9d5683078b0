"""Records that the start scan needs in addition to the note files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from lithos.events.rows.store import CoordinationStore
from lithos.kernel.log import get_logger
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.copy_origin import MOST_VERSIONS
from lithos.notes.files.displaced import Moves
from lithos.notes.files.files import NoteFiles
from lithos.notes.model.plan import RecordedPath
from lithos.notes.model.versions import HistoryFailed
from lithos.notes.rows_coordination import KeptNotes, NoteRows
from lithos.notes.writing.ports import VersionStore

log = get_logger("lithos.start")


class ScannedRows:
    """Stored records about note files. They are needed only until the start scan has finished."""

    def __init__(self, journal: CoordinationStore) -> None:
        self.rows: NoteRows = journal.rows(KeptNotes).load()

    def forget(self) -> None:
        """Drop the records to free their memory."""
        self.rows = NoteRows()


def recorded_places(versions: VersionStore | None, ids: Collection[str]) -> Mapping[str, RecordedPath]:
    """Return the last known paths of notes from the history. Without a history, return nothing. Blocks."""
    try:
        return versions.places(ids) if versions is not None else {}
    except HistoryFailed as failure:
        log.warning("history search for note ids failed", reason=failure.message)
        return {}


def kept_versions(versions: VersionStore | None, note_id: str) -> Iterator[bytes]:
    """Yield the kept versions of a note, newest first. Without a history, yield nothing. Blocks."""
    try:
        if versions is not None:
            yield from versions.contents(note_id, MOST_VERSIONS)
    except HistoryFailed as failure:
        log.warning("kept versions unreadable", reason=failure.message)


def place_moved(moves: Moves, files: NoteFiles, catalogue: Catalogue) -> None:
    """Record the ids of notes that a killed process moved and whose files do not contain an id. Blocks."""
    for intent in moves.pending():
        moved = intent.relinking
        is_moved = files.is_file(moved.new) and not files.is_file(moved.old)
        if is_moved and not intent.identified:
            catalogue.records.place(moved.new, intent.id)
