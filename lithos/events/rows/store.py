"""The database `coordination.db`: agents, access log and event journal (docs/spec/coordination.md §1).

One connection writes. A change and its event are stored in one transaction with one sync. A second, read-only
connection answers queries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import apsw
from attrs import frozen

from lithos.events.model.agents import READ, SEARCH_RESULT, Agent, AuditRow
from lithos.events.model.ports import ExtraRowsBatch
from lithos.events.model.retention import DropEvents
from lithos.events.rows.imported_rows import AGENTS, LEDGER_TABLE
from lithos.events.rows.old_rows import COUNT_READS, READ_COUNTS, READ_INDEX, OldRows
from lithos.events.rows.requests import REQUEST_INDEXES, REQUEST_TABLE
from lithos.events.rows.schema import CapabilityTables, upgrade
from lithos.events.rows.told_projects import TOLD_TABLE
from lithos.kernel.databases.database import Database, DatabaseLayout
from lithos.kernel.databases.sqlite import open_reader
from lithos.kernel.databases.table import TIME, Rows, Table, dump, matching
from lithos.kernel.values.events import Event, EventDraft, event_size
from lithos.kernel.values.times import format_optional, format_time, parse_time

R = TypeVar("R", bound=Rows)

#: Number of events to scan for one event, starting shortly before its time.
_NEAR: Final = 1_000
_SLACK: Final = timedelta(seconds=2)
_TABLES = """
CREATE TABLE IF NOT EXISTS agents(
    id TEXT PRIMARY KEY, name TEXT, type TEXT, first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL, metadata TEXT NOT NULL DEFAULT '{}', archived_at TEXT);
CREATE TABLE IF NOT EXISTS access_log(
    id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL DEFAULT 'unknown', doc_id TEXT NOT NULL,
    operation TEXT NOT NULL, timestamp TEXT NOT NULL, project TEXT);
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

_ACCESSES: Final = Table("access_log", AuditRow, timestamp=TIME)
_EVENTS: Final = "SELECT seq,type,agent,payload,tags,timestamp,origin FROM events"
#: Number of bytes after which a journal page ends.
PAGE_BYTES: Final = 4 * 1024 * 1024


@frozen
class CoordinationCounts:
    """Counts for `lithos_stats`."""

    active_tasks: int
    open_claims: int
    expired_claims: int


JOURNAL_TABLES: Final = CapabilityTables(
    place=3,
    create=REQUEST_TABLE + _TABLES + READ_COUNTS + TOLD_TABLE,
    indexes=REQUEST_INDEXES + _INDEXES + READ_INDEX,
    columns={
        "agents": {
            "name": "TEXT",
            "type": "TEXT",
            "metadata": "TEXT NOT NULL DEFAULT '{}'",
            "archived_at": "TEXT",
        },
        "access_log": {"agent_id": "TEXT NOT NULL DEFAULT 'unknown'", "project": "TEXT"},
    },
    times={
        "agents": {"first_seen_at": True, "last_seen_at": True, "archived_at": False},
        "access_log": {"timestamp": True},
    },
    protected={"old_accesses": "access_log", "old_agents": "agents"},
    owners={"cursors": "subscriber"},
)
IMPORT_TABLES: Final = CapabilityTables(place=5, create=LEDGER_TABLE)


