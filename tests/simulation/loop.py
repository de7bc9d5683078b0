"""Time, scheduling, worker threads and random numbers of a run, which all depend on its seed.

Trio runs on a clock that jumps to the next deadline as soon as no task can run. The seed decides the order of
ready tasks. A simulated worker thread is a task. It waits, makes its call in one step of the loop, and waits
again before it delivers the result. Other tasks may run before and in between. Real time is not used: the
product's calls to `time`, `datetime`, `uuid` and `os.urandom` get their results here.
"""

from __future__ import annotations

import functools
import gc
import heapq
import math
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from datetime import UTC, datetime, timedelta, tzinfo
from random import Random
from types import BuiltinFunctionType, SimpleNamespace
from typing import Any, Protocol

import outcome
import pytest
import trio
from attrs import define, field, frozen

import lithos.app.server
import lithos.app.stores
import lithos.notes.files.files
import lithos.notes.files.system_calls
import lithos.search.index.fulltext
import lithos.search.index.vector_files
import lithos.search.index.vectors
import lithos.search.indexing.vector_queries
import lithos.search.service.duplicates

#: Start time of every run.
EPOCH = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


class Deadlock(Exception):
    """Raised if no task can run and no deadline is left."""


class Killed(BaseException):
    """Raised in the tasks of a dead server process, which must stop."""


class Process(Protocol):
    """Tasks of one simulated server process."""

    is_dead: bool


#: Server process that a task belongs to. It is None for tasks outside the server.
PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


@define(eq=False)
class SimulatedClock(trio.abc.Clock):
    """Virtual seconds. They advance when no task can run."""

    now: float = 0.0
    _idle: int = 0
    #: Tasks that sleep without a cancel scope, as (time, number, task). Threads cannot be cancelled.
    _sleepers: list[tuple[float, int, trio.lowlevel.Task]] = field(factory=list)
    _number: int = 0

    def start_clock(self) -> None:
        """Do nothing, because virtual time does not need to start."""

    def current_time(self) -> float:
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Jump to the deadline or to the next sleeper. Trio calls this method when no task can run."""
        if self._sleepers and self._sleepers[0][0] <= deadline:
            at, _, task = heapq.heappop(self._sleepers)
            self._idle, self.now = 0, max(self.now, at)
            trio.lowlevel.reschedule(task)
            return 0.0
        if math.isinf(deadline):
            self._idle += 1  # trio wakes itself up at once through a socket
            if self._idle > 100:
                raise Deadlock
            return 0.0
        self._idle = 0
        self.now = max(self.now, deadline)
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Sleep without the possibility of cancellation. This costs a fraction of `trio.sleep`."""
        self._number += 1
        heapq.heappush(self._sleepers, (self.now + seconds, self._number, trio.lowlevel.current_task()))
        await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)

    def wall(self) -> datetime:
        """Return the virtual time of day."""
        return EPOCH + timedelta(seconds=self.now)

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970."""
        return int(EPOCH.timestamp()) * 1_000_000_000 + int(self.now * 1_000_000_000)


@frozen
class Pace:
    """Seconds that worker threads wait for processor and disk.

    Shares are fractions of slow and stalled waits.
    """

    usual: float = 0.0002
    slow: float = 0.02
    slow_share: float = 0.05
    stall: float = 3.0
    stall_share: float = 0.0

    def draw(self, random: Random) -> float:
        """Draw one waiting time in seconds."""
        luck = random.random()
        if luck < self.stall_share:
            return random.random() * self.stall
        if luck < self.stall_share + self.slow_share:
            return random.random() * self.slow
        return random.random() * self.usual


@define(eq=False)
class Workers:
    """Simulated worker threads. Each call is one step of the loop at its own time."""

    clock: SimulatedClock
    random: Random
    pace: Pace
    #: Seconds for which the current call slept.
    slept: float = 0.0
    calls: int = 0

    async def run_sync(
        self,
        call: Callable[..., Any],
        *arguments: Any,
        thread_name: str | None = None,
        abandon_on_cancel: bool = False,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Any:
        """Replace `trio.to_thread.run_sync`. No simulated thread is slow enough to be abandoned."""
        await trio.lowlevel.checkpoint_if_cancelled()
        process = PROCESS.get()
        token = object()
        if limiter is not None:
            await limiter.acquire_on_behalf_of(token)
        try:
            await self._wait(process)
            result = self._do(process, lambda: call(*arguments))
            if self.slept or self.random.random() < 0.5:
                await self._wait(process)
        finally:
            if limiter is not None:
                limiter.release_on_behalf_of(token)
        return result.unwrap()

    def start_call(self, call: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Replace `lithos.kernel.actors.threads.start_call`."""

        async def run() -> None:
            process = PROCESS.get()
            try:
                await self._wait(process)
                result = self._do(process, call)
                await self._wait(process)
                then(result)
            except Killed:
                return

        trio.lowlevel.spawn_system_task(run, context=copy_context())

    async def _wait(self, process: Process | None) -> None:
        if process is not None and process.is_dead:
            raise Killed
        pause, self.slept = self.pace.draw(self.random) + self.slept, 0.0
        await self.clock.sleep(pause)
        if process is not None and process.is_dead:
            raise Killed

    def _do(self, process: Process | None, call: Callable[[], Any]) -> outcome.Outcome[Any]:
        self.calls += 1
        with running(process):
            try:
                result: outcome.Outcome[Any] = outcome.Value(call())
            except Exception as failure:  # noqa: BLE001 - it is the caller's
                result = outcome.Error(failure)
        if process is not None and process.is_dead:
            raise Killed
        return result


