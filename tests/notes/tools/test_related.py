"""`lithos_related`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lithos.memory.service.edges import Edges
from lithos.memory.settings import LcmaConfig
from tests.servers import MISSING_ID, Lithos, put_note, refusal, serving

EMPTY_SIDES: dict[str, Any] = {
    "outgoing": [], "incoming": [], "outgoing_total": 0, "incoming_total": 0
}  # fmt: skip


def titles(rows: list[dict[str, str]]) -> list[str]:
    assert all(list(row) == ["id", "title"] for row in rows)
    return [row["title"] for row in rows]


async def linked(lithos: Lithos, note: str, **more: Any) -> tuple[list[str], list[str]]:
    """Return the titles of outgoing and incoming links."""
    links = (await lithos.call("lithos_related", id=note, include=["links"], **more))["links"]
    return titles(links["outgoing"]), titles(links["incoming"])


async def edge(lithos: Lithos, start: str, end: str, namespace: str = "default") -> str:
    answer = await lithos.call(
        "lithos_edge_upsert", from_id=start, to_id=end, type="supports", weight=0.5, namespace=namespace
    )
    assert answer["status"] == "ok"
    return str(answer["edge_id"])


async def test_all_three_sections_are_returned_by_default(lithos: Lithos) -> None:
    """behaviour 77"""
    source = await lithos.create("Source")
    note = await lithos.create("Note", "[[Other]] [[nowhere]]", derived_from_ids=[source, MISSING_ID])
    other = await lithos.create("Other", "[[note]]")
    child = await lithos.create("Child", derived_from_ids=[note])
    answer = await lithos.call("lithos_related", id=note)
    assert answer == {
        "id": note,
        "included": ["links", "provenance", "edges"],
        "links": {
            "outgoing": [{"id": other, "title": "Other"}],
            "incoming": [{"id": other, "title": "Other"}],
            "outgoing_total": 1,
            "incoming_total": 1,
        },
        "provenance": {
            "sources": [{"id": source, "title": "Source"}],
            "derived": [{"id": child, "title": "Child"}],
            "unresolved_sources": [MISSING_ID],
            "sources_total": 1,
            "derived_total": 1,
            "unresolved_sources_total": 1,
        },
        "edges": EMPTY_SIDES,
        "related_ids": sorted([source, other, child]),
        "related_ids_total": 3,
    }
    assert list(answer) == [
        "id", "included", "links", "provenance", "edges", "related_ids", "related_ids_total"
    ]  # fmt: skip


async def test_only_the_requested_sections_are_returned_in_order(lithos: Lithos) -> None:
    """behaviour 77"""
    note = await lithos.create("Note", "[[Other]]")
    await lithos.create("Other", derived_from_ids=[note])
    for include, included in (
        (["edges", "nonsense", "links", "links"], ["links", "edges"]),
        (["provenance"], ["provenance"]),
        (["Links", ""], []),
        ([], []),
        (None, ["links", "provenance", "edges"]),
    ):
        answer = await lithos.call("lithos_related", id=note, include=include)
        assert list(answer) == ["id", "included", *included, "related_ids", "related_ids_total"]
        assert answer["included"] == included
        assert len(answer["related_ids"]) == (1 if {"links", "provenance"} & set(included) else 0)


async def test_depth_is_limited_to_the_range_one_to_three(lithos: Lithos) -> None:
    """behaviour 78"""
    chain = [await lithos.create(f"N{number}", f"[[N{number + 1}]]") for number in range(6)]
    for depth, steps in ((-5, 1), (0, 1), (1, 1), (2, 2), (3, 3), (99, 3)):
        outgoing, incoming = await linked(lithos, chain[0], depth=depth)
        assert (outgoing, incoming) == ([f"N{number}" for number in range(1, steps + 1)], [])
        outgoing, incoming = await linked(lithos, chain[5], depth=depth)
        assert (outgoing, incoming) == ([], [f"N{number}" for number in range(4, 4 - steps, -1)])
    assert await linked(lithos, chain[0]) == (["N1"], [])


async def test_traversal_of_a_link_cycle_ends_without_the_note_itself(lithos: Lithos) -> None:
    """behaviours 78, 79"""
    one = await lithos.create("One", "[[Two]] [[One]]")
    two = await lithos.create("Two", "[[One]]", derived_from_ids=[one])
    await lithos.write("One", "[[Two]] [[One]]", id=one, derived_from_ids=[two])
    await edge(lithos, one, one)
    answer = await lithos.call("lithos_related", id=one, depth=3)
    row = {"id": two, "title": "Two"}
    assert (answer["links"]["outgoing"], answer["links"]["incoming"]) == ([row], [row])
    told = answer["provenance"]
    assert (told["sources"], told["derived"], told["unresolved_sources"]) == ([row], [row], [])
    assert answer["related_ids"] == [two]


async def test_namespace_filters_only_typed_edges(lithos: Lithos) -> None:
    """behaviours 79, 80"""
    note = await lithos.create("Note", "[[Other]]")
    other = await lithos.create("Other")
    leaving = await edge(lithos, note, other, "one")
    arriving = await edge(lithos, other, note, "two")
    missing = await edge(lithos, MISSING_ID, note, "two")
    answer = await lithos.call("lithos_related", id=note, namespace="two")
    assert answer["edges"]["outgoing"] == []
    assert [row["edge_id"] for row in answer["edges"]["incoming"]] == [arriving, missing]
    assert answer["related_ids"] == sorted([other, MISSING_ID])
    answer = await lithos.call("lithos_related", id=note)
    assert [row["edge_id"] for row in answer["edges"]["outgoing"]] == [leaving]
    listed = await lithos.call("lithos_edge_list", from_id=note)
    assert answer["edges"]["outgoing"] == listed["edges"]
    answer = await lithos.call("lithos_related", id=note, namespace="three")
    assert (answer["edges"], answer["related_ids"]) == (EMPTY_SIDES, [other])


async def test_edges_in_both_directions_are_read_in_one_thread_job(
    lithos: Lithos, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second thread job would cost a sixth of the whole call.

    Each thread job wakes one thread while another thread waits.
    """
    one, other = await lithos.create("One"), await lithos.create("Other")
    given = {await edge(lithos, one, other), await edge(lithos, other, one)}
    reading, jobs = lithos.server.get(Edges)._reading, 0

    class Counting:
        async def run(self, call: Callable[[], Any]) -> Any:
            nonlocal jobs
            jobs += 1
            return await reading.run(call)

    monkeypatch.setattr(lithos.server.get(Edges), "_reading", Counting())
    edges = (await lithos.call("lithos_related", id=one))["edges"]
    assert {row["edge_id"] for side in ("outgoing", "incoming") for row in edges[side]} == given
    assert jobs == 1


