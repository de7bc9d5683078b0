"""What retrieval remembers stays bounded, and feedback misses nothing of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.services.enrich.worker
from lithos.config.sections import LcmaConfig
from lithos.core.learning.memory import Consolidate, ForgetPairs, ForgetReceipts, PairsForgotten
from lithos.services.enrich.worker import Retention
from lithos.services.retrieve.feedback import Learning
from tests.actors.memories import Desk, retrieval
from tests.fakes import START
from tests.servers import Clock, serving
from tests.services.enrich.test_enrichment import worker
from tests.services.retrieve.test_feedback import complete, retrieved, signals
from tests.tools.task_calls import create


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(lithos.services.enrich.worker, "RECEIPTS", 2)
    monkeypatch.setattr(lithos.services.enrich.worker, "PAIRS", 2)
    desk = Desk(tmp_path)
    yield desk
    desk.close()


class Watched(Learning):
    """Learning that keeps what it was asked."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk.memory.mailbox, desk.stats, desk.gate)
        self.asked: list[Any] = []

    async def submit(self, command: Any) -> Any:
        self.asked.append(command)
        return await super().submit(command)


def receipts(desk: Desk) -> list[str]:
    return [row.id for row in desk.stats.reading.receipts.oldest(0, 1000)]


async def open_a(tasks: Sequence[str], since: datetime) -> list[str]:
    """Task `a` is open, no other is."""
    await trio.lowlevel.checkpoint()
    return [task for task in tasks if task == "a"]


async def test_the_newest_receipts_and_those_of_open_tasks_are_kept(desk: Desk) -> None:
    async def body() -> None:
        for number, task in enumerate(("a", "b", None, "b", "a", None, "b", None)):
            await desk.ask(retrieval(number, "n", task=task))
        learning = Watched(desk)
        await Retention(learning, open_a, desk.clock, receipts_kept=2, pair_days=0).forget_receipts()
        assert receipts(desk) == ["r0", "r4", "r6", "r7"]
        assert all(isinstance(command, ForgetReceipts) for command in learning.asked)
        assert [command.ids for command in learning.asked] == [("r1",), ("r2", "r3"), ("r5",)]
        await Retention(learning, open_a, desk.clock, receipts_kept=2, pair_days=0).forget_receipts()
        await Retention(learning, open_a, desk.clock, receipts_kept=0, pair_days=0).forget_receipts()
        assert receipts(desk) == ["r0", "r4", "r6", "r7"]

    await desk.run(body)


async def test_a_pair_is_kept_so_many_days_for_each_time_it_was_retrieved(desk: Desk) -> None:
    async def body() -> None:
        await desk.ask(retrieval(1, "a", "b", "c", task=None))  # ab, ac, bc
        await desk.ask(retrieval(2, "b", "c", task=None))
        desk.clock.now += timedelta(days=5)
        await desk.ask(retrieval(3, "c", "d", "e", task=None))  # cd, ce, de
        learning = Watched(desk)
        retention = Retention(learning, open_a, desk.clock, receipts_kept=0, pair_days=10)
        desk.clock.now = START + timedelta(days=11)
        await retention.forget_pairs()
        assert desk.stats.reading.nodes.companions(["b"], None) == {"c": 2}
        assert desk.stats.reading.nodes.companions(["d"], None) == {"c": 1, "e": 1}
        assert len(learning.asked) == 4, "two pairs at a time"
        desk.clock.now = START + timedelta(days=16)
        await retention.forget_pairs()
        assert desk.stats.reading.nodes.summarize(0).pairs == 1
        await Retention(learning, open_a, desk.clock, receipts_kept=0, pair_days=0).forget_pairs()
        desk.clock.now = START + timedelta(days=21)
        await retention.forget_pairs()
        assert desk.stats.reading.nodes.summarize(0).pairs == 0

    await desk.run(body)


