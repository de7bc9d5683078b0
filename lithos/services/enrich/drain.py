"""Draining the enrich queue, one batch (window) of jobs at a time (docs/spec/memory.md §4).

A window is claimed, processed and finished before the next one, so that a killed process costs few jobs an
attempt. Jobs are idempotent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Final

import trio
from attrs import frozen

from lithos.actors.actors import Actors
from lithos.core.learning.memory import (
    ClaimJobs,
    Consolidate,
    Decay,
    EnrichJob,
    FinishJobs,
)
from lithos.services.enrich.entities import EntityExtraction
from lithos.services.enrich.feed import OF_CONTENT, OF_EXISTENCE, Feed, survive
from lithos.services.enrich.projection import Projection
from lithos.services.enrich.questions import QuestionUpkeep
from lithos.services.retrieve.feedback import Learning
from lithos.telemetry import get_logger

log = get_logger("lithos.enrichment")

#: Rows of the queue that are claimed at once.
WINDOW: Final = 50
#: Jobs done together: their writes then share the syncs of the disk, and agents' writes still come between.
AT_ONCE: Final = 8


@frozen(kw_only=True)
class Drain:
    """Claims jobs from the queue and processes them; one run at a time."""

    actors: Actors
    feed: Feed
    memory: Learning
    projection: Projection
    entities: EntityExtraction
    questions: QuestionUpkeep

    async def run(self) -> frozenset[str]:
        """Process all queued jobs; returns the tasks whose consolidation failed."""
        last = 0
        failed: list[EnrichJob] = []
        await self.feed.catch_up()
        while jobs := await self._claim(last):
            last = max(min(job.rows) for job in jobs)
            failed += await self._work_off(jobs)
        return frozenset(job.task_id for job in failed if job.task_id is not None)

    async def _claim(self, after: int) -> list[EnrichJob]:
        """Claim the next window."""
        most = self.actors.config.lcma.max_enrich_attempts
        return await self.memory.submit(ClaimJobs(most, after=after, most=WINDOW))

    async def _work_off(self, jobs: Sequence[EnrichJob]) -> list[EnrichJob]:
        """Process and finish the jobs of a window; returns those that failed."""
        notes = [job for job in jobs if job.node_id is not None]
        failed = await self._try_each(
            "task cannot be consolidated", [job for job in jobs if job.node_id is None], self._consolidate
        )
        if not await survive("notes cannot be enriched", partial(self._settle, notes), notes=len(notes)):
            failed += notes
        else:
            content = [job for job in notes if job.triggers & (OF_CONTENT | OF_EXISTENCE)]
            failed += await self._try_each("entities cannot be extracted", content, self._extract)
        await self._finish(jobs, failed)
        return failed

    async def _try_each(
        self, event: str, jobs: Sequence[EnrichJob], work: Callable[[EnrichJob], Awaitable[object]]
    ) -> list[EnrichJob]:
        failed: list[EnrichJob] = []
        turn = trio.CapacityLimiter(AT_ONCE)

        async def try_one(job: EnrichJob) -> None:
            name = {"note": job.node_id} if job.node_id else {"task": job.task_id}
            async with turn:
                if not await survive(event, partial(work, job), **name):
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
            if job.attempts >= self.actors.config.lcma.max_enrich_attempts:
                self.actors.metrics.count("lcma_enrich_exhausted")
                log.warning(
                    "enrichment given up until the next change",
                    note=job.node_id,
                    task=job.task_id,
                    attempts=job.attempts,
                )

    def _measure(self, done: Sequence[EnrichJob]) -> None:
        metrics, now = self.actors.metrics, self.actors.clock()
        for job in done:
            metrics.observe("lcma_enrich_attempts", job.attempts)
            if job.waiting_since is not None:
                metrics.observe("lcma_enrich_lag_seconds", (now - job.waiting_since).total_seconds())

    # -- jobs ----------------------------------------------------------------------------------

    async def _settle(self, jobs: Sequence[EnrichJob]) -> None:
        """The steps that are batched over all notes of a window: decay and projection."""
        if not jobs:
            return
        ids = [job.node_id for job in jobs if job.node_id is not None]
        moved = [job.node_id for job in jobs if job.node_id is not None and job.triggers & OF_EXISTENCE]
        present = tuple(note_id for note_id in ids if note_id in self.actors.catalogue)
        if present:
            await self.memory.submit(Decay(present))
        await self.projection.project(ids, appeared_or_gone=moved)
        changed = [job.node_id for job in jobs if job.node_id and job.triggers & (OF_CONTENT | OF_EXISTENCE)]
        await self.questions.follow(changed)

    async def _extract(self, job: EnrichJob) -> None:
        if job.node_id is not None:
            await self.entities.refresh(job.node_id)

    async def _consolidate(self, job: EnrichJob) -> None:
        if (task_id := job.task_id) is None:
            return
        working = await self.memory.read(lambda tables: tables.receipts.working_memory(task_id))
        entries = [self.actors.catalogue.get(node.node_id) for node in working]
        namespaces = {entry.note.id: entry.namespace for entry in entries if entry is not None}
        await self.memory.submit(Consolidate(task_id, namespaces))
