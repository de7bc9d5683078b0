"""Feedback on notes that agents give when they complete a task, on a complete server."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.values.errors import StorageFailed
from lithos.memory.model.memory import FinalNode, Receipt, RecordRetrieval
from lithos.memory.retrieve.feedback import Feedback, Learning
from lithos.memory.settings import LcmaConfig
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.tasks.rows.tasks import TaskRows
from tests.fakes import START
from tests.memory.enrich.test_enrichment import worker
from tests.memory.tools.task_calls import create, record
from tests.servers import MISSING_ID, Clock, Lithos, refusal, serving

NUMBERS = count(1)


async def retrieved(lithos: Lithos, *notes: str, task: str | None, agent: str = "ann") -> str:
    """Record a retrieval of these notes and return the id of its receipt."""
    receipt = Receipt(
        id=f"receipt-{next(NUMBERS)}",
        ts=START,
        query="q",
        limit=10,
        final_nodes=tuple(map(FinalNode, notes)),
        agent_id=agent,
        task_id=task,
    )
    await lithos.server.get(Learning).submit(RecordRetrieval(receipt, notes))
    return receipt.id


async def complete(lithos: Lithos, task: str, agent: str = "ann", **feedback: Any) -> Any:
    return await lithos.call("lithos_task_complete", task_id=task, agent=agent, **feedback)


async def node(lithos: Lithos, note: str) -> dict[str, Any]:
    answer: dict[str, Any] = await lithos.call("lithos_node_stats", node_id=note)
    assert "status" not in answer, answer
    return answer


async def signals(lithos: Lithos, *notes: str) -> list[tuple[int, int, int]]:
    """Return the cited, misleading and ignored counts of each note."""
    rows = [await node(lithos, note) for note in notes]
    return [(row["cited_count"], row["misleading_count"], row["ignored_count"]) for row in rows]


async def three(lithos: Lithos) -> tuple[str, str, str]:
    number = next(NUMBERS)
    one, two, other = [await lithos.create(f"{title} {number}") for title in ("One", "Two", "Three")]
    return one, two, other


async def test_feedback_is_applied_before_the_completion_is_answered(tmp_path: Path) -> None:
    """behaviour 153"""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        one, two, three_ = await three(lithos)
        task = await create(lithos)
        receipt = await retrieved(lithos, one, two, three_, task=task)
        answer = await complete(
            lithos, task, cited_nodes=[one, one], misleading_nodes=[two], receipt_id=receipt
        )
        assert answer == {"success": True, "unblocked": []}
        assert await signals(lithos, one, two, three_) == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
        cited = await node(lithos, one)
        assert (cited["salience"], cited["last_used_at"]) == (0.52, clock.text)
        assert [(await node(lithos, note))["salience"] for note in (two, three_)] == [0.45, 0.5]


async def test_feedback_applies_only_to_notes_of_the_receipt(tmp_path: Path) -> None:
    """behaviour 151"""
    async with serving(tmp_path, settled=False) as lithos:
        one = await lithos.create(f"One {next(NUMBERS)}")
        task, other = await create(lithos), await create(lithos)
        foreign = await retrieved(lithos, one, task=other)
        loose = await retrieved(lithos, one, task=None)
        for receipt in (foreign, loose, "r"):
            answer = await complete(lithos, task, cited_nodes=[one], receipt_id=receipt)
            assert "stays open" in refusal(answer, "receipt_not_found")
        assert (await record(lithos, task))["status"] == "open"
        assert await signals(lithos, one) == [(0, 0, 0)]
        await complete(lithos, task, receipt_id=foreign)  # no feedback, so this receipt is not refused
        assert await signals(lithos, one) == [(0, 0, 0)]
        # Deleted notes, and notes that are not in the receipt, are ignored.
        one, two, outside = await three(lithos)
        gone = await lithos.create("Gone")
        task = await create(lithos)
        await retrieved(lithos, one, two, gone, MISSING_ID, task=task)
        await lithos.call("lithos_delete", id=gone, agent="ann")
        events = len(lithos.events())
        await complete(lithos, task, cited_nodes=[outside, gone, one], misleading_nodes=[outside, "x"])
        assert await signals(lithos, one, two, outside) == [(1, 0, 0), (0, 0, 1), (0, 0, 0)]
        assert (await lithos.server.get(Learning).stats([gone]))[gone].cited_count == 0
        ((kind, payload),) = lithos.events()[events:]
        assert (kind, payload["cited_nodes"]) == ("task.completed", f'["{outside}", "{gone}", "{one}"]')
        # Without a receipt id, the newest receipt of the task and agent is used.
        one, two, three_ = await three(lithos)
        task, unread = await create(lithos), await create(lithos)
        await retrieved(lithos, one, three_, task=task)
        await retrieved(lithos, two, task=task)
        await retrieved(lithos, one, two, three_, task=task, agent="bob")
        await complete(lithos, task, cited_nodes=[one, two])
        assert await signals(lithos, one, two, three_) == [(0, 0, 0), (1, 0, 0), (0, 0, 0)]
        assert (await complete(lithos, unread, cited_nodes=[one]))["success"]  # no receipt, so no feedback
        assert await signals(lithos, one) == [(0, 0, 0)]


async def test_empty_citation_list_marks_notes_ignored_and_missing_list_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 151, 152"""

    async def refuse(command: object) -> None:
        raise StorageFailed("full")

    async with serving(tmp_path, settled=False) as lithos:
        one, two, _ = await three(lithos)
        empty: list[dict[str, Any]] = [
            {},
            {"cited_nodes": []},
            {"misleading_nodes": []},
            {"cited_nodes": [], "misleading_nodes": []},
        ]
        for ignored, feedback in enumerate(empty):
            task = await create(lithos)
            await retrieved(lithos, one, two, task=task)
            await complete(lithos, task, **feedback)
            assert await signals(lithos, one, two) == [(0, 0, ignored)] * 2
        # A refused completion does not affect later learning.
        one = await lithos.create(f"One {next(NUMBERS)}")
        task = await create(lithos)
        await retrieved(lithos, one, task=task)
        await lithos.call("lithos_task_cancel", task_id=task, agent="ann")
        refusal(await complete(lithos, task, cited_nodes=[one]), "task_not_found")
        assert due(lithos) == []
        # Feedback that could not be stored is learned as soon as it can be stored.
        one, two, _ = await three(lithos)
        task = await create(lithos)
        await retrieved(lithos, one, two, task=task)
        with monkeypatch.context() as patch:
            patch.setattr(lithos.server.get(Learning), "submit", refuse)
            assert (await complete(lithos, task, cited_nodes=[one]))["success"]
        assert await signals(lithos, one, two) == [(0, 0, 0), (0, 0, 0)]
        await worker(lithos).drain()
        assert await signals(lithos, one, two) == [(1, 0, 0), (0, 0, 1)]
        await lithos.call("lithos_task_reopen", task_id=task, agent="ann")
        await complete(lithos, task, cited_nodes=[one])  # this completion teaches its own lesson
        assert await signals(lithos, one, two) == [(2, 0, 0), (0, 0, 2)]


