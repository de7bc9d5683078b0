"""The thread port: blocking store calls run in worker threads, off the event loop; long loops yield to it.

Every store that writes has its own limiter of one, so its calls never overlap; reads share a
limiter of two. A thread job takes and returns values and is never abandoned, since a write that
continues unseen is worse than a late one. Tests use `Inline`, which runs the call at once.
`slices` is for loops over very many notes on the event loop itself: cooperative, one slice per turn.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Final, Protocol, TypeVar

import trio
from attrs import frozen
from outcome import Outcome, capture

T = TypeVar("T")


class Blocking(Protocol):
    """Port: runs a blocking call where it does not block the event loop."""

    async def run(self, call: Callable[[], T]) -> T:
        """Await the call; returns its result, or raises its exception unchanged."""


def start_call(call: Callable[[], T], then: Callable[[Outcome[T]], None]) -> None:
    """Start a call in a worker thread; the callback `then` gets its outcome on the event loop.

    For callers that do not await it: there is no task and no limiter. A call must be short and read-only,
    since it is not joined when the event loop ends.
    """
    token = trio.lowlevel.current_trio_token()

    def deliver(outcome: Outcome[T]) -> None:
        with suppress(trio.RunFinishedError):  # the event loop has ended, and with it every waiter
            token.run_sync_soon(then, outcome)

    trio.lowlevel.start_thread_soon(call, deliver)


@frozen
class _Prompt:
    """A limiter that grants a free place at once: the limiter of trio first takes a turn of the event loop.

    Such a turn may take milliseconds while searches run, and a write has several thread jobs in sequence.
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
    """Production adapter: trio worker threads with a capacity limiter of their own."""

    def __init__(self, at_once: int = 1) -> None:
        self._prompt = _Prompt(trio.CapacityLimiter(at_once))

    async def run(self, call: Callable[[], T]) -> T:
        # Trio documents that any object with these two methods is accepted; its annotation names
        # its own class.
        return await trio.to_thread.run_sync(call, limiter=self._prompt)  # type: ignore[arg-type]


class NoteThreads(Threads):
    """The two threads that walk and compare notes for the calls of clients."""

    def __init__(self) -> None:
        super().__init__(2)


#: A background thread gets a third of the share of another thread on a busy core (Linux: 1.25 to the 5th).
#: With 10 a transformer would take an hour for 10,000 notes while clients search without a pause.
NICENESS: Final = 5


class BackgroundThread:
    """Production adapter: one low-priority thread per call, for long jobs that no caller waits for.

    Calls never overlap. The priority of a thread cannot be raised again, so it is not taken from trio's pool.
    On systems without thread priorities (not Linux) it is an ordinary thread.
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

        # Log lines of the thread name the vault for which it runs.
        threading.Thread(target=copy_context().run, args=[work], name=self._name).start()
        with trio.CancelScope(shield=True):  # never abandoned
            await ended.wait()
        return outcomes[0].unwrap()


#: On other systems a priority belongs to a process, and a thread id may be the id of another process.
_THREADS_HAVE_PRIORITIES: Final = sys.platform == "linux"


def _lower_priority() -> None:
    if _THREADS_HAVE_PRIORITIES:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class Inline:
    """Test double for a mock clock: no thread, but still a checkpoint."""

    async def run(self, call: Callable[[], T]) -> T:
        await trio.lowlevel.checkpoint()
        return call()


#: Notes processed in one turn of the event loop, about two milliseconds.
SLICE: Final = 250


async def slices(items: Sequence[T], size: int = SLICE) -> AsyncGenerator[Sequence[T], None]:
    """Yield `items` in slices with a checkpoint in between; other tasks may change their source meanwhile.

    `size`: items of one slice, for operations that take much less, or much more, time than usual.
    """
    for start in range(0, len(items), size):
        if start:
            await trio.lowlevel.checkpoint()
        yield items[start : start + size]
