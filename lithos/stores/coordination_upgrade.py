"""Bringing an older `coordination.db` up to date, once and idempotently (coordination spec, section 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

import apsw

from lithos.core.tasks import BLOCKS, FORBIDDEN_METADATA
from lithos.core.times import format_time, parse_time
from lithos.stores.json_columns import load_object
from lithos.telemetry import get_logger

log = get_logger("lithos.coordination")

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
_WRITTEN_BY_US: Final = "____-__-__T__:__:__.______+00:00"
_AUTHOR: Final = "migration"


def upgrade(connection: apsw.Connection, now: datetime) -> None:
    """Rename, add and convert what an older version left; a current file is not touched.

    Runs inside a transaction, after the tables exist and before their indexes.
    """
    had_task_type = "task_type" in _columns(connection, "tasks")
    _rename_completed_at(connection)
    for table, columns in _COLUMNS.items():
        known = _columns(connection, table)
        for name, definition in columns.items():
            if name not in known:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {definition}")
    if connection.execute("INSERT OR IGNORE INTO meta VALUES('times', 1) RETURNING 1").fetchall():
        _rewrite_times(connection, now)
    if not had_task_type:
        _make_edges(connection, now)


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


def _rewrite_times(connection: apsw.Connection, now: datetime) -> None:
    """Write every time as UTC with microseconds; one that cannot be read becomes now, or none."""
    unreadable: list[str] = []

    def rewrite(*texts: apsw.SQLiteValue) -> str | None:
        try:
            return format_time(parse_time(str(texts[0])))
        except ValueError:
            unreadable.append(str(texts[0]))
            return None

    connection.create_scalar_function("rewrite_time", rewrite, 1)
    for table, columns in _TIMES.items():
        for name, is_needed in columns.items():
            connection.execute(
                f"UPDATE {table} SET {name}=COALESCE(rewrite_time({name}), ?)"  # noqa: S608 - constants
                f" WHERE {name} NOT LIKE ? OR (? AND {name} IS NULL)",
                (format_time(now) if is_needed else None, _WRITTEN_BY_US, is_needed),
            )
    connection.create_scalar_function("rewrite_time", None)
    if unreadable:
        log.warning("times of an older file not readable", count=len(unreadable), first=unreadable[0])


def _make_edges(connection: apsw.Connection, now: datetime) -> None:
    """Dependencies in the metadata of open tasks become `blocks` edges; unknown ids are skipped."""
    rows = connection.execute("SELECT id, metadata FROM tasks WHERE status='open'").fetchall()
    known = {str(row[0]) for row in connection.execute("SELECT id FROM tasks")}
    for task_id, metadata in rows:
        for key, before in _dependencies(None if metadata is None else str(metadata)):
            if before in known and before != task_id:
                connection.execute(
                    "INSERT OR IGNORE INTO task_edges(from_task_id,to_task_id,type,metadata,created_by,"
                    "created_at) VALUES(?,?,?,?,?,?)",
                    (
                        before, str(task_id), BLOCKS, f'{{"migrated_from": "metadata.{key}"}}',
                        _AUTHOR, format_time(now),
                    ),
                )  # fmt: skip


def _dependencies(metadata: str | None) -> Iterator[tuple[str, str]]:
    content = load_object(metadata)
    for key in FORBIDDEN_METADATA:
        value = content.get(key)
        for before in [value] if isinstance(value, str) else value if isinstance(value, list) else ():
            if isinstance(before, str):
                yield key, before
