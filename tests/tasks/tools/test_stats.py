"""`lithos_stats` on a complete server."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.search.indexing.indexer import FulltextIndexer, Visibility
from tests.servers import Clock, Lithos, put_note, serving

KEYS = [
    "documents", "chunks", "chroma_chunk_count", "agents", "active_tasks", "open_claims", "tags",
    "duplicate_urls", "index_drift_detected", "tantivy_doc_count", "unresolved_links", "expired_docs",
    "expired_claims", "tantivy_last_updated", "chroma_last_updated", "vector_last_updated",
    "graph_node_count", "graph_edge_count", "embedding_tier", "embedding_done", "embedding_total",
    "pending_proposals",
]  # fmt: skip


@pytest.mark.needs("proposals")
async def test_empty_server_reports_every_key(lithos: Lithos) -> None:
    """behaviours 140, 170"""
    stats = await lithos.call("lithos_stats")
    assert list(stats) == KEYS
    told = {"index_drift_detected": False, "embedding_tier": "static"}
    assert {key: stats[key] for key in KEYS if not key.endswith("_last_updated")} == {
        key: told.get(key, 0) for key in KEYS if not key.endswith("_last_updated")
    }


async def test_statistics_change_with_the_notes(tmp_path: Path) -> None:
    """behaviours 140, 170"""
    clock = Clock()
    put_note(tmp_path, "a.md", "---\nsource_url: https://e.org/x\n---\n# A\n")
    put_note(tmp_path, "b.md", "---\nsource_url: https://e.org/x\n---\n# B\n")
    long = "\n\n".join(["A paragraph of a hundred characters, more or less, that fills the note. " * 4] * 6)
    async with serving(tmp_path, clock=clock) as lithos:
        await lithos.create("Long", long + " [[a]] [[a|again]] [[nowhere]]", tags=["x", "y"], agent="p")
        await lithos.create("Short", "[[nowhere]]", tags=["x"], ttl_hours=1, agent="q")
        stats = await lithos.call("lithos_stats")
        assert stats["chunks"] == stats["chroma_chunk_count"] > 4
        assert stats["vector_last_updated"] == stats["chroma_last_updated"] is not None
        assert stats["tantivy_last_updated"].endswith("+00:00")
        numbers = {
            "documents": 4, "tantivy_doc_count": 4, "index_drift_detected": False, "agents": 2, "tags": 2,
            "duplicate_urls": 1, "unresolved_links": 2, "expired_docs": 0, "graph_node_count": 5,
            "graph_edge_count": 3,
        }  # fmt: skip
        assert {key: stats[key] for key in numbers} == numbers
        clock.advance(hours=1, seconds=1)
        assert (await lithos.call("lithos_stats"))["expired_docs"] == 1


async def test_index_drift_is_reported_in_the_statistics(tmp_path: Path) -> None:
    """behaviour 140"""
    async with serving(tmp_path) as lithos:
        await lithos.create()
        await lithos.server.get(Visibility).reach()
        index = lithos.server.get(FulltextIndexer).index
        serials = list(index.stamps())
        index.apply([], serials)
        stats = await lithos.call("lithos_stats")
        assert (stats["documents"], stats["tantivy_doc_count"], stats["index_drift_detected"]) == (1, 0, True)
    async with serving(tmp_path) as lithos:
        assert not (await lithos.call("lithos_stats"))["index_drift_detected"]
