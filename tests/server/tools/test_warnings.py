"""Lineage warnings on a complete server, in every answer that shows notes (docs/spec/context.md §2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.values.errors import StorageFailed
from lithos.memory.model.memory import ProjectProvenance
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.rows.edges import EdgeStore
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.writing.messages import PatchNote
from tests.memory.tools.test_retrieve import connect, retrieve
from tests.servers import Answer, Clock, Lithos, put_note, refusal, serving

#: A query that finds all notes of a test by full-text search and by semantic search.
QUERY = "zebra stripes"


async def note(lithos: Lithos, title: str, *sources: str, **more: Any) -> str:
    fields = {"source_url": f"https://e.org/{title}", "derived_from_ids": list(sources)} | more
    return await lithos.create(title, f"{QUERY} of {title}.", **fields)


async def change(lithos: Lithos, note_id: str, **fields: Any) -> None:
    answer = await lithos.call("lithos_write", id=note_id, agent="eve", **fields)
    assert answer["status"] == "updated", answer


async def quarantine(lithos: Lithos, note_id: str, reason: str | None = None) -> None:
    await lithos.server.get(Knowledge).write(
        PatchNote(id=note_id, agent="eve", status="quarantined", quarantine_reason=reason)
    )


async def clear(lithos: Lithos, note_id: str) -> None:
    answer = await lithos.call("lithos_note_update", id=note_id, agent="eve", status="active")
    assert answer["status"] == "updated"


async def supersede(lithos: Lithos, winner: str, loser: str) -> None:
    await lithos.server.get(Knowledge).write(PatchNote(id=winner, agent="eve", supersedes=loser))


def kinds(row: Answer) -> list[tuple[str, str, int]]:
    """Return kind, cause and distance of each warning in a row. A row without warnings has no such key."""
    if "warnings" not in row:
        return []
    assert row["warnings"], "an empty key"
    assert all(list(each) == ["kind", "id", "title", "reason", "distance"] for each in row["warnings"])
    return [(each["kind"], each["id"], each["distance"]) for each in row["warnings"]]


async def views(lithos: Lithos, note_id: str, title: str, hub: str) -> dict[str, tuple[Any, ...]]:
    """Return the warnings of a note from every answer that shows the note. `hub` links to the note."""
    shown: dict[str, Any] = {}

    def take(view: str, rows: Sequence[Answer], key: str = "id") -> None:
        mine = [row for row in rows if row[key] == note_id]
        if mine:
            shown[view] = kinds(mine[0])

    for mode in ("hybrid", "fulltext", "semantic"):
        take(mode, (await lithos.call("lithos_search", query=QUERY, mode=mode, limit=50))["results"])
    graph = await lithos.call("lithos_search", query="", mode="graph", seed_ids=[hub], limit=50)
    take("graph", graph["results"])
    take("retrieve", (await retrieve(lithos, QUERY, limit=50))["results"])
    take("list", (await lithos.call("lithos_list"))["items"])
    take("list by text", (await lithos.call("lithos_list", content_query=QUERY))["items"])
    related = await lithos.call("lithos_related", id=hub)
    take("links", related["links"]["outgoing"])
    take("provenance", related["provenance"]["derived"])
    take("edges", related["edges"]["outgoing"], "to_id")
    shown["read"] = kinds(await lithos.read(note_id))
    shown["path"] = kinds(await lithos.call("lithos_read", path=f"{title.lower()}.md"))
    shown["outline"] = kinds(await lithos.read(note_id, outline=True))
    shown["version"] = kinds(await lithos.read(note_id, version=1))
    looked = await lithos.call("lithos_cache_lookup", query="", source_url=f"https://e.org/{title}")
    if looked["hit"]:
        shown["cache"] = kinds(looked)
    return {view: tuple(found) for view, found in shown.items()}


VIEWS = [
    "hybrid", "fulltext", "semantic", "graph", "retrieve", "list", "list by text", "links", "provenance",
    "edges", "read", "path", "outline", "version", "cache",
]  # fmt: skip


async def test_all_dependents_warn_at_once_of_a_quarantined_source(lithos: Lithos, clock: Clock) -> None:
    """behaviour 231"""
    source = await note(lithos, "Source")
    hub = await note(lithos, "Hub")
    near = await note(lithos, "Near", source, hub)
    far = await note(lithos, "Far", near, hub)
    loop = await note(lithos, "Loop", far)
    await change(lithos, near, derived_from_ids=[source, hub, loop])  # a cycle
    await change(lithos, hub, content="[[Near]] [[Far]]")
    for end in (near, far):
        await connect(lithos, hub, end, "supports")
    for title, each in (("Near", near), ("Far", far)):
        assert await views(lithos, each, title, hub) == dict.fromkeys(VIEWS, ())
    await quarantine(lithos, source, "numbers invented")
    for title, each, distance in (("Near", near, 1), ("Far", far, 2)):
        expected = (("suspect", source, distance),)
        assert await views(lithos, each, title, hub) == dict.fromkeys(VIEWS, expected)
    (warning,) = (await lithos.read(near))["warnings"]
    assert warning == {
        "kind": "suspect",
        "id": source,
        "title": "Source",
        "reason": "depends on a quarantined note: numbers invented",
        "distance": 1,
    }
    assert kinds(await lithos.read(loop)) == [("suspect", source, 3)]
    assert kinds(await lithos.read(source)) == [("quarantined", source, 0)]
    assert (await lithos.read(source))["warnings"][0]["reason"] == "numbers invented"
    assert kinds(await lithos.read(hub)) == []
    await clear(lithos, source)
    for title, each in (("Near", near), ("Far", far)):
        assert await views(lithos, each, title, hub) == dict.fromkeys(VIEWS, ())


@pytest.mark.parametrize("kind", ["derived_from", "depends_on", "refines"])
async def test_typed_edges_count_for_lineage_immediately_and_after_restart(tmp_path: Path, kind: str) -> None:
    """behaviour 231"""
    async with serving(tmp_path, settled=False) as lithos:
        source, near, other = [await note(lithos, title) for title in ("Source", "Near", "Other")]
        await quarantine(lithos, source)
        assert kinds(await lithos.read(near)) == []
        await connect(lithos, near, source, kind, provenance_type="asserted")
        assert kinds(await lithos.read(near)) == [("suspect", source, 1)]
        assert kinds(await lithos.read(other)) == []
        await connect(lithos, other, source, kind, provenance_type="inferred")
        await connect(lithos, other, source, "supports")
        await connect(lithos, source, other, kind)
        assert kinds(await lithos.read(other)) == []
    async with serving(tmp_path, settled=False) as lithos:
        assert kinds(await lithos.read(near)) == [("suspect", source, 1)]
        assert kinds(await lithos.read(other)) == []
        # Write the same edge again with another provenance.
        await connect(lithos, near, source, kind, provenance_type="inferred")
        assert kinds(await lithos.read(near)) == []


async def test_frontmatter_edges_are_ignored_when_the_note_removes_them(tmp_path: Path) -> None:
    """behaviour 231: edges from frontmatter are updated later than the note, so they are ignored."""
    async with serving(tmp_path, settled=False) as lithos:
        source = await note(lithos, "Source")
        near = await note(lithos, "Near", source)
        await quarantine(lithos, source)
        await lithos.server.get(Learning).submit(ProjectProvenance(desired={near: ("default", (source,))}))
        await change(lithos, near, derived_from_ids=[])
        assert len((await lithos.call("lithos_edge_list", from_id=near))["edges"]) == 1
        assert kinds(await lithos.read(near)) == []
    async with serving(tmp_path, settled=False) as lithos:
        assert kinds(await lithos.read(near)) == []


async def test_warnings_name_the_successor_or_the_contradicting_note(lithos: Lithos) -> None:
    """behaviour 233"""
    old, new, child = [await note(lithos, title) for title in ("Old", "New", "Child")]
    await change(lithos, child, derived_from_ids=[old])
    edge = await connect(lithos, old, new, "contradicts")
    assert kinds(await lithos.read(old)) == [("contradicted", new, 1)]
    assert kinds(await lithos.read(new)) == [("contradicted", old, 1)]
    assert kinds(await lithos.read(child)) == []
    answer = await lithos.call(
        "lithos_conflict_resolve", edge_id=edge, resolution="superseded", resolver="eve", winner_id=new
    )
    assert answer["status"] == "ok"
    read = await lithos.read(old)
    assert kinds(read) == [("superseded", new, 1)]
    assert read["warnings"][0]["title"] == "New"
    assert kinds(await lithos.read(child)) == [("suspect", old, 1)]
    assert kinds(await lithos.read(new)) == []
    await change(lithos, new, derived_from_ids=[old])  # the new note is derived from the superseded note
    assert kinds(await lithos.read(new)) == []
    await change(lithos, child, derived_from_ids=[old, new])  # the child is also derived from the successor
    assert kinds(await lithos.read(child)) == []
    await lithos.call("lithos_delete", id=new, agent="eve")
    assert kinds(await lithos.read(old)) == kinds(await lithos.read(child)) == []


async def test_successor_chains_and_resolved_contradictions_remove_warnings(
    lithos: Lithos,
) -> None:
    """behaviour 233"""
    first, second, third = [await note(lithos, title) for title in ("First", "Second", "Third")]
    await change(lithos, third, derived_from_ids=[first])
    await supersede(lithos, second, first)
    assert kinds(await lithos.read(third)) == [("suspect", first, 1)]
    await supersede(lithos, third, second)
    assert kinds(await lithos.read(third)) == []
    for resolution in ("accepted_dual", "refuted", "merged"):
        edge = await connect(lithos, first, third, "contradicts")
        assert kinds(await lithos.read(third)) == [("contradicted", first, 1)]
        await lithos.call("lithos_conflict_resolve", edge_id=edge, resolution=resolution, resolver="eve")
        assert kinds(await lithos.read(third)) == []


async def test_expired_note_has_a_warning_according_to_the_clock(lithos: Lithos, clock: Clock) -> None:
    short = await note(lithos, "Short", ttl_hours=1)
    assert kinds(await lithos.read(short)) == []
    clock.advance(hours=2)
    assert kinds(await lithos.read(short)) == [("expired", short, 0)]
    (row,) = (await lithos.call("lithos_list"))["items"]
    assert kinds(row) == [("expired", short, 0)]


async def test_truncated_read_reports_trust_warnings_and_truncation(tmp_path: Path) -> None:
    """One list contains the trust warnings first, and then the warning about the truncation."""
    async with serving(tmp_path, settled=False, server={"max_answer_chars": 20_000}) as lithos:
        long = await lithos.create("Long", "word " * 10_000)
        await quarantine(lithos, long)
        for answer in (await lithos.read(long), await lithos.read(long, max_length=100)):
            assert [each["kind"] for each in answer["warnings"]] == ["quarantined", "cut"]


async def test_manual_file_edits_and_deletions_change_the_warnings(tmp_path: Path) -> None:
    put_note(
        tmp_path, "a.md", "---\nid: a\nderived_from_ids: [00000000-0000-4000-8000-00000000000b]\n---\n# A\n"
    )
    put_note(
        tmp_path, "b.md", "---\nid: 00000000-0000-4000-8000-00000000000b\nstatus: quarantined\n---\n# B\n"
    )
    async with serving(tmp_path, settled=False) as lithos:
        cause = "00000000-0000-4000-8000-00000000000b"
        assert kinds(await lithos.read("a")) == [("suspect", cause, 1)]
        await lithos.call("lithos_delete", id=cause, agent="eve")
        assert kinds(await lithos.read("a")) == []
        await lithos.call("lithos_restore", id=cause, version=1, agent="eve")
        assert kinds(await lithos.read("a")) == [("suspect", cause, 1)]


async def test_retrieval_ranks_suspect_notes_lower_and_warns(lithos: Lithos) -> None:
    """behaviour 231: the score is multiplied by 0.7, so a note just outside the limit moves up."""
    source = await lithos.create("Source", "Something else entirely.")
    made: dict[str, str] = {}
    for title in ("A", "B", "C", "D"):
        made[title] = await lithos.create(
            f"Zebra {title}", "zebra " * 3 + "stripes.", derived_from_ids=[source] if title in "AC" else []
        )
    before = (await retrieve(lithos, "zebra", limit=4))["results"]
    order, scores = [row["id"] for row in before], {row["id"]: row["score"] for row in before}
    await quarantine(lithos, source)
    after = (await retrieve(lithos, "zebra", limit=4))["results"]
    suspects = {made["A"], made["C"]}
    expected = {each: scores[each] * (0.7 if each in suspects else 1.0) for each in order}
    assert [row["id"] for row in after] == sorted(
        order, key=lambda each: (-expected[each], order.index(each))
    )
    for row in after:
        assert row["score"] == pytest.approx(expected[row["id"]])
        says = [reason for reason in row["reasons"] if "suspect" in reason]
        assert (len(says), "warnings" in row) == ((1, True) if row["id"] in suspects else (0, False))
    two = (await retrieve(lithos, "zebra", limit=2))["results"]
    assert [row["id"] for row in two] == [row["id"] for row in after[:2]]
    assert not suspects & {row["id"] for row in two}
    found = (await lithos.call("lithos_search", query="zebra", limit=4))["results"]
    assert [row["id"] for row in found] == order  # search shows the warning without a change of order


async def test_suspect_notes_follow_sound_notes_in_a_small_retrieval(lithos: Lithos) -> None:
    source = await note(lithos, "Source")
    suspects = {await note(lithos, f"Part{each}", source, tags=["x"]) for each in range(5)}
    await note(lithos, "Sound", tags=["x"])
    await quarantine(lithos, source)
    rows = (await retrieve(lithos, QUERY, tags=["x"], limit=3))["results"]
    assert rows[0]["title"] == "Sound"
    assert {row["id"] for row in rows[1:]} <= suspects
    assert len(rows) == 3


async def test_retrieval_warnings_do_not_name_notes_hidden_from_the_caller(lithos: Lithos) -> None:
    """Retrieval does not show names of notes that the access gate hides.

    Search and other tools show every note, so they also show every name.
    """
    private = await note(lithos, "Private", access_scope="agent_private", agent="ann")
    near = await note(lithos, "Near", private)
    rival = await note(lithos, "Rival", access_scope="agent_private", agent="ann")
    await connect(lithos, near, rival, "contradicts")
    await quarantine(lithos, private, "secret reason")
    for asker, told in (
        ("ann", [("suspect", private, 1), ("contradicted", rival, 1)]),
        ("bob", [("suspect", "", 1)]),
    ):
        rows = (await retrieve(lithos, QUERY, agent_id=asker))["results"]
        (row,) = [row for row in rows if row["id"] == near]
        assert kinds(row) == told
        if asker == "bob":
            assert "secret" not in str(row)
            assert "Private" not in str(row)
    (row,) = [
        row for row in (await lithos.call("lithos_search", query=QUERY))["results"] if row["id"] == near
    ]
    assert kinds(row) == [("suspect", private, 1), ("contradicted", rival, 1)]


async def test_refused_edge_is_ignored_and_edges_count_once_reread(
    lithos: Lithos, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, near = await note(lithos, "Source"), await note(lithos, "Near")
    await quarantine(lithos, source)
    upsert = EdgeStore.upsert

    def fail(*_: Any) -> Any:
        raise DatabaseFailed("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(EdgeStore, "upsert", fail)
        answer = await lithos.call(
            "lithos_edge_upsert", from_id=near, to_id=source, type="refines", weight=1, namespace="n"
        )
        refusal(answer, StorageFailed.code)
    assert kinds(await lithos.read(near)) == []
    with monkeypatch.context() as patch:
        patch.setattr(EdgeStore, "edge", fail)
        await connect(lithos, near, source, "refines")
    assert upsert is EdgeStore.upsert
    await connect(lithos, near, source, "supports")  # this change makes the server read all edges again
    assert kinds(await lithos.read(near)) == [("suspect", source, 1)]


async def test_legacy_tools_show_warnings(tmp_path: Path) -> None:
    async with serving(tmp_path, server={"legacy_tools": True}) as lithos:
        source = await note(lithos, "Source")
        near = await note(lithos, "Near", source)
        hub = await lithos.create("Hub", "[[Near]]")
        await quarantine(lithos, source)
        expected = [("suspect", source, 1)]
        (link,) = (await lithos.call("lithos_links", id=hub))["outgoing"]
        (derived,) = (await lithos.call("lithos_provenance", id=source))["derived"]
        rows = (await lithos.call("lithos_semantic", query=QUERY))["results"]
        (found,) = [row for row in rows if row["id"] == near]
        assert [kinds(link), kinds(derived), kinds(found)] == [expected] * 3
