"""Rows in `coordination.db` for the projects of client sessions. At most `MOST_TOLD` are kept."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

from lithos.events.model.told_projects import MOST_TOLD, ToldProject
from lithos.kernel.databases.table import TIME, Rows, Table
from lithos.kernel.values.times import format_time

TOLD_TABLE: Final = """
CREATE TABLE IF NOT EXISTS told_projects(
    session TEXT NOT NULL, agent TEXT NOT NULL, project TEXT NOT NULL, last_seen TEXT NOT NULL,
    PRIMARY KEY(session, agent));
"""
_TOLD: Final = Table("told_projects", ToldProject, "session,agent", last_seen=TIME)


class ToldRows(Rows):
    """The sessions as one connection sees them. Writes require an open transaction."""

    def all(self) -> list[ToldProject]:
        """Return all sessions."""
        return self._find(_TOLD, "")

    def put(self, rows: Collection[ToldProject]) -> None:
        """Insert or replace sessions. Sessions that exceed the maximum are deleted."""
        self._run_all(_TOLD.upsert, map(_TOLD.row, rows))
        self._run(
            "DELETE FROM told_projects WHERE rowid IN"
            " (SELECT rowid FROM told_projects ORDER BY last_seen DESC LIMIT -1 OFFSET ?)",
            MOST_TOLD,
        )

    def drop(self, before: datetime) -> int:
        """Delete the sessions that were last seen before a time. Return their number."""
        return self._run("DELETE FROM told_projects WHERE last_seen<?", format_time(before))
