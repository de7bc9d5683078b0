"""Searches wait, with a time limit, only for changes that were acknowledged before them (behaviour 194)."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.files import NoteFiles
from lithos.notes.indexing_messages import Indexed
from lithos.notes.writing.ports import PATIENCE
from lithos.search.indexing.indexer import DEMAND, GATHERING_LASTS, Indexer, Visibility
from tests.fakes import FakeIndex, Gate, Turns, make_entry, make_upsert, served

pytestmark = pytest.mark.autojump
LINGER = 0.1


class Desk:
    """A full-text index that lingers and a vector index that does not linger. Both have a gate."""

    def __init__(self, root: Path) -> None:
        files, catalogue = NoteFiles(root), Catalogue()
        self.index, self.gate, self.behind = FakeIndex(), Gate(), list[str | None]()
        self.indexer = Indexer(
            "fulltext", self.index, catalogue, files, self.gate,
            linger=LINGER, batch=4, on_behind=self.behind.append,
        )  # fmt: skip
        self.other_gate = Gate()
        self.other = Indexer("vectors", FakeIndex(), catalogue, files, self.other_gate)
        self.visibility = Visibility(self.indexer, self.other)
        self.served = served(self.indexer.mailbox, self.indexer.start)
        self.other_served = served(self.other.mailbox, self.other.start)

    async def accept(self, *serials: int) -> None:
        for serial in serials:
            self.indexer.promise(await self.indexer.accept(make_upsert(make_entry(serial))))

    async def wait(self, *, words: bool = True) -> float:
        """Run a search, and return how many seconds it waits."""
        began = trio.current_time()
        await self.visibility.reach(words=words)
        return trio.current_time() - began


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_search_without_pending_changes_does_not_wait(desk: Desk) -> None:
    async with desk.served:
        with trio.CancelScope() as scope:
            scope.cancel()
            await desk.visibility.reach()  # The call has no checkpoint, so it is not cancelled.
        assert not scope.cancelled_caught
        await desk.accept(1)
        await trio.sleep(2 * LINGER)
        assert await desk.wait() == 0


async def test_single_change_lingers_until_a_search_needs_it(desk: Desk) -> None:
    async with desk.served:
        await desk.accept(1)
        await wait_all_tasks_blocked()
        assert desk.index.held == {}
        assert await desk.wait() == 0
        assert list(desk.index.held) == [1]
        await desk.accept(2)
        await trio.sleep(2 * LINGER)
        assert list(desk.index.held) == [1, 2], "without a search it comes in by itself"
    assert desk.behind == []


async def test_expected_changes_linger_longer_but_delay_no_search(desk: Desk) -> None:
    async with desk.served:
        desk.indexer.gather()
        await desk.accept(1)
        await trio.sleep(5 * LINGER)
        assert desk.index.held == {}, "more were to come"
        assert await desk.wait() == 0
        assert list(desk.index.held) == [1]
        await trio.sleep(GATHERING_LASTS)
        await desk.accept(2)
        await trio.sleep(2 * LINGER)
        assert list(desk.index.held) == [1, 2], "none came for a while"


async def test_search_waits_only_for_earlier_changes(desk: Desk) -> None:
    async with desk.served, trio.open_nursery() as nursery:
        desk.gate.shut()
        await desk.accept(1)
        reached = trio.Event()

        async def search() -> None:
            await desk.visibility.reach()
            reached.set()

        nursery.start_soon(search)
        await wait_all_tasks_blocked()
        await desk.accept(2, 3)
        assert not reached.is_set()
        desk.gate.let_oldest()
        await wait_all_tasks_blocked()
        assert reached.is_set()
        assert list(desk.index.held) == [1]
        desk.gate.open()


async def test_search_ignores_unacknowledged_changes(desk: Desk) -> None:
    async with desk.served:
        await desk.indexer.accept(make_upsert(make_entry(1)))
        await wait_all_tasks_blocked()
        assert await desk.wait() == 0
        assert desk.index.held == {}


async def test_index_is_in_demand_for_a_while_after_a_search(desk: Desk) -> None:
    async with desk.served:
        assert not desk.indexer.is_in_demand
        await desk.visibility.reach(words=False)
        assert not desk.indexer.is_in_demand
        await desk.visibility.reach()
        await trio.sleep(DEMAND / 2)
        assert desk.indexer.is_in_demand
        await trio.sleep(DEMAND)
        assert not desk.indexer.is_in_demand


async def test_changes_do_not_linger_while_searches_arrive(desk: Desk) -> None:
    async with desk.served:
        await desk.visibility.reach()
        began = trio.current_time()
        receipt = await desk.indexer.accept(make_upsert(make_entry(1)))
        assert await receipt.reply() is Indexed.DONE
        assert trio.current_time() == began


async def test_waiting_searches_continue_one_per_event_loop_turn(desk: Desk) -> None:
    turns, resumed = Turns(), list[int]()
    trio.lowlevel.add_instrument(turns)

    async def search() -> None:
        await desk.visibility.reach()
        resumed.append(turns.number)

    async with desk.served, trio.open_nursery() as nursery:
        desk.gate.shut()
        await desk.accept(1)
        for _ in range(5):
            nursery.start_soon(search)
        await wait_all_tasks_blocked()
        assert not resumed
        desk.gate.open()
    assert len(set(resumed)) == 5


async def test_search_waits_only_for_the_indexes_it_needs(desk: Desk) -> None:
    async with desk.served, desk.other_served:
        desk.gate.shut()
        desk.other_gate.shut()
        await desk.accept(1)
        assert await desk.wait(words=False) == 0
        desk.other.promise(await desk.other.accept(make_upsert(make_entry(1))))
        assert await desk.wait() == pytest.approx(PATIENCE), "both at the same time"
        desk.gate.open()
        desk.other_gate.open()


async def test_lagging_index_is_reported_after_two_seconds(desk: Desk) -> None:
    async with desk.served:
        desk.gate.shut()
        await desk.accept(1)
        await wait_all_tasks_blocked()
        await desk.accept(*range(2, 8))
        assert await desk.wait() == pytest.approx(PATIENCE)
        assert len(desk.behind) == 1
        assert "late" in str(desk.behind[0])
        assert not desk.indexer.is_in_demand, "searches refuse it, so no write need wait for it"
        while len(desk.index.held) < 7:
            assert desk.behind[-1] is not None, "the search waited for the last one"
            desk.gate.let_oldest()
            await trio.sleep(2 * LINGER)
        assert desk.behind[-1] is None
        desk.gate.open()


@pytest.mark.parametrize("how", ["refused", "crashed"])
async def test_failed_batch_releases_searches_and_marks_the_index_as_behind(desk: Desk, how: str) -> None:
    """behaviour 63"""
    desk.index.failing, desk.index.crashing = how == "refused", int(how == "crashed")
    async with desk.served:
        await desk.accept(1)
        assert await desk.wait() == 0
        assert desk.behind[-1] is not None
        assert not desk.indexer.is_converged


async def test_index_is_no_longer_behind_after_a_successful_comparison(desk: Desk) -> None:
    async with desk.served as nursery:
        nursery.start_soon(desk.indexer.converge)
        await desk.indexer.converged()
        desk.index.failing = True
        await desk.accept(1)
        await desk.visibility.reach()
        desk.index.failing = False
        await desk.indexer.converged()
        assert desk.behind[-1] is None


async def test_slow_index_delays_callers_that_submit_changes(desk: Desk) -> None:
    """Even if the other index is fast, only a limited number of changes can wait for the slow index."""
    async with desk.served as nursery:
        desk.gate.shut()
        nursery.start_soon(desk.accept, *range(1_000))
        await wait_all_tasks_blocked()
        assert desk.indexer.mailbox.depth == desk.indexer.mailbox.stats.capacity
        desk.gate.open()
        await wait_all_tasks_blocked()
        await desk.visibility.reach()
        assert len(desk.index.held) == 1_000


async def test_changes_do_not_linger_at_shutdown(desk: Desk) -> None:
    async with desk.served:
        await desk.accept(1, 2)
        await wait_all_tasks_blocked()
        assert desk.index.held == {}
    assert list(desk.index.held) == [1, 2]