async def test_typed_edges_are_empty_without_lcma(tmp_path: Path) -> None:
    """behaviour 77"""
    async with serving(tmp_path, lcma=LcmaConfig(enabled=False)) as lithos:
        note, other = await lithos.create("Note"), await lithos.create("Other")
        await edge(lithos, note, other)
        answer = await lithos.call("lithos_related", id=note)
        assert (answer["included"][-1], answer["edges"], answer["related_ids"]) == ("edges", EMPTY_SIDES, [])


async def test_provenance_is_sorted_and_depth_two_adds_indirect_sources(
    lithos: Lithos,
) -> None:
    """behaviour 81"""
    roots = [await lithos.create(f"Root {number}") for number in range(4)]
    parents = [await lithos.create(f"Parent {n}", derived_from_ids=[roots[n], MISSING_ID]) for n in range(4)]
    note = await lithos.create("Note", derived_from_ids=parents)

    async def ids(start: str, depth: int, side: str) -> list[str]:
        answer = await lithos.call("lithos_related", id=start, include=["provenance"], depth=depth)
        assert answer["provenance"]["unresolved_sources"] == ([MISSING_ID] if start in parents else [])
        return [row["id"] for row in answer["provenance"][side]]

    assert await ids(note, 1, "sources") == sorted(parents)
    assert await ids(note, 2, "sources") == sorted(parents + roots)
    assert await ids(parents[0], 1, "sources") == [roots[0]]
    assert await ids(roots[1], 1, "derived") == [parents[1]]
    assert await ids(roots[1], 2, "derived") == sorted([parents[1], note])


async def test_related_call_for_an_unknown_note_is_refused(lithos: Lithos) -> None:
    """behaviour 82"""
    assert MISSING_ID in refusal(await lithos.call("lithos_related", id=MISSING_ID), "doc_not_found")
    refusal(await lithos.call("lithos_related", id=" "), "invalid_input")


async def test_deleted_note_disappears_from_links_and_provenance(lithos: Lithos) -> None:
    """behaviours 43, 48"""
    target = await lithos.create("Target")
    note = await lithos.create("Note", "[[Target]]", derived_from_ids=[target])
    before = (lithos.knowledge / "note.md").read_bytes()
    await lithos.call("lithos_delete", id=target, agent="a")
    answer = await lithos.call("lithos_related", id=note)
    assert answer["links"] == EMPTY_SIDES
    assert answer["provenance"]["unresolved_sources"] == [target]
    assert answer["provenance"]["sources"] == answer["provenance"]["derived"] == []
    assert answer["related_ids"] == []
    refusal(await lithos.call("lithos_related", id=target), "doc_not_found")
    assert (lithos.knowledge / "note.md").read_bytes() == before


async def test_link_resolves_regardless_of_creation_order_and_after_recreation(lithos: Lithos) -> None:
    """behaviour 179"""
    note = await lithos.create("Note", "[[later on]]")
    assert await linked(lithos, note) == ([], [])
    for _ in range(2):
        later = await lithos.create("Later-On")
        assert await linked(lithos, note) == (["Later-On"], [])
        assert await linked(lithos, later) == ([], ["Note"])
        await lithos.call("lithos_delete", id=later, agent="a")
        assert await linked(lithos, note) == ([], [])


async def test_ambiguous_stem_resolves_to_no_note(lithos: Lithos) -> None:
    """behaviour 76"""
    await lithos.create("One", path="a/same.md")
    note = await lithos.create("Note", "[[same]]")
    assert await linked(lithos, note) == (["One"], [])
    await lithos.create("Two", path="b/same.md")
    assert await linked(lithos, note) == ([], [])
    assert (await lithos.call("lithos_stats"))["unresolved_links"] == 1


async def test_changes_made_while_server_is_stopped_apply_after_restart(tmp_path: Path) -> None:
    """behaviour 137"""
    put_note(tmp_path, "a.md", "# A\n\n[[Old title]] [[c]]\n")
    put_note(tmp_path, "b.md", "# Old title\n")
    async with serving(tmp_path) as lithos:
        note = (await lithos.call("lithos_read", path="a.md"))["id"]
        assert await linked(lithos, note) == (["Old title"], [])
    async with serving(tmp_path) as lithos:
        assert await linked(lithos, note) == (["Old title"], [])
    put_note(tmp_path, "b.md", "# New title, longer\n")
    put_note(tmp_path, "c.md", "# C\n\n[[a]]\n")
    async with serving(tmp_path) as lithos:
        assert await linked(lithos, note) == (["C"], ["C"])
