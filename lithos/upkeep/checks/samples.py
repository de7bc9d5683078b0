"""Samples of the counters of `/metrics` of a running server, every 15 s for an hour, in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from resource import RUSAGE_SELF, getpagesize, getrusage
from typing import Final

import trio
from attrs import define, field, frozen

from lithos.kernel.actors.threads import Blocking
from lithos.kernel.metrics import Metrics

#: Seconds between two samples, and how many are kept: an hour.
INTERVAL, KEPT = 15.0, 240
#: Length of the first sample, so that a page has something to show early.
FIRST: Final = 3.0
_SEARCHES: Final = ("search_duration_seconds", "lcma_retrieve_duration_seconds")
_WRITES: Final = ("knowledge_write_duration_seconds",)
_MEMORY: Final = Path("/proc/self/statm")


@frozen(kw_only=True)
class ActivitySample:
    """Events in the `seconds` before `at`: counts, and durations in seconds (None without events).

    Writes and searches are those that succeeded. `memory` is the resident memory in bytes, `head` the
    position of the newest event, `subscribers` the clients of event streams, all at the end.
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
        """A count of this sample as a rate."""
        return count * 60 / self.seconds if self.seconds else 0.0


@frozen
class Totals:
    """The counters at one moment; `writes` and `searches` are cumulative buckets, the last bound infinite."""

    calls: float
    errors: float
    writes: tuple[tuple[float, float], ...]
    searches: tuple[tuple[float, float], ...]


@define(eq=False)
class Samples:
    """Takes a sample every `INTERVAL` while `run` runs; keeps the last `KEPT`."""

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
        """Sample until cancelled."""
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
    """The value below which `share` of the observations are, by linear interpolation inside its bucket.

    `buckets` are cumulative counts by upper bound, the last of which is infinite; as `histogram_quantile` of
    Prometheus. None when there is no observation; the highest finite bound when the value is above it.
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
    """Resident memory in bytes; the peak where the system does not report it."""
    try:
        return int(_MEMORY.read_text().split()[1]) * getpagesize()
    except (OSError, ValueError, IndexError):
        return getrusage(RUSAGE_SELF).ru_maxrss * 1024
