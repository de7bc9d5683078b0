"""Admission control of tool calls: while a change is served, heavy reads run one at a time.

A turn of the event loop runs a piece of every task that is ready. A search computes for some milliseconds in
a few pieces; a change computes little but takes dozens of turns, as it is handed from actor to actor and to
threads, each of which also waits for the interpreter (GIL). While many searches run, each turn of the change
holds a piece of every search. So while a change is being served, the next heavy read begins only when the
one before has ended; the others wait parked, first come, first served (FIFO). Without a change there is no
limit: searches that run together share passes over the vectors and turns of the event loop.

Every claim ends automatically. A read counts for at most `LENT` seconds: one that holds its slot for longer
waits for something else (a thread, a model that is loaded, a late index). So nothing that a call waits for,
be it another call inside it, can block the rest (deadlock). A change counts for at most `SERVED` seconds.
Reads are never stopped altogether: changes without a pause would leave them too little (starvation).
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
#: Seconds for which a heavy read counts: some searches' worth.
LENT: Final = 0.015
#: Seconds for which one change is given priority; a healthy one takes a tenth of that.
SERVED: Final = 0.2


@define(eq=False)
class _Slot:
    """A call that counts, or waits until it may begin."""

    admitted: trio.Event = field(factory=trio.Event)
    #: Its deadline is when a slot may become free although no reader has ended.
    patience: trio.CancelScope = field(factory=trio.CancelScope)


class Admission:
    """Admits heavy reads when there is a free slot, and changes immediately. Used on the event loop only."""

    def __init__(self, beside: int = BESIDE, lent: float = LENT) -> None:
        """`beside`: maximum number of heavy reads while a change runs; each counts for `lent` seconds."""
        self._beside = beside
        self._lent = lent
        self._waiting: deque[_Slot] = deque()
        #: The time until which each read counts, in order of admission.
        self._reading: dict[_Slot, float] = {}
        self._changing: dict[_Slot, float] = {}

    @property
    def waiting(self) -> int:
        """How many heavy reads wait (queue depth)."""
        return len(self._waiting)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Run the block as a heavy read: as soon as it may begin."""
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
        """Admit as many waiting reads as fit, and set the time of the next check."""
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