class CoordinationStore(Database):
    """Store for `coordination.db`.

    Opening a damaged file raises an error, because tasks and claims cannot be rebuilt.
    """

    #: Columns that contain the ids of row owners (agents), by table.
    owners: ClassVar[tuple[tuple[str, str], ...]]

    @classmethod
    def lay_out(cls, tables: Iterable[CapabilityTables]) -> None:
        """Declare the tables of all capabilities. Call this method before the database is opened."""
        ordered = sorted(tables, key=lambda each: each.place)

        def upgrade_all(writer: apsw.Connection, now: datetime) -> None:
            upgrade(writer, now, ordered)
            _count_on(writer, int(now.timestamp() * 1000))

        cls.owners = tuple(pair for each in ordered for pair in each.owners.items())
        cls.layout = DatabaseLayout("".join(each.create for each in ordered), upgrade_all)

    @classmethod
    def open_read_only(cls, path: Path) -> CoordinationStore:
        """Open an existing database read-only. Another process may have it open."""
        reader = open_reader(path)
        return cls(path, (reader, reader))

    def rows(self, kind: type[R]) -> R:
        """Return row access over the read connection."""
        return kind(self._reader)

    def written(self, kind: type[R]) -> R:
        """Return row access over the writing connection, including uncommitted changes."""
        return kind(self._writer)

    # -- writing, inside a transaction ---------------------------------------------------------

    def append_events(self, events: Iterable[Event]) -> None:
        """Append events. Their seqs must be higher than all earlier seqs."""
        rows = [_event_row(event) for event in events]
        if rows:
            self._writer.executemany("INSERT INTO events VALUES(?,?,?,?,?,?,?)", rows)
            self._writer.execute("UPDATE meta SET value=? WHERE name='next_seq'", (rows[-1][0] + 1,))

    def put_along(self, rows: ExtraRowsBatch) -> None:
        """Store rows of another package."""
        rows.store(self._writer)

    def prune_events(self, keep: int, most: int = 1_000_000) -> None:
        """Delete at most `most` of the oldest events that are not among the newest `keep` events."""
        last = self.written(OldRows).last_but(keep)
        if last is not None:
            self.written(OldRows).drop(DropEvents(through=last, most=most))

    def put_agents(self, agents: Collection[Agent]) -> None:
        """Insert or update agents. Columns that this version does not use keep their values."""
        if agents:
            self._writer.executemany(AGENTS.upsert, map(AGENTS.row, agents))

    def move_cursor(self, subscriber: str, seq: int, now: datetime) -> None:
        """Store the position of a subscriber. A cursor never moves backwards."""
        self._writer.execute(
            "INSERT INTO cursors VALUES(?,?,?) ON CONFLICT(subscriber) DO UPDATE SET seq=excluded.seq,"
            " updated_at=excluded.updated_at WHERE excluded.seq>=cursors.seq",
            (subscriber, seq, format_time(now)),
        )

    def cursor_being_written(self, subscriber: str) -> int | None:
        """Return the position of a subscriber, as seen inside the open transaction."""
        return _cursor(self._writer, subscriber)

    def add_audit(self, rows: Collection[AuditRow]) -> None:
        """Append rows to the access log."""
        if rows:
            self._writer.executemany(_ACCESSES.insert, map(_ACCESSES.row, rows))

    # -- reading -------------------------------------------------------------------------------

    def agents(self) -> list[Agent]:
        """Return all agents."""
        return list(map(AGENTS.read, self._ask(AGENTS.select)))

    def read_counts(self) -> dict[str, int]:
        """Return the number of reads of each note."""
        return dict(self._ask(COUNT_READS))

    def next_seq(self) -> int:
        """Return the seq of the next event."""
        return self._number("SELECT value FROM meta WHERE name='next_seq'")

    def head(self) -> int:
        """Return the seq of the newest event. If the journal has no events, return its start position."""
        return self._number(
            "SELECT COALESCE((SELECT MAX(seq) FROM events),"
            " (SELECT MAX(value) FROM meta WHERE name IN ('pruned_through', 'began_at')))"
        )

    def pruned_through(self) -> int:
        """Return the newest seq that the retention deleted, or 0."""
        return self._number("SELECT value FROM meta WHERE name='pruned_through'")

    def settled(self) -> datetime | None:
        """Return the stored time of the retention, else the time of the newest event, else None."""
        rows = self._ask(
            "SELECT strftime('%Y-%m-%dT%H:%M:%SZ', value, 'unixepoch') FROM meta WHERE name='settled'"
            " UNION ALL SELECT * FROM (SELECT timestamp FROM events ORDER BY seq DESC LIMIT 1) LIMIT 1"
        )
        return parse_time(rows[0][0]) if rows else None

    def event_count(self) -> int:
        """Return the number of events in the journal."""
        return self._number("SELECT COUNT(*) FROM events")

    def events_after(self, seq: int, limit: int | None = None) -> list[Event]:
        """Return at most `limit` events later than `seq`, in order."""
        return list(self._events_after(seq, limit))

    def newest_events(self, limit: int) -> list[Event]:
        """Return the newest `limit` events in order."""
        return list(_as_events(self._ask(f"{_EVENTS} ORDER BY seq DESC LIMIT ?", limit)))[::-1]

    def events_before(self, seq: int, limit: int) -> list[Event]:
        """Return at most `limit` events earlier than `seq`, newest first.

        If events are large, fewer events are returned.
        """
        rows = self._reader.execute(f"{_EVENTS} WHERE seq<? ORDER BY seq DESC LIMIT ?", (seq, limit))
        return list(_until_full(_as_events(rows)))

    def _events_after(self, seq: int, limit: int | None) -> Iterator[Event]:
        most = -1 if limit is None else limit
        yield from _as_events(
            self._reader.execute(f"{_EVENTS} WHERE seq>? ORDER BY seq LIMIT ?", (seq, most))
        )

    def find_event(self, kind: str, at: datetime, passes: Callable[[Event], bool]) -> Event | None:
        """Return the first event of a type around the time `at` for which `passes` returns True, or None.

        The position is found by bisection, because seqs and times increase together.
        """
        moment = format_time(at - _SLACK)
        low, high = self.pruned_through(), self.head()
        while low < high:
            middle = (low + high) // 2
            rows = self._ask("SELECT seq,timestamp FROM events WHERE seq>? ORDER BY seq LIMIT 1", middle)
            if rows and rows[0][1] < moment:
                low = rows[0][0]
            else:
                high = middle
        near = self._events_after(low, _NEAR)
        return next((event for event in near if event.draft.type == kind and passes(event)), None)

    def journalled(self, kind: str, origins: Iterable[str]) -> set[str]:
        """Return which of these origins have an event of the given type in the journal."""
        wanted = set(origins)
        return {row[0] for row in self._ask("SELECT origin FROM events WHERE type=?", kind)} & wanted

    def page_after(self, seq: int, limit: int) -> tuple[list[Event], int]:
        """Return at most `limit` events later than `seq`, in order, and the current `pruned_through`.

        If events are large, the page is shorter, so that a reader never needs more than a few megabytes.
        """
        with self._reader:
            events, pruned_through = list(_until_full(self._events_after(seq, limit))), self.pruned_through()
        return events, pruned_through

    def knows_position(self, seq: int) -> bool:
        """Return whether the journal still has every event after `seq`.

        The result is True if the journal contains the event `seq` or the event after it, was pruned exactly
        through `seq`, or starts at `seq`. At each server start, the next seq jumps ahead to the clock. Any
        other seq therefore comes from a lost journal, or was assigned after the backup from which this
        journal was restored.
        """
        rows = self._ask(
            "SELECT 1 FROM events WHERE seq IN (?1,?2)"
            " UNION ALL SELECT 1 FROM meta WHERE name='pruned_through' AND value=?1"
            " UNION ALL SELECT 1 FROM meta WHERE name='began_at' AND value=?1"
            " AND (SELECT value FROM meta WHERE name='pruned_through')=0 LIMIT 1",
            seq,
            seq + 1,
        )
        return bool(rows)

    def cursor(self, subscriber: str) -> int | None:
        """Return the position of a named subscriber, or None if it is unknown."""
        return _cursor(self._reader, subscriber)

    def counts(self, now: datetime) -> CoordinationCounts:
        """Return the numbers of open tasks, running claims and expired claims."""
        moment = format_time(now)
        sql = (
            "SELECT (SELECT COUNT(*) FROM tasks WHERE status='open'),"
            "(SELECT COUNT(*) FROM claims WHERE expires_at>?),"
            "(SELECT COUNT(*) FROM claims WHERE expires_at<=?)"
        )
        return CoordinationCounts(*self._ask(sql, moment, moment)[0])

    def audit(
        self,
        *,
        agent: str | None,
        doc: str | None,
        after: datetime | None,
        before: datetime | None = None,
        limit: int,
    ) -> list[tuple[int | str | None, ...]]:
        """Return access rows (id, agent, note, operation, time, project), newest first."""
        where, given = matching(
            {
                "agent_id=?": agent,
                "doc_id=?": doc,
                "timestamp>?": format_optional(after),
                "timestamp<?": format_optional(before),
            }
        )
        columns = "id,IFNULL(agent_id,'unknown'),doc_id,operation,timestamp,project"
        sql = f"SELECT {columns} FROM access_log WHERE {where} ORDER BY id DESC LIMIT ?"  # noqa: S608
        return [(row[0], *map(str, row[1:5]), row[5]) for row in self._ask(sql, *given, limit)]

    def accessed(self, begin: datetime, end: datetime) -> list[tuple[str, int, int]]:
        """Return the activity of each agent in a period.

        A row contains an agent id, the number of notes that the agent read, and the number of its searches
        with results.
        """
        sql = (
            "SELECT IFNULL(agent_id,'unknown'),"  # noqa: S608 - constants
            f" COUNT(DISTINCT CASE operation WHEN '{READ}' THEN doc_id END),"
            f" COUNT(DISTINCT CASE operation WHEN '{SEARCH_RESULT}' THEN timestamp END)"
            " FROM access_log WHERE timestamp>=? AND timestamp<? GROUP BY 1"
        )
        return [(str(row[0]), row[1], row[2]) for row in self._ask(sql, format_time(begin), format_time(end))]

    def read_after(self, place: int, since: datetime, most: int) -> tuple[set[str], int]:
        """Return the ids of notes that were read since a time, and the position to continue from.

        At most `most` accesses after the position `place` are read.
        """
        sql = (
            f"SELECT id, CASE WHEN operation='{READ}' AND timestamp>=? THEN doc_id END FROM access_log"  # noqa: S608
            " WHERE id>? ORDER BY id LIMIT ?"
        )
        rows = self._ask(sql, format_time(since), place, most)
        return {doc for _, doc in rows if doc is not None}, rows[-1][0] if rows else place

    def _ask(self, sql: str, *given: apsw.SQLiteValue) -> list[Any]:
        return self._reader.execute(sql, given).fetchall()

    def _number(self, sql: str, *given: apsw.SQLiteValue) -> int:
        ((number,),) = self._reader.execute(sql, given)
        assert isinstance(number, int)
        return number


