"""The enrich worker. It learns from events independently of reads and writes (docs/spec/memory.md §4).

One task feeds events into a durable queue. Another task (`Enrichment`) drains the queue at intervals and
periodically sweeps over all notes. Both tasks may be cancelled at any moment, because the queue is durable.

`StatsRetention` limits the stored retrieval data by deleting old receipts in batches. The receipt of a
retrieval takes about 2 kB. Deleted rows free space in `stats.db` for later rows, but the file does not
shrink. `TaskStates` finds the tasks that may still be completed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import trio
from attrs import define, field

from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.failure_boundary import survive
from lithos.kernel.log import get_logger
from lithos.memory.enrich.drain import Drain
from lithos.memory.enrich.projection import IncompleteScan
from lithos.memory.model.memory import ForgetJobs, ForgetNotes, ForgetReceipts
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.settings import LcmaConfig
from lithos.tasks.model.task import Task
from lithos.tasks.rows.tasks import TaskRows


class TaskStates:
    """Queries on the status of tasks in the coordination database. All methods raise `DatabaseFailed`."""

    def __init__(
        self,
        journal: CoordinationStore,
        reading: JournalThread,
    ) -> None:
        self._rows = journal.rows(TaskRows)
        #: The thread for the only read connection to the coordination database.
        self._reading = reading

    async def unsettled(self, task_ids: Sequence[str], since: datetime) -> list[str]:
        """Return which of these tasks are open, or were closed later than `since` and may be reopened."""
        found = await self._find(task_ids)
        return [task.id for task in found if task.is_open or (task.resolved_at or since) > since]

    async def _find(self, task_ids: Sequence[str]) -> list[Task]:
        def read() -> list[Task]:
            with self._rows.snapshot():
                found = [self._rows.task(task_id) for task_id in task_ids]
            return [task for task in found if task is not None]

        return await self._reading.run(read)


retention_log = get_logger("lithos.retention")

#: Period for which the receipts of a closed task are kept.
REOPENED_WITHIN: Final = timedelta(days=30)
#: Maximum number of receipts per command. This takes about 10 ms of the memory actor, for which retrievals
#: wait.
RECEIPTS: Final = 200
#: Period for which finished and abandoned jobs stay in the queue.
DONE: Final = timedelta(days=7)
GIVEN_UP: Final = timedelta(days=365)
#: Maximum number of abandoned triggers per command, and of notes per command.
SOME: Final = 200
#: Maximum number of deleted notes with statistics. Such notes may return from a backup or from another
#: folder.
GONE_NOTES: Final = 10_000
#: Number of notes to check per read.
PAGE: Final = 1_000


@define(eq=False)
class StatsRetention:
    """The retention of `stats.db`. It deletes old and surplus rows, one command at a time."""

    _memory: Learning
    #: Function that returns the tasks that are open or were closed after a given time.
    _unsettled: Callable[[Sequence[str], datetime], Awaitable[Sequence[str]]]
    #: A clock that does not jump.
    _clock: Callable[[], datetime]
    #: Maximum number of stored receipts. 0 means no limit.
    _receipts_kept: int = field(kw_only=True)
    _has_note: Callable[[str], bool] = field(default=lambda _: True, kw_only=True)

    async def forget_receipts(self) -> None:
        """Delete the oldest receipts beyond the limit. Receipts of unsettled tasks are kept.

        The feedback of a completion needs only the receipts of its own task. A closed task may be reopened.
        """
        if not self._receipts_kept:
            return
        surplus, last, dropped = await self._memory.receipt_count() - self._receipts_kept, 0, 0
        while surplus > 0:
            some = await self._memory.oldest_receipts(last, min(RECEIPTS, surplus))
            if not some:
                break
            surplus, last = surplus - len(some), some[-1].place
            tasks = list(dict.fromkeys(receipt.task_id for receipt in some if receipt.task_id is not None))
            needed = set(await self._unsettled(tasks, self._clock() - REOPENED_WITHIN))
            ids = tuple(receipt.id for receipt in some if receipt.task_id not in needed)
            if ids:
                dropped += await self._memory.submit(ForgetReceipts(ids))
        if dropped:
            retention_log.info("old receipts deleted", receipts=dropped)

    async def forget_jobs(self) -> None:
        """Delete old rows from the queue."""
        now = self._clock()
        command = ForgetJobs(now - DONE, now - GIVEN_UP, SOME)
        while await self._memory.submit(command) >= SOME:
            await trio.lowlevel.checkpoint()

    async def forget_notes(self) -> None:
        """Keep statistics of at most `GONE_NOTES` deleted notes, and delete the statistics of the others."""
        gone = [note_id async for note_id in self._noted() if not self._has_note(note_id)]
        surplus = gone[: max(0, len(gone) - GONE_NOTES)]
        for begin in range(0, len(surplus), SOME):
            await self._memory.submit(ForgetNotes(tuple(surplus[begin : begin + SOME])))
        if surplus:
            retention_log.info("statistics of deleted notes removed", notes=len(surplus))

    async def _noted(self) -> AsyncIterator[str]:
        last = ""
        while page := await self._memory.noted(last, PAGE):
            for note_id in page:
                yield note_id
            last = page[-1]


log = get_logger("lithos.enrichment")


@define(eq=False)
class Enrichment:
    """The scheduler of drains and sweeps. They never run at the same time."""

    _drain: Drain
    _retention: StatsRetention
    _lcma: LcmaConfig
    #: Function that applies pending feedback of completed tasks.
    _teach: Callable[[], Awaitable[None]]

    async def run(self) -> None:
        """Run the feed, the drains and the sweeps until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._drain.feed.run)
            nursery.start_soon(self._keep_time)

    async def keep_questions(self) -> None:
        """Keep the remembered questions within their limits, until cancelled."""
        await self._drain.questions.keep()

    async def _keep_time(self) -> None:
        await self._catch_up()
        now, config = trio.current_time(), self._lcma
        # The first drain of the queue starts one interval after the server start.
        interval = 60.0 * config.enrich_drain_interval_minutes
        drain_at, sweep_at = now + interval, now + 60.0 * config.sweep_startup_delay_minutes
        while True:
            await trio.sleep_until(min(drain_at, sweep_at))
            if trio.current_time() >= sweep_at:
                await self.sweep()
                sweep_at = trio.current_time() + 3600.0 * config.sweep_interval_hours
            else:
                await survive("enrichment postponed to next interval", self.drain)
            drain_at = trio.current_time() + interval

    async def drain(self) -> None:
        """Process all queued jobs."""
        await self._catch_up()
        await self._drain.run()

    async def _catch_up(self) -> None:
        await survive("feedback postponed to next interval", self._teach)

    async def sweep(self) -> None:
        """Run all periodic maintenance once.

        If a part fails, this is logged, and the next parts still run.
        """
        parts = self._drain
        await survive("enrichment postponed to next interval", parts.run)
        await survive("provenance projection postponed to next sweep", self._reconcile)
        await survive("entity refresh postponed to next sweep", parts.entities.refresh_stale)
        await survive("receipt retention postponed to next sweep", self._retention.forget_receipts)
        await survive("job retention postponed to next sweep", self._retention.forget_jobs)
        await survive("statistics retention postponed to next sweep", self._retention.forget_notes)
        await survive("question retention postponed to next sweep", parts.questions.tidy)
        log.info("swept")

    async def _reconcile(self) -> None:
        try:
            await self._drain.projection.reconcile()
        except IncompleteScan as problem:
            log.warning("provenance not projected", reason=str(problem))
