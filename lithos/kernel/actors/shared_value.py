"""Cached value that all callers share for some seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio
from attrs import define, field

T = TypeVar("T")


@define(eq=False)
class Shared(Generic[T]):
    """Computes a value when a caller needs it, and returns it to all callers for `age` seconds.

    A value that took long to compute is kept longer: `times` multiplied by the duration of the computation.
    """

    _make: Callable[[], Awaitable[T]]
    _age: float
    _times: float = 0.0
    #: The value that was computed last.
    last: T | None = field(default=None, init=False)
    _good_until: float = field(default=0.0, init=False)
    _making: trio.Lock = field(factory=trio.Lock, init=False)

    async def latest(self) -> T:
        """Return the cached value if it is recent enough, else compute it.

        Concurrent callers wait for the result.
        """
        async with self._making:
            if self.last is None or trio.current_time() >= self._good_until:
                began = trio.current_time()
                self.last = await self._make()
                ended = trio.current_time()
                self._good_until = ended + max(self._age, (ended - began) * self._times)
            return self.last
