"""`lithos_read` and `lithos_delete`."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from lithos.notes.files import values
from lithos.notes.service import knowledge
from tests.servers import MISSING_ID, Clock, Lithos, put_note, refusal, serving

METADATA_KEYS = [
    "id", "title", "author", "created_at", "updated_at", "tags", "aliases", "confidence", "contributors",
    "source", "supersedes", "version", "source_url", "derived_from_ids", "expires_at", "schema_version",
    "namespace", "access_scope", "note_type", "status", "summaries", "entities", "entities_extractor",
    "extra",
]  # fmt: skip


async def test_read_returns_all_keys_of_a_note(lithos: Lithos, clock: Clock) -> None:
    """behaviours 15, 19, 46"""
    note = await lithos.create(
        "Title", "See [[other|that]] and [[dir/x]], not a[[0]]; [[other|that]].", path="a/b", tags=["t"]
    )
    read = await lithos.read(note)
    assert list(read) == [
        "id", "title", "content", "metadata", "links", "truncated", "retrieval_count", "path", "version",
        "namespace",
    ]  # fmt: skip
    assert list(read["metadata"]) == METADATA_KEYS
    assert read | {"metadata": {}} == {
        "id": note,
        "title": "Title",
        "content": "See [[other|that]] and [[dir/x]], not a[[0]]; [[other|that]].",
        "metadata": {},
        "links": [
            {"target": "other", "display": "that"},
            {"target": "dir/x", "display": "dir/x"},
            {"target": "other", "display": "that"},
        ],
        "truncated": False,
        "retrieval_count": 1,
        "path": "a/b/title.md",
        "version": 1,
        "namespace": "a/b",
    }
    assert read["metadata"] == {
        "id": note, "title": "Title", "author": "tester", "created_at": clock.text,
        "updated_at": clock.text,
        "tags": ["t"], "aliases": [], "confidence": 1.0, "contributors": [], "source": None,
        "supersedes": None, "version": 1, "source_url": None, "derived_from_ids": [], "expires_at": None,
        "schema_version": 1, "namespace": "a/b", "access_scope": "shared", "note_type": "observation",
        "status": "active", "summaries": None, "entities": [], "entities_extractor": None, "extra": {},
    }  # fmt: skip


async def test_repeated_read_returns_the_current_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's edit is visible before the watcher notices it.

    Writes, moves and deletions are visible as well.
    """
    monkeypatch.setattr(values, "COARSEST", -3_600.0)  # Files are cached even if they changed recently.
    path = put_note(tmp_path, "a.md", "# Title\n\nSee [[one]].\n")
    async with serving(tmp_path) as lithos:
        note = (await lithos.call("lithos_list"))["items"][0]["id"]
        first, again = await lithos.read(note), await lithos.read(note)
        assert again == first | {"retrieval_count": 2}
        assert (await lithos.read(note, max_length=5))["content"] == "Se..."
        path.write_text("# Title\n\nA person's edit, see [[two]].\n")
        edited = await lithos.read(note)
        assert (edited["content"], edited["links"][0]["target"]) == ("A person's edit, see [[two]].", "two")
        assert edited["version"] == 2
        assert await lithos.read(note) == edited | {"retrieval_count": 5}
        await lithos.write("Title", "Written by a tool.", id=note)
        for _ in range(2):
            assert (await lithos.read(note))["content"] == "Written by a tool."
        await lithos.call("lithos_note_update", id=note, agent="a", tags=["new"])
        assert (await lithos.read(note))["metadata"]["tags"] == ["new"]
        path.unlink()
        refusal(await lithos.call("lithos_read", id=note), "doc_not_found")


async def test_read_of_an_unknown_note_is_refused(lithos: Lithos) -> None:
    """behaviour 44"""
    for arguments in ({"id": MISSING_ID}, {"path": "none"}, {"path": "a/b.md"}, {"path": "x" * 250}):
        refusal(await lithos.call("lithos_read", **arguments), "doc_not_found")
    for arguments in ({}, {"id": ""}, {"path": ""}, {"path": "x" * 300}, {"path": "a/" * 2000 + "b"}):
        refusal(await lithos.call("lithos_read", **arguments), "invalid_input")
    assert await lithos.audit() == []


