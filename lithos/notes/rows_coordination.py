"""Rows about note files in `coordination.db`. They store facts that are not in the files.

`note_versions` stores the effective version of a note whose file contains a lower version, and the hash of
its bytes. `note_ids` stores the id of a file that does not contain one, if the id is not derived from the
path. Both tables have at most one row per note, and the start scan deletes unused rows. `own_notes` stores
the paths of files that a person marked as separate notes, because they are not conflict copies. The file may
be missing for a while. `note_intents` stores the versions and hashes of running and finished writes until the
manifest contains them. An intent is stored before the write (write-ahead), because a reader may have seen the
version before a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw
from attrs import field, frozen

from lithos.events.rows.schema import CapabilityTables
from lithos.kernel.databases.database import read_time
from lithos.kernel.databases.table import Rows
from lithos.kernel.log import get_logger
from lithos.kernel.values.times import format_time
from lithos.notes.model.note import AssignedVersion

log = get_logger("lithos.coordination")

_CREATE = """
CREATE TABLE IF NOT EXISTS note_versions(
    id TEXT PRIMARY KEY, version INTEGER NOT NULL, hash TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS note_intents(
    id TEXT NOT NULL, version INTEGER NOT NULL, hash TEXT NOT NULL, PRIMARY KEY(id, version)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS note_creations(id TEXT PRIMARY KEY, created_at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS note_ids(path TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS own_notes(path TEXT PRIMARY KEY) WITHOUT ROWID;
"""


@frozen
class NoteRows:
    """The rows of all tables, by note id, by path, or by id and version.

    In a change, the value None means that the row is deleted.
    """

    versions: dict[str, AssignedVersion | None] = field(factory=dict)
    ids: dict[str, str | None] = field(factory=dict)
    intents: dict[tuple[str, int], str | None] = field(factory=dict)
    creations: dict[str, datetime | None] = field(factory=dict)
    own: dict[str, bool | None] = field(factory=dict)

    def __bool__(self) -> bool:
        return bool(self.versions or self.ids or self.intents or self.creations or self.own)

    def store(self, connection: apsw.Connection) -> None:
        """Store the changed rows in the transaction of the caller.

        An id may move from one path to another.
        """
        versions, intents, creations = self.versions, self.intents, self.creations

        def run(sql: str, given: Sequence[tuple[apsw.SQLiteValue, ...]]) -> None:
            if given:  # most of these lists are empty, and a statement costs as much as a GIL handover
                connection.executemany(sql, given)

        run("DELETE FROM note_versions WHERE id=?", [(key,) for key, row in versions.items() if row is None])
        run(
            "INSERT OR REPLACE INTO note_versions VALUES(?,?,?)",
            [(key, row.version, row.digest) for key, row in versions.items() if row is not None],
        )
        gone = [key for key, digest in intents.items() if digest is None]
        kept = [(*key, digest) for key, digest in intents.items() if digest is not None]
        run("DELETE FROM note_intents WHERE id=? AND version=?", gone)
        run("INSERT OR REPLACE INTO note_intents VALUES(?,?,?)", kept)
        run("DELETE FROM note_creations WHERE id=?", [(key,) for key, at in creations.items() if at is None])
        times = [(key, format_time(at)) for key, at in creations.items() if at is not None]
        run("INSERT OR REPLACE INTO note_creations VALUES(?,?)", times)
        run("DELETE FROM note_ids WHERE path=?", [(path,) for path in self.ids])
        named = [(path, note_id) for path, note_id in self.ids.items() if note_id is not None]
        run("INSERT OR REPLACE INTO note_ids VALUES(?,?)", named)
        own = self.own.items()
        run("DELETE FROM own_notes WHERE path=?", [(path,) for path, is_own in own if not is_own])
        run("INSERT OR IGNORE INTO own_notes VALUES(?)", [(path,) for path, is_own in own if is_own])


def load_note_rows(connection: apsw.Connection | None) -> NoteRows:
    """Load all rows. Return no rows if the database is missing or older than the tables."""
    if connection is None:
        return NoteRows()

    def read(query: str) -> list[Any]:
        try:
            return connection.execute(query).fetchall()
        except apsw.SQLError:
            log.info(
                "note record table missing",
                reason="table missing in older database",
                query=query,
            )
            return []

    creations = read("SELECT id,created_at FROM note_creations")
    return NoteRows(
        {key: AssignedVersion(*row) for key, *row in read("SELECT id,version,hash FROM note_versions")},
        dict(read("SELECT path,id FROM note_ids")),
        {(key, version): digest for key, version, digest in read("SELECT id,version,hash FROM note_intents")},
        {key: time for key, text in creations if (time := read_time(text)) is not None},
        {path: True for (path,) in read("SELECT path FROM own_notes")},
    )


class KeptNotes(Rows):
    """Reader of the rows about note files through one connection."""

    def load(self) -> NoteRows:
        """Load all rows."""
        return load_note_rows(self.connection)


NOTE_TABLES = CapabilityTables(place=4, create=_CREATE)