def _count_on(writer: apsw.Connection, clock: int) -> None:
    """Raise the next seq to the clock (Unix time in ms) if the clock is ahead. The next seq never decreases.

    A file that was restored or recreated lacks the later seqs that an earlier server assigned.
    """
    # `began_at` is the head position that subscribers got while there were no events.
    writer.execute(
        "INSERT OR IGNORE INTO meta SELECT 'began_at',"
        " COALESCE(MIN(seq), (SELECT value FROM meta WHERE name='next_seq'), ?)-1 FROM events",
        (clock,),
    )
    writer.execute(
        "INSERT INTO meta SELECT 'next_seq', MAX(?, COALESCE(MAX(seq)+1, 0)) FROM events WHERE true"
        " ON CONFLICT(name) DO UPDATE SET value=MAX(value, excluded.value)",
        (clock,),
    )
    writer.execute("INSERT OR IGNORE INTO meta VALUES('pruned_through', 0)")


def _as_events(rows: Iterable[tuple[Any, ...]]) -> Iterator[Event]:
    for number, type, agent, payload, tags, at, origin in rows:
        draft = EventDraft(
            type=type,
            agent=agent,
            payload=json.loads(payload),
            tags=tuple(json.loads(tags)),
            timestamp=parse_time(at),
            origin=origin,
        )
        yield Event(seq=number, draft=draft)


def _until_full(events: Iterable[Event]) -> Iterator[Event]:
    left = PAGE_BYTES
    for event in events:
        yield event
        left -= event_size(event)
        if left < 0:
            return


def _event_row(event: Event) -> tuple[int, str, str, str, str, str, str]:
    draft = event.draft
    moment = format_time(draft.timestamp)
    return event.seq, draft.type, draft.agent, dump(draft.payload), dump(draft.tags), moment, draft.origin


def _cursor(connection: apsw.Connection, subscriber: str) -> int | None:
    row = connection.execute("SELECT seq FROM cursors WHERE subscriber=?", (subscriber,)).fetchone()
    return None if row is None else int(row[0])
