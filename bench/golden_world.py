"""A deterministic environment for `bench.golden`. It fixes time, ids, threads and index merges.

`bench.golden_world` names no module of the product, so that it still works when the product's modules move.
Call `World.enter` before the first import of `lithos`, because `World.enter` replaces names in the standard
library, Trio and tantivy.

* Time: if no task can run, Trio's clock jumps to the next deadline. The time of day is `EPOCH` plus the
  elapsed whole seconds. A durable file gets this time as its modification time. `perf_counter` is not
  replaced.
* Ids: `uuid4`, `os.urandom` and `secrets` use random numbers that restart with each step.
* Threads: calls to worker threads run immediately on the event loop. Tasks run in the order in which they
  were scheduled. If tantivy would merge segments in a thread, the commit waits for the merge.
"""

from __future__ import annotations

import ctypes
import gc
import io
import math
import os
import random
import signal
import socket
import stat
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import partial
from typing import Any, Final

import outcome
import tantivy
import trio
from attrs import define, field, frozen

EPOCH: Final = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
#: Seconds to poll the sockets before time may jump, while a caller waits for an answer.
POLL: Final = 0.001
#: Number of segments at which tantivy begins a merge.
MERGING: Final = 8
Driver = Callable[[], Awaitable[None]]


@frozen
class Done:
    """The result of a command."""

    code: Any
    out: str
    err: str

    @property
    def text(self) -> str:
        return f"exit code {self.code}\n--- stdout\n{self.out}--- stderr\n{self.err}"


