"""Schema of tasks and note records in `coordination.db`; migration of older files.

Specified in docs/spec/coordination.md §1.

`ready_tasks`: tasks that are ready, and that `task.ready` was told of, with their age.
`timers`: open timer gates whose opening is yet to be looked at.
`claim_ends`: each claim with what its aspect is compared by, and whether its expiry was told.
`unreadable_times`: what stood in the place of a time and was none, when the times were rewritten.
Triggers keep them in step also with a version that knows nothing of them.
`citations`: the notes that completions cited (`ImpactRows`).
`requests`: calls with a `request_id`, and their answers (`RequestRows`).

The migration is idempotent. Indexes are separate, because an older file gets its missing columns before an
index may name them. Note records are facts that the note files do not hold themselves:

`note_versions`: the effective version of a note whose file says less, and the hash of its bytes.
`note_ids`: the id of a file that names none and whose path does not give it either.
Both have at most a row for each note there is: the start scan deletes rows that no note needs.
`own_notes`: the paths of files of which a person said that they are notes of their own, and no conflict
copies; a row each time that somebody says so, of a file that may be gone for a while.
`note_intents`: the versions and hashes that writes are about to place, or have placed, until the manifest has
them (write-ahead: a reader may have been shown one before a crash).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import apsw
from attrs import field, frozen

from lithos.core.notes.model import Standing
from lithos.core.principals import MIGRATION_AGENT
from lithos.core.tasks.model import BLOCKS, FORBIDDEN_METADATA, aspect_key
from lithos.core.times import EPOCH, format_time
from lithos.stores.coordination.board_rows import CITATION_TABLE, IMPACT_INDEXES, ImpactRows
from lithos.stores.coordination.proposals import PROPOSAL_INDEXES, PROPOSAL_TABLE
from lithos.stores.coordination.requests import REQUEST_INDEXES, REQUEST_TABLE
from lithos.stores.coordination.tasks import TaskRows
from lithos.stores.database import add_missing_columns, read_time
from lithos.stores.sqlite import load_object
from lithos.telemetry import get_logger

log = get_logger("lithos.coordination")

NOTE_TABLES = """
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
    """Rows by note id, by path, hashes by id and version, times by id, and paths of notes of their own.

    In a change None stands for a row that goes.
    """

    versions: dict[str, Standing | None] = field(factory=dict)
    ids: dict[str, str | None] = field(factory=dict)
    intents: dict[tuple[str, int], str | None] = field(factory=dict)
    creations: dict[str, datetime | None] = field(factory=dict)
    own: dict[str, bool | None] = field(factory=dict)

    def __bool__(self) -> bool:
        return bool(self.versions or self.ids or self.intents or self.creations or self.own)


def load_note_rows(connection: apsw.Connection | None) -> NoteRows:
    """All rows; none where there is no database, or one that is older than the tables."""
    if connection is None:
        return NoteRows()

    def read(query: str) -> list[Any]:
        try:
            return connection.execute(query).fetchall()
        except apsw.SQLError:
            log.info("no note records of one kind", reason="the database is older than them", query=query)
            return []

    creations = read("SELECT id,created_at FROM note_creations")
    return NoteRows(
        {key: Standing(*row) for key, *row in read("SELECT id,version,hash FROM note_versions")},
        dict(read("SELECT path,id FROM note_ids")),
        {(key, version): digest for key, version, digest in read("SELECT id,version,hash FROM note_intents")},
        {key: time for key, text in creations if (time := read_time(text)) is not None},
        {path: True for (path,) in read("SELECT path FROM own_notes")},
    )


def store_note_rows(connection: apsw.Connection, rows: NoteRows) -> None:
    """Change rows, inside a transaction. An id may pass from one path to another."""
    versions, intents, creations = rows.versions, rows.intents, rows.creations

    def run(sql: str, given: Sequence[tuple[apsw.SQLiteValue, ...]]) -> None:
        if given:  # most are empty, and a statement costs what a hand-over of the interpreter does
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
    run("DELETE FROM note_ids WHERE path=?", [(path,) for path in rows.ids])
    named = [(path, note_id) for path, note_id in rows.ids.items() if note_id is not None]
    run("INSERT OR REPLACE INTO note_ids VALUES(?,?)", named)
    run("DELETE FROM own_notes WHERE path=?", [(path,) for path, is_own in rows.own.items() if not is_own])
    run("INSERT OR IGNORE INTO own_notes VALUES(?)", [(path,) for path, is_own in rows.own.items() if is_own])