DOTTED = ("Dr. Smith", "v1.2 notes", "sub/Ver. 3.0", "report.pdf")


@pytest.mark.parametrize("path", DOTTED)
async def test_note_name_with_a_full_stop_is_found(lithos: Lithos, path: str) -> None:
    """behaviour 389: by path with and without `.md`, by title, through links and by other tools."""
    title = path.rpartition("/")[2]
    note = await lithos.create(title, "dotted", path=f"{path}.md")
    other = await lithos.create("Other", f"See [[{title}]].")
    for spelled in (path, f"{path}.md"):
        assert (await lithos.call("lithos_read", path=spelled))["id"] == note
        assert (await lithos.call("lithos_history", path=spelled))["id"] == note
        related = await lithos.call("lithos_related", path=spelled)
        assert [row["id"] for row in related["links"]["incoming"]] == [other]
    assert (await lithos.call("lithos_read", title=title))["id"] == note


async def test_id_takes_precedence_over_path(lithos: Lithos) -> None:
    first, _ = await lithos.create("First"), await lithos.create("Second")
    assert (await lithos.read(first, path="second"))["id"] == first
    refusal(await lithos.call("lithos_read", id=MISSING_ID, path="second"), "doc_not_found")


async def test_note_whose_file_vanished_is_not_found(lithos: Lithos, monkeypatch: pytest.MonkeyPatch) -> None:
    """behaviour 44"""
    monkeypatch.setattr(knowledge, "BUSY_PATIENCE", 0.1)
    note = await lithos.create("N")
    (lithos.knowledge / "n.md").unlink()
    assert "n.md" in refusal(await lithos.call("lithos_read", id=note), "doc_not_found")
    answer = await lithos.call("lithos_write", id=note, title="N", content="x", agent="a")
    assert "n.md" in refusal(answer, "version_conflict")
    assert await lithos.call("lithos_delete", id=note, agent="a") == {"success": True}
    assert [kind for kind, _ in lithos.events()] == ["note.created", "note.deleted"]


async def test_content_is_cut_to_the_maximum_length(lithos: Lithos) -> None:
    """behaviour 45"""
    text = "First sentence here. Second one there!\n\nA paragraph with 日本語。 And the [[end]]."
    note = await lithos.create(content=text)
    for length in (1, 2, 3, 4, 5, 20, 30, 50, len(text) - 1):
        read = await lithos.read(note, max_length=length)
        assert read["truncated"] is True
        assert len(read["content"]) <= length
        assert [link["target"] for link in read["links"]] == ["end"]
    for length in (None, 0, len(text), 10**18, str(len(text))):
        read = await lithos.read(note, max_length=length)
        assert (read["content"], read["truncated"]) == (text, False)
    assert "max_length" in refusal(await lithos.call("lithos_read", id=note, max_length=-1), "invalid_input")


async def test_retrieval_count_counts_only_reads(tmp_path: Path) -> None:
    """behaviour 46"""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Zebra", "zebra")
        counts = [(await lithos.read(note, agent_id=agent))["retrieval_count"] for agent in ("x", None, "")]
        assert counts == [1, 2, 3]
        assert await lithos.found("zebra", agent_id="y") == ["Zebra"]
        await lithos.call("lithos_cache_lookup", query="zebra")
        await lithos.call("lithos_read", id=note, max_length=-1)
        assert (await lithos.read(note))["retrieval_count"] == 4
        assert await lithos.audit() == [
            ("x", note, "read"),
            ("unknown", note, "read"),
            ("unknown", note, "read"),
            ("y", note, "search_result"),
            ("unknown", note, "read"),
        ]
        assert await lithos.call("lithos_agent_info", id="x") is None
    async with serving(tmp_path) as lithos:
        assert (await lithos.read(note))["retrieval_count"] == 5


