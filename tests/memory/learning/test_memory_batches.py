"""Command batches: each database is committed once, and a failing command does not affect other commands."""

from __future__ import annotations

import attrs
import pytest

from lithos.kernel.values.errors import StorageFailed
from lithos.memory.learning.actor import Deliver
from lithos.memory.model.memory import ApplyFeedback, Enqueue, EnrichTrigger, ForgetReceipts
from tests.fakes import ask_together
from tests.kernel.actors.memories import (
    EDGE,
    FULL,
    nodes,
    retrieval,
    weights,
)

pytestmark = pytest.mark.autojump


CITED = ApplyFeedback(task_id="t", id="lesson", cited=("a", "b"), namespaces={"a": "n", "b": "n"})
FORGETTING = ForgetReceipts(("r1",))


async def answers_together(desk, *commands):
    """Return the answers to all commands of one batch, including refusals."""
    return await ask_together(desk.ask, desk.gate, Deliver(), *commands)


async def test_batch_commits_each_database_once_starting_with_edges(desk):
    async with desk.running():
        await desk.ask(EDGE)
        await desk.ask(retrieval(1, "a"))
        before = desk.stats_switch.commits
        await answers_together(desk, EDGE, retrieval(2, "a", "b"), retrieval(3, "a"), FORGETTING)
        assert desk.stats_switch.commits == before + 1
        assert nodes(desk)["a"].retrieval_count == 3


async def test_command_that_cannot_be_stored_does_not_affect_others(desk):
    async with desk.running():
        bad = retrieval(1, "a")
        bad = attrs.evolve(bad, receipt=attrs.evolve(bad.receipt, query="\ud800"))
        double = retrieval(2, "b")
        first, fine, refused, edge, again = await answers_together(
            desk, retrieval(2, "a", "b"), retrieval(3, "c"), bad, EDGE, double
        )
        assert (first, fine) == ({}, {})
        assert isinstance(refused, StorageFailed)
        assert isinstance(again, StorageFailed)  # the receipt id must be unique
        assert edge.id in desk.stored()
        assert {id: stats.retrieval_count for id, stats in nodes(desk).items()} == {"a": 1, "b": 1, "c": 1}
    assert desk.memory.mailbox.stats.restarts == 0


@pytest.mark.parametrize("where", ["failure", "instead_of_commit"])
async def test_full_statistics_database_refuses_learning_but_accepts_edges(desk, where):
    async with desk.running():
        await desk.ask(retrieval(1, "a", "b"))
        await desk.ask(EDGE)
        before = nodes(desk)
        setattr(desk.stats_switch, where, FULL)
        receipt, edge, queued = await answers_together(
            desk,
            retrieval(9, "a"),
            attrs.evolve(EDGE, to_id="z"),
            Enqueue((EnrichTrigger(trigger_type="x", node_id="a"),)),
        )
        for refusal in (receipt, queued):
            assert isinstance(refusal, StorageFailed)
            assert "disk is full" in refusal.message
        assert edge.id in desk.stored()
        assert len(desk.told()) == 2  # each edge has one event, although the batch was repeated
        with pytest.raises(StorageFailed):
            await desk.ask(CITED)
        setattr(desk.stats_switch, where, None)
        assert nodes(desk) == before
        await desk.ask(retrieval(9, "a"))
        await desk.ask(CITED)
        assert weights(desk)["ab"] == 0.5  # once
    assert desk.memory.mailbox.stats.restarts == 0


async def test_full_edge_database_refuses_edges_but_accepts_receipts(desk):
    async with desk.running():
        await desk.ask(retrieval(1, "a", "b"))
        desk.edges_switch.instead_of_commit = FULL
        receipt, edge, both = await answers_together(
            desk, retrieval(9, "e"), attrs.evolve(EDGE, to_id="z"), CITED
        )
        assert receipt == {}
        assert desk.stats.reading.receipts.get("r9") is not None
        assert isinstance(edge, StorageFailed)
        assert isinstance(both, StorageFailed)
        assert desk.stats.reading.ledgers.lessons() == []
        desk.edges_switch.instead_of_commit = None
        await desk.ask(CITED)
        assert desk.stats.reading.ledgers.lessons() == ["lesson"]
    assert desk.memory.mailbox.stats.restarts == 0


async def test_receipts_do_not_wait_for_an_unwritable_journal(desk, monkeypatch):
    async with desk.running():
        desk.journal_switch.failure = FULL
        await desk.ask(EDGE)
        assert len(desk.memory._undelivered) == 1

        async def never(*_):
            raise AssertionError("a receipt has waited for the journal")

        with monkeypatch.context() as patch:
            patch.setattr(desk.memory, "_deliver", never)
            await desk.ask(retrieval(1, "a"))
        desk.journal_switch.failure = None


async def test_full_database_is_detected_and_used_again(desk):
    """In this test, SQLite itself decides whether the open transaction survives."""
    async with desk.running():
        await desk.ask(EDGE)
        await desk.ask(retrieval(1, "a"))
        writer = desk.stats._writer
        pages = writer.pragma("page_count")
        writer.pragma("max_page_count", pages)
        big = retrieval(2, "b")
        big = attrs.evolve(big, receipt=attrs.evolve(big.receipt, query="x" * 1_000_000))
        refused, edge, _ = await answers_together(desk, big, attrs.evolve(EDGE, to_id="z"), FORGETTING)
        assert isinstance(refused, StorageFailed)
        assert edge.id in desk.stored()
        assert not desk.stats.is_in_transaction
        writer.pragma("max_page_count", 1_000_000)
        await desk.ask(big)
        assert set(nodes(desk)) == {"a", "b"}
        assert len(desk.told()) == 2
    assert desk.memory.mailbox.stats.restarts == 0
