"""A history while it is made: callers, calls, times and results."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import trio
from attrs import define, field

from tests.e2e.clients import Gone
from tests.linearizability.checker import NEVER, UNKNOWN, Operation

#: Calls a tool; raises `Gone` when the answer is lost.
Call = Callable[..., Awaitable[dict[str, Any]]]
#: The meaning of a tool's answer for the model.
Reading = Callable[[dict[str, Any]], Any]
#: The answer of a server with an unknown result; the answer of a crashed actor differs.
TOO_LONG: Final = "The outcome of this change is unknown: it took too long."


@define(eq=False)
class History:
    """Operations with the places of their beginning and end in the order of everything that was seen.

    One event loop sees it all, so a counter is a clock.
    """

    operations: list[Operation] = field(factory=list)
    lost: int = 0
    _clock: Iterator[int] = field(factory=lambda: itertools.count(1))

    async def add(
        self, key: str, client: str, name: str, argument: Any, call: Callable[[], Awaitable[dict[str, Any]]],
        read: Reading, patience: float = 60.0,
    ) -> Any:  # fmt: skip
        """One call. Raises `Gone` when its answer is lost, or does not come within `patience` seconds.

        So it does when the server says itself that it waited too long to know: on a disk that hangs.
        """
        called = next(self._clock)
        try:
            with trio.fail_after(patience):
                answer = await call()
            if TOO_LONG in answer.get("message", ""):
                raise Gone
        except (Gone, trio.TooSlowError) as failure:
            self.lost += 1
            self.operations.append(Operation(key, client, name, argument, UNKNOWN, called, NEVER))
            raise Gone from failure
        result = read(answer)
        self.operations.append(Operation(key, client, name, argument, result, called, next(self._clock)))
        return result

    def at_once(self, key: str, client: str, name: str, argument: Any, act: Callable[[], object]) -> None:
        """An action of this process, between two observations of the others."""
        called = next(self._clock)
        act()
        self.operations.append(Operation(key, client, name, argument, ("ok",), called, next(self._clock)))

    def of(self, names: str) -> list[Operation]:
        """The operations whose key begins so."""
        return [operation for operation in self.operations if operation.key.startswith(names)]
