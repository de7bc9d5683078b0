"""A batch of the memory actor: one transaction per database, and nobody pays for another's failure.

The edges are committed first, then the statistics. A database that refuses refuses the commands that
need it; the others are carried out all the same. When the process ends between the two commits, a
command that changes both has changed the edges only, and its caller has no answer:

* `Consolidate` is asked for again, and finds in the edges' own ledger which weights it has changed;
* `RecordInference` writes the same edges again and so changes nothing;
* `ApplyFeedback` is repeated too, since its lesson stays in `coordination.db` until then; the ledgers of both
  databases know it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime

import attrs

from lithos.actors.memory_steps import Command, Steps, Store
from lithos.actors.memory_upkeep import Done
from lithos.core.edges import EdgeCommand, ResolveConflict
from lithos.core.errors import LithosError, StorageFailed, UpdateFailed
from lithos.stores.edges import EdgeStore
from lithos.stores.sqlite import DatabaseFailed
from lithos.stores.stats import StatsStore
from lithos.telemetry import get_logger

log = get_logger("lithos.memory")

#: What a statement raises for a value that no column can hold.
_UNFIT = (UnicodeError, OverflowError)


class _StoreFailed(Exception):
    """A database could not be written: everything uncommitted is undone."""

    def __init__(self, store: Store, reason: Exception) -> None:
        super().__init__(str(reason))
        self.store = store


@attrs.define(eq=False)
class _Job:
    """One command of a batch; `settled` once its outcome can no longer change."""

    command: Command
    needs: frozenset[Store] = frozenset()
    done: Done = Done(None)
    settled: bool = False

    def refuse(self, reason: Exception) -> None:
        """Settle it as not carried out."""
        self.done, self.settled = Done(_refusal(self.command, reason)), True


class Batches:
    """Carries batches out in the one thread that writes both databases."""

    def __init__(self, edges: EdgeStore, stats: StatsStore, steps: Steps) -> None:
        self._edges = edges
        self._stats = stats
        self._steps = steps

    def commit(self, commands: Sequence[Command], now: datetime) -> list[Done]:
        """What became of each command; a `LithosError` as reply is a refusal."""
        jobs = [self._plan(command) for command in commands]
        while waiting := [job for job in jobs if not job.settled]:
            try:
                self._run(waiting, now)
            except _StoreFailed as failure:
                log.error("memory cannot be written", store=failure.store.value, reason=str(failure))
                for job in waiting:
                    if failure.store in job.needs and not job.settled:
                        job.refuse(failure)
        return [job.done for job in jobs]

    def _plan(self, command: Command) -> _Job:
        job = _Job(command)
        try:
            job.needs = self._steps.needs(command)
        except DatabaseFailed as failure:
            job.refuse(failure)
        return job

    def _run(self, jobs: Sequence[_Job], now: datetime) -> None:
        needed = {store for job in jobs for store in job.needs}
        with self._transaction(Store.STATS, needed):
            with self._transaction(Store.EDGES, needed):
                for job in jobs:
                    self._carry_out(job, now)
            for job in jobs:
                job.settled = Store.STATS not in job.needs
        for job in jobs:
            job.settled = True

    @contextmanager
    def _transaction(self, store: Store, needed: set[Store]) -> Iterator[None]:
        if store not in needed:
            yield
            return
        try:
            with self._store(store).transaction():
                yield
        except (DatabaseFailed, OSError) as failure:
            raise _StoreFailed(store, failure) from failure

    def _carry_out(self, job: _Job, now: datetime) -> None:
        """One command in a part of its own: what cannot be stored harms no other."""
        try:
            with ExitStack() as parts:
                for store in job.needs:
                    parts.enter_context(self._store(store).part())
                job.done = self._steps.carry_out(job.command, now)
                if job.done.events:
                    self._edges.add_to_outbox(job.done.events)
        except (DatabaseFailed, *_UNFIT) as failure:
            for store in job.needs:
                if not self._store(store).is_in_transaction:
                    raise _StoreFailed(store, failure) from failure
            log.error("command not stored", command=type(job.command).__name__, reason=repr(failure))
            job.done = Done(_refusal(job.command, failure))

    def _store(self, store: Store) -> EdgeStore | StatsStore:
        return self._edges if store is Store.EDGES else self._stats


def _refusal(command: Command, reason: Exception) -> LithosError:
    """What to tell the caller of a command that could not be stored."""
    if not isinstance(command, EdgeCommand):
        return StorageFailed(
            f"What was learned could not be stored: {reason}. Retry when the disk has space and is writable."
        )
    text = (
        f"The edge could not be stored: {reason}. Nothing was changed; "
        "retry when the disk has space and is writable."
    )
    return UpdateFailed(text) if isinstance(command, ResolveConflict) else StorageFailed(text)
