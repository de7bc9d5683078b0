"""Bringing an older `coordination.db` up to date, once and idempotently (coordination spec, section 1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import apsw

from lithos.core.tasks import BLOCKS, FORBIDDEN_METADATA
from lithos.core.times import format_time

#: Columns that older files may lack, with their definitions.
_COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "agents": {"name": "TEXT", "type": "TEXT", "metadata": "TEXT NOT NULL DEFAULT '{}'"},
    "tasks": {
        "description": "TEXT",
        "tags": "TEXT NOT NULL DEFAULT '[]'",
        "outcome": "TEXT",
        "resolved_at": "TEXT",
        "metadata": "TEXT NOT NULL DEFAULT '{}'",
        "task_type": "TEXT NOT NULL DEFAULT 'task'",
    },
    "claims": {"fence": "INTEGER NOT NULL DEFAULT 0"},
    "findings": {"knowledge_id": "TEXT"},
}
_AUTHOR: Final = "migration"


def upgrade(connection: apsw.Connection, now: datetime) -> None:
    """Rename, add and convert what an older version left; a current file is not touched.

    Runs inside a transaction, after the tables exist.
    """
    had_task_type = "task_type" in _columns(connection, "tasks")
    _rename_completed_at(connection)
    for table, columns in _COLUMNS.items():
        known = _columns(connection, table)
        for name, definition in columns.items():
            if name not in known:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {definition}")
    if not had_task_type:
        _make_edges(connection, now)


def _columns(connection: apsw.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}


def _rename_completed_at(connection: apsw.Connection) -> None:
    columns = _columns(connection, "tasks")
    if "completed_at" not in columns:
        return
    if "resolved_at" in columns:
        connection.execute(
            "UPDATE tasks SET resolved_at=completed_at WHERE resolved_at IS NULL AND completed_at IS NOT NULL"
        )
    else:
        connection.execute("ALTER TABLE tasks RENAME COLUMN completed_at TO resolved_at")


def _make_edges(connection: apsw.Connection, now: datetime) -> None:
    """Dependencies in the metadata of open tasks become `blocks` edges; unknown ids are skipped."""
    rows = connection.execute("SELECT id, metadata FROM tasks WHERE status='open'").fetchall()
    known = {str(row[0]) for row in connection.execute("SELECT id FROM tasks")}
    for task_id, metadata in rows:
        for key, before in _dependencies(str(metadata)):
            if before in known and before != task_id:
                connection.execute(
                    "INSERT OR IGNORE INTO task_edges(from_task_id,to_task_id,type,metadata,created_by,"
                    "created_at) VALUES(?,?,?,?,?,?)",
                    (
                        before, str(task_id), BLOCKS, json.dumps({"migrated_from": f"metadata.{key}"}),
                        _AUTHOR, format_time(now),
                    ),
                )  # fmt: skip


def _dependencies(metadata: str) -> Iterator[tuple[str, str]]:
    try:
        content: Any = json.loads(metadata)
    except ValueError:
        return
    if not isinstance(content, dict):
        return
    for key in FORBIDDEN_METADATA:
        value = content.get(key)
        for before in [value] if isinstance(value, str) else value if isinstance(value, list) else ():
            if isinstance(before, str):
                yield key, before
