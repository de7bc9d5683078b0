"""Applications whose libraries are loaded while others are served already.

Loading the MCP SDK and Quart takes most of a second of processor time, and a plain tool call needs neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import trio

from lithos.actors.blocking import Threads

T = TypeVar("T")
#: Seconds that something may wait for its application: far more than any disk takes to load it.
PATIENCE = 60.0


class Late(Generic[T]):
    """Something that is made in a worker thread; whoever needs it waits until then."""

    def __init__(self, make: Callable[[], T], wanted: trio.Event) -> None:
        """`wanted` is set when somebody waits for it."""
        self._make = make
        self._wanted = wanted
        self._given: T | None = None
        self._is_given = trio.Event()

    async def make(self) -> T:
        """Make it, in a worker thread; what the making raises is raised here."""
        return await Threads().run(self._make)

    def give(self, made: T) -> None:
        """Let those who wait have it."""
        self._given = made
        self._is_given.set()

    async def get(self) -> T:
        """It, as soon as it is there; raises `trio.TooSlowError` when it does not come."""
        if self._given is None:
            self._wanted.set()
            with trio.fail_after(PATIENCE):
                await self._is_given.wait()
        assert self._given is not None
        return self._given