_running: list[Process | None] = []


@contextmanager
def running(process: Process | None) -> Iterator[None]:
    """Run the block as a part of this simulated process."""
    _running.append(process)
    try:
        yield
    finally:
        _running.pop()


def running_process() -> Process | None:
    """Return the process whose call runs in a worker thread. Return None if no such call runs."""
    return _running[-1] if _running else None


class _Pool:
    """Substitute for the `ThreadPoolExecutor` of note files. It runs calls one after another in any order."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        waiting = list(items)
        results: dict[int, Any] = {}
        for number in self._random.sample(range(len(waiting)), len(waiting)):
            results[number] = work(waiting[number])
        return iter([results[number] for number in range(len(waiting))])

    def shutdown(self, *_: Any, **__: Any) -> None:
        """Do nothing, because the pool has no threads."""


@define(eq=False)
class Chance:
    """Independent streams of random numbers from one seed. Each kind of decision has its own stream."""

    seed: int
    streams: dict[str, Random] = field(factory=dict)

    def of(self, what: str) -> Random:
        """Return the stream for one kind of decision."""
        if what not in self.streams:
            self.streams[what] = Random(f"{self.seed} {what}")
        return self.streams[what]


class _DatetimeKind(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


def _datetime_of(clock: SimulatedClock) -> type:
    class Simulated(datetime, metaclass=_DatetimeKind):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return clock.wall().astimezone(tz)

    return Simulated


@contextmanager
def simulated(clock: SimulatedClock, chance: Chance, workers: Workers) -> Iterator[None]:
    """During the block, let the seed decide the product's time and random numbers."""
    ids = chance.of("ids")
    scheduling = trio._core._run
    seconds = lambda: clock.now  # noqa: E731 - one of a row of the like
    wall = lambda: clock.wall_ns() / 1e9  # noqa: E731
    fake_time = SimpleNamespace(
        **{
            name: getattr(time, name)
            for name in ("strftime", "gmtime", "localtime", "time_ns", "struct_time")
        },
        time=wall,
        monotonic=seconds,
        perf_counter=seconds,
        process_time=seconds,
        sleep=lambda seconds: _sleep(workers, seconds),
    )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduling, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        patch.setattr(scheduling, "_r", chance.of("scheduling"))
        patch.setattr(trio.to_thread, "run_sync", workers.run_sync)
        patch.setattr(lithos.search.indexing.vector_queries, "start_call", workers.start_call)
        patch.setattr(lithos.search.service.duplicates, "start_call", workers.start_call)
        patch.setattr(
            lithos.notes.files.files, "ThreadPoolExecutor", lambda *_, **__: _Pool(chance.of("pool"))
        )
        patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=ids.getrandbits(128), version=4))
        patch.setattr(os, "urandom", ids.randbytes)
        answers = {"module": fake_time, "seconds": seconds, "wall": wall, "wall_ns": clock.wall_ns}
        for module, name, what in _askers():
            patch.setattr(module, name, answers[what])
        now = _datetime_of(clock)
        for module in (
            lithos.search.index.fulltext,
            lithos.search.index.vectors,
            lithos.search.index.vector_files,
        ):
            patch.setattr(module, "datetime", now)
        patch.setattr(lithos.app.stores, "utc_now", clock.wall)
        nothing = lambda *_: None  # noqa: E731
        patch.setattr(
            lithos.app.server,
            "gc",
            SimpleNamespace(
                **dict.fromkeys(("enable", "disable", "freeze", "unfreeze", "set_threshold"), nothing)
            ),
        )
        patch.setattr(lithos.app.server, "keep_returning", trio.sleep_forever)
        was_collecting = gc.isenabled()
        gc.disable()  # garbage collections do not depend on the seed alone
        try:
            yield
        finally:
            if was_collecting:
                gc.enable()


@functools.cache
def _askers() -> list[tuple[Any, str, str]]:
    """Return the names through which product modules get the time: module, name in it, and result."""
    kinds = {
        time.perf_counter: "seconds",
        time.monotonic: "seconds",
        time.process_time: "seconds",
        time.time: "wall",
        time.time_ns: "wall_ns",
    }
    found: list[tuple[Any, str, str]] = []
    for module_name, module in sorted(sys.modules.items()):
        if module_name.partition(".")[0] == "lithos":
            for name, value in vars(module).items():
                if value is time:
                    found.append((module, name, "module"))
                elif isinstance(value, BuiltinFunctionType) and value in kinds:
                    found.append((module, name, kinds[value]))
    return found


def _sleep(workers: Workers, seconds: float) -> None:
    """Replace `time.sleep` in worker threads. The result is delayed by this time."""
    workers.slept += seconds