@define(eq=False)
class World:
    """The virtual seconds since `EPOCH`, and the current step, which determines the random numbers."""

    now: float = 0.0
    #: Virtual second up to which the clock may jump.
    limit: float = math.inf
    steps: int = 0
    #: True while a caller waits for an answer on a socket.
    is_asking: bool = False
    _streams: dict[str, random.Random] = field(factory=dict)
    _synced: int = 0
    #: Task that runs concurrently in the next `trio.run` of the main thread.
    _driver: Driver | None = None

    def wall(self) -> datetime:
        """Return the virtual time of day."""
        return EPOCH + timedelta(seconds=math.floor(self.now))

    def begin_step(self) -> None:
        """Start the next step with new random numbers."""
        self.steps += 1
        self._streams, self.is_asking = {}, True

    def draw(self, what: str) -> random.Random:
        """Return the random numbers of this step for one purpose."""
        if what not in self._streams:
            self._streams[what] = random.Random(f"{self.steps} {what}")
        return self._streams[what]

    async def next_second(self) -> None:
        """Run everything that is due before the next whole second."""
        self.limit, self.is_asking = math.inf, False
        await trio.sleep_until(math.floor(self.now) + 1.0)

    # -- commands ---------------------------------------------------------------------------------

    def run(self, *arguments: str, driver: Driver | None = None, text: str = "") -> Done:
        """Run a command of the product in this process. `driver` runs concurrently on its event loop."""
        from lithos.app.main import main  # noqa: PLC0415 - after `enter`

        self.begin_step()
        self.now, self.limit, self._driver = math.floor(self.now) + 1.0, math.inf, driver
        self.is_asking = False
        held = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            return _captured(lambda: main(list(arguments)), text)
        finally:
            self._driver = None
            for number, handler in held.items():
                signal.signal(number, handler)

    async def run_beside(self, *arguments: str) -> Done:
        """Run a command in a separate thread while the server runs in the current thread."""
        from lithos.app.main import main  # noqa: PLC0415 - after `enter`

        self.begin_step()
        self.limit = math.floor(self.now) + 0.9
        ended, token, results = trio.Event(), trio.lowlevel.current_trio_token(), list[Done]()

        def work() -> None:
            try:
                results.append(_captured(lambda: main(list(arguments))))
            finally:
                token.run_sync_soon(ended.set)

        threading.Thread(target=work).start()
        await ended.wait()
        await self.next_second()
        return results[0]

    # -- replacements -----------------------------------------------------------------------------

    def enter(self) -> None:
        """Replace all sources of time and chance for the rest of the process."""
        _set_on_type(datetime, "now", classmethod(lambda _, tz=None: self._local(tz)))
        _set_on_type(datetime, "utcnow", classmethod(lambda _: self._local(None)))
        _set_on_type(date, "today", classmethod(lambda _: self.wall().date()))
        replaced: dict[Any, dict[str, Any]] = {
            time: {
                "gmtime": lambda seconds=None: _gmtime(self._seconds() if seconds is None else seconds),
                "time": self._seconds,
                "time_ns": lambda: int(self._seconds()) * 1_000_000_000,
            },
            uuid: {"uuid4": lambda: uuid.UUID(int=self.draw("ids").getrandbits(128), version=4)},
            os: {"urandom": lambda size: self.draw("bytes").randbytes(size), "fsync": self._fsync},
            random: {"_urandom": lambda size: self.draw("secrets").randbytes(size)},
            socket: {"gethostname": lambda: "host"},
            tantivy: {"Index": partial(_MergedIndex, tantivy.Index)},
            trio: {"run": self._trio_run},
            trio.lowlevel: {"start_thread_soon": _start_at_once},
            trio._threads: {"start_thread_soon": _start_at_once},
            trio._core._run: {"_ALLOW_DETERMINISTIC_SCHEDULING": True, "_r": _Unshuffled()},
        }
        for module, names in replaced.items():
            for name, value in names.items():
                assert hasattr(module, name), (module, name)
                setattr(module, name, value)

    def _seconds(self) -> float:
        return self.wall().timestamp()

    def _local(self, zone: tzinfo | None) -> datetime:
        return self.wall().replace(tzinfo=None) if zone is None else self.wall().astimezone(zone)

    def _fsync(self, descriptor: int) -> None:
        """Set a known modification time instead of syncing.

        Each such time is later than the previous time.
        """
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            self._synced += 1
            moment = int(self._seconds()) * 1_000_000_000 + self._synced % 1_000_000
            with suppress(OSError):
                os.utime(descriptor, ns=(moment, moment))

    def _trio_run(self, work: Any, *arguments: Any, **options: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return _trio_run(work, *arguments, **options)
        driver, self._driver = self._driver, None

        async def together() -> Any:
            async with trio.open_nursery() as nursery:
                if driver is not None:
                    nursery.start_soon(driver)
                result = await work(*arguments)
                nursery.cancel_scope.cancel()
            return result

        clock = _Clock(self)
        return _trio_run(together, clock=clock, instruments=[clock], **options)


_trio_run, _gmtime = trio.run, time.gmtime


@define(eq=False)
class _Clock(trio.abc.Clock, trio.abc.Instrument):
    """The virtual clock of a `trio.run`. Time passes only if no task can run and no socket has data."""

    _world: World
    _has_polled: bool = False

    def start_clock(self) -> None:
        """Do nothing, because this clock needs no start."""

    def current_time(self) -> float:
        return self._world.now

    def before_task_step(self, task: Any) -> None:
        self._has_polled = False

    def deadline_to_sleep_time(self, deadline: float) -> float:
        if not self._has_polled:
            self._has_polled = True
            return POLL if self._world.is_asking else 0.0
        if deadline > self._world.limit or math.isinf(deadline):
            return 0.05
        self._has_polled = False
        self._world.now = max(self._world.now, deadline)
        return 0.0


class _Unshuffled:
    """Replacement for Trio's random numbers. It keeps the order of the tasks in a batch."""

    def random(self) -> float:
        return 1.0

    def uniform(self, low: float, high: float) -> float:
        return low

    def shuffle(self, batch: list[Any]) -> None:
        """Leave the batch in order."""


def _start_at_once(call: Callable[[], Any], deliver: Callable[[Any], None], name: Any = None) -> None:
    deliver(outcome.capture(call))


class _MergedIndex:
    """A tantivy index whose merges end before a commit returns, because hits and scores depend on them."""

    def __init__(self, kind: Any, *arguments: Any, **named: Any) -> None:
        self._index = kind(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def writer(self, *arguments: Any, **named: Any) -> _MergedWriter:
        return _MergedWriter(self._index, partial(self._index.writer, *arguments, **named))


class _MergedWriter:
    def __init__(self, index: Any, make: Callable[[], Any]) -> None:
        self._index, self._make, self._writer = index, make, make()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def commit(self) -> Any:
        stamp = self._writer.commit()
        self._index.reload()
        if self._index.searcher().num_segments >= MERGING:
            self._writer.wait_merging_threads()
            self._writer = self._make()
        return stamp


def _set_on_type(kind: type, name: str, value: Any) -> None:
    """Set an attribute of a C type, which has no setter. The identity of the type object does not change."""
    (namespace,) = gc.get_referents(kind.__dict__)
    namespace[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _captured(work: Callable[[], Any], text: str = "") -> Done:
    with _standard_streams(text) as (out, err):
        try:
            code: Any = work()
        except SystemExit as left:
            code = left.code
    return Done(code, out.getvalue(), err.getvalue())


@contextmanager
def _standard_streams(text: str) -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Replace the standard streams. stdin reads `text`, and the two output streams are yielded."""
    out, err, stdin = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(text)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            yield out, err
    finally:
        sys.stdin = stdin
