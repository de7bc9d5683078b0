"""The enrich worker: learns from what happened, away from every read and write (memory spec, section 4).

One task follows the events into a durable queue; another works the queue off at intervals and now and
then sweeps over everything. Both may be cancelled at any moment: the queue remembers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial

import trio
from attrs import frozen

from lithos.config.lcma import LcmaConfig
from lithos.core.memory import Decay
from lithos.core.retention import ForgetWorkingMemory
from lithos.services.enrichment_boundary import survive
from lithos.services.enrichment_drain import Drain, DrainParts
from lithos.services.enrichment_feed import Queue
from lithos.services.projection import IncompleteScan
from lithos.services.retention import Retention
from lithos.telemetry import get_logger

log = get_logger("lithos.enrichment")


@frozen(kw_only=True)
class Schedule:
    """When what runs, in seconds; the first drain comes one interval after the start."""

    drain_interval: float
    first_sweep: float
    sweep_interval: float

    @classmethod
    def of(cls, config: LcmaConfig) -> Schedule:
        """As configured."""
        return cls(
            drain_interval=60.0 * config.enrich_drain_interval_minutes,
            first_sweep=60.0 * config.sweep_startup_delay_minutes,
            sweep_interval=3600.0 * config.sweep_interval_hours,
        )


class Enrichment:
    """Runs drains and sweeps, never two at once."""

    def __init__(
        self,
        parts: DrainParts,
        config: LcmaConfig,
        queue: Queue,
        closed: Callable[[Sequence[str]], Awaitable[Sequence[str]]],
        retention: Retention,
        teach: Callable[[], Awaitable[None]],
    ) -> None:
        self._parts = parts
        self._queue = queue
        self._retention = retention
        #: Teaches what completed tasks could not be heard of.
        self._teach = teach
        #: Which of some tasks are closed.
        self._closed = closed
        self._drain = Drain(parts, config.max_enrich_attempts)
        self._schedule = Schedule.of(config)
        self._idle = timedelta(days=config.wm_eviction_days)

    async def run(self) -> None:
        """Work until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._parts.feed.run)
            nursery.start_soon(self._keep_time)

    async def _keep_time(self) -> None:
        await self._catch_up()
        now, schedule = trio.current_time(), self._schedule
        drain_at, sweep_at = now + schedule.drain_interval, now + schedule.first_sweep
        while True:
            await trio.sleep_until(min(drain_at, sweep_at))
            if trio.current_time() >= sweep_at:
                await self.sweep()
                sweep_at = trio.current_time() + schedule.sweep_interval
            else:
                await survive("enrichment is put off to the next interval", self.drain)
            drain_at = trio.current_time() + schedule.drain_interval

    async def drain(self) -> frozenset[str]:
        """Work off the queue; the tasks whose consolidation failed."""
        await self._catch_up()
        return await self._drain.run()

    async def _catch_up(self) -> None:
        await survive("feedback waits for the next interval", self._teach)

    async def sweep(self) -> None:
        """Look after everything once; a part that fails is logged, and the others still run."""
        parts = self._parts
        await survive("working memory is kept until the next sweep", self._forget)
        await survive("salience decays at the next sweep", partial(parts.memory.submit, Decay()))
        await survive("provenance is projected at the next sweep", self._reconcile)
        await survive("entities are refreshed at the next sweep", parts.entities.refresh_stale)
        await survive("old receipts are kept until the next sweep", self._retention.forget_receipts)
        await survive("old pairs are kept until the next sweep", self._retention.forget_pairs)
        log.info("swept")

    async def _forget(self) -> None:
        """Drop working memory that no one needs any more.

        What is closed by now is in the journal by now: the drain learns from it before it is dropped.
        """
        now = self._parts.clock()
        closed = await self._closed(await self._queue.working_tasks())
        failed = await self._drain.run()
        await self._parts.memory.submit(
            ForgetWorkingMemory(frozenset(closed) - failed, idle_before=now - self._idle)
        )

    async def _reconcile(self) -> None:
        try:
            await self._parts.projection.reconcile()
        except IncompleteScan as problem:
            log.warning("provenance not projected", reason=str(problem))
