"""The thread port: blocking store calls leave the event loop through here.

Every store that writes has its own limiter of one, so its calls never overlap; reads share a
limiter of two. A thread job takes and returns values and is never abandoned, since a write that
goes on unseen is worse than one that is late. Tests use `Inline`, which runs the call at once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

import trio
from outcome import Outcome

T = TypeVar("T")


class Blocking(Protocol):
    """Runs a blocking call somewhere it does not hold up the event loop."""

    async def run(self, call: Callable[[], T]) -> T:
        """The call's result; its exception is raised as it is."""
        ...


def start_call(call: Callable[[], T], then: Callable[[Outcome[T]], None]) -> None:
    """Begin a call in a worker thread; `then` gets its outcome on the event loop.

    For who has something else to do meanwhile: there is no task to wait in. A call must be short and change
    nothing, since nobody waits for it when the event loop ends.
    """
    token = trio.lowlevel.current_trio_token()

    def deliver(outcome: Outcome[T]) -> None:
        with suppress(trio.RunFinishedError):  # nobody is there any more who could want it
            token.run_sync_soon(then, outcome)

    trio.lowlevel.start_thread_soon(call, deliver)


class Threads:
    """Worker threads with a limiter of their own."""

    def __init__(self, at_once: int = 1) -> None:
        self._limiter = trio.CapacityLimiter(at_once)

    async def run(self, call: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(call, limiter=self._limiter)


class Inline:
    """The twin for tests on a mock clock: no thread, but still a checkpoint."""

    async def run(self, call: Callable[[], T]) -> T:
        await trio.lowlevel.checkpoint()
        return call()
