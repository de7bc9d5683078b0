"""Provenance that is stored as typed edges (behaviour 88)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.memory.enrich.projection import IncompleteScan, Projection
from lithos.memory.enrich.worker import Enrichment
from lithos.memory.model.memory import ProjectionOutcome
from lithos.notes.catalogue.catalogue import Catalogue
from tests.memory.enrich.test_enrichment import drain
from tests.servers import MISSING_ID, Lithos, put_note, serving


async def derived(lithos: Lithos) -> dict[tuple[str, str], str]:
    """Return the provenance type of each `derived_from` edge. The keys are pairs of note and source."""
    found = (await lithos.call("lithos_edge_list", type="derived_from"))["edges"]
    return {(edge["from_id"], edge["to_id"]): edge["provenance_type"] for edge in found}


async def test_edges_follow_the_derived_from_ids_of_notes(tmp_path: Path) -> None:
    """behaviour 88"""
    async with serving(tmp_path) as lithos:
        one, two = await lithos.create("One"), await lithos.create("Two")
        note = await lithos.create("Note", path="folder/", derived_from_ids=[one, two, MISSING_ID])
        assert await derived(lithos) == {}
        await drain(lithos)
        assert await derived(lithos) == {(note, one): "frontmatter", (note, two): "frontmatter"}
        (edge,) = (await lithos.call("lithos_edge_list", type="derived_from", to_id=one))["edges"]
        assert (edge["weight"], edge["namespace"]) == (1.0, "folder")
        assert (edge["provenance_actor"], edge["evidence"], edge["conflict_state"]) == (None, None, None)
        await lithos.write("Note", id=note, derived_from_ids=[two])
        await drain(lithos)
        assert await derived(lithos) == {(note, two): "frontmatter"}
        await lithos.call("lithos_delete", id=note, agent="a")
        await drain(lithos)
        assert await derived(lithos) == {}


async def test_source_change_updates_the_edges_of_derived_notes(
    tmp_path: Path,
) -> None:
    """behaviour 88"""
    source = "12345678-1234-4234-8234-123456789012"
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Note", derived_from_ids=[source])
        await drain(lithos)
        assert await derived(lithos) == {}
    put_note(tmp_path, "source.md", f"---\nid: {source}\ntitle: Source\n---\nText\n")
    async with serving(tmp_path) as lithos:
        await drain(lithos)
        assert await derived(lithos) == {(note, source): "frontmatter"}
        await lithos.call("lithos_delete", id=source, agent="a")
        await drain(lithos)
        assert await derived(lithos) == {}


async def test_reconciliation_repairs_drift_once_and_keeps_asserted_edges(tmp_path: Path) -> None:
    """behaviour 88"""
    async with serving(tmp_path) as lithos:
        one, two, three = [await lithos.create(title) for title in ("One", "Two", "Three")]
        note = await lithos.create("Note", derived_from_ids=[one, two])
        row = {"from_id": note, "type": "derived_from", "namespace": "default"}
        edge = {"weight": 0.1, "provenance_actor": "x", "provenance_type": "frontmatter"}
        await lithos.call("lithos_edge_upsert", **row, to_id=one, **edge)  # drifted
        await lithos.call("lithos_edge_upsert", **row, to_id=three, **edge)  # stale
        asserted = {"weight": 0.3, "provenance_actor": "y", "provenance_type": "human"}
        await lithos.call("lithos_edge_upsert", **row, to_id=two, **asserted)
        reconcile = lithos.server.get(Projection).reconcile
        assert await reconcile(dry_run=True) == ProjectionOutcome(created=0, removed=1, resynced=1)
        assert await reconcile() == ProjectionOutcome(created=0, removed=1, resynced=1)
        assert await reconcile() == ProjectionOutcome()
        assert await derived(lithos) == {(note, one): "frontmatter", (note, two): "human"}
        found = (await lithos.call("lithos_edge_list", type="derived_from"))["edges"]
        assert {edge["to_id"]: edge["weight"] for edge in found} == {one: 1.0, two: 0.3}


async def test_incomplete_scan_changes_no_edges(tmp_path: Path) -> None:
    """behaviour 88"""
    async with serving(tmp_path) as lithos:
        source = await lithos.create("Source")
        note = await lithos.create("Note", derived_from_ids=[source])
        other = await lithos.create("Other", derived_from_ids=[source])
        await drain(lithos)
    (tmp_path / "knowledge" / "other.md").unlink()
    put_note(tmp_path, "broken.md", b"---\nid: [\n---\n\xff\xfe")
    async with serving(tmp_path) as lithos:
        lithos.server.get(Catalogue).remove(source)  # simulates a scan that could not read the source file
        with pytest.raises(IncompleteScan, match=r"broken\.md"):
            await lithos.server.get(Projection).reconcile()
        assert set(await derived(lithos)) == {(note, source), (other, source)}
        assert lithos.server.find(Enrichment) is not None
        await lithos.server.find(Enrichment)._reconcile()  # the sweep only logs an incomplete scan
        assert (note, source) in await derived(lithos)


async def test_duplicate_id_does_not_make_a_scan_incomplete(tmp_path: Path) -> None:
    text = "---\nid: 12345678-1234-4234-8234-123456789012\ntitle: Twin\n---\nText\n"
    put_note(tmp_path, "a.md", text)
    put_note(tmp_path, "b.md", text)
    async with serving(tmp_path) as lithos:
        assert set(lithos.server.get(Catalogue).skipped) == {"b.md"}
        assert await lithos.server.get(Projection).reconcile() == ProjectionOutcome()
