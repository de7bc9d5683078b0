"""Samples of the `/metrics` counters of a running server.

A sample is taken every 15 s and kept in memory for an hour.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import trio
from attrs import define, field, frozen

from lithos.kernel.actors.threads import Blocking
from lithos.kernel.metrics import Metrics
from lithos.kernel.operating_system import PAGE, peak_memory

#: Seconds between two samples, and number of samples to keep (for one hour).
INTERVAL, KEPT = 15.0, 240
#: Length of the first sample in seconds. The first sample is short so that pages soon have data.
FIRST: Final = 3.0
_SEARCHES: Final = ("search_duration_seconds", "lcma_retrieve_duration_seconds")
_WRITES: Final = ("knowledge_write_duration_seconds",)
_MEMORY: Final = Path("/proc/self/statm")


@frozen(kw_only=True)
class ActivitySample:
    """The events in the `seconds` before `at`. Durations are in seconds, and None if there were no events.

    Only successful writes and searches count. Three fields describe the end of the sample: `memory` is the
    resident memory in bytes, `head` the position of the newest event, and `subscribers` the number of event
    stream clients.
    """

    at: datetime
    seconds: float
    calls: float = 0.0
    errors: float = 0.0
    writes: float = 0.0
    searches: float = 0.0
    write_p50: float | None = None
    write_p95: float | None = None
    search_p50: float | None = None
    search_p95: float | None = None
    memory: int = 0
    head: int = 0
    subscribers: int = 0

    def a_minute(self, count: float) -> float:
        """Return a count of this sample as a rate per minute."""
        return count * 60 / self.seconds if self.seconds else 0.0


@frozen
class Totals:
    """The values of all counters at one moment.

    `writes` and `searches` are cumulative buckets. Their last bound is infinite.
    """

    calls: float
    errors: float
    writes: tuple[tuple[float, float], ...]
    searches: tuple[tuple[float, float], ...]


@define(eq=False)
class Samples:
    """The last `KEPT` samples. `run` takes a sample every `INTERVAL` seconds."""

    _metrics: Metrics
    _reading: Blocking
    _clock: Callable[[], datetime]
    _head: Callable[[], int] = field(kw_only=True)
    _subscribers: Callable[[], int] = field(kw_only=True)
    _kept: deque[ActivitySample] = field(factory=lambda: deque(maxlen=KEPT), init=False)

    @property
    def taken(self) -> Sequence[ActivitySample]:
        """The samples of the last hour, oldest first."""
        return tuple(self._kept)

    async def run(self) -> None:
        """Take samples until cancelled."""
        before, (then, _) = trio.current_time(), await self._look()
        wait = FIRST
        while True:
            await trio.sleep(wait)
            totals, memory = await self._look()
            now = trio.current_time()
            self._kept.append(self._sample(then, totals, now - before, memory))
            before, then, wait = now, totals, INTERVAL

    async def _look(self) -> tuple[Totals, int]:
        return await self._reading.run(lambda: (_read(self._metrics), resident_memory()))

    def _sample(self, then: Totals, now: Totals, seconds: float, memory: int) -> ActivitySample:
        writes, searches = _delta(then.writes, now.writes), _delta(then.searches, now.searches)
        return ActivitySample(
            at=self._clock(),
            seconds=seconds,
            calls=now.calls - then.calls,
            errors=now.errors - then.errors,
            writes=writes[-1][1],
            searches=searches[-1][1],
            write_p50=quantile(writes, 0.5),
            write_p95=quantile(writes, 0.95),
            search_p50=quantile(searches, 0.5),
            search_p95=quantile(searches, 0.95),
            memory=memory,
            head=self._head(),
            subscribers=self._subscribers(),
        )


def _read(metrics: Metrics) -> Totals:
    return Totals(
        calls=metrics.total("tool_calls"),
        errors=metrics.total("tool_errors"),
        writes=metrics.distribution(*_WRITES, success="true"),
        searches=metrics.distribution(*_SEARCHES, success="true"),
    )


def _delta(
    then: Sequence[tuple[float, float]], now: Sequence[tuple[float, float]]
) -> tuple[tuple[float, float], ...]:
    return tuple((bound, after - before) for (bound, after), (_, before) in zip(now, then, strict=True))


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """Return the value below which a `share` of the observations is. Interpolates linearly in the bucket.

    `buckets` are cumulative counts by upper bound, and the last bound is infinite, as in the Prometheus
    function `histogram_quantile`. Without observations, return None. If the value exceeds the highest finite
    bound, return that bound.
    """
    total = buckets[-1][1]
    if not total:
        return None
    rank, low, below = share * total, 0.0, 0.0
    for bound, count in buckets:
        if count >= rank and count > below:
            return low if bound == float("inf") else low + (bound - low) * (rank - below) / (count - below)
        low, below = bound, count
    raise AssertionError("the last bucket holds everything")


def resident_memory() -> int:
    """Return the resident memory in bytes. If the system reports only peak memory, return the peak."""
    try:
        return int(_MEMORY.read_text().split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return peak_memory()
