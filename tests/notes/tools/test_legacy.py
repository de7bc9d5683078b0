"""Legacy tools of earlier versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.tools.test_registry import SHOWN, TOOLS
from tests.servers import MISSING_ID, refusal, serving

LEGACY = ["lithos_links", "lithos_semantic", "lithos_provenance"]
ON = {"legacy_tools": True}


@pytest.mark.needs("proposals")
async def test_legacy_tools_are_listed_last_in_every_profile(tmp_path: Path) -> None:
    """behaviour 171"""
    for profile, (profiles, _) in SHOWN.items():
        shown = [name for name, (of_tool, _) in TOOLS.items() if of_tool in profiles]
        async with serving(tmp_path / profile, settled=False, server=ON | {"tools": profile}) as lithos:
            assert [spec.name for spec in lithos.server.tools.listed()] == shown + LEGACY
            assert all(spec.read_only and spec.idempotent for spec in lithos.server.tools.listed()[-3:])


def sides(outgoing: list[Any], incoming: list[Any]) -> dict[str, Any]:
    totals = {"outgoing_total": len(outgoing), "incoming_total": len(incoming)}
    return {"outgoing": outgoing, "incoming": incoming} | totals


async def test_legacy_links_are_returned_in_both_directions_within_the_depth(tmp_path: Path) -> None:
    async with serving(tmp_path, server=ON) as lithos:
        first = await lithos.create("First", "[[Second]]")
        second = await lithos.create("Second", "[[Third]]")
        third = await lithos.create("Third")
        rows = {
            name: {"id": note, "title": name}
            for name, note in (("First", first), ("Second", second), ("Third", third))
        }
        both = sides([rows["Third"]], [rows["First"]])
        assert await lithos.call("lithos_links", id=second) == both
        assert await lithos.call("lithos_links", id=second, direction="sideways") == both
        outgoing = await lithos.call("lithos_links", id=first, direction="outgoing", depth=9)
        assert outgoing == sides([rows["Second"], rows["Third"]], [])
        incoming = await lithos.call("lithos_links", id=second, direction="incoming")
        assert incoming == sides([], [rows["First"]])
        assert await lithos.call("lithos_links", id=MISSING_ID) == sides([], [])


async def test_legacy_provenance_returns_both_directions_and_missing_sources(tmp_path: Path) -> None:
    async with serving(tmp_path, server=ON) as lithos:
        source = await lithos.create("Source")
        note = await lithos.create("Note", derived_from_ids=[source, MISSING_ID])
        child = await lithos.create("Child", derived_from_ids=[note])
        sources, derived = [{"id": source, "title": "Source"}], [{"id": child, "title": "Child"}]
        assert await lithos.call("lithos_provenance", id=note) == {
            "id": note,
            "sources": sources,
            "derived": derived,
            "unresolved_sources": [MISSING_ID],
            "sources_total": 1,
            "derived_total": 1,
            "unresolved_sources_total": 1,
        }
        only = await lithos.call("lithos_provenance", id=note, direction="sources", include_unresolved=False)
        assert only == {
            "id": note, "sources": sources, "derived": [], "sources_total": 1, "derived_total": 0
        }  # fmt: skip
        down = await lithos.call("lithos_provenance", id=source, direction="derived", depth=2)
        assert {row["title"] for row in down["derived"]} == {"Child", "Note"}
        refusal(await lithos.call("lithos_provenance", id=MISSING_ID), "doc_not_found")


async def test_legacy_semantic_search_finds_synonyms(tmp_path: Path) -> None:
    async with serving(tmp_path, server=ON) as lithos:
        wanted = await lithos.create("Bread", "Sourdough needs a long fermentation.", tags=["baking"])
        await lithos.create("Routers", "The firewall drops packets from the network.")
        (row, *_) = (await lithos.call("lithos_semantic", query="baking bread with yeast", limit=1))[
            "results"
        ]
        assert list(row) == ["id", "title", "snippet", "similarity", "path"]
        assert (row["id"], row["path"]) == (wanted, "bread.md")
        assert 0 < row["similarity"] <= 1
        tagged = await lithos.call("lithos_semantic", query="network", tags=["baking"], threshold=0.0)
        assert [row["title"] for row in tagged["results"]] == ["Bread"]
        refusal(await lithos.call("lithos_semantic", query="x", threshold=2), "invalid_input")
