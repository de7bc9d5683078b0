"""Deletion of old `coordination.db` rows in small steps (docs/spec/coordination.md §1).

Later rows reuse the freed pages. The file does not shrink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from lithos.events.model.retention import (
    DropAgents,
    DropAudit,
    DropCursors,
    DropEvents,
    DropTold,
    ForgetReads,
    KeepTime,
    UpkeepStep,
)
from lithos.events.rows.told_projects import ToldRows
from lithos.kernel.databases.table import Rows, listed
from lithos.kernel.values.principals import ENRICH_AGENT
from lithos.kernel.values.times import format_time

#: Read counts for accesses that were deleted from the log, with one row per note.
READ_COUNTS: Final = """
CREATE TABLE IF NOT EXISTS read_counts(doc_id TEXT PRIMARY KEY, reads INTEGER NOT NULL) WITHOUT ROWID;
"""
#: Index to count reads by note and agent. It excludes other accesses, of which there are many more.
READ_INDEX: Final = (
    "DROP INDEX IF EXISTS access_log_reads;"  # index of earlier versions, without the agent
    "CREATE INDEX IF NOT EXISTS access_log_readers ON access_log(doc_id, agent_id, timestamp)"
    " WHERE operation='read';"
)
COUNT_READS: Final = (
    "SELECT doc_id, SUM(reads) FROM (SELECT doc_id, COUNT(*) AS reads FROM access_log"
    " WHERE operation='read' GROUP BY doc_id UNION ALL SELECT doc_id, reads FROM read_counts) GROUP BY doc_id"
)


def before_us(name: str) -> str:
    """Return a scalar subquery for the highest rowid that an upstream server stored in a table.

    Rows up to the returned rowid are kept.
    """
    return f"(SELECT COALESCE(MAX(value), 0) FROM meta WHERE name='{name}')"  # noqa: S608 - our names


_SURPLUS_AUDIT: Final = (
    "SELECT id FROM access_log WHERE id<=(SELECT MAX(id) FROM access_log)-?"  # noqa: S608 - constants
    f" AND id>{before_us('old_accesses')} ORDER BY id LIMIT ?"
)
_OLD_AUDIT: Final = (
    f"SELECT id FROM access_log WHERE timestamp<? AND id>{before_us('old_accesses')}"  # noqa: S608 - constants
    " ORDER BY timestamp LIMIT ?"
)
#: Agents that an upstream server stored. They are kept.
_OLD_AGENTS: Final = (
    "SELECT id FROM agents WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608 - constants
    f" AND rowid<={before_us('old_agents')}"
)
_COUNT_DROPPED: Final = (
    "INSERT INTO read_counts SELECT doc_id, COUNT(*) FROM access_log"
    " WHERE operation='read' AND id IN (SELECT value FROM json_each(?)) GROUP BY doc_id"
    " ON CONFLICT(doc_id) DO UPDATE SET reads=reads+excluded.reads"
)
_SURPLUS_CURSORS: Final = (
    "SELECT subscriber FROM cursors WHERE subscriber<>?1 AND (updated_at<?2 OR subscriber NOT IN"
    " (SELECT subscriber FROM cursors ORDER BY updated_at DESC LIMIT ?3)) ORDER BY updated_at LIMIT ?4"
)
#: A page of the journal, newest first: the seq and the size in bytes of each event.
_EVENT_SIZES: Final = (
    "SELECT seq, octet_length(payload)+octet_length(tags)+octet_length(agent)+octet_length(origin)+64"
    " FROM events WHERE seq<? ORDER BY seq DESC LIMIT ?"
)
#: Number of events whose sizes are read per query.
_PAGE: Final = 2_000


class OldRows(Rows):
    """The rows of `coordination.db` that the retention may delete."""

    def drop(self, step: UpkeepStep) -> int:
        """Run a retention step, and return the number of deleted rows."""
        return _STEPS[type(step)](self, step)

    # -- reading -------------------------------------------------------------------------------

    def owners(self, agent_ids: list[str], columns: Iterable[tuple[str, str]]) -> set[str]:
        """Return which of these agents own rows or come from an upstream server.

        `columns` are the owner columns by table.

        Each owner column is scanned once.
        """
        owning = [
            f"SELECT DISTINCT {column} FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))"  # noqa: S608
            for table, column in columns
        ]
        return {name for sql in (*owning, _OLD_AGENTS) for name in self._texts(sql, listed(agent_ids))}

    def last_but(self, keep: int) -> int | None:
        """Return the newest seq that is not among the last `keep` events.

        If there are at most `keep` events, return None.
        """
        row = self._first("SELECT seq FROM events ORDER BY seq DESC LIMIT 1 OFFSET ?", keep)
        return None if row is None else int(row[0])

    def surplus_events(self, size: int, keep: int) -> int | None:
        """Return the newest seq outside the last `keep` events and `size` bytes, or None if all fit."""
        last, before = self.last_but(keep), 2**63 - 1
        while rows := self._all(_EVENT_SIZES, before, _PAGE):
            for seq, cost in rows:
                size -= cost
                if size < 0:
                    return max(int(seq), last or 0)
            before = rows[-1][0]
        return last

    # -- dropping ------------------------------------------------------------------------------

    def _old_audit(self, before: datetime, keep: int, most: int) -> list[Any]:
        surplus = self._all(_SURPLUS_AUDIT, keep, most)
        return surplus or self._all(_OLD_AUDIT, format_time(before), most)

    def _keep_time(self, step: KeepTime) -> int:
        self._run("INSERT OR REPLACE INTO meta VALUES('settled', ?)", round(step.settled.timestamp()))
        return 0

    def _drop_audit(self, step: DropAudit) -> int:
        ids = [row[0] for row in self._old_audit(step.before, step.keep, step.most)]
        self._run(_COUNT_DROPPED, listed(ids))
        return self._drop_from("access_log", "id", ids)

    def _drop_events(self, step: DropEvents) -> int:
        sql = "SELECT MAX(seq) FROM (SELECT seq FROM events WHERE seq<=? ORDER BY seq LIMIT ?)"
        (last,) = self._first(sql, step.through, step.most)
        if last is None:
            return 0
        dropped = self._run("DELETE FROM events WHERE seq<=?", last)
        self._run("UPDATE meta SET value=MAX(value, ?) WHERE name='pruned_through'", last)
        return dropped

    def _drop_cursors(self, step: DropCursors) -> int:
        names = self._texts(_SURPLUS_CURSORS, ENRICH_AGENT, format_time(step.before), step.keep, step.most)
        return self._drop_from("cursors", "subscriber", names)

    def _drop_agents(self, step: DropAgents) -> int:
        return sum(
            self._run(
                "DELETE FROM agents WHERE id=? AND last_seen_at<=?", agent.id, format_time(agent.last_seen_at)
            )
            for agent in step.agents
        )

    def _drop_told(self, step: DropTold) -> int:
        return ToldRows(self.connection).drop(step.before)

    def _forget_reads(self, step: ForgetReads) -> int:
        return self._drop_from("read_counts", "doc_id", step.note_ids)


_STEPS: Final[Mapping[type, Callable[[OldRows, Any], int]]] = {
    KeepTime: OldRows._keep_time,
    DropAudit: OldRows._drop_audit,
    DropEvents: OldRows._drop_events,
    DropCursors: OldRows._drop_cursors,
    DropAgents: OldRows._drop_agents,
    DropTold: OldRows._drop_told,
    ForgetReads: OldRows._forget_reads,
}
