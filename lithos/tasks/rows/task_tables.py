"""The task tables in `coordination.db`, and the migration of older files.

`ready_tasks`: ready tasks that were announced with `task.ready`, with their age. `timers`: timer gates that
have not been opened yet. `claim_ends`: each claim with its aspect key, and whether its expiry was announced.
`unreadable_times`: invalid times that a migration found. Triggers update these tables even if an older
version writes the file. `citations`: notes cited by completions (`ImpactRows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Final

import apsw

from lithos.events.rows.schema import CapabilityTables, columns_of
from lithos.kernel.databases.sqlite import load_object
from lithos.kernel.values.principals import MIGRATION_AGENT
from lithos.kernel.values.times import format_time
from lithos.tasks.model.task import BLOCKS, FORBIDDEN_METADATA, aspect_key
from lithos.tasks.rows.board_rows import CITATION_TABLE, IMPACT_INDEXES, ImpactRows
from lithos.tasks.rows.tasks import TaskRows

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


def prepare(connection: apsw.Connection) -> Callable[[datetime], None]:
    """Rename a column of an older version. Return a function that converts its rows."""
    is_old = "task_type" not in columns_of(connection, "tasks")
    _rename_completed_at(connection)
    return partial(_convert, connection, is_old)


def _convert(connection: apsw.Connection, is_old: bool, now: datetime) -> None:
    if is_old:
        _make_edges(connection, now)
    is_new = connection.execute("INSERT OR IGNORE INTO meta VALUES('told', 1) RETURNING 1").fetchall()
    _follow_claims(connection, format_time(now) if is_new else "")
    if is_new:
        _count_as_told(connection, now)
    if connection.execute("INSERT OR IGNORE INTO meta VALUES('completions', 1) RETURNING 1").fetchall():
        ImpactRows(connection).cite_journalled()
    # If the clock (Unix time in ms) is ahead of the existing fences, new fences continue from the clock, like
    # event sequence numbers.
    connection.execute(
        "INSERT INTO counters SELECT 'fence', MAX(?, COALESCE(MAX(fence), 0)) FROM claims WHERE true"
        " ON CONFLICT(name) DO UPDATE SET value=MAX(value, excluded.value)",
        (int(now.timestamp() * 1000),),
    )


def _follow_claims(connection: apsw.Connection, told_until: str) -> None:
    """Add the missing `claim_ends` rows. A version without that table may have made or changed claims.

    If two claims have equal aspects, the claim that ends later holds the aspect. The other claim is visible
    until the aspect is claimed in its spelling. Claims that ended by `told_until` are not announced.
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
    """Rewrite the aspect keys of an older version, which distinguished two Unicode forms of one aspect."""
    rows = connection.execute(
        "SELECT task_id,aspect_key,aspect FROM claim_ends WHERE aspect_key GLOB '*[^ -~]*'"
        " ORDER BY expires_at"
    ).fetchall()
    for task_id, key, aspect in rows:
        if aspect_key(str(aspect)) != key:  # of two claims with equal keys, the later-ending claim holds it
            connection.execute(
                "UPDATE OR REPLACE claim_ends SET aspect_key=? WHERE task_id=? AND aspect_key=?",
                (aspect_key(str(aspect)), task_id, key),
            )


def _count_as_told(connection: apsw.Connection, now: datetime) -> None:
    """Mark tasks that were already ready before readiness was announced. They then cause no event."""
    rows = TaskRows(connection)
    tasks = rows.tasks(status="open")
    graph = rows.graph_before(task.id for task in tasks)
    for task in tasks:
        rows.ready.arm(task)
        if graph.is_ready(task, now):
            rows.ready.add(task.id)


def _rename_completed_at(connection: apsw.Connection) -> None:
    columns = columns_of(connection, "tasks")
    if "completed_at" not in columns:
        return
    if "resolved_at" in columns:
        # A reopened task still has its old completed_at, which must not be restored.
        connection.execute(
            "UPDATE tasks SET resolved_at=completed_at"
            " WHERE resolved_at IS NULL AND completed_at IS NOT NULL AND status<>'open'"
        )
    else:
        connection.execute("ALTER TABLE tasks RENAME COLUMN completed_at TO resolved_at")


def _make_edges(connection: apsw.Connection, now: datetime) -> None:
    """Convert dependencies in the metadata of open tasks to `blocks` edges. Unknown ids are ignored."""
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
    """Yield the key and the task id of each dependency that an older version stored in task metadata."""
    content = load_object(metadata)
    for key in FORBIDDEN_METADATA:
        value = content.get(key)
        for before in [value] if isinstance(value, str) else value if isinstance(value, list) else ():
            if isinstance(before, str):
                yield key, before


TASK_TABLES: Final = CapabilityTables(
    place=1,
    create=_TASK_TABLES + CITATION_TABLE,
    indexes=_TASK_INDEXES + IMPACT_INDEXES,
    columns={
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
    },
    times={
        "tasks": {"created_at": True, "resolved_at": False},
        "claims": {"claimed_at": True, "expires_at": True},
        "findings": {"created_at": True},
        "task_edges": {"created_at": True},
    },
    protected={"old_claims": "claims"},
    owners={"tasks": "created_by", "claims": "agent", "findings": "agent", "task_edges": "created_by"},
    prepare=prepare,
)
