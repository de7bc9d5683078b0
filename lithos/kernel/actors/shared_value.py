"""A value that is made for all who ask within some seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio
from attrs import define, field

T = TypeVar("T")


@define(eq=False)
class Shared(Generic[T]):
    """Makes a value when a caller asks, and gives it to all callers for `age` seconds.

    It stays longer where making it took long: `times` as many seconds as that took.
    """

    _make: Callable[[], Awaitable[T]]
    _age: float
    _times: float = 0.0
    #: The value that was made last.
    last: T | None = field(default=None, init=False)
    _good_until: float = field(default=0.0, init=False)
    _making: trio.Lock = field(factory=trio.Lock, init=False)

    async def latest(self) -> T:
        """The value, made now unless it is young enough; callers that come meanwhile wait for it."""
        async with self._making:
            if self.last is None or trio.current_time() >= self._good_until:
                began = trio.current_time()
                self.last = await self._make()
                ended = trio.current_time()
                self._good_until = ended + max(self._age, (ended - began) * self._times)
            return self.last