async def test_notes_of_every_status_and_scope_can_be_read(lithos: Lithos) -> None:
    for status in ("archived", "quarantined"):
        note = await lithos.create(status, status=status, access_scope="agent_private")
        assert (await lithos.read(note))["metadata"]["status"] == status
        assert await lithos.found(status) == [status]


async def test_deletion_returns_success_and_requires_an_agent(lithos: Lithos) -> None:
    """behaviours 47, 91, 127, 173"""
    note = await lithos.create()
    assert "agent" in refusal(await lithos.call("lithos_delete", id=note, agent=" "), "invalid_input")
    assert "id" in refusal(await lithos.call("lithos_delete", id="", agent="a"), "invalid_input")
    assert await lithos.call("lithos_delete", id=note, agent="a") == {"success": True}
    events = lithos.events()
    refusal(await lithos.call("lithos_delete", id=note, agent="late"), "doc_not_found")
    assert lithos.events() == events
    assert (await lithos.call("lithos_agent_info", id="late"))["id"] == "late"
    assert lithos.files() == []


async def test_deleted_note_disappears_from_all_tools(lithos: Lithos) -> None:
    """behaviours 48, 49"""
    target = await lithos.create("Target zebra", "zebra", tags=["both", "only"])
    await lithos.create("Source", "See [[target-zebra]] of lions.", tags=["both"])
    stats = await lithos.call("lithos_stats")
    assert (stats["graph_node_count"], stats["graph_edge_count"], stats["unresolved_links"]) == (2, 1, 0)
    await lithos.call("lithos_delete", id=target, agent="a")
    for mode in ("fulltext", "semantic", "hybrid"):
        assert "Target zebra" not in await lithos.found("zebra", mode=mode)
    stats = await lithos.call("lithos_stats")
    assert (stats["graph_node_count"], stats["graph_edge_count"], stats["unresolved_links"]) == (2, 1, 1)
    assert (stats["documents"], stats["chunks"], stats["tantivy_doc_count"]) == (1, 1, 1)
    assert (await lithos.call("lithos_tags"))["tags"] == {"both": 1}
    assert await lithos.listed() == ["Source"]
    refusal(await lithos.call("lithos_read", path="target-zebra"), "doc_not_found")
    again = await lithos.create("Target zebra")
    assert again != target
    assert (await lithos.call("lithos_stats"))["unresolved_links"] == 0


async def test_deletion_of_a_source_keeps_its_dependents_unchanged(tmp_path: Path) -> None:
    """behaviour 43"""
    async with serving(tmp_path) as lithos:
        source = await lithos.create("Source")
        derived = await lithos.create("Derived", derived_from_ids=[source])
        before = (lithos.knowledge / "derived.md").read_bytes()
        await lithos.call("lithos_delete", id=source, agent="a")
        assert (lithos.knowledge / "derived.md").read_bytes() == before
        assert (await lithos.read(derived))["metadata"]["derived_from_ids"] == [source]
        put_note(tmp_path, "back.md", f"---\nid: {source}\n---\n# Back\n")
        assert (await lithos.write("Derived", id=derived, derived_from_ids=[source]))["warnings"] != []
    async with serving(tmp_path) as lithos:
        answer = await lithos.write("Derived", id=derived, derived_from_ids=[source])
        assert answer["warnings"] == []


async def test_read_during_concurrent_writes_returns_a_complete_version(lithos: Lithos) -> None:
    """behaviour 194"""
    note = await lithos.create(content="version 1")
    async with trio.open_nursery() as nursery:

        async def look() -> None:
            for _ in range(30):
                read = await lithos.read(note)
                assert read["content"] == f"version {read['version']}"

        nursery.start_soon(look)
        for version in range(2, 12):
            await lithos.write(id=note, content=f"version {version}")
            assert (await lithos.read(note))["version"] == version
