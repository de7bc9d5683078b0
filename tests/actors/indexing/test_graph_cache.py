"""When the cache file of the graph is written, and when it is believed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from lithos.actors.blocking import Inline
from lithos.actors.indexing.graph_cache import CHANGES, SECONDS, GraphCache
from lithos.catalogue import note_graph
from lithos.catalogue.catalogue import Catalogue
from lithos.catalogue.note_graph import exhaust
from lithos.stores.indexes.linkgraph import read_remembered
from tests.fakes import make_entry
from tests.graphs import described, generate_entries, note_id


@asynccontextmanager
async def keeping(data: Path, catalogue: Catalogue) -> AsyncIterator[GraphCache]:
    cache = GraphCache(catalogue.graph, data, Inline())
    cache.read()
    catalogue.load(generate_entries(20, 3))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cache.keep)
        await trio.testing.wait_all_tasks_blocked()
        yield cache
        nursery.cancel_scope.cancel()


def is_current(data: Path, catalogue: Catalogue) -> bool:
    return read_remembered(data / ".graph" / "graph.json") == catalogue.graph.remembered()


@pytest.mark.autojump
async def test_the_file_is_written_some_seconds_after_the_first_change(tmp_path: Path) -> None:
    """behaviour 75"""
    catalogue = Catalogue()
    async with keeping(tmp_path, catalogue):
        await trio.sleep(SECONDS + 0.1)  # the start itself
        assert is_current(tmp_path, catalogue)
        catalogue.put(make_entry(1, links=("n2", "new")))
        await trio.sleep(SECONDS - 1)
        catalogue.remove(note_id(3))
        assert not is_current(tmp_path, catalogue)
        await trio.sleep(1.1)
        assert is_current(tmp_path, catalogue)


@pytest.mark.autojump
async def test_many_changes_do_not_wait(tmp_path: Path) -> None:
    """behaviour 75"""
    catalogue = Catalogue()
    async with keeping(tmp_path, catalogue):
        await trio.sleep(SECONDS + 0.1)
        for number in range(CHANGES - 1):
            catalogue.put(make_entry(1, links=(f"new {number}",)))
        await trio.sleep(0.1)
        assert not is_current(tmp_path, catalogue)
        catalogue.remove(note_id(2))
        await trio.sleep(0.1)
        assert is_current(tmp_path, catalogue)


@pytest.mark.autojump
async def test_nothing_is_written_without_a_change(tmp_path: Path) -> None:
    """behaviour 75"""
    file = tmp_path / ".graph" / "graph.json"
    async with keeping(tmp_path, Catalogue()) as cache:
        await cache.flush()
    file.touch()
    before = file.stat().st_ino
    catalogue = Catalogue()
    async with keeping(tmp_path, catalogue) as cache:
        assert catalogue.graph.was_recalled
        await trio.sleep(100)
        await cache.flush()
    assert file.stat().st_ino == before


@pytest.mark.autojump
async def test_a_stop_writes_what_is_left(tmp_path: Path) -> None:
    """behaviour 75"""
    catalogue = Catalogue()
    async with keeping(tmp_path, catalogue) as cache:
        catalogue.put(make_entry(1, links=("new",)))
    await cache.flush()
    assert is_current(tmp_path, catalogue)


@pytest.mark.autojump
async def test_a_folder_that_takes_no_file_only_costs_the_cache(tmp_path: Path) -> None:
    """behaviour 75"""
    (tmp_path / ".graph").write_text("in the way")
    catalogue = Catalogue()
    async with keeping(tmp_path, catalogue):
        await trio.sleep(100)
        (tmp_path / ".graph").unlink()
        catalogue.put(make_entry(1, links=("new",)))
        await trio.sleep(SECONDS + 0.1)
        assert is_current(tmp_path, catalogue)


@pytest.mark.autojump
@pytest.mark.parametrize("content", [b"\x80\x04N.", b'{"format": 999}', b"torn {"])
async def test_a_file_that_cannot_be_used_is_replaced(tmp_path: Path, content: bytes) -> None:
    """behaviour 74"""
    file = tmp_path / ".graph" / "graph.json"
    file.parent.mkdir()
    file.write_bytes(content)
    catalogue, plain = Catalogue(), Catalogue()
    plain.load(generate_entries(20, 3))
    async with keeping(tmp_path, catalogue):
        assert not catalogue.graph.was_recalled
        assert described(catalogue.graph) == described(plain.graph)
        await trio.sleep(SECONDS + 0.1)
        assert is_current(tmp_path, catalogue)


def test_a_change_between_the_steps_of_a_snapshot_ends_it_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(note_graph, "_NAMES_AT_ONCE", 1)
    catalogue = Catalogue()
    catalogue.load(generate_entries(20, 3))
    graph = catalogue.graph
    assert list(graph.remember_in_steps())[-1] == graph.remembered()
    steps = graph.remember_in_steps()
    assert next(steps) is None
    catalogue.put(make_entry(1, links=("n2", "new")))
    assert list(steps) == []
    changing = graph.put_in_steps(make_entry(2, links=tuple(f"new {number}" for number in range(400))))
    next(changing)
    assert list(graph.remember_in_steps()) == []
    exhaust(changing)
    assert list(graph.remember_in_steps())[-1] == graph.remembered()
    catalogue.remove(note_id(3))
    assert list(graph.remember_in_steps())[-1] == graph.remembered()
