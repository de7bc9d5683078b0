"""The background task that keeps the lists of large vector stores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
import trio
import trio.testing

from lithos.actors.blocking import BackgroundThread, Inline
from lithos.actors.indexing.list_keeper import ListKeeper
from lithos.stores.indexes import clustering
from lithos.stores.indexes import lists as searching
from lithos.stores.indexes.vectors import VectorIndex
from tests.stores.indexes.lists.test_lists import IDENTITY, clustered, entries

T = TypeVar("T")


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "FROM", 4_000)
    monkeypatch.setattr(searching, "MERGED_LEAST", 200)


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    index = VectorIndex.open(tmp_path / ".usearch", IDENTITY)
    index.apply(entries(clustered(1, 8_000)), [])
    return index


class Watched(Inline):
    """Says when a call has ended."""

    def __init__(self) -> None:
        self.ended: list[trio.Event] = [trio.Event(), trio.Event(), trio.Event()]
        self.calls = 0

    async def run(self, call: Callable[[], T]) -> T:
        result = await super().run(call)
        self.ended[self.calls].set()
        self.calls += 1
        return result


async def wait_for(event: trio.Event) -> None:
    with trio.fail_after(60):
        await event.wait()


async def test_lists_are_built_at_the_start_kept_on_disk_and_merged_after_changes(
    index: VectorIndex, tmp_path: Path
) -> None:
    index.save()
    thread = Watched()
    keeper = ListKeeper(lambda: [index], thread)
    keeper.look()  # before it runs: nothing
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        await wait_for(thread.ended[0])
        assert not index.lists_due
        assert (tmp_path / ".usearch" / searching.lists_name(1)).exists()
        index.apply(entries(clustered(2, 4), first=9_000), [])
        keeper.look()
        await trio.testing.wait_all_tasks_blocked()
        assert thread.calls == 1, "few changes are no reason"
        index.apply(entries(clustered(2, 400), first=9_000), [])
        await trio.to_thread.run_sync(keeper.look)
        await wait_for(thread.ended[1])
        assert not index.lists_due
        nursery.cancel_scope.cancel()


async def test_a_stop_ends_a_build_between_two_pieces(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    assign = clustering.assign

    def slow(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
        begun.set()
        assert go_on.wait(30)
        return assign(rows, centres)

    monkeypatch.setattr(searching, "assign", slow)
    keeper = ListKeeper(lambda: [index], BackgroundThread("lists"))
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keeper.run)
            await trio.to_thread.run_sync(begun.wait)
            nursery.cancel_scope.cancel()
            go_on.set()
    assert index._search.lists is None
    assert index.lists_due
    query = clustered(3, 1)[0]
    assert index.search(query, 20, 0.0) == index.search_among(query, index.stamps(), 0.0, 20)


async def test_without_memory_for_lists_searches_go_on(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = trio.Event()

    def refuse(*_: object) -> None:
        refused.set()
        raise MemoryError

    monkeypatch.setattr(index, "build_lists", refuse)
    keeper = ListKeeper(lambda: [index], Inline())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        await wait_for(refused)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert index.lists_due
    assert len(index.search(clustered(3, 1)[0], 20, 0.0)) == 20
