"""The activity timeline of an agent, newest first: accesses, retrievals, note versions and events.

Each source is read through an index or from its end, up to a maximum number of rows. If a source has more
rows, the page ends at the oldest row that was read. No entry between two shown entries is therefore missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from attrs import evolve, frozen

from lithos.events.journal.reading import JournalThread
from lithos.events.model.agents import READ
from lithos.events.reading.agents import AccessLog
from lithos.events.rows.store import CoordinationStore
from lithos.history.service.history import NoteHistory
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import HistoryDisabled
from lithos.kernel.values.times import parse_time
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.rows.receipts import ReceiptSummary
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.versions import VersionRow
from lithos.search.service.recent_queries import RecentQueries
from lithos.tasks.rows.board_rows import BoardRows, JournalledEvent

READS: Final = "read"
SEARCHES: Final = "search"
WRITES: Final = "write"
TASKS: Final = "task"
KINDS: Final = (READS, SEARCHES, WRITES, TASKS)
TASK_EVENTS: Final = (
    "task.created", "task.updated", "task.claimed", "task.released", "task.completed", "task.cancelled",
    "task.failed",
    "task.reopened", "task.claim_expired", "finding.posted", "edge.upserted",
)  # fmt: skip
#: Maximum number of accesses to read for one page. The same maximum applies to the rows of each other source.
MOST_ACCESSES: Final = 1_000
MOST_ROWS: Final = 200
#: Period before a change, and maximum number of reads to show. Reads within this period count as made for the
#: change.
BEFOREHAND: Final = timedelta(hours=1)
MOST_BEFORE: Final = 8
#: Maximum number of found notes in one entry, and a period. A search within this period of a retrieval is not
#: listed again.
MOST_FOUND: Final = 10
_SAME: Final = timedelta(seconds=2)


@frozen(kw_only=True)
class TimelineEntry:
    """One action of an agent. `kind` determines which other fields are set.

    `notes` are the read or found notes, `count` is the number of all found notes, and `query` the search
    text, if known. `before` are notes that the agent read before a change. `asked` are retrievals before the
    change.
    """

    at: datetime
    kind: str
    notes: tuple[str, ...] = ()
    count: int = 0
    query: str = ""
    version: VersionRow | None = None
    receipt: ReceiptSummary | None = None
    event: JournalledEvent | None = None
    before: tuple[str, ...] = ()
    asked: tuple[ReceiptSummary, ...] = ()


@frozen
class Timeline:
    """One page of entries, newest first.

    Older entries are from before `next_before`, which is None if there are no older entries.
    """

    entries: Sequence[TimelineEntry]
    next_before: datetime | None
    keeps_versions: bool


@frozen
class _Source:
    entries: Sequence[TimelineEntry]
    #: Time of the oldest row that was read, or None if the source has no more rows.
    horizon: datetime | None


class Timelines:
    """A reader for the activity of agents."""

    def __init__(
        self,
        journal: CoordinationStore,
        catalogue: Catalogue,
        reading: JournalThread,
        clock: Clock,
        access_log: AccessLog,
        history: NoteHistory,
        learning: Learning,
        asked: RecentQueries,
    ) -> None:
        self._rows = journal.rows(BoardRows)
        self._reading = reading
        self._access_log = access_log
        self._history = history
        self._learning = learning
        self._asked = asked
        self._clock = clock
        self._catalogue = catalogue

    async def activity(self, since: datetime) -> Mapping[str, Mapping[str, int]]:
        """Return the numbers of reads, found notes (`search_result`) and changes (`write`) for each agent."""
        return await self._reading.run(lambda: self._rows.activity(since))

    async def page(
        self, agent: str, before: datetime | None, limit: int, kinds: Sequence[str] = KINDS
    ) -> Timeline:
        """Return the activity of an agent before the time `before` (None: now). Raises `DatabaseFailed`."""
        until = before or self._clock() + timedelta(days=1)
        reads, searches = await self._accesses(agent, until)
        receipts = await self._receipts(agent, until)
        writes, keeps = await self._writes(agent, until)
        tasks = await self._events(agent, until)
        told = [entry.receipt for entry in receipts.entries if entry.receipt is not None]
        searches = evolve(searches, entries=[one for one in searches.entries if not _is_told(one, told)])
        sources = {
            READS: (reads,),
            SEARCHES: (searches, receipts),
            WRITES: (writes,),
            TASKS: (tasks,),
        }
        chosen = [source for kind in kinds for source in sources[kind]]
        shown, rest = _merge(chosen, limit)
        entries = [
            _with_reads(entry, reads.entries, receipts.entries) if entry.kind == WRITES else entry
            for entry in shown
        ]
        return Timeline(entries, rest, keeps)

    async def _accesses(self, agent: str, until: datetime) -> tuple[_Source, _Source]:
        rows = await self._access_log.entries(
            agent=agent, doc=None, after=None, before=until, limit=MOST_ACCESSES
        )
        horizon = parse_time(rows[-1]["timestamp"]) if len(rows) == MOST_ACCESSES else None
        reads, searches = list[TimelineEntry](), list[TimelineEntry]()
        asked = dict(self._asked.by(agent, until))
        for (operation, moment), some in groupby(rows, key=_operation):
            notes = [str(row["doc_id"]) for row in some]
            at = parse_time(moment)
            if operation == READ:
                reads += [TimelineEntry(at=at, kind=READS, notes=(note,)) for note in notes]
            else:
                found = tuple(reversed(notes))
                searches.append(
                    TimelineEntry(
                        at=at,
                        kind=SEARCHES,
                        notes=found[:MOST_FOUND],
                        count=len(found),
                        query=asked.pop(at, ""),
                    )
                )
        # The access log does not contain searches that found nothing.
        searches += [TimelineEntry(at=at, kind=SEARCHES, query=query) for at, query in asked.items()]
        return _Source(reads, horizon), _Source(searches, horizon)

    async def _receipts(self, agent: str, until: datetime) -> _Source:
        rows = await self._learning.read(lambda tables: tables.receipts.of_agent(agent, until, MOST_ROWS))
        return _Source(
            [TimelineEntry(at=row.ts, kind=SEARCHES, receipt=row, count=row.results) for row in rows],
            rows[-1].ts if len(rows) == MOST_ROWS else None,
        )

    async def _writes(self, agent: str, until: datetime) -> tuple[_Source, bool]:
        try:
            rows = await self._history.by_agent(agent, until, MOST_ROWS)
        except HistoryDisabled:
            return _Source((), None), False
        entries = [TimelineEntry(at=row.at, kind=WRITES, notes=(row.note_id,), version=row) for row in rows]
        return _Source(entries, rows[-1].at if len(rows) == MOST_ROWS else None), True

    async def _events(self, agent: str, until: datetime) -> _Source:
        rows = await self._reading.run(
            lambda: self._rows.events_of_agent(agent, TASK_EVENTS, until, MOST_ROWS)
        )
        return _Source(
            [TimelineEntry(at=row.at, kind=TASKS, event=row) for row in rows],
            rows[-1].at if len(rows) == MOST_ROWS else None,
        )


def _is_told(search: TimelineEntry, receipts: Iterable[ReceiptSummary]) -> bool:
    """Return whether a search belongs to a retrieval. Its time and the beginning of its query decide."""
    return any(abs(search.at - one.ts) < _SAME and one.query.startswith(search.query) for one in receipts)


def _operation(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["operation"]), str(row["timestamp"])


def _merge(sources: Sequence[_Source], limit: int) -> tuple[list[TimelineEntry], datetime | None]:
    """Return the newest entries of all sources, and the time before which the next page starts."""
    every = sorted((entry for one in sources for entry in one.entries), key=_time_of, reverse=True)
    horizon = max((one.horizon for one in sources if one.horizon is not None), default=None)
    sure = [entry for entry in every if horizon is None or entry.at > horizon] or every
    if len(sure) <= limit and horizon is None:
        return sure, None
    last = sure[min(limit, len(sure)) - 1].at
    shown = [entry for entry in sure if entry.at >= last]
    is_rest = horizon is not None or len(shown) < len(every)
    return shown, last if is_rest else None


def _time_of(entry: TimelineEntry) -> datetime:
    return entry.at


def _with_reads(
    write: TimelineEntry, reads: Sequence[TimelineEntry], receipts: Sequence[TimelineEntry]
) -> TimelineEntry:
    """Return a change with the note reads and retrievals of the hour before it."""
    since = write.at - BEFOREHAND
    read = dict.fromkeys(one.notes[0] for one in reads if since <= one.at <= write.at)
    asked = [one.receipt for one in receipts if since <= one.at <= write.at and one.receipt is not None]
    return evolve(write, before=tuple(read)[:MOST_BEFORE], asked=tuple(asked[:3]))
