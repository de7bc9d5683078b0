"""A cached value that all callers share for some seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio
from attrs import define, field

T = TypeVar("T")


@define(eq=False)
class Shared(Generic[T]):
    """A cache that computes a value on request and returns it to all callers for `age` seconds.

    If the computation took long, the value is cached longer, for `times` multiplied by the duration of the
    computation.
    """

    _make: Callable[[], Awaitable[T]]
    _age: float
    _times: float = 0.0
    #: The most recently computed value.
    last: T | None = field(default=None, init=False)
    _good_until: float = field(default=0.0, init=False)
    _making: trio.Lock = field(factory=trio.Lock, init=False)

    async def latest(self) -> T:
        """Return the cached value if it is recent enough. Otherwise compute a new value.

        Concurrent callers wait for the result of the same computation.
        """
        async with self._making:
            if self.last is None or trio.current_time() >= self._good_until:
                began = trio.current_time()
                self.last = await self._make()
                ended = trio.current_time()
                self._good_until = ended + max(self._age, (ended - began) * self._times)
            return self.last