async def test_enrichment_quarantines_a_note_after_three_misleading_reports(tmp_path: Path) -> None:
    """behaviour 153"""
    async with serving(tmp_path, settled=False) as lithos:
        bad, good, _ = await three(lithos)
        for strike in (1, 2, 3, 4):
            task = await create(lithos)
            await retrieved(lithos, bad, good, task=task)
            before = lithos.server.get(Coordinator).head
            await complete(lithos, task, misleading_nodes=[bad])
            told = lithos.server.get(Coordinator)._store.events_after(before)
            note = await lithos.read(bad)
            assert note["metadata"]["status"] == ("quarantined" if strike >= 3 else "active")
            assert note["metadata"].get("quarantine_reason") == (
                "misleading feedback" if strike >= 3 else None
            )
            assert note["metadata"]["version"] == (2 if strike >= 3 else 1)
            updates = [event.draft for event in told if event.draft.type == "note.updated"]
            assert len(updates) == (strike == 3)
            for draft in updates:
                assert draft.agent == "lithos-enrich"
                entry = lithos.server.get(Catalogue).get(bad)
                assert entry is not None
                assert draft.origin == f"enrichment:{entry.digest}:{entry.note.version}"
        assert (await node(lithos, bad))["misleading_count"] == 4
        assert await lithos.call("lithos_agent_info", id="lithos-enrich") is None
    async with serving(tmp_path, settled=False) as lithos:
        assert lithos.events() == []  # the scan does not announce the change a second time