async def test_a_time_that_cannot_be_read_drops_no_pair(desk: Desk) -> None:
    async def body() -> None:
        await desk.ask(retrieval(1, "a", "b", task=None))
        with desk.stats.transaction():
            desk.stats._writer.execute("UPDATE coactivation SET last_at='whenever'")
        desk.clock.now += timedelta(days=1000)
        assert await desk.ask(ForgetPairs(days=1, now=desk.clock())) == PairsForgotten(0, None)

    await desk.run(body)


async def test_a_sweep_leaves_the_feedback_of_tasks_whole_that_may_still_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 151"""
    monkeypatch.setattr("lithos.core.times.SLACK", timedelta(days=100))
    clock = Clock()
    config = LcmaConfig(receipts_kept=1)
    async with serving(tmp_path, clock=clock, lcma=config, settled=False) as server:
        one, two = await server.create("One"), await server.create("Two")
        done, task = await create(server), await create(server)
        old = await retrieved(server, one, task=done)
        named = await retrieved(server, one, two, task=task)
        await retrieved(server, two, task=task)
        await complete(server, done)
        clock.advance(days=29)
        await retrieved(server, one, two, task=None)
        await worker(server).sweep()
        learning = server.server.learning
        assert await learning.receipt_count() == 4, "the closed one may be reopened"
        clock.advance(days=2)
        await worker(server).sweep()
        assert await learning.receipt_count() == 3
        assert await learning.receipt(old) is None
        await complete(server, task, cited_nodes=[one], receipt_id=named)
        assert await signals(server, one, two) == [(1, 0, 0), (0, 0, 1)]
        clock.advance(days=31)
        await worker(server).sweep()
        assert await learning.receipt_count() == 1


async def nobody(tasks: Sequence[str], since: datetime) -> list[str]:
    await trio.lowlevel.checkpoint()
    return []


def ledgers(desk: Desk) -> dict[str, int]:
    tables = {
        desk.stats: ("task_consolidation_log", "consolidation_edge_ops", "consolidation_salience_ops"),
        desk.edges: ("consolidation_ops",),
    }
    return {
        table: store._writer.execute(f"SELECT COUNT(*) FROM {table}").fetchall()[0][0]
        for store, names in tables.items()
        for table in names
    }


async def test_ledgers_are_kept_for_a_year_and_then_dropped_in_both_databases(desk: Desk) -> None:
    """docs/spec/memory.md §4: ledgers make it once per task; nobody reopens one after a year"""

    async def body() -> None:
        for number in (1, 2):
            await desk.ask(retrieval(number, "b", "a"))
        await desk.ask(Consolidate("t", {"b": "n", "a": "n"}))
        full = ledgers(desk)
        assert full == {
            "task_consolidation_log": 1,
            "consolidation_edge_ops": 1,
            "consolidation_salience_ops": 2,
            "consolidation_ops": 1,
        }
        kept = Retention(Watched(desk), nobody, desk.clock, receipts_kept=0, pair_days=0)
        desk.clock.now += timedelta(days=300)
        await kept.forget_ledgers()
        assert ledgers(desk) == full
        desk.clock.now += timedelta(days=100)
        await kept.forget_ledgers()
        assert set(ledgers(desk).values()) == {0}

    await desk.run(body)


async def test_statistics_of_notes_that_are_gone_are_bounded(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lithos.services.enrich.worker, "GONE_NOTES", 2)
    monkeypatch.setattr(lithos.services.enrich.worker, "PAGE", 2)

    async def body() -> None:
        await desk.ask(retrieval(1, *"abcdefg"))
        retention = Retention(
            Watched(desk), nobody, desk.clock, receipts_kept=0, pair_days=0, has_note=lambda id: id in "abc"
        )
        await retention.forget_notes()
        assert [stats.node_id for stats in desk.stats.reading.nodes.all()] == ["a", "b", "c", "f", "g"]

    await desk.run(body)
