"""Recording of a history: callers, calls, times and results."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import trio
from attrs import define, field

from tests.e2e.clients import Gone
from tests.linearizability.checker import NEVER, UNKNOWN, Operation

#: Function that calls a tool. It raises `Gone` if the answer is lost.
Call = Callable[..., Awaitable[dict[str, Any]]]
#: Function that converts a tool's answer for the model.
Reading = Callable[[dict[str, Any]], Any]
#: Part of the message of a server that does not know the result. After an actor crash, the message is
#: different.
TOO_LONG: Final = "The outcome of this change is unknown: it took too long."


@define(eq=False)
class History:
    """Recorded operations. Their times are positions in the order of all observed events.

    A counter serves as the clock, because one event loop observes all events.
    """

    operations: list[Operation] = field(factory=list)
    lost: int = 0
    _clock: Iterator[int] = field(factory=lambda: itertools.count(1))

    async def add(
        self, key: str, client: str, name: str, argument: Any, call: Callable[[], Awaitable[dict[str, Any]]],
        read: Reading, patience: float = 60.0,
    ) -> Any:  # fmt: skip
        """Record one call. Raise `Gone` if its answer is lost or takes more than `patience` seconds.

        An answer that reports an unknown result, for example from a hanging disk, also counts as lost.
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
        """Record an action of this process. No other operation is observed during the action."""
        called = next(self._clock)
        act()
        self.operations.append(Operation(key, client, name, argument, ("ok",), called, next(self._clock)))

    def of(self, names: str) -> list[Operation]:
        """Return the operations whose key starts with `names`."""
        return [operation for operation in self.operations if operation.key.startswith(names)]
