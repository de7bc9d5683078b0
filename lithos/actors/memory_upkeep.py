"""What each command that concerns `stats.db` alone does: the enrich queue, the budget, and upkeep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from attrs import frozen

from lithos.core.entities import RecordEntities
from lithos.core.events import EventDraft
from lithos.core.memory import (
    ClaimJobs,
    Enqueue,
    FinishJobs,
    LiftSalience,
    SpendTokens,
)
from lithos.core.retention import ForgetPairs, ForgetReceipts, ForgetWorkingMemory
from lithos.core.salience import lift
from lithos.stores.stats import StatsStore


@frozen
class Done:
    """What a command answers and announces."""

    reply: Any
    events: tuple[EventDraft, ...] = ()
    #: Notes whose salience it changed.
    moved: int = 0


class Upkeep:
    """The commands, carried out inside a transaction."""

    def __init__(self, stats: StatsStore) -> None:
        self._stats = stats
        self.handlers: Mapping[type, Callable[[Any, datetime], Done]] = {
            ForgetWorkingMemory: self._forget,
            ForgetReceipts: self._forget_receipts,
            ForgetPairs: self._forget_pairs,
            Enqueue: self._enqueue,
            ClaimJobs: self._claim,
            FinishJobs: self._finish,
            SpendTokens: self._spend,
            RecordEntities: self._record_entities,
            LiftSalience: self._lift,
        }

    def _forget(self, command: ForgetWorkingMemory, now: datetime) -> Done:
        self._stats.writing.queue.drop_processed(command.idle_before)
        return Done(self._stats.writing.receipts.forget(command.closed_tasks, command.idle_before))

    def _forget_receipts(self, command: ForgetReceipts, now: datetime) -> Done:
        return Done(self._stats.writing.receipts.drop(command.ids))

    def _forget_pairs(self, command: ForgetPairs, now: datetime) -> Done:
        nodes = self._stats.writing.nodes
        return Done(nodes.forget_pairs(command.after, command.most, command.days, now))

    def _enqueue(self, command: Enqueue, now: datetime) -> Done:
        self._stats.writing.queue.add(command.triggers, now)
        return Done(None)

    def _claim(self, command: ClaimJobs, now: datetime) -> Done:
        return Done(self._stats.writing.queue.claim(command.max_attempts, command.after, command.most))

    def _finish(self, command: FinishJobs, now: datetime) -> Done:
        if command.done:
            self._stats.writing.queue.finish(command.rows, now)
        elif not command.tried:
            self._stats.writing.queue.release(command.rows)
        return Done(None)

    def _spend(self, command: SpendTokens, now: datetime) -> Done:
        self._stats.writing.ledgers.spend(command.day, command.tokens, command.calls, now)
        return Done(None)

    def _record_entities(self, command: RecordEntities, now: datetime) -> Done:
        self._stats.writing.ledgers.note_entities(command.node_id, command.digest)
        return Done(None)

    def _lift(self, command: LiftSalience, now: datetime) -> Done:
        nodes = self._stats.writing.nodes
        low = [(stats, lift(stats, command.floor)) for stats in nodes.below(command.floor)]
        lifted = [(stats, new) for stats, new in low if new is not None]
        if not command.dry_run:
            nodes.put(new for _, new in lifted)
        reply = {stats.node_id: (stats.salience, new.salience) for stats, new in lifted}
        return Done(reply, moved=0 if command.dry_run else len(reply))
