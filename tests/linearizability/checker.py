"""Linearizability checker. It searches for an order of operations that fits their times and the model.

The algorithm is the search of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993) with the
memory of Lowe ("Testing for Linearizability", 2017): a pair of linearised set and state is never tried twice.
As in Knossos and Porcupine, a history is first split by object. The history is linearizable if the history of
each object is linearizable (P-compositionality, Horn and Kroening 2015).

An operation with a lost answer may have happened at any time after its call, or not at all. Its `returned` is
`NEVER` and its result is `UNKNOWN`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, Protocol

from attrs import frozen

#: Return time of an operation with a lost answer.
NEVER: Final = 2**62
#: Result of an operation with a lost answer.
UNKNOWN: Final = "unknown"
#: Maximum number of pairs of set and state to try. Beyond this number, a history counts as undecided.
LIMIT: Final = 2_000_000


@frozen
class Operation:
    """A call by one client. Its times count the recorded events."""

    key: str
    client: str
    name: str
    argument: Any
    result: Any
    called: int
    returned: int

    @property
    def is_known(self) -> bool:
        return self.returned != NEVER


class Model(Protocol):
    """Behaviour of one kind of object."""

    def initial(self) -> Hashable:
        """Return the state before the first operation."""
        ...

    def step(self, state: Any, operation: Operation) -> Iterable[Hashable]:
        """Return the possible states after an operation. Return no state if the result is impossible."""
        ...


class Undecided(Exception):
    """Raised if a history has too many concurrent operations."""


@frozen
class Violation:
    """An object without a valid order.

    `longest` is the longest partial order, and `state` is the state after it.
    """

    key: str
    history: Sequence[Operation]
    longest: Sequence[Operation]
    state: Any

    def __str__(self) -> str:
        explained = {id(operation) for operation in self.longest}
        lines = [f"{self.key} is not linearizable; after the best order of {len(self.longest)}: {self.state}"]
        lines += [f"  {_told(operation)}" for operation in self.longest[-8:]]
        left = [
            operation for operation in self.history if id(operation) not in explained and operation.is_known
        ]
        lines += ["not explained:", *(f"  {_told(operation)}" for operation in left[:8])]
        return "\n".join(lines)


def _told(operation: Operation) -> str:
    until = operation.returned if operation.is_known else "?"
    return (
        f"[{operation.called}..{until}] {operation.client}: {operation.name} {operation.argument} "
        f"-> {operation.result}"
    )


def check(history: Iterable[Operation], model: Model) -> list[Violation]:
    """Return the objects whose part of the history is not linearizable."""
    parts: dict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        parts[operation.key].append(operation)
    found = (check_one(key, part, model) for key, part in parts.items())
    return [violation for violation in found if violation is not None]


def check_one(key: str, history: Sequence[Operation], model: Model) -> Violation | None:
    """Search for a valid order of the operations of one object. Raise `Undecided`."""
    operations = sorted(history, key=lambda operation: operation.called)
    needed = sum(1 << number for number, operation in enumerate(operations) if operation.is_known)
    first = (0, model.initial())
    seen: set[tuple[int, Any]] = {first}
    waiting: list[tuple[tuple[int, Any], tuple[Any, ...] | None]] = [(first, None)]
    best: tuple[int, Any, tuple[Any, ...] | None] = (0, first[1], None)
    while waiting:
        (done, state), order = waiting.pop()
        if done & needed == needed:
            return None
        if done.bit_count() > best[0]:
            best = (done.bit_count(), state, order)
        for number in reversed(_possible(operations, done)):
            operation = operations[number]
            for following in model.step(state, operation):
                if following == state and not operation.is_known:
                    continue  # this state equals the state without the operation
                pair = (done | 1 << number, following)
                if pair not in seen:
                    seen.add(pair)
                    waiting.append((pair, (operation, order)))
        if len(seen) > LIMIT:
            raise Undecided(f"{key}: {len(operations)} operations")
    return Violation(key, operations, _unfold(best[2]), best[1])


def _possible(operations: Sequence[Operation], done: int) -> list[int]:
    """Return the operations that may come next. They were called before any remaining operation returned."""
    found: list[int] = []
    until = NEVER
    number = (~done & (done + 1)).bit_length() - 1  # this is the first operation that is not done
    while number < len(operations) and operations[number].called <= until:
        if not done >> number & 1:
            found.append(number)
            until = min(until, operations[number].returned)
        number += 1
    return [number for number in found if operations[number].called <= until]


def _unfold(order: tuple[Any, ...] | None) -> list[Operation]:
    found: list[Operation] = []
    while order is not None:
        found.append(order[0])
        order = order[1]
    return found[::-1]
