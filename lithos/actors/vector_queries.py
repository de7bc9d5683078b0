"""Queries to the vectors, answered in a thread, those of about the same time together.

A pass over all vectors takes as long for four queries as for one. It takes the interpreter from nobody and
pushes everything else out of a core's cache; meanwhile the event loop has the words looked up on the other
core. Whoever asks first starts a pass, and whoever asks meanwhile is in the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio
from attrs import define, field, frozen
from outcome import Error, Outcome, Value

from lithos.actors.blocking import start_call
from lithos.actors.vector_port import EmbeddedNotes
from lithos.stores.index_failure import IndexFailed
from lithos.stores.vectors import VectorHit, VectorQuery

#: Seconds for an answer; a pass takes some milliseconds.
PATIENCE: Final = 10.0


@define(eq=False)
class Asked:
    """A query on its way; who asked does something else first and then takes the hits."""

    _outcome: Outcome[list[VectorHit]] | None = None
    _answered: trio.Event = field(factory=trio.Event, init=False)

    async def hits(self) -> list[VectorHit]:
        """The nearest notes, best first; can be taken once. Raises `IndexFailed` and what the search did."""
        if self._outcome is None:
            with trio.move_on_after(PATIENCE):
                await self._answered.wait()
        if self._outcome is None:
            raise IndexFailed(f"The vectors gave no answer within {PATIENCE:.0f} s; retry in a moment.")
        return self._outcome.unwrap()

    def answer(self, outcome: Outcome[list[VectorHit]]) -> None:
        """Let whoever waits have it."""
        self._outcome = outcome
        self._answered.set()


@frozen
class _Waiting:
    notes: EmbeddedNotes
    text: str
    most: int
    threshold: float
    asked: Asked = field(factory=Asked, init=False)


class VectorQueries:
    """One pass at a time. Used on the event loop only."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._is_passing = False

    def ask(self, notes: EmbeddedNotes, text: str, most: int, threshold: float) -> Asked:
        """Look for the `most` notes nearest to a text; a text without a known word finds none."""
        waiting = _Waiting(notes, text, most, threshold)
        self._waiting.append(waiting)
        if not self._is_passing:
            self._start()
        return waiting.asked

    def _start(self) -> None:
        """Begin with what waits, as far as it is about the same vectors."""
        notes = self._waiting[0].notes
        together = [each for each in self._waiting if each.notes is notes]
        self._waiting = [each for each in self._waiting if each.notes is not notes]
        self._is_passing = True

        def finish(outcome: Outcome[list[list[VectorHit]]]) -> None:
            self._is_passing = False
            if self._waiting:
                self._start()
            _hand_out(together, outcome)

        start_call(lambda: _search(notes, together), finish)


def _search(notes: EmbeddedNotes, together: Sequence[_Waiting]) -> list[list[VectorHit]]:
    vectors = notes.embedder.encode([each.text for each in together])
    return notes.vectors.search_together(
        [
            VectorQuery(vector, each.most, each.threshold)
            for vector, each in zip(vectors, together, strict=True)
        ]
    )


def _hand_out(together: Sequence[_Waiting], outcome: Outcome[list[list[VectorHit]]]) -> None:
    if isinstance(outcome, Error):
        for each in together:
            each.asked.answer(Error(outcome.error))
        return
    for each, hits in zip(together, outcome.unwrap(), strict=True):
        each.asked.answer(Value(hits))