# kept rows: tasks, findings, task_edges, counters, unreadable_times: the user keeps tasks
_TASK_TABLES: Final = """
CREATE TABLE IF NOT EXISTS tasks(
    id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT, status TEXT NOT NULL DEFAULT 'open',
    task_type TEXT NOT NULL DEFAULT 'task', created_by TEXT NOT NULL, created_at TEXT NOT NULL,
    tags TEXT NOT NULL DEFAULT '[]', outcome TEXT, resolved_at TEXT, metadata TEXT NOT NULL DEFAULT '{}');
CREATE TABLE IF NOT EXISTS claims(
    id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, agent TEXT NOT NULL, aspect TEXT NOT NULL,
    claimed_at TEXT NOT NULL, expires_at TEXT NOT NULL, fence INTEGER NOT NULL DEFAULT 0,
    UNIQUE(task_id, aspect));
CREATE TABLE IF NOT EXISTS findings(
    id TEXT PRIMARY KEY, task_id TEXT NOT NULL, agent TEXT NOT NULL, summary TEXT NOT NULL,
    knowledge_id TEXT, created_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS task_edges(
    id INTEGER PRIMARY KEY, from_task_id TEXT NOT NULL, to_task_id TEXT NOT NULL, type TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}', created_by TEXT NOT NULL, created_at TEXT NOT NULL,
    UNIQUE(from_task_id, to_task_id, type));
CREATE TABLE IF NOT EXISTS counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS lessons(id TEXT PRIMARY KEY, lesson TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS ready_tasks(
    task_id TEXT PRIMARY KEY, created_at TEXT NOT NULL, number INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS timers(gate_id TEXT PRIMARY KEY, opens_at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unreadable_times(
    of_table TEXT NOT NULL, of_column TEXT NOT NULL, of_row INTEGER NOT NULL, stood_there,
    PRIMARY KEY(of_table, of_column, of_row)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claim_ends(
    task_id TEXT NOT NULL, aspect_key TEXT NOT NULL, aspect TEXT NOT NULL, expires_at TEXT NOT NULL,
    is_told INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(task_id, aspect_key)) WITHOUT ROWID;
"""
_TASK_INDEXES: Final = """
CREATE INDEX IF NOT EXISTS tasks_status ON tasks(status);
CREATE INDEX IF NOT EXISTS tasks_title ON tasks(title);
CREATE INDEX IF NOT EXISTS claims_task ON claims(task_id);
CREATE INDEX IF NOT EXISTS claims_expiry ON claims(expires_at);
CREATE INDEX IF NOT EXISTS claim_ends_untold ON claim_ends(expires_at) WHERE is_told=0;
CREATE INDEX IF NOT EXISTS ready_tasks_age ON ready_tasks(created_at, number);
CREATE INDEX IF NOT EXISTS timers_time ON timers(opens_at);
CREATE INDEX IF NOT EXISTS tasks_open ON tasks(id) WHERE status='open' AND task_type='task';
CREATE TRIGGER IF NOT EXISTS claim_is_gone AFTER DELETE ON claims BEGIN
    DELETE FROM claim_ends WHERE task_id=OLD.task_id AND aspect=OLD.aspect; END;
CREATE TRIGGER IF NOT EXISTS task_is_closed AFTER UPDATE ON tasks WHEN NEW.status<>'open' BEGIN
    DELETE FROM ready_tasks WHERE task_id=NEW.id; END;
CREATE INDEX IF NOT EXISTS findings_task ON findings(task_id);
CREATE INDEX IF NOT EXISTS task_edges_from ON task_edges(from_task_id, type);
CREATE INDEX IF NOT EXISTS task_edges_to ON task_edges(to_task_id, type);
"""
TASK_TABLES: Final = _TASK_TABLES + CITATION_TABLE + PROPOSAL_TABLE + REQUEST_TABLE
TASK_INDEXES: Final = _TASK_INDEXES + IMPACT_INDEXES + PROPOSAL_INDEXES + REQUEST_INDEXES


