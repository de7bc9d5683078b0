"""Admission control for tool calls. While a change is running, heavy reads run one at a time.

In one turn of the event loop, every ready task runs for a moment. A search computes for some milliseconds in
a few turns. A change computes little but needs dozens of turns, because it passes through several actors and
threads, which also wait for the interpreter lock (GIL). If there are many searches, each turn of the change
also contains a part of every search. While a change is running, the next heavy read therefore starts only
after the previous heavy read has ended, in FIFO order. Without a change there is no limit, because concurrent
searches share passes over the vectors and turns of the event loop.

Every slot becomes free automatically. A read occupies its slot for at most `LENT` seconds, because a longer
read is waiting for a thread, a model or a late index. A nested call or another wait therefore cannot cause a
deadlock. A change has priority for at most `SERVED` seconds, so that an uninterrupted series of changes
cannot block the reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import Final

import trio
from attrs import define, field

#: Maximum number of heavy reads that run while a change is running.
BESIDE: Final = 1
#: Maximum seconds for which a heavy read occupies its slot. Several searches could run in this time.
LENT: Final = 0.015
#: Maximum seconds for which a change has priority. A normal change takes a tenth of this time.
SERVED: Final = 0.2


@define(eq=False)
class _Slot:
    """Entry for a running change, or for a heavy read that is running or waiting."""

    admitted: trio.Event = field(factory=trio.Event)
    #: Scope with a deadline. At this time, a slot may become free although no read has ended.
    patience: trio.CancelScope = field(factory=trio.CancelScope)


class Admission:
    """Admission control for tool calls.

    Heavy reads wait for a free slot, and changes are admitted immediately.

    Use it only on the event loop.
    """

    def __init__(self, beside: int = BESIDE, lent: float = LENT) -> None:
        """Create the admission control.

        `beside` limits the heavy reads during a change, and `lent` is the seconds for which a read counts.
        """
        self._beside = beside
        self._lent = lent
        self._waiting: deque[_Slot] = deque()
        #: Time at which each read gives up its slot, in order of admission.
        self._reading: dict[_Slot, float] = {}
        self._changing: dict[_Slot, float] = {}

    @property
    def waiting(self) -> int:
        """Return the number of waiting heavy reads."""
        return len(self._waiting)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Wait for a slot, then run the block as a heavy read."""
        slot = _Slot()
        self._waiting.append(slot)
        try:
            self._let_in()
            while not slot.admitted.is_set():
                with slot.patience:
                    await slot.admitted.wait()
                slot.patience = trio.CancelScope()
                self._let_in()
            yield
        finally:
            if slot.admitted.is_set():
                self._reading.pop(slot, None)
            else:
                self._waiting.remove(slot)
            self._let_in()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Run the block as a change, which has priority."""
        slot = _Slot()
        self._changing[slot] = trio.current_time() + SERVED
        try:
            yield
        finally:
            self._changing.pop(slot, None)
            self._let_in()

    def _let_in(self) -> None:
        """Admit waiting reads while there are free slots, and set the time of the next check."""
        now = trio.current_time()
        _drop_ended(self._changing, now)
        _drop_ended(self._reading, now)
        while self._waiting and (not self._changing or len(self._reading) < self._beside):
            slot = self._waiting.popleft()
            self._reading[slot] = now + self._lent
            slot.admitted.set()
        if self._waiting:
            self._waiting[0].patience.deadline = min(_next_end(self._changing), _next_end(self._reading))


def _drop_ended(lent: dict[_Slot, float], now: float) -> None:
    while lent and _next_end(lent) <= now:
        del lent[next(iter(lent))]


def _next_end(lent: dict[_Slot, float]) -> float:
    return next(iter(lent.values()), inf)
