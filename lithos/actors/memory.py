"""The memory actor: owns `edges.db` and `stats.db`, and brings every change of an edge into the journal once.

A batch of changes is one transaction of each database; the edges' holds the event of each change in
an outbox. Then the coordinator journals the events, the outbox is cleared, and the callers are
answered. Whatever ends the process in between leaves the outbox, and the next start takes it up where
it was left: each event has its own origin, so what the journal has already is not told twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import trio
from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.coordinator import AppendEvents, Coordinator, Flush, Journalled
from lithos.actors.kit import ActorDown, Inbox, Mailbox, ShuttingDown, run_batches
from lithos.actors.memory_batches import Batches
from lithos.actors.memory_steps import Command, Steps
from lithos.actors.memory_upkeep import Done
from lithos.core.events import EDGE_UPSERTED, EventDraft
from lithos.core.salience import LearningSettings
from lithos.stores.coordination import CoordinationStore
from lithos.stores.database import Database
from lithos.stores.edges import EdgeStore
from lithos.stores.sqlite import DatabaseFailed
from lithos.stores.stats import StatsStore
from lithos.telemetry import get_logger

log = get_logger("lithos.memory")

#: A few dozen agents at once; more wait in their own tasks.
CAPACITY = 64
BATCH = 64
#: Seconds between two tries to journal what could not be.
RETRY_DELAY = 1.0
#: Seconds that callers wait for the journal; their change is stored, and its event follows.
JOURNAL_DEADLINE = 20.0


@frozen
class Deliver:
    """Try again to journal what waits in the outbox."""


@frozen
class TryWriting:
    """See whether a database that refused a write takes one now."""


_Chore = Deliver | TryWriting
MemoryMessage = Command | _Chore
#: What the command promises.
MemoryReply = Any
MemoryMailbox = Mailbox[MemoryMessage, MemoryReply]


def make_edge_id() -> str:
    """A fresh `edge_` and 12 hexadecimal digits."""
    return f"edge_{uuid.uuid4().hex[:12]}"


def _ignore(_: int) -> None:
    """Nobody counts."""


class Memory:
    """The actor's state and its batches."""

    def __init__(
        self,
        store: EdgeStore,
        stats: StatsStore,
        blocking: Blocking,
        coordinator: Coordinator,
        journal: CoordinationStore,
        journal_reading: Blocking,
        clock: Callable[[], datetime],
        *,
        settings: LearningSettings = LearningSettings(),  # noqa: B008 - a frozen value
        new_edge_id: Callable[[], str] = make_edge_id,
        on_salience: Callable[[int], None] = _ignore,
    ) -> None:
        """`on_salience` is told how many notes a batch gave another salience."""
        self.mailbox: MemoryMailbox = Mailbox("memory", CAPACITY)
        self._store = store
        self._stats = stats
        self._blocking = blocking
        self._coordinator = coordinator
        self._journal = journal
        self._journal_reading = journal_reading
        self._clock = clock
        self._on_salience = on_salience
        self._batches = Batches(store, stats, Steps(store, stats, settings, new_edge_id))
        #: Events with a row in the outbox, in order.
        self._undelivered: list[EventDraft] = []
        #: Some of them may be in the journal, or kept by the coordinator, already.
        self._is_uncertain = True

    @property
    def databases(self) -> tuple[Database, ...]:
        """What it owns; anybody may look at `failure` and `damage`."""
        return (self._store, self._stats)

    @property
    def undelivered(self) -> int:
        """How many stored changes wait for the journal."""
        return len(self._undelivered)

    async def start(
        self,
        inbox: Inbox[MemoryMessage, MemoryReply],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Journal what an earlier run left, then serve commands until the mailbox closes."""
        self._undelivered = await self._blocking.run(self._store.outbox)
        self._is_uncertain = True
        await self._deliver()
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._try_again)
            await run_batches(inbox, self._flush, size=BATCH, stats=self.mailbox.stats)
            nursery.cancel_scope.cancel()

    async def _try_again(self) -> None:
        while True:
            await trio.sleep(RETRY_DELAY)
            if self._undelivered:
                self.mailbox.nudge(Deliver())
            if any(store.failure for store in self.databases):
                self.mailbox.nudge(TryWriting())

    async def _flush(self, messages: Sequence[MemoryMessage]) -> list[MemoryReply | Exception]:
        done = await self._blocking.run(lambda: self._commit(messages))
        self._on_salience(sum(each.moved for each in done))
        events = [event for each in done for event in each.events]
        self._undelivered += events
        if events or any(isinstance(message, Deliver) for message in messages):
            await self._deliver()  # what was only learned does not wait for the journal
        return [each.reply for each in done]

    def _commit(self, messages: Sequence[MemoryMessage]) -> list[Done]:
        """One transaction of each database; a refused command has written nothing."""
        commands = [message for message in messages if not isinstance(message, Deliver | TryWriting)]
        done = iter(self._batches.commit(commands, self._clock()) if commands else ())
        for store in self.databases:
            if store.failure and TryWriting() in messages:
                with suppress(DatabaseFailed, OSError):  # it notes its failure itself
                    store.try_writing()
        return [
            Done(None) if isinstance(message, Deliver | TryWriting) else next(done) for message in messages
        ]

    # -- the outbox ----------------------------------------------------------------------------

    async def _deliver(self) -> None:
        """Journal what waits, in order; what cannot be stays in the outbox, to be tried again."""
        if not self._undelivered:
            return
        try:
            with trio.fail_after(JOURNAL_DEADLINE):
                unsent = await self._take_unsent()
                self._is_uncertain = True  # until the coordinator has answered
                answer = await self._coordinator.mailbox.ask(AppendEvents(tuple(unsent))) if unsent else None
                if answer is Journalled.LATER or len(unsent) < len(self._undelivered):
                    return
                await self._forget({draft.origin for draft in unsent})
                self._is_uncertain = False
        except (ShuttingDown, ActorDown, trio.TooSlowError, DatabaseFailed, OSError) as failure:
            log.warning(
                "edge events wait for the journal", events=len(self._undelivered), reason=repr(failure)
            )

    async def _take_unsent(self) -> list[EventDraft]:
        """The waiting events that the coordinator does not have; those that the journal has are forgotten."""
        if not self._is_uncertain:
            return list(self._undelivered)
        # Answered after everything that was sent before: then an event is journalled, kept, or was lost.
        await self._coordinator.mailbox.ask(Flush())
        kept = self._coordinator.unwritten_origins
        origins = {draft.origin for draft in self._undelivered}
        journalled = await self._journal_reading.run(lambda: self._journal.journalled(EDGE_UPSERTED, origins))
        await self._forget(journalled)
        return [draft for draft in self._undelivered if draft.origin not in kept]

    async def _forget(self, origins: set[str]) -> None:
        if origins:
            await self._blocking.run(lambda: self._clear_outbox(origins))
        self._undelivered = [draft for draft in self._undelivered if draft.origin not in origins]

    def _clear_outbox(self, origins: set[str]) -> None:
        with self._store.transaction():
            self._store.clear_outbox(origins)
