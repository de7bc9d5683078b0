"""Retention for `coordination.db`, which deletes old rows in small batches in the background.

A step deletes some hundred rows in a commit of the coordinator, then pauses for four times its duration (rate
limit). Tasks and findings are kept, because people and agents wrote them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.reading import JournalThread
from lithos.events.journal.settled_clock import SettledClock
from lithos.events.model.agents import Agent, size_of
from lithos.events.model.ports import KnownNotes
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
from lithos.events.model.told_projects import TOLD_KEPT
from lithos.events.rows.old_rows import OldRows
from lithos.events.rows.store import CoordinationStore
from lithos.events.settings import EventsConfig
from lithos.kernel.actors.failure_boundary import survive
from lithos.kernel.actors.threads import slices
from lithos.kernel.capability import Retention
from lithos.kernel.log import get_logger
from lithos.kernel.values.messages import BoardCommand

log = get_logger("lithos.upkeep")

#: Seconds between the start and the first run, and between two runs. If many rows are stored, a run starts
#: early.
FIRST, INTERVAL = 20.0, 600.0
#: Number of rows that one step deletes. Writes wait for the step: 3 ms, or 15 ms on a busy machine.
STEP: Final = 100
#: Pause after a step, as a multiple of the step's duration, and minimum pause in seconds.
PAUSE_TIMES, PAUSE_LEAST = 4.0, 0.02
#: Maximum seconds to wait for one step.
PATIENCE: Final = 60.0
#: Number of agents per check for rows that the agents own. A check scans all tasks.
ASKED: Final = 5_000

#: Idle time after which a cursor is deleted, or an agent that owns no rows.
IDLE: Final = timedelta(days=365)
#: Maximum number of agents, and of their bytes. Beyond these limits, the agents that were idle for longest
#: are deleted early.
AGENTS, AGENT_BYTES = 20_000, 64 * 1024 * 1024
CURSORS: Final = 10_000
#: Maximum number of deleted notes whose read counts are kept, in case a note is restored. A count takes 200
#: bytes of memory.
GONE_NOTES: Final = 1_000
#: Maximum journal size in bytes per configured event, and minimum value of that size. A typical event takes
#: some 400 bytes.
EVENT_BYTES, LEAST_JOURNAL_BYTES = 2_560, 16 * 1024 * 1024

RetentionCommand = UpkeepStep | BoardCommand[int]


class Retentions(tuple[Retention, ...]):
    """The retentions of all capabilities, in the order in which they delete rows."""

    __slots__ = ()


class Upkeep:
    """Background deletion of rows that are too old or exceed a limit.

    Steps run one after another, never concurrently.
    """

    def __init__(
        self,
        journal: CoordinationStore,
        events: EventsConfig,
        notes: KnownNotes,
        reading: JournalThread,
        coordinator: Coordinator,
        settled: SettledClock,
        others: Retentions,
    ) -> None:
        """Create the retention. `others` are the retentions of other capabilities."""
        self._coordinator = coordinator
        self._rows = journal.rows(OldRows)
        self._owners = journal.owners
        self._reading = reading
        self._clock = settled
        self._events = events
        #: Maximum size of the journal in bytes. It depends on the configured maximum number of events.
        self.journal_bytes = max(LEAST_JOURNAL_BYTES, self._events.journal_size * EVENT_BYTES)
        self._notes = notes
        self._others = others

    async def run(self) -> None:
        """Run the retention periodically until cancelled. If many rows were stored, run it early."""
        await trio.sleep(FIRST)
        while True:
            has_grown = self._coordinator.has_grown
            await self.look()
            with trio.move_on_after(INTERVAL):
                await has_grown.wait()

    async def look(self) -> None:
        """Delete all rows that are due.

        If one kind of row cannot be deleted, the error is logged and the other kinds are still processed.
        """
        now, events = self._clock(), self._events
        audit = DropAudit(now - timedelta(days=events.audit_days), events.audit_rows, STEP)
        parts: dict[str, Callable[[], Awaitable[int]]] = {
            "accesses": partial(self._drop_all, audit),
            "events": self._drop_events,
            **{each.what: partial(self._drop_all, each.command(now), each.most) for each in self._others},
            "cursors": partial(self._drop_all, DropCursors(now - IDLE, CURSORS, STEP)),
            "sessions": partial(self._drop, DropTold(now - TOLD_KEPT)),
            "agents": partial(self._drop_agents, now - IDLE),
            "reads": self._forget_reads,
            "time": partial(self._drop, KeepTime(now)),
        }
        for what, part in parts.items():
            await survive("old rows kept until the next check", partial(_tell, what, part), what=what)

    async def _drop_events(self) -> int:
        """Delete the oldest events if the journal exceeds its maximum number of events or bytes."""
        size, keep = self.journal_bytes, self._events.journal_size
        through = await self._reading.run(lambda: self._rows.surplus_events(size, keep))
        return 0 if through is None else await self._drop_all(DropEvents(through, STEP))

    async def _drop_agents(self, idle_before: datetime) -> int:
        agents = list(self._coordinator.agents.values())
        surplus = await self._reading.run(lambda: surplus_agents(agents, idle_before))
        if not surplus:
            return 0
        writers, dropped = self._writers(), 0
        idle = [agent for agent in surplus if agent.id not in writers]
        async for some in slices(idle, ASKED):
            ids = [agent.id for agent in some]
            owners = await self._reading.run(partial(self._rows.owners, ids, self._owners))
            free = [agent for agent in some if agent.id not in owners]
            async for few in slices(free, STEP):
                dropped += await self._drop(DropAgents(tuple(few)))
        return dropped

    def _writers(self) -> set[str]:
        """Return the authors and contributors of all notes."""
        notes = [entry.note for entry in self._notes]
        return {note.author for note in notes}.union(*(note.contributors for note in notes))

    async def _forget_reads(self) -> int:
        gone = [note_id for note_id in self._coordinator.reads() if note_id not in self._notes]
        forgotten = gone[: max(0, len(gone) - GONE_NOTES)]
        async for some in slices(forgotten, STEP):
            await self._drop(ForgetReads(tuple(some)))
        return len(forgotten)

    async def _drop_all(self, step: RetentionCommand, most: int | None = STEP) -> int:
        """Repeat a step until it deletes fewer than `most` rows. Return the number of deleted rows."""
        dropped = some = await self._drop(step)
        while most is not None and some >= most:
            some = await self._drop(step)
            dropped += some
        return dropped

    async def _drop(self, step: RetentionCommand) -> int:
        began = trio.current_time()
        dropped = await self._coordinator.mailbox.ask(step, within=PATIENCE)
        if dropped:
            await trio.sleep(max(PAUSE_LEAST, PAUSE_TIMES * (trio.current_time() - began)))
        return dropped


async def _tell(what: str, part: Callable[[], Awaitable[int]]) -> None:
    dropped = await part()
    if dropped:
        log.info("old rows dropped", what=what, rows=dropped)


def surplus_agents(agents: Iterable[Agent], idle_before: datetime) -> list[Agent]:
    """Return the agents that were idle for too long or exceed the limits, longest idle first."""
    left, kept, surplus = AGENT_BYTES, 0, list[Agent]()
    for agent in sorted(agents, key=lambda agent: agent.last_seen_at, reverse=True):
        left, kept = left - size_of(agent), kept + 1
        if agent.last_seen_at < idle_before or left < 0 or kept > AGENTS:
            surplus.append(agent)
    return surplus[::-1]