#: Columns that older files may lack, with their definitions.
_COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "agents": {"name": "TEXT", "type": "TEXT", "metadata": "TEXT NOT NULL DEFAULT '{}'"},
    "tasks": {
        "description": "TEXT",
        "status": "TEXT NOT NULL DEFAULT 'open'",
        "created_by": "TEXT NOT NULL DEFAULT 'unknown'",
        "tags": "TEXT NOT NULL DEFAULT '[]'",
        "outcome": "TEXT",
        "resolved_at": "TEXT",
        "metadata": "TEXT NOT NULL DEFAULT '{}'",
        "task_type": "TEXT NOT NULL DEFAULT 'task'",
    },
    "claims": {"claimed_at": "TEXT", "fence": "INTEGER NOT NULL DEFAULT 0"},
    "findings": {"knowledge_id": "TEXT"},
    "proposals": {"update_links": "INTEGER NOT NULL DEFAULT 1"},
    "access_log": {"agent_id": "TEXT NOT NULL DEFAULT 'unknown'"},
}
#: Times, which are compared as text and so must all be written alike; True where there must be one.
_TIMES: Final[Mapping[str, Mapping[str, bool]]] = {
    "agents": {"first_seen_at": True, "last_seen_at": True},
    "tasks": {"created_at": True, "resolved_at": False},
    "claims": {"claimed_at": True, "expires_at": True},
    "findings": {"created_at": True},
    "task_edges": {"created_at": True},
    "access_log": {"timestamp": True},
}
#: Names in `meta` of the highest rowid that a table had when an older file was first served: what upstream
#: stored stays, whatever its age.
PROTECTED: Final[Mapping[str, str]] = {
    "old_accesses": "access_log",
    "old_claims": "claims",
    "old_agents": "agents",
}
_WRITTEN_BY_US: Final = "____-__-__T__:__:__.______+00:00"


def upgrade(connection: apsw.Connection, now: datetime) -> None:
    """Migrate: rename, add and convert columns of an older version; a current file is not touched.

    Runs inside a transaction, after the tables exist and before their indexes.
    """
    had_task_type = "task_type" in _columns(connection, "tasks")
    _rename_completed_at(connection)
    add_missing_columns(connection, _COLUMNS)
    if connection.execute("INSERT OR IGNORE INTO meta VALUES('times', 1) RETURNING 1").fetchall():
        _rewrite_times(connection)
        for name, table in PROTECTED.items():
            connection.execute(
                f"INSERT OR REPLACE INTO meta SELECT ?, COALESCE(MAX(rowid), 0) FROM {table}",  # noqa: S608
                (name,),
            )
    if not had_task_type:
        _make_edges(connection, now)
    is_new = connection.execute("INSERT OR IGNORE INTO meta VALUES('told', 1) RETURNING 1").fetchall()
    _follow_claims(connection, format_time(now) if is_new else "")
    if is_new:
        _count_as_told(connection, now)
    if connection.execute("INSERT OR IGNORE INTO meta VALUES('completions', 1) RETURNING 1").fetchall():
        ImpactRows(connection).cite_journalled()


def _follow_claims(connection: apsw.Connection, told_until: str) -> None:
    """Rows of `claim_ends` for claims that a version without that table made or changed.

    Of two claims whose aspects are equal now, the one that ends later holds the aspect; the other stays to
    be seen until the aspect is claimed as it spells it. Those that ended by `told_until` are no news.
    """
    connection.execute(
        "DELETE FROM claim_ends WHERE NOT EXISTS (SELECT 1 FROM claims WHERE task_id=claim_ends.task_id"
        " AND aspect=claim_ends.aspect AND expires_at=claim_ends.expires_at)"
    )
    _spell_keys(connection)
    rows = connection.execute(
        "SELECT task_id,aspect,expires_at FROM claims WHERE NOT EXISTS (SELECT 1 FROM claim_ends"
        " WHERE task_id=claims.task_id AND aspect=claims.aspect) ORDER BY expires_at DESC, rowid"
    ).fetchall()
    for task_id, aspect, expires_at in rows:
        connection.execute(
            "INSERT OR IGNORE INTO claim_ends VALUES(?,?,?,?,?)",
            (task_id, aspect_key(str(aspect)), aspect, expires_at, int(str(expires_at) <= told_until)),
        )


