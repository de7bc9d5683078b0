"""`lithos_node_stats` on a complete server."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

from lithos.memory.model.memory import Receipt, RecordRetrieval
from lithos.memory.retrieve.feedback import Learning
from tests.servers import MISSING_ID, Clock, Lithos, refusal, serving

PLAIN = {
    "salience": 0.5, "retrieval_count": 0, "cited_count": 0, "last_retrieved_at": None, "last_used_at": None,
    "ignored_count": 0, "misleading_count": 0, "decay_rate": 0.0, "spaced_rep_strength": 0.0,
    "last_decay_applied_at": None,
}  # fmt: skip


async def test_unused_note_has_default_statistics_and_unknown_note_is_refused(lithos: Lithos) -> None:
    """behaviour 159"""
    note = await lithos.create()
    answer = await lithos.call("lithos_node_stats", node_id=note)
    assert list(answer.items()) == list(({"node_id": note} | PLAIN).items())
    for unknown in (MISSING_ID, note[:5], "x" * 5000):
        assert refusal(await lithos.call("lithos_node_stats", node_id=unknown), "doc_not_found")


async def test_statistics_are_shown_after_a_restart(tmp_path: Path) -> None:
    """behaviour 159"""
    clock = Clock()
    receipt = Receipt(id="r", ts=clock(), query="q", limit=1)
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        note = await lithos.create()
        await lithos.server.get(Learning).submit(RecordRetrieval(receipt, (note,)))
        await lithos.call("lithos_delete", id=await lithos.create("Other"), agent="ann")
    moment, used = clock.text, (clock() - timedelta(days=1)).isoformat()
    with sqlite3.connect(tmp_path / ".lithos" / "stats.db") as other:
        other.execute(
            "UPDATE node_stats SET last_used_at=?, cited_count=2, ignored_count=3, misleading_count=1",
            (used,),
        )
    other.close()
    async with serving(tmp_path, settled=False) as lithos:
        assert await lithos.call("lithos_node_stats", node_id=note) == {
            "node_id": note, "salience": 0.49, "retrieval_count": 1, "cited_count": 2,
            "last_retrieved_at": moment, "last_used_at": used, "ignored_count": 3, "misleading_count": 1,
            "decay_rate": 0.0, "spaced_rep_strength": 0.0, "last_decay_applied_at": None,
        }  # fmt: skip
