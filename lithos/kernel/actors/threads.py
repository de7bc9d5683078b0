"""The thread port, which runs blocking calls of stores in worker threads.

`slices` lets other tasks run during long loops.

Every store that writes has its own limiter with one slot, so its calls never overlap. All reads share a
limiter with two slots. A thread job takes and returns values. It is never abandoned, because a write that
continues unnoticed is worse than a late write. Tests use `Inline`, which runs the call at once. `slices` is
for loops over very many notes on the event loop itself, and handles one slice of notes per turn.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Final, Protocol, TypeVar

import trio
from attrs import frozen
from outcome import Outcome, capture

from lithos.kernel.operating_system import set_niceness

T = TypeVar("T")


class Blocking(Protocol):
    """A port that runs a blocking call without blocking the event loop."""

    async def run(self, call: Callable[[], T]) -> T:
        """Run the call and return its result, or raise its exception unchanged."""


def start_call(call: Callable[[], T], then: Callable[[Outcome[T]], None]) -> None:
    """Start a call in a worker thread. When the call ends, the event loop calls `then` with its outcome.

    Use this function if no task awaits the call. There is no limiter. The call must be short and read-only,
    because the thread is not joined when the event loop ends.
    """
    token = trio.lowlevel.current_trio_token()

    def deliver(outcome: Outcome[T]) -> None:
        with suppress(trio.RunFinishedError):  # The event loop has ended, and with it all waiting tasks.
            token.run_sync_soon(then, outcome)

    trio.lowlevel.start_thread_soon(call, deliver)


@frozen
class _Prompt:
    """A limiter that grants a free slot immediately. Trio's own limiter first takes a turn of the event loop.

    A turn of the event loop may take milliseconds while searches run, and one write runs several thread jobs
    in sequence.
    """

    _limiter: trio.CapacityLimiter

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        try:
            self._limiter.acquire_on_behalf_of_nowait(borrower)
        except trio.WouldBlock:
            await self._limiter.acquire_on_behalf_of(borrower)

    def release_on_behalf_of(self, borrower: object) -> None:
        self._limiter.release_on_behalf_of(borrower)


class Threads:
    """Production adapter: Trio worker threads with a separate capacity limiter."""

    def __init__(self, at_once: int = 1) -> None:
        self._prompt = _Prompt(trio.CapacityLimiter(at_once))

    async def run(self, call: Callable[[], T]) -> T:
        # Trio documents that it accepts any object with these two methods, but its annotation requires Trio's
        # own class.
        return await trio.to_thread.run_sync(call, limiter=self._prompt)  # type: ignore[arg-type]


class NoteThreads(Threads):
    """The two worker threads that scan and compare notes for client calls."""

    def __init__(self) -> None:
        super().__init__(2)


#: Niceness of background threads. On a busy core, such a thread gets a third of another thread's share
#: (Linux: 1.25 to the 5th). With a niceness of 10, a transformer would take an hour for 10,000 notes while
#: clients search without a pause.
NICENESS: Final = 5


class BackgroundThread:
    """Production adapter: one low-priority thread per call, for long jobs without a waiting caller.

    Calls never overlap. The thread is not taken from Trio's pool, because the priority of a thread cannot be
    raised again. On systems without thread priorities (all except Linux), the thread has normal priority.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._one = trio.Lock()

    async def run(self, call: Callable[[], T]) -> T:
        async with self._one:
            return await self._run(call)

    async def _run(self, call: Callable[[], T]) -> T:
        token, ended = trio.lowlevel.current_trio_token(), trio.Event()
        outcomes: list[Outcome[T]] = []

        def work() -> None:
            _lower_priority()
            outcomes.append(capture(call))
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(ended.set)

        # Through the copied context, the log lines of the thread name its vault.
        threading.Thread(target=copy_context().run, args=[work], name=self._name).start()
        with trio.CancelScope(shield=True):  # The job is never abandoned.
            await ended.wait()
        return outcomes[0].unwrap()


#: On other systems a priority applies to a whole process, and a thread id may equal the id of another
#: process.
_THREADS_HAVE_PRIORITIES: Final = sys.platform == "linux"


def _lower_priority() -> None:
    if _THREADS_HAVE_PRIORITIES:
        with suppress(OSError):
            set_niceness(threading.get_native_id(), NICENESS)


class Inline:
    """A test double for tests with a mock clock. It uses no thread, but is still a checkpoint."""

    async def run(self, call: Callable[[], T]) -> T:
        await trio.lowlevel.checkpoint()
        return call()


#: Number of notes to process in one turn of the event loop. Such a turn takes about two milliseconds.
SLICE: Final = 250


async def slices(items: Sequence[T], size: int = SLICE) -> AsyncGenerator[Sequence[T], None]:
    """Yield `items` in slices, with a checkpoint before every slice except the first.

    Other tasks may change the source between two slices.

    `size` is the number of items per slice. Set it if the operation is much faster or slower than usual.
    """
    for start in range(0, len(items), size):
        if start:
            await trio.lowlevel.checkpoint()
        yield items[start : start + size]
