"""What retrieval remembers stays bounded, and feedback misses nothing of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.services.retention
from lithos.config import LcmaConfig
from lithos.core.retention import ForgetPairs, ForgetReceipts, PairsForgotten
from lithos.services.learning import Learning
from lithos.services.retention import Retention
from tests.actors.memories import Desk, retrieval
from tests.fakes import START
from tests.servers import Clock, serving
from tests.services.test_enrichment import worker
from tests.services.test_feedback import complete, retrieved, signals
from tests.tools.task_calls import create


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(lithos.services.retention, "RECEIPTS", 2)
    monkeypatch.setattr(lithos.services.retention, "PAIRS", 2)
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
        assert await desk.ask(ForgetPairs(days=1)) == PairsForgotten(0, None)

    await desk.run(body)


async def test_a_sweep_leaves_the_feedback_of_tasks_whole_that_may_still_come(tmp_path: Path) -> None:
    """behaviour 151"""
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
