"""Batched vector queries.

`VectorQueries` answers queries in a worker thread. It batches simultaneous queries into one pass, because a
pass over all vectors takes as long for four queries as for a single query. A pass releases the interpreter
lock (GIL), and its data displaces all other data from a core's cache. Meanwhile the event loop runs the
full-text query on the other core. The first query starts a pass, and later queries join the next pass. The
same pass embeds the queries, which takes a transformer 2 to 6 ms.

If a pass takes less time than a switch to a thread, the event loop runs the pass. The pass then answers all
queries whose hits are awaited in the same turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final

import trio
from attrs import define, field, frozen
from outcome import Error, Outcome, Value, capture

from lithos.kernel.actors.threads import start_call
from lithos.kernel.values.errors import IndexFailed
from lithos.search.index.chunk_rows import ABREAST, VectorHit
from lithos.search.indexing.ports import NearestQuery, SearchableVectors
from lithos.search.ranking.calibrations import STATIC
from lithos.text.chunk import spell_dates

#: Timeout of a query in seconds. A pass takes a few milliseconds.
PATIENCE: Final = 10.0


@define(eq=False)
class PendingQuery:
    """A running query. The caller can do other work before it awaits the hits."""

    _outcome: Outcome[list[VectorHit]] | None = None
    #: Key of the model that answers in the calibrations. Decided when the query starts.
    calibration: str = field(default=STATIC, kw_only=True)
    #: Callback that answers the query on the event loop. None means that a thread answers.
    _find_here: Callable[[PendingQuery], Awaitable[None]] | None = field(default=None, kw_only=True)
    _answered: trio.Event = field(factory=trio.Event, init=False)

    async def hits(self) -> list[VectorHit]:
        """Return the nearest notes, best first.

        The method may be called once. Raises `IndexFailed` and search errors.
        """
        if self._find_here is not None:
            await self._find_here(self)
        if self._outcome is None:
            with trio.move_on_after(PATIENCE):
                await self._answered.wait()
        if self._outcome is None:
            raise IndexFailed(f"The vector search gave no answer within {PATIENCE:.0f} s. Retry in a moment.")
        return self._outcome.unwrap()

    def answer(self, outcome: Outcome[list[VectorHit]]) -> None:
        """Store the result of the query and wake its caller."""
        self._outcome = outcome
        self._answered.set()


@frozen
class _Waiting:
    notes: SearchableVectors
    wanted: NearestQuery
    asked: PendingQuery


class VectorQueries:
    """Combines waiting queries into one pass at a time (request coalescing).

    Only the event loop may use the object.
    """

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._is_passing = False
        #: Queries that the event loop answers itself, in the turn in which their hits are awaited.
        self._quick: dict[PendingQuery, _Waiting] = {}

    def ask(
        self,
        notes: SearchableVectors,
        text: str,
        most: int,
        threshold: float,
        among: Sequence[int] | None = None,
    ) -> PendingQuery:
        """Start a query for the `most` notes nearest to a text.

        With `among`, only these notes are searched.
        """
        wanted = NearestQuery(spell_dates(text), most, threshold, among)
        if notes.is_quick(wanted):
            return PendingQuery(
                calibration=notes.calibration, find_here=partial(self._find_here, notes, wanted)
            )
        asked = PendingQuery(calibration=notes.calibration)
        self._waiting.append(_Waiting(notes, wanted, asked))
        if not self._is_passing:
            self._start()
        return asked

    async def _find_here(self, notes: SearchableVectors, wanted: NearestQuery, asked: PendingQuery) -> None:
        """Answer a query, together with waiting queries to the same vectors.

        If the query is already answered, nothing is done.
        """
        self._quick[asked] = own = _Waiting(notes, wanted, asked)
        try:
            await trio.lowlevel.checkpoint()
            if asked in self._quick:
                others = (each for each in self._quick.values() if each.notes is notes and each is not own)
                together = [own, *islice(others, ABREAST - 1)]
                outcome = capture(notes.find, [each.wanted for each in together])
                for each, answer in zip(together, _answers(outcome, len(together)), strict=True):
                    del self._quick[each.asked]
                    each.asked.answer(answer)
        finally:
            self._quick.pop(asked, None)

    def _start(self) -> None:
        """Start a pass with all waiting queries that need the same vectors as the first query."""
        notes = self._waiting[0].notes
        together = [each for each in self._waiting if each.notes is notes]
        self._waiting = [each for each in self._waiting if each.notes is not notes]
        self._is_passing = True

        def finish(outcome: Outcome[list[list[VectorHit]]]) -> None:
            self._is_passing = False
            if self._waiting:
                self._start()
            _hand_out(together, outcome)

        start_call(lambda: notes.find([each.wanted for each in together]), finish)


def _hand_out(together: Sequence[_Waiting], outcome: Outcome[list[list[VectorHit]]]) -> None:
    """Pass the results of one pass to its queries, one query per turn of the event loop.

    Each caller ranks its hits, which takes one or two milliseconds. Waking sixteen callers in the same turn
    would make the turn 25 ms long, and a write waits for many turns.
    """
    waiting = list(zip(together, _answers(outcome, len(together)), strict=True))[::-1]
    token = trio.lowlevel.current_trio_token()

    def answer_next() -> None:
        each, answer = waiting.pop()
        each.asked.answer(answer)
        if waiting:
            with suppress(trio.RunFinishedError):  # If the event loop has ended, so have all waiting callers.
                token.run_sync_soon(answer_next)

    answer_next()


def _answers(outcome: Outcome[list[list[VectorHit]]], count: int) -> list[Outcome[list[VectorHit]]]:
    """Divide the outcome of a pass into one outcome for each of its `count` queries."""
    if isinstance(outcome, Error):
        return [Error(outcome.error) for _ in range(count)]
    return [Value(hits) for hits in outcome.unwrap()]
