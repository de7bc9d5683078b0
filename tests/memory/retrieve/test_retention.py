"""Stored retrieval data, which stays limited without losing feedback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.memory.enrich.worker
from lithos.memory.enrich.worker import StatsRetention
from lithos.memory.model.memory import Enqueue, EnrichTrigger, FinishJobs, ForgetReceipts
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.settings import LcmaConfig
from tests.kernel.actors.memories import Desk, retrieval
from tests.memory.enrich.test_enrichment import worker
from tests.memory.retrieve.test_feedback import complete, retrieved, signals
from tests.memory.tools.task_calls import create
from tests.servers import Clock, serving


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(lithos.memory.enrich.worker, "RECEIPTS", 2)
    desk = Desk(tmp_path)
    yield desk
    desk.close()


class Watched(Learning):
    """Learning service that records the commands that it receives."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk.memory.mailbox, desk.stats, desk.gate)
        self.asked: list[Any] = []

    async def submit(self, command: Any) -> Any:
        self.asked.append(command)
        return await super().submit(command)


def receipts(desk: Desk) -> list[str]:
    return [row.id for row in desk.stats.reading.receipts.oldest(0, 1000)]


async def open_a(tasks: Sequence[str], since: datetime) -> list[str]:
    """Return the open tasks. Task `a` is open, and all other tasks are closed."""
    await trio.lowlevel.checkpoint()
    return [task for task in tasks if task == "a"]


async def test_newest_receipts_and_receipts_of_open_tasks_are_kept(desk: Desk) -> None:
    async def body() -> None:
        for number, task in enumerate(("a", "b", None, "b", "a", None, "b", None)):
            await desk.ask(retrieval(number, "n", task=task))
        learning = Watched(desk)
        await StatsRetention(learning, open_a, desk.clock, receipts_kept=2).forget_receipts()
        assert receipts(desk) == ["r0", "r4", "r6", "r7"]
        assert all(isinstance(command, ForgetReceipts) for command in learning.asked)
        assert [command.ids for command in learning.asked] == [("r1",), ("r2", "r3"), ("r5",)]
        await StatsRetention(learning, open_a, desk.clock, receipts_kept=2).forget_receipts()
        await StatsRetention(learning, open_a, desk.clock, receipts_kept=0).forget_receipts()
        assert receipts(desk) == ["r0", "r4", "r6", "r7"]

    await desk.run(body)


async def test_sweep_keeps_receipts_of_tasks_that_may_get_feedback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 151"""
    monkeypatch.setattr("lithos.kernel.values.times.SLACK", timedelta(days=100))
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
        learning = server.server.get(Learning)
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


async def test_old_enrichment_jobs_are_deleted(desk: Desk) -> None:
    """Finished jobs are deleted after a week. Abandoned jobs are deleted after a year."""

    async def body() -> None:
        triggers = tuple(EnrichTrigger(trigger_type="note.updated", node_id=note) for note in "abc")
        await desk.ask(Enqueue(triggers))
        await desk.ask(FinishJobs((1,)))
        kept = StatsRetention(Watched(desk), nobody, desk.clock, receipts_kept=0)

        async def jobs_after(days: int) -> int:
            desk.clock.now += timedelta(days=days)
            await kept.forget_jobs()
            found: int = desk.stats._writer.execute("SELECT COUNT(*) FROM enrich_queue").fetchall()[0][0]
            return found

        assert [await jobs_after(days) for days in (6, 2, 350, 10)] == [3, 2, 2, 0]

    await desk.run(body)


async def test_number_of_statistics_of_deleted_notes_is_limited(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lithos.memory.enrich.worker, "GONE_NOTES", 2)
    monkeypatch.setattr(lithos.memory.enrich.worker, "PAGE", 2)

    async def body() -> None:
        await desk.ask(retrieval(1, *"abcdefg"))
        retention = StatsRetention(
            Watched(desk), nobody, desk.clock, receipts_kept=0, has_note=lambda id: id in "abc"
        )
        await retention.forget_notes()
        assert [stats.node_id for stats in desk.stats.reading.nodes.all()] == ["a", "b", "c", "f", "g"]

    await desk.run(body)