async def test_failed_learning_does_not_fail_the_completion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 151"""
    async with serving(tmp_path, settled=False) as lithos:
        one = await lithos.create(f"One {next(NUMBERS)}")
        task, named, unnamed = await create(lithos), await create(lithos), await create(lithos)
        learning = lithos.server.get(Learning)
        receipt = await retrieved(lithos, one, task=task)

        async def refuse(command: object) -> None:
            raise StorageFailed("full")

        async def broken(*_: str) -> None:
            raise DatabaseFailed("broken")

        monkeypatch.setattr(learning, "submit", refuse)
        assert (await complete(lithos, task, cited_nodes=[one], receipt_id=receipt))["success"]
        monkeypatch.setattr(learning, "receipt", broken)
        monkeypatch.setattr(learning, "newest_receipt", broken)
        answer = await complete(lithos, named, cited_nodes=[one], receipt_id=receipt)
        assert "stays open" in refusal(answer, "internal_error")
        assert (await record(lithos, named))["status"] == "open"
        assert (await complete(lithos, unnamed, cited_nodes=[one]))["success"]


async def test_feedback_is_ignored_but_statistics_are_readable_without_lcma(tmp_path: Path) -> None:
    async with serving(tmp_path, settled=False, lcma=LcmaConfig(enabled=False)) as lithos:
        one = await lithos.create(f"One {next(NUMBERS)}")
        task = await create(lithos)
        await retrieved(lithos, one, task=task)
        assert (await complete(lithos, task, cited_nodes=[one], receipt_id="unknown"))["success"]
        assert (await node(lithos, one))["retrieval_count"] == 1
        assert await signals(lithos, one) == [(0, 0, 0)]


async def test_feedback_survives_process_end_and_is_applied_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 151, 153"""

    async def end_here(*_: object) -> None:
        """Do nothing, to simulate a process that ends after it stored the completion."""

    async with serving(tmp_path, settled=False) as lithos:
        bad, good, _ = await three(lithos)
        for _ in range(3):
            task = await create(lithos)
            await retrieved(lithos, bad, good, task=task)
            with monkeypatch.context() as patch:
                patch.setattr(Feedback, "apply", end_here)
                await complete(lithos, task, misleading_nodes=[bad], cited_nodes=[good])
        assert await signals(lithos, bad, good) == [(0, 0, 0), (0, 0, 0)]
    async with serving(tmp_path, settled=False) as lithos:
        with trio.fail_after(60):
            while due(lithos):  # the worker applies the lessons at startup
                await trio.sleep(0.01)
        assert await signals(lithos, bad, good) == [(0, 3, 0), (3, 0, 0)]
        assert (await lithos.read(bad))["metadata"]["status"] == "quarantined"
        for _ in range(2):
            await worker(lithos).drain()
        assert await signals(lithos, bad, good) == [(0, 3, 0), (3, 0, 0)]
        assert await lithos.server.get(Learning).read(lambda tables: tables.ledgers.lessons()) == [], (
            "the ledgers do not grow for ever"
        )


def due(lithos: Lithos) -> list[Any]:
    """Return the stored lessons that have not been applied yet."""
    return list(lithos.server.get(Coordinator)._store.rows(TaskRows).lessons())
