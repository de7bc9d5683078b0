"""Vector queries: concurrent queries are answered in one pass over the vectors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
import trio
import trio.testing

from lithos.kernel.values.errors import IndexFailed
from lithos.search.index.chunk_rows import VectorHit, VectorQuery
from lithos.search.indexing.ports import QUICK_CHUNKS, QUICK_TEXT, EmbeddedNotes
from lithos.search.indexing.vector_queries import PATIENCE, PendingQuery, VectorQueries
from tests.fakes import Turns


class Vectors:
    """Fake vector index that finds the note whose number is the query. A closed gate stops each pass.

    By default, the index has enough chunks for each pass to need a thread.
    """

    def __init__(self, chunks: int = QUICK_CHUNKS + 1) -> None:
        self.chunk_total = chunks
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.passes: list[int] = []
        self.failure: Exception | None = None

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[float(text)] for text in texts], np.float32)

    def search_together(self, queries: Sequence[VectorQuery]) -> list[list[VectorHit]]:
        self.gate.wait(10)
        self.threads.add(threading.get_ident())
        self.passes.append(len(queries))
        if self.failure is not None:
            raise self.failure
        return [[VectorHit(int(query.vector[0]), query.notes, query.threshold)] for query in queries]

    def embedded(self) -> EmbeddedNotes:
        return EmbeddedNotes(cast(Any, self), cast(Any, self))


async def take(asked: Sequence[PendingQuery]) -> list[int]:
    with trio.fail_after(60):
        return [(await each.hits())[0].serial for each in asked]


async def test_queries_during_a_pass_are_answered_by_the_next_pass() -> None:
    vectors, queries = Vectors(), VectorQueries()
    notes = vectors.embedded()
    vectors.gate.clear()
    asked = [queries.ask(notes, str(number), 3, 0.5) for number in range(1, 7)]
    vectors.gate.set()
    assert await take(asked) == [1, 2, 3, 4, 5, 6]
    assert vectors.passes == [1, 5]
    assert await take([queries.ask(notes, "9", 3, 0.5)]) == [9]


async def test_answers_of_one_pass_wake_one_search_per_loop_turn() -> None:
    vectors, queries = Vectors(), VectorQueries()
    notes = vectors.embedded()
    vectors.gate.clear()
    asked = [queries.ask(notes, str(number), 3, 0.5) for number in range(1, 7)]
    turns, woken = Turns(), list[int]()
    trio.lowlevel.add_instrument(turns)

    async def search(each: PendingQuery) -> None:
        await each.hits()
        woken.append(turns.number)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for each in asked:
                nursery.start_soon(search, each)
            await trio.testing.wait_all_tasks_blocked()
            vectors.gate.set()
    assert vectors.passes == [1, 5]
    assert len(set(woken)) == 6


async def test_one_pass_never_mixes_vectors_of_two_models() -> None:
    one, other, queries = Vectors(), Vectors(), VectorQueries()
    first, second = one.embedded(), other.embedded()
    one.gate.clear()
    asked = [queries.ask(notes, "5", 3, 0.5) for notes in (first, first, second, first, second)]
    one.gate.set()
    assert await take(asked) == [5] * 5
    assert (one.passes, other.passes) == ([1, 2], [2])


async def test_failed_pass_is_reported_to_all_callers_without_lasting_effect() -> None:
    vectors, queries = Vectors(), VectorQueries()
    notes = vectors.embedded()
    vectors.failure = IndexFailed("the disk is on fire")
    vectors.gate.clear()
    asked = [queries.ask(notes, "1", 3, 0.5) for _ in range(3)]
    vectors.gate.set()
    for each in asked:
        with pytest.raises(IndexFailed, match="on fire"):
            await each.hits()
    vectors.failure = None
    assert await take([queries.ask(notes, "2", 3, 0.5)]) == [2]


async def test_cancelled_caller_delays_no_other_caller() -> None:
    vectors, queries = Vectors(), VectorQueries()
    notes = vectors.embedded()
    vectors.gate.clear()
    left = queries.ask(notes, "1", 3, 0.5)
    with trio.CancelScope() as scope:
        scope.cancel()
        await left.hits()
    assert scope.cancelled_caught
    second = queries.ask(notes, "2", 3, 0.5)
    vectors.gate.set()
    assert await take([second]) == [2]


@pytest.mark.autojump
async def test_missing_answer_is_reported_as_an_error() -> None:
    vectors, queries = Vectors(), VectorQueries()
    vectors.gate.clear()
    asked = queries.ask(vectors.embedded(), "1", 3, 0.5)
    with pytest.raises(IndexFailed, match="no answer"):
        await asked.hits()
    assert trio.current_time() >= PATIENCE
    vectors.gate.set()


async def take_together(asked: Sequence[PendingQuery]) -> list[int]:
    """Await each query in its own task, and return the numbers of the found notes."""
    found: dict[int, int] = {}

    async def take_one(number: int, each: PendingQuery) -> None:
        found[number] = (await each.hits())[0].serial

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for number, each in enumerate(asked):
                nursery.start_soon(take_one, number, each)
    return [found[number] for number in range(len(asked))]


async def test_event_loop_pass_answers_four_queries_over_few_vectors() -> None:
    vectors, queries = Vectors(QUICK_CHUNKS), VectorQueries()
    notes = vectors.embedded()
    asked = [queries.ask(notes, str(number), 3, 0.5) for number in range(1, 8)]
    assert not vectors.passes, "who asks does other work first"
    assert await take_together(asked) == [1, 2, 3, 4, 5, 6, 7]
    assert vectors.passes == [4, 3]
    assert vectors.threads == {threading.get_ident()}


async def test_long_text_uses_a_thread_even_with_few_vectors() -> None:
    vectors, queries = Vectors(10), VectorQueries()
    notes = vectors.embedded()
    assert await take([queries.ask(notes, "5".rjust(QUICK_TEXT + 1), 3, 0.5)]) == [5]
    assert threading.get_ident() not in vectors.threads


async def test_event_loop_pass_never_mixes_vectors_of_two_models() -> None:
    one, other, queries = Vectors(10), Vectors(10), VectorQueries()
    first, second = one.embedded(), other.embedded()
    asked = [queries.ask(notes, "5", 3, 0.5) for notes in (first, second, first, second, first)]
    assert await take_together(asked) == [5] * 5
    assert (one.passes, other.passes) == ([3], [2])


async def test_query_cancelled_before_an_event_loop_pass_is_skipped() -> None:
    vectors, queries = Vectors(10), VectorQueries()
    notes = vectors.embedded()
    left = queries.ask(notes, "1", 3, 0.5)
    with trio.CancelScope() as scope:
        scope.cancel()
        await left.hits()
    assert scope.cancelled_caught
    queries.ask(notes, "3", 3, 0.5)  # A query whose hits are never awaited is skipped as well.
    assert await take([queries.ask(notes, "2", 3, 0.5)]) == [2]
    assert vectors.passes == [1], "nobody looks for what was given up"


async def test_cancelled_caller_does_not_affect_answers_of_others() -> None:
    vectors, queries = Vectors(10), VectorQueries()
    notes = vectors.embedded()
    asked = [queries.ask(notes, str(number), 3, 0.5) for number in range(1, 4)]
    found: list[int] = []

    async def take_one(each: PendingQuery, scope: trio.CancelScope) -> None:
        with scope:
            found.append((await each.hits())[0].serial)

    scopes = [trio.CancelScope() for _ in asked]
    scopes[0].cancel()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for each, scope in zip(asked, scopes, strict=True):
                nursery.start_soon(take_one, each, scope)
    assert sorted(found) == [2, 3]


async def test_event_loop_failure_is_reported_to_all_callers() -> None:
    vectors, queries = Vectors(10), VectorQueries()
    notes = vectors.embedded()
    vectors.failure = IndexFailed("the disk is on fire")
    asked = [queries.ask(notes, "1", 3, 0.5) for _ in range(3)]
    told: list[str] = []

    async def take_one(each: PendingQuery) -> None:
        with pytest.raises(IndexFailed) as failed:
            await each.hits()
        told.append(str(failed.value))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for each in asked:
                nursery.start_soon(take_one, each)
    assert told == ["the disk is on fire"] * 3
    assert vectors.passes == [3]
    vectors.failure = None
    assert await take([queries.ask(notes, "2", 3, 0.5)]) == [2]
