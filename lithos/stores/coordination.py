"""`.lithos/coordination.db`: agents, access log and the event journal (coordination spec, section 1).

One connection writes; every change and its event are one transaction and one sync. A second,
read-only connection answers queries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

import apsw
from attrs import frozen

from lithos.core.agents import Agent, AuditRow
from lithos.core.events import Event, EventDraft
from lithos.core.times import format_time, parse_time
from lithos.stores.coordination_upgrade import upgrade
from lithos.stores.json_columns import load_object
from lithos.stores.sqlite import Durability, open_database, open_reader, savepoint, transaction
from lithos.stores.task_schema import TASK_INDEXES, TASK_TABLES
from lithos.stores.tasks import TaskRows

_TABLES = """
CREATE TABLE IF NOT EXISTS agents(
    id TEXT PRIMARY KEY, name TEXT, type TEXT, first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL, metadata TEXT NOT NULL DEFAULT '{}');
CREATE TABLE IF NOT EXISTS access_log(
    id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL DEFAULT 'unknown', doc_id TEXT NOT NULL,
    operation TEXT NOT NULL, timestamp TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events(
    seq INTEGER PRIMARY KEY, type TEXT NOT NULL, agent TEXT NOT NULL, payload TEXT NOT NULL,
    tags TEXT NOT NULL, timestamp TEXT NOT NULL, origin TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cursors(
    subscriber TEXT PRIMARY KEY, seq INTEGER NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
_INDEXES = """
CREATE INDEX IF NOT EXISTS access_log_agent ON access_log(agent_id);
CREATE INDEX IF NOT EXISTS access_log_doc ON access_log(doc_id);
CREATE INDEX IF NOT EXISTS access_log_time ON access_log(timestamp);
"""


@frozen
class CoordinationCounts:
    """Numbers for `lithos_stats`."""

    active_tasks: int
    open_claims: int
    expired_claims: int


class CoordinationStore:
    """Writes go through one caller inside `transaction()`; reads use the second connection."""

    def __init__(self, writer: apsw.Connection, reader: apsw.Connection) -> None:
        self._writer = writer
        self._reader = reader

    @classmethod
    def open(cls, path: Path, now: datetime) -> CoordinationStore:
        """Open or create the database.

        Raises `CorruptDatabase`: tasks and claims are authoritative, so the caller must not go on.
        """
        writer = open_database(path, TASK_TABLES + _TABLES, Durability.FULL)
        with transaction(writer):
            upgrade(writer, now)
            writer.execute(TASK_INDEXES + _INDEXES)
            # Seqs and fences of a new file start at the clock, so that none lost with its file is reused.
            first = int(now.timestamp() * 1000)
            writer.execute(
                "INSERT OR IGNORE INTO meta"
                " SELECT 'next_seq', MAX(?, COALESCE((SELECT MAX(seq)+1 FROM events), 0))",
                (first,),
            )
            writer.execute("INSERT OR IGNORE INTO meta VALUES('pruned_through', 0)")
            # A file put back from a copy cannot tell how many fences were taken after it, but the clock can.
            writer.execute(
                "INSERT INTO counters SELECT 'fence', MAX(?, COALESCE(MAX(fence), 0)) FROM claims WHERE true"
                " ON CONFLICT(name) DO UPDATE SET value=MAX(value, excluded.value)",
                (first,),
            )
        return cls(writer, open_reader(path))

    @classmethod
    def open_read_only(cls, path: Path) -> CoordinationStore:
        """Open an existing database for reading only, whoever else has it open."""
        reader = open_reader(path)
        return cls(reader, reader)

    def transaction(self) -> AbstractContextManager[None]:
        """One durable write transaction."""
        return transaction(self._writer)

    def savepoint(self) -> AbstractContextManager[None]:
        """A part of a transaction that an exception undoes by itself."""
        return savepoint(self._writer)

    def task_rows(self) -> TaskRows:
        """Tasks as the writing caller sees them."""
        return TaskRows(self._writer)

    def readable_task_rows(self) -> TaskRows:
        """Tasks over the read connection."""
        return TaskRows(self._reader)

    # -- writing, inside a transaction ---------------------------------------------------------

    def append_events(self, events: Iterable[Event]) -> None:
        """Add events with seqs above every earlier one."""
        rows = [_event_row(event) for event in events]
        if rows:
            self._writer.executemany("INSERT INTO events VALUES(?,?,?,?,?,?,?)", rows)
            self._writer.execute("UPDATE meta SET value=? WHERE name='next_seq'", (rows[-1][0] + 1,))

    def prune_events(self, keep: int) -> None:
        """Drop all but the newest `keep` events."""
        row = self._writer.execute(
            "SELECT seq FROM events ORDER BY seq DESC LIMIT 1 OFFSET ?", (keep,)
        ).fetchone()
        if row is not None:
            self._writer.execute("DELETE FROM events WHERE seq<=?", row)
            self._writer.execute("UPDATE meta SET value=? WHERE name='pruned_through'", row)

    def put_agents(self, agents: Iterable[Agent]) -> None:
        """Insert or replace agents."""
        self._writer.executemany(
            "INSERT OR REPLACE INTO agents(id,name,type,first_seen_at,last_seen_at,metadata)"
            " VALUES(?,?,?,?,?,?)",
            [
                (
                    agent.id, agent.name, agent.type, format_time(agent.first_seen_at),
                    format_time(agent.last_seen_at), json.dumps(dict(agent.metadata)),
                )
                for agent in agents
            ],
        )  # fmt: skip

    def move_cursor(self, subscriber: str, seq: int, now: datetime) -> None:
        """Remember how far a subscriber has got; a cursor never goes back."""
        self._writer.execute(
            "INSERT INTO cursors VALUES(?,?,?) ON CONFLICT(subscriber) DO UPDATE SET seq=excluded.seq,"
            " updated_at=excluded.updated_at WHERE excluded.seq>cursors.seq",
            (subscriber, seq, format_time(now)),
        )

    def cursor_being_written(self, subscriber: str) -> int | None:
        """Where a named subscriber has got to, as the open transaction sees it."""
        return _cursor(self._writer, subscriber)

    def add_audit(self, rows: Iterable[AuditRow]) -> None:
        """Append to the access log."""
        self._writer.executemany(
            "INSERT INTO access_log(agent_id,doc_id,operation,timestamp) VALUES(?,?,?,?)",
            [(row.agent_id, row.doc_id, row.operation, format_time(row.timestamp)) for row in rows],
        )

    # -- reading -------------------------------------------------------------------------------

    def agents(self) -> list[Agent]:
        """Every agent."""
        rows = self._reader.execute("SELECT id,name,type,first_seen_at,last_seen_at,metadata FROM agents")
        return [
            Agent(
                id=id,
                name=name,
                type=type,
                first_seen_at=parse_time(first),
                last_seen_at=parse_time(last),
                metadata=load_object(metadata),
            )
            for id, name, type, first, last, metadata in rows
        ]

    def read_counts(self) -> dict[str, int]:
        """How often each note was read."""
        rows = self._reader.execute(
            "SELECT doc_id, COUNT(*) FROM access_log WHERE operation='read' GROUP BY doc_id"
        )
        return {str(doc): int(count) for doc, count in rows}

    def next_seq(self) -> int:
        """The seq of the next event."""
        return self._meta("next_seq")

    def pruned_through(self) -> int:
        """The newest seq that retention dropped; 0 when none was."""
        return self._meta("pruned_through")

    def event_count(self) -> int:
        """How many events the journal holds."""
        return _count(self._reader.execute("SELECT COUNT(*) FROM events"))

    def events_after(self, seq: int, limit: int | None = None) -> list[Event]:
        """The events later than `seq`, in order."""
        rows = self._reader.execute(
            "SELECT seq,type,agent,payload,tags,timestamp,origin FROM events"
            " WHERE seq>? ORDER BY seq LIMIT ?",
            (seq, -1 if limit is None else limit),
        )
        return [
            Event(
                seq=number,
                draft=EventDraft(
                    type=type,
                    agent=agent,
                    payload=json.loads(payload),
                    tags=tuple(json.loads(tags)),
                    timestamp=parse_time(at),
                    origin=origin,
                ),
            )
            for number, type, agent, payload, tags, at, origin in rows
        ]

    def journalled(self, kind: str, origins: Iterable[str]) -> set[str]:
        """Which of these origins the journal has, among its events of one type."""
        wanted = set(origins)
        rows = self._reader.execute("SELECT origin FROM events WHERE type=?", (kind,))
        return {str(origin) for (origin,) in rows if origin in wanted}

    def page_after(self, seq: int, limit: int) -> tuple[list[Event], int]:
        """At most `limit` events later than `seq`, in order, and `pruned_through` at the same moment."""
        with self._reader:
            events, pruned_through = self.events_after(seq, limit), self.pruned_through()
        return events, pruned_through

    def knows_position(self, seq: int) -> bool:
        """Whether every event after `seq` is still here.

        That is so where the journal holds `seq` or was pruned through it, at its head, and just before
        a first event (a journal that begins anew jumps ahead).
        """
        if seq in (self.pruned_through(), self.next_seq() - 1):
            return True
        held = self._reader.execute("SELECT 1 FROM events WHERE seq IN (?,?)", (seq, seq + 1)).fetchall()
        return bool(held)

    def cursor(self, subscriber: str) -> int | None:
        """Where a named subscriber has got to."""
        return _cursor(self._reader, subscriber)

    def counts(self, now: datetime) -> CoordinationCounts:
        """Open tasks, running claims, and claims past their time."""
        moment = format_time(now)
        sql = (
            "SELECT (SELECT COUNT(*) FROM tasks WHERE status='open'),"
            "(SELECT COUNT(*) FROM claims WHERE expires_at>?),"
            "(SELECT COUNT(*) FROM claims WHERE expires_at<=?)"
        )
        open_tasks, running, expired = self._reader.execute(sql, (moment, moment)).fetchall()[0]
        return CoordinationCounts(_as_int(open_tasks), _as_int(running), _as_int(expired))

    def audit(
        self, *, agent: str | None, doc: str | None, after: datetime | None, limit: int
    ) -> list[tuple[int | str, ...]]:
        """Access rows (id, agent, note, operation, time), newest first."""
        conditions = {"agent_id=?": agent, "doc_id=?": doc, "timestamp>?": after and format_time(after)}
        given = {condition: value for condition, value in conditions.items() if value is not None}
        where = f" WHERE {' AND '.join(given)}" if given else ""
        columns = "id,agent_id,doc_id,operation,timestamp"
        rows = self._reader.execute(
            f"SELECT {columns} FROM access_log{where} ORDER BY id DESC LIMIT ?",  # noqa: S608 - constants
            (*given.values(), limit),
        )
        return [(_as_int(row[0]), *(str(cell) for cell in row[1:])) for row in rows]

    def close(self) -> None:
        """Close both connections; the last one writes the WAL back."""
        self._reader.close()
        self._writer.close()

    def _meta(self, name: str) -> int:
        return _count(self._reader.execute("SELECT value FROM meta WHERE name=?", (name,)))


def _event_row(event: Event) -> tuple[int, str, str, str, str, str, str]:
    draft = event.draft
    return (
        event.seq, draft.type, draft.agent, json.dumps(draft.payload, ensure_ascii=False),
        json.dumps(draft.tags, ensure_ascii=False), format_time(draft.timestamp), draft.origin,
    )  # fmt: skip


def _cursor(connection: apsw.Connection, subscriber: str) -> int | None:
    rows = connection.execute("SELECT seq FROM cursors WHERE subscriber=?", (subscriber,)).fetchall()
    return _as_int(rows[0][0]) if rows else None


def _count(rows: Iterable[Sequence[object]]) -> int:
    (row,) = rows
    return _as_int(row[0])


def _as_int(value: object) -> int:
    assert isinstance(value, int)
    return value
