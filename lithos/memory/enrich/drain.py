"""Processing of the enrich queue. Each batch of jobs is called a window (docs/spec/memory.md §4).

A window is claimed, processed and finished before the next window is claimed. A killed process therefore
wastes an attempt of only a few jobs. Jobs are idempotent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

import trio
from attrs import frozen

from lithos.kernel.actors.failure_boundary import survive
from lithos.kernel.log import get_logger
from lithos.kernel.metrics import Metrics
from lithos.kernel.parts import Clock
from lithos.memory.enrich.entities import EntityExtraction
from lithos.memory.enrich.feed import OF_CONTENT, OF_EXISTENCE, JournalFeed
from lithos.memory.enrich.projection import Projection
from lithos.memory.enrich.questions import QuestionUpkeep
from lithos.memory.model.memory import ClaimJobs, EnrichJob, FinishJobs
from lithos.memory.retrieve.feedback import Learning

log = get_logger("lithos.enrichment")

#: Maximum number of queue rows in one window.
WINDOW: Final = 50
#: Number of concurrent jobs. Their writes share disk syncs, and agents can still write in between.
AT_ONCE: Final = 8
#: Maximum number of attempts at a job that fails.
MOST_ATTEMPTS: Final = 3


@frozen(kw_only=True)
class Drain:
    """The worker that claims and processes queued jobs. Only one run is active at a time."""

    clock: Clock
    metrics: Metrics
    feed: JournalFeed
    memory: Learning
    projection: Projection
    entities: EntityExtraction
    questions: QuestionUpkeep

    async def run(self) -> None:
        """Process all queued jobs."""
        last = 0
        await self.feed.catch_up()
        while jobs := await self._claim(last):
            last = max(min(job.rows) for job in jobs)
            await self._work_off(jobs)

    async def _claim(self, after: int) -> list[EnrichJob]:
        """Claim the next window of jobs and return it."""
        return await self.memory.submit(ClaimJobs(MOST_ATTEMPTS, after=after, most=WINDOW))

    async def _work_off(self, jobs: Sequence[EnrichJob]) -> None:
        """Process and finish the jobs of one window."""
        failed: Sequence[EnrichJob] = jobs
        if await survive("notes cannot be enriched", partial(self._settle, jobs), notes=len(jobs)):
            failed = await self._extract([job for job in jobs if job.triggers & (OF_CONTENT | OF_EXISTENCE)])
        await self._finish(jobs, failed)

    async def _extract(self, jobs: Sequence[EnrichJob]) -> list[EnrichJob]:
        """Extract the entities of these notes. Return the jobs that failed."""
        failed: list[EnrichJob] = []
        turn = trio.CapacityLimiter(AT_ONCE)

        async def try_one(job: EnrichJob) -> None:
            work = partial(self.entities.refresh, job.node_id)
            async with turn:
                if not await survive("entities cannot be extracted", work, note=job.node_id):
                    failed.append(job)

        async with trio.open_nursery() as nursery:
            for job in jobs:
                nursery.start_soon(try_one, job)
        return failed

    async def _finish(self, jobs: Sequence[EnrichJob], failed: Collection[EnrichJob]) -> None:
        submit = self.memory.submit
        done = [job for job in jobs if job not in failed]
        for some, is_done in ((done, True), (failed, False)):
            rows = tuple(row for job in some for row in job.rows)
            if rows:
                await submit(FinishJobs(rows, done=is_done))
        self._measure(done)
        for job in failed:
            if job.attempts >= MOST_ATTEMPTS:
                self.metrics.count("lcma_enrich_exhausted")
                log.warning(
                    "enrichment stopped until next change",
                    note=job.node_id,
                    attempts=job.attempts,
                )

    def _measure(self, done: Sequence[EnrichJob]) -> None:
        metrics, now = self.metrics, self.clock()
        for job in done:
            metrics.observe("lcma_enrich_attempts", job.attempts)
            if job.waiting_since is not None:
                metrics.observe("lcma_enrich_lag_seconds", (now - job.waiting_since).total_seconds())

    # -- jobs ----------------------------------------------------------------------------------

    async def _settle(self, jobs: Sequence[EnrichJob]) -> None:
        """Run the steps that process all notes of a window together."""
        moved = [job.node_id for job in jobs if job.triggers & OF_EXISTENCE]
        await self.projection.project([job.node_id for job in jobs], appeared_or_gone=moved)
        changed = [job.node_id for job in jobs if job.triggers & (OF_CONTENT | OF_EXISTENCE)]
        await self.questions.follow(changed)
