"""Tables of `history.db`.

`notes` gives each note a number, `contents` keeps bytes once under their hash, `versions` has one row for
each recorded state. Rows are numbered in the order of recording (`place`); several rows may have one version
(a rename keeps it), and then the last one recorded stands for it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import apsw
from attrs import frozen

from lithos.core.errors import StorageFailed
from lithos.core.history.versions import (
    CREATED,
    DELETED,
    OUTSIDE,
    RENAMED,
    RESTORED,
    UPDATED,
    VersionRow,
)
from lithos.stores.database import add_missing_columns


class HistoryFailed(StorageFailed):
    """`history.db` cannot be read or written now."""


@frozen(kw_only=True)
class NewVersion:
    """A version to record.

    `data` None: the bytes of the version before. `before` is the state that it was made from: it is recorded
    first unless the newest version that is kept has the same bytes.
    """

    note_id: str
    version: int
    at: datetime
    agent: str
    op: str
    path: str
    title: str
    data: bytes | None
    changed: tuple[str, ...] = ()
    is_undo: bool = False
    before: NewVersion | None = None


@frozen
class PendingVersion:
    """A row of which it is not known whether its bytes reached the file.

    `former` is the hash of the version before, as the manifest has it of files, None for the first.
    """

    place: int
    row: VersionRow
    mark: str
    former: str | None
    is_newest: bool


@frozen
class NewestVersion:
    """The last recorded version of a note; `mark` is the hash of its bytes as the manifest has it."""

    number: int
    note_id: str
    place: int
    version: int
    path: str
    title: str
    mark: str
    is_deletion: bool
    is_pending: bool


def failed(failure: Exception) -> HistoryFailed:
    """The refusal for what SQLite or the system raised."""
    return HistoryFailed(
        f"history.db does not answer: {failure}. Check free space and permissions, then retry."
    )


#: Raise it when the meaning of a row changes, and migrate older files in `upgrade`.
FORMAT: Final = 1

#: `contents.base` is the content that a delta was made from, NULL for a whole one; `depth` counts the deltas
#: up to the whole one; `mark` is the hash that the manifest has of a file (BLAKE2b). `versions.pending` is 1
#: until the file is known to have the bytes, `versions.undo` for what takes changes back.
TABLES: Final = """
CREATE TABLE IF NOT EXISTS notes(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS contents(
    number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, mark BLOB NOT NULL, size INTEGER NOT NULL,
    base INTEGER REFERENCES contents(number), depth INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS contents_base ON contents(base) WHERE base IS NOT NULL;
CREATE TABLE IF NOT EXISTS versions(
    place INTEGER PRIMARY KEY, note INTEGER NOT NULL REFERENCES notes(number), version INTEGER NOT NULL,
    at INTEGER NOT NULL, agent TEXT NOT NULL, op INTEGER NOT NULL, path TEXT NOT NULL, title TEXT NOT NULL,
    content INTEGER NOT NULL REFERENCES contents(number), changed TEXT NOT NULL, pending INTEGER NOT NULL,
    undo INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS versions_note ON versions(note);
CREATE INDEX IF NOT EXISTS versions_version ON versions(note, version);
CREATE INDEX IF NOT EXISTS versions_at ON versions(at);
CREATE INDEX IF NOT EXISTS versions_content ON versions(content);
CREATE INDEX IF NOT EXISTS versions_deleted ON versions(op) WHERE op=4;
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""

#: The numbers under which operations are stored; they never change.
CODES: Final = {CREATED: 1, UPDATED: 2, RENAMED: 3, DELETED: 4, RESTORED: 5, OUTSIDE: 6}
DELETION: Final = CODES[DELETED]
NAMES: Final = {code: name for name, code in CODES.items()}

#: What `read_row` reads, from `versions v`, `notes n` and `contents c`.
COLUMNS: Final = "n.id,v.version,v.at,v.agent,v.op,v.path,v.title,c.digest,c.size,v.changed,v.undo"
JOINED: Final = "versions v JOIN notes n ON n.number=v.note JOIN contents c ON c.number=v.content"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def upgrade(connection: apsw.Connection, _: datetime) -> None:
    """Note the format of a new file; an older one gets the column it lacks."""
    add_missing_columns(connection, {"versions": {"undo": "INTEGER NOT NULL DEFAULT 0"}})
    connection.execute("INSERT OR IGNORE INTO meta VALUES('format',?)", (FORMAT,))


def to_number(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def read_time_number(microseconds: int) -> datetime:
    """The time of `to_number`."""
    return _EPOCH + timedelta(microseconds=microseconds)


def read_row(row: tuple[Any, ...]) -> VersionRow:
    """The version row of `COLUMNS`."""
    note_id, version, at, agent, op, path, title, digest, size, changed, undo = row
    return VersionRow(
        note_id=note_id,
        version=version,
        at=read_time_number(at),
        agent=agent,
        op=NAMES[op],
        path=path,
        title=title,
        digest=digest.hex(),
        size=size,
        changed=tuple(changed.split("\n")) if changed else (),
        is_undo=bool(undo),
    )