def _spell_keys(connection: apsw.Connection) -> None:
    """Rewrite the keys of aspects that a version made which took two Unicode forms of one for two."""
    rows = connection.execute(
        "SELECT task_id,aspect_key,aspect FROM claim_ends WHERE aspect_key GLOB '*[^ -~]*'"
        " ORDER BY expires_at"
    ).fetchall()
    for task_id, key, aspect in rows:
        if aspect_key(str(aspect)) != key:  # of two that meet, the one that ends later holds the aspect
            connection.execute(
                "UPDATE OR REPLACE claim_ends SET aspect_key=? WHERE task_id=? AND aspect_key=?",
                (aspect_key(str(aspect)), task_id, key),
            )


def _count_as_told(connection: apsw.Connection, now: datetime) -> None:
    """Tasks that were ready before readiness was told are no news."""
    rows = TaskRows(connection)
    tasks = rows.tasks(status="open")
    graph = rows.graph_before(task.id for task in tasks)
    for task in tasks:
        rows.ready.arm(task)
        if graph.is_ready(task, now):
            rows.ready.add(task.id)


def _columns(connection: apsw.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}


def _rename_completed_at(connection: apsw.Connection) -> None:
    columns = _columns(connection, "tasks")
    if "completed_at" not in columns:
        return
    if "resolved_at" in columns:
        # A reopened task keeps its old completed_at, which must not come back.
        connection.execute(
            "UPDATE tasks SET resolved_at=completed_at"
            " WHERE resolved_at IS NULL AND completed_at IS NOT NULL AND status<>'open'"
        )
    else:
        connection.execute("ALTER TABLE tasks RENAME COLUMN completed_at TO resolved_at")


def _rewrite_times(connection: apsw.Connection) -> None:
    """Write every time as UTC with microseconds; one that is none reads as the epoch, or as none.

    What stood in its place is kept in `unreadable_times`. NULL stays.
    """

    def rewrite(*texts: apsw.SQLiteValue) -> str | None:
        found = read_time(texts[0])
        return None if found is None else format_time(found)

    connection.create_scalar_function("rewrite_time", rewrite, 1)
    for table, columns in _TIMES.items():
        for name, is_needed in columns.items():
            is_foreign = f"{name} IS NOT NULL AND {name} NOT LIKE '{_WRITTEN_BY_US}'"
            connection.execute(
                f"INSERT OR REPLACE INTO unreadable_times SELECT ?,?,rowid,{name} FROM {table}"  # noqa: S608
                f" WHERE {is_foreign} AND rewrite_time({name}) IS NULL",
                (table, name),
            )
            connection.execute(
                f"UPDATE {table} SET {name}=COALESCE(rewrite_time({name}), ?) WHERE {is_foreign}",  # noqa: S608
                (format_time(EPOCH) if is_needed else None,),
            )
    connection.create_scalar_function("rewrite_time", None)
    found = connection.execute("SELECT COUNT(*), MIN(stood_there) FROM unreadable_times").fetchall()
    if found[0][0]:
        log.warning("times of an older file not readable", count=found[0][0], first=str(found[0][1]))


def _make_edges(connection: apsw.Connection, now: datetime) -> None:
    """Dependencies in the metadata of open tasks become `blocks` edges; unknown ids are skipped."""
    rows = connection.execute("SELECT id, metadata FROM tasks WHERE status='open'").fetchall()
    known = {str(row[0]) for row in connection.execute("SELECT id FROM tasks")}
    sql = (
        "INSERT OR IGNORE INTO task_edges(from_task_id,to_task_id,type,metadata,created_by,created_at)"
        " VALUES(?,?,?,?,?,?)"
    )
    for task_id, metadata in rows:
        for key, before in dependencies_of(None if metadata is None else str(metadata)):
            if before in known and before != task_id:
                origin = f'{{"migrated_from": "metadata.{key}"}}'
                row = (before, task_id, BLOCKS, origin, MIGRATION_AGENT, format_time(now))
                connection.execute(sql, row)


def dependencies_of(metadata: str | None) -> Iterator[tuple[str, str]]:
    """The key and the task of each dependency that older versions kept in a task's metadata."""
    content = load_object(metadata)
    for key in FORBIDDEN_METADATA:
        value = content.get(key)
        for before in [value] if isinstance(value, str) else value if isinstance(value, list) else ():
            if isinstance(before, str):
                yield key, before
