"""The memory actor: owns `edges.db`, and brings every change of an edge into the journal once.

A batch of changes is one transaction, together with the event of each in an outbox. Then the
coordinator journals the events, the outbox is cleared, and the callers are answered. Whatever ends
the process in between leaves the outbox, and the next start takes it up where it was left: each event
has its own origin, so what the journal has already is not told twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import trio
from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.coordinator import AppendEvents, Coordinator, Flush, Journalled
from lithos.actors.kit import ActorDown, Inbox, Mailbox, ShuttingDown, run_batches
from lithos.core.edges import (
    EdgeCommand,
    ResolveConflict,
    ShiftWeights,
    UpsertEdge,
    announce_edge,
    check_conflict,
)
from lithos.core.errors import LithosError, StorageFailed, UpdateFailed
from lithos.core.events import EDGE_UPSERTED, EventDraft
from lithos.stores.coordination import CoordinationStore
from lithos.stores.edges import EdgeStore
from lithos.stores.sqlite import DatabaseFailed
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


MemoryMessage = EdgeCommand | Deliver
#: What the command promises.
MemoryReply = Any
MemoryMailbox = Mailbox[MemoryMessage, MemoryReply]


@frozen
class _Done:
    """What a command answers and announces."""

    reply: Any
    event: EventDraft | None = None


def make_edge_id() -> str:
    """A fresh `edge_` and 12 hexadecimal digits."""
    return f"edge_{uuid.uuid4().hex[:12]}"


class Memory:
    """The actor's state and its batches."""

    def __init__(
        self,
        store: EdgeStore,
        blocking: Blocking,
        coordinator: Coordinator,
        journal: CoordinationStore,
        journal_reading: Blocking,
        clock: Callable[[], datetime],
        *,
        new_edge_id: Callable[[], str] = make_edge_id,
    ) -> None:
        self.mailbox: MemoryMailbox = Mailbox("memory", CAPACITY)
        self._store = store
        self._blocking = blocking
        self._coordinator = coordinator
        self._journal = journal
        self._journal_reading = journal_reading
        self._clock = clock
        self._new_edge_id = new_edge_id
        #: Events with a row in the outbox, in order.
        self._undelivered: list[EventDraft] = []
        #: Some of them may be in the journal, or kept by the coordinator, already.
        self._is_uncertain = True

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
            nursery.start_soon(self._remember_undelivered)
            await run_batches(inbox, self._flush, size=BATCH, stats=self.mailbox.stats)
            nursery.cancel_scope.cancel()

    async def _remember_undelivered(self) -> None:
        while True:
            await trio.sleep(RETRY_DELAY)
            if self._undelivered:
                self.mailbox.nudge(Deliver())

    async def _flush(self, messages: Sequence[MemoryMessage]) -> list[MemoryReply | Exception]:
        try:
            done = await self._blocking.run(lambda: self._commit(messages))
        except (DatabaseFailed, OSError) as failure:
            log.error("edges cannot be written", reason=str(failure))
            return [_refuse(message, failure) for message in messages]
        self._undelivered += [each.event for each in done if each.event is not None]
        await self._deliver()
        return [each.reply for each in done]

    # -- changing edges ------------------------------------------------------------------------

    def _commit(self, messages: Sequence[MemoryMessage]) -> list[_Done]:
        """One transaction; a refused command has written nothing."""
        if all(isinstance(message, Deliver) for message in messages):
            return [_Done(None) for _ in messages]
        now = self._clock()
        with self._store.transaction():
            done = [self._carry_out(message, now) for message in messages]
            self._store.add_to_outbox(each.event for each in done if each.event is not None)
        return done

    def _carry_out(self, message: MemoryMessage, now: datetime) -> _Done:
        if isinstance(message, UpsertEdge):
            edge = self._store.upsert(message, self._new_edge_id(), now)
            return _Done(edge, announce_edge(edge, message.agent, uuid.uuid4().hex))
        if isinstance(message, ResolveConflict):
            return self._resolve(message, now)
        if isinstance(message, ShiftWeights):
            return _Done(self._store.shift_weights(message.edge_ids, message.by, now))
        return _Done(None)

    def _resolve(self, command: ResolveConflict, now: datetime) -> _Done:
        try:
            edge = check_conflict(self._store.edge(command.edge_id), command)
        except LithosError as refusal:
            return _Done(refusal)
        edge = self._store.settle_conflict(edge, command.resolution, command.resolver, now)
        return _Done(edge, announce_edge(edge, command.resolver, uuid.uuid4().hex))

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


def _refuse(message: MemoryMessage, failure: Exception) -> LithosError:
    """What to tell a caller whose batch could not be stored."""
    text = (
        f"The edge could not be stored: {failure}. Nothing was changed; "
        "retry when the disk has space and is writable."
    )
    return UpdateFailed(text) if isinstance(message, ResolveConflict) else StorageFailed(text)
