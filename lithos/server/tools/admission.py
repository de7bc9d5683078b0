"""Admission control of tool calls: while a change is served, heavy reads run one at a time.

One turn of the event loop runs a piece of every ready task. A search computes for some milliseconds in a few
pieces. A change computes little but needs dozens of turns, because it passes through several actors and
threads, and each also waits for the interpreter lock (GIL). With many searches, each turn of the change
includes a piece of every search. So while a change is being served, the next heavy read starts only after the
previous one has ended, in FIFO order. Without a change there is no limit, because concurrent searches share
passes over the vectors and turns of the event loop.

Every slot is freed automatically. A read occupies its slot for at most `LENT` seconds, because a longer read
is waiting for a thread, a model or a late index. A nested call or any other wait therefore cannot cause a
deadlock. A change has priority for at most `SERVED` seconds, so that a series of changes without a pause
cannot starve the reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import Final

import trio
from attrs import define, field

#: Maximum number of heavy reads while a change runs.
BESIDE: Final = 1
#: Seconds for which a heavy read occupies its slot: the duration of several searches.
LENT: Final = 0.015
#: Seconds for which one change has priority. A normal change takes a tenth of this time.
SERVED: Final = 0.2


@define(eq=False)
class _Slot:
    """A running change, or a heavy read that occupies a slot or waits for one."""

    admitted: trio.Event = field(factory=trio.Event)
    #: Its deadline is the time when a slot may become free although no read has ended.
    patience: trio.CancelScope = field(factory=trio.CancelScope)


class Admission:
    """Admission control that admits heavy reads when a slot is free, and changes immediately.

    Use it only on the event loop.
    """

    def __init__(self, beside: int = BESIDE, lent: float = LENT) -> None:
        """Set the maximum number of heavy reads while a change runs, and the seconds that each counts."""
        self._beside = beside
        self._lent = lent
        self._waiting: deque[_Slot] = deque()
        #: When each read gives up its slot, in order of admission.
        self._reading: dict[_Slot, float] = {}
        self._changing: dict[_Slot, float] = {}

    @property
    def waiting(self) -> int:
        """Return the number of waiting heavy reads."""
        return len(self._waiting)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Run the block as a heavy read, after waiting for a slot."""
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
        """Run the block as a change, with priority."""
        slot = _Slot()
        self._changing[slot] = trio.current_time() + SERVED
        try:
            yield
        finally:
            self._changing.pop(slot, None)
            self._let_in()

    def _let_in(self) -> None:
        """Admit waiting reads while slots are free, and set the time of the next check."""
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
