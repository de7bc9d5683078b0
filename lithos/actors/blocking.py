"""The thread port: blocking store calls leave the event loop through here.

Every store that writes has its own limiter of one, so its calls never overlap; reads share a
limiter of two. A thread job takes and returns values and is never abandoned, since a write that
goes on unseen is worse than one that is late. Tests use `Inline`, which runs the call at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import trio

T = TypeVar("T")


class Blocking(Protocol):
    """Runs a blocking call somewhere it does not hold up the event loop."""

    async def run(self, call: Callable[[], T]) -> T:
        """The call's result; its exception is raised as it is."""
        ...


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
