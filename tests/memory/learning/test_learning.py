"""Memory actor. It learns each command once, and a failing command does not affect other commands."""

from __future__ import annotations

import attrs
import pytest

from lithos.memory.model.memory import (
    ApplyFeedback,
    ClaimJobs,
    ForgetJobs,
    NodeStats,
    ProjectionOutcome,
    ProjectProvenance,
)
from lithos.notes.model.edges import EdgeFilter
from tests.fakes import START
from tests.kernel.actors.memories import EDGE, nodes, retrieval, weights

pytestmark = pytest.mark.autojump


async def test_retrieval_stores_receipt_and_statistics(desk):
    """behaviour 141"""
    async with desk.running():
        first = retrieval(1, "a", "b")
        await desk.ask(first)
        await desk.ask(retrieval(2, "b", "a", "c"))
        await desk.ask(retrieval(3, "c", task=None))
        await desk.ask(retrieval(4))
        tables = desk.stats.reading
        assert tables.receipts.get("r1") == first.receipt
        assert tables.receipts.get("r4").final_nodes == ()
        assert {id: stats.retrieval_count for id, stats in nodes(desk).items()} == {"a": 2, "b": 2, "c": 2}
    assert not (desk.root / "edges.db").exists()


async def test_edge_and_stats_files_are_created_independently(desk):
    async with desk.running():
        assert await desk.ask(
            ProjectProvenance(desired={"a": ("n", ("s",))}, dry_run=True)
        ) == ProjectionOutcome(1)
        assert await desk.ask(ProjectProvenance(desired={"a": ("n", ())}, gone=("b",))) == ProjectionOutcome()
        assert await desk.ask(ClaimJobs(3)) == []
        assert await desk.ask(ForgetJobs(START, START, 9)) == 0
        assert list(desk.root.glob("*s.db")) == []
        await desk.ask(
            ApplyFeedback(task_id="t", cited=("a", "b"), misleading=("c",), namespaces={"a": "n", "b": "m"})
        )
        assert [path.name for path in desk.root.glob("*s.db")] == ["stats.db"]


async def test_edge_commands_create_no_statistics_file(desk):
    async with desk.running():
        await desk.ask(EDGE)
        assert await desk.ask(ProjectProvenance(desired={"a": ("n", ("s",))})) == ProjectionOutcome(1)
    assert not (desk.root / "stats.db").exists()


async def test_feedback_changes_note_counters_and_edge_weights(desk):
    """behaviours 87, 152, 153"""
    async with desk.running():
        for number, (one, other) in enumerate([("a", "m1"), ("m1", "m2"), ("m2", "z"), ("p", "q")]):
            await desk.ask(attrs.evolve(EDGE, from_id=one, to_id=other, weight=0.5, type=f"t{number}"))
        feedback = ApplyFeedback(
            task_id="t",
            cited=("b", "a", "c"),
            misleading=("m1", "m2"),
            ignored=("i",),
            namespaces={"a": "n", "b": "n", "c": "else"},
        )
        told = len(desk.told())
        assert await desk.ask(feedback) == ()
        stats = nodes(desk)
        assert stats["a"] == NodeStats(node_id="a", cited_count=1, last_used_at=START)
        assert stats["m1"] == NodeStats(node_id="m1", misleading_count=1)
        assert stats["i"] == NodeStats(node_id="i", ignored_count=1)
        assert weights(desk) == {"am1": 0.45, "m1m2": 0.45, "m2z": 0.45, "pq": 0.5, "ab": 0.5}
        (pair,) = desk.edges.edges(EdgeFilter(type="related_to"))
        assert (pair.provenance_type, pair.namespace) == ("reinforcement", "n")
        assert await desk.ask(feedback) == ()
        assert weights(desk)["ab"] == 0.53
        assert await desk.ask(feedback) == ("m1", "m2")
        assert await desk.ask(attrs.evolve(feedback, misleading=("m1",))) == ("m1",)
        assert len(desk.told()) == told  # learning does not announce events
