"""Commits of the coordinator. A batch of messages becomes one transaction in a worker thread.

A commit receives values and returns values. The coordinator reads its state before a commit and changes it
afterwards, both on the event loop.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from attrs import define, evolve, frozen

from lithos.events.journal.boards import Boards
from lithos.events.journal.messages import AppendEvents, Flush, MoveCursor, PreparedMessage
from lithos.events.model.agents import Agent, AuditRow
from lithos.events.model.ports import ExtraRowsBatch
from lithos.events.model.retention import UpkeepStep
from lithos.events.model.told_projects import ToldProject
from lithos.events.rows.old_rows import OldRows
from lithos.events.rows.store import CoordinationStore
from lithos.events.rows.told_projects import ToldRows
from lithos.kernel.values.errors import LithosError
from lithos.kernel.values.events import Event, EventDraft
from lithos.kernel.values.messages import BoardCommand, carry_out

#: Number of appended events between two prunings. Pruning after every append would be too expensive.
PRUNE_EVERY = 1_000
#: Maximum number of events to prune at once, which takes some 5 ms. It exceeds `PRUNE_EVERY`, so that a
#: journal that is too long becomes shorter.
PRUNE_AT_ONCE = 3 * PRUNE_EVERY


@frozen(kw_only=True)
class Batch:
    """The content of one transaction, and the journal position before it."""

    steps: Sequence[PreparedMessage]
    agents: Sequence[Agent]
    audit: Collection[AuditRow]
    records: ExtraRowsBatch
    told: Collection[ToldProject]
    #: Events of changes that are already stored. These events are journalled first.
    unwritten: Sequence[EventDraft]
    next_seq: int
    head: int
    #: Number of events journalled since the last pruning.
    since_prune: int
    now: datetime
    #: Time of the next timed change, such as an expiring claim or an opening timer gate.
    due: datetime | None = None

    @property
    def is_due(self) -> bool:
        """True if a timed change is due."""
        return self.due is not None and self.due <= self.now

    @property
    def may_move_due(self) -> bool:
        """True if the batch may change `due`. A batch that only appends events cannot change it."""
        return self.is_due or not all(isinstance(step.message, AppendEvents | Flush) for step in self.steps)

    @property
    def is_empty(self) -> bool:
        """True if the batch contains nothing to write."""
        lazy = self.unwritten or self.agents or self.audit or self.records or self.told or self.is_due
        return not (lazy or any(step.needs_transaction for step in self.steps))


@frozen
class Committed:
    """The result of a transaction: replies and events, both in the order of the batch's steps."""

    replies: list[object]
    events: list[Event]
    since_prune: int = 0
    due: datetime | None = None


@define(eq=False)
class Commits:
    """Part of the coordinator that stores batches.

    Only boards contain state, and boards can discard their state at any time.
    """

    _store: CoordinationStore
    _boards: Boards
    _journal_size: int

    def commit(self, batch: Batch) -> Committed:
        """Store a batch in one transaction. If a command is refused, only its own changes are undone."""
        if batch.is_empty:
            replies = [step.reply for step in batch.steps]
            return Committed(replies, [], since_prune=batch.since_prune, due=batch.due)
        try:
            return self._store_all(batch)
        except BaseException:
            self._boards.forget()
            raise

    def _store_all(self, batch: Batch) -> Committed:
        committed = Committed([], [])
        self._add(batch.unwritten, batch, committed)
        with self._store.transaction():
            self._store.put_agents(batch.agents)
            self._add(self._boards.begin(batch.now, is_due=batch.is_due), batch, committed)
            for step in batch.steps:
                self._carry_out(step, batch, committed)
            self._store.append_events(committed.events)
            self._store.add_audit(batch.audit)
            self._store.put_along(batch.records)
            if batch.told:
                self._store.written(ToldRows).put(batch.told)
            since_prune = batch.since_prune + len(committed.events)
            if since_prune > PRUNE_EVERY:
                self._store.prune_events(self._journal_size, PRUNE_AT_ONCE)
                since_prune = 0
            due = batch.due
            if batch.may_move_due or not self._boards.is_through():
                due = self._boards.next_due(batch.now)
        return evolve(committed, since_prune=since_prune, due=due)

    def _carry_out(self, step: PreparedMessage, batch: Batch, committed: Committed) -> None:
        message, reply, drafts = step.message, step.reply, step.drafts
        if isinstance(message, MoveCursor):
            reply = self._move_cursor(message, batch)
        elif isinstance(message, UpkeepStep):
            reply = self._store.written(OldRows).drop(message)
        elif isinstance(message, BoardCommand):
            try:
                with self._store.part():
                    done = carry_out(self._boards.handlers, message, batch.now)
            except LithosError as refusal:
                committed.replies.append(refusal)
                return
            reply, drafts = done.reply, done.events
        events = self._add(self._boards.follow(drafts, batch.now) if drafts else (), batch, committed)
        if isinstance(message, AppendEvents) and events:
            reply = events[-1].seq
        committed.replies.append(reply)

    def _move_cursor(self, cursor: MoveCursor, batch: Batch) -> int:
        stored = self._store.cursor_being_written(cursor.subscriber)
        if cursor.seq is None and stored is not None:
            return stored
        seq = batch.head if cursor.seq is None else cursor.seq
        self._store.move_cursor(cursor.subscriber, seq, batch.now)
        return seq if stored is None else max(seq, stored)

    def _add(self, drafts: Sequence[EventDraft], batch: Batch, committed: Committed) -> list[Event]:
        """Assign seqs to events. The order is final only after the commit."""
        first = batch.next_seq + len(committed.events)
        events = [Event(seq=first + position, draft=draft) for position, draft in enumerate(drafts)]
        committed.events.extend(events)
        return events
