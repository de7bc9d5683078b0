"""State after a restart on the same data directory: notes, versions, agents, reads, indexes and links."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw
import pytest

from lithos.events.journal.coordinator import Coordinator
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.values.events import Event
from lithos.server.service_state import ServerState
from tests.servers import MISSING_ID, put_note, refusal, serving


async def test_server_state_survives_a_restart(tmp_path: Path) -> None:
    """behaviours 5, 17, 51"""
    async with serving(tmp_path) as lithos:
        first = await lithos.create(
            "First zebra", "zebra [[second]]", path="deep/er/File.md", tags=["a", "b: c"], confidence=0.25,
            source_url="https://e.org/x", metadata={"k": [1, {"x": None}]}, expires_at="2031-01-01",
            summaries={"long": "two\nlines"},
        )  # fmt: skip
        second = await lithos.create("Second", "lion", derived_from_ids=[first])
        await lithos.write("Second", "lion, changed", id=second, agent="other")
        gone = await lithos.create("Gone", "zebra")
        await lithos.call("lithos_delete", id=gone, agent="a")
        await lithos.call("lithos_agent_register", id="ann", name="Ann", type="t", metadata={"m": 1})
        before = await _everything(lithos, first, second)
        head = lithos.server.get(Coordinator).head
    async with serving(tmp_path) as lithos:
        after = await _everything(lithos, first, second)
        for note in (first, second):
            assert after["notes"][note]["retrieval_count"] == before["notes"][note]["retrieval_count"] + 1
            after["notes"][note]["retrieval_count"] -= 1
        assert after == before
        assert lithos.events() == []
        refusal(await lithos.call("lithos_read", id=gone), "doc_not_found")
        duplicate = await lithos.call(
            "lithos_write", title="X", content="", agent="a", source_url="https://e.org/x/"
        )
        assert duplicate["duplicate_of"]["id"] == first
        refusal(await lithos.call("lithos_write", title="Second", content="", agent="a"), "slug_collision")
        assert (await lithos.write("Second", id=second, expected_version=2))["version"] == 3
        assert lithos.server.get(Coordinator).head > head


async def _everything(lithos: Any, *notes: str) -> dict[str, Any]:
    stats = await lithos.call("lithos_stats")
    return {
        "notes": {note: await lithos.read(note) for note in notes},
        "list": await lithos.call("lithos_list"),
        "tags": await lithos.call("lithos_tags"),
        "agents": await lithos.call("lithos_agent_list"),
        "stats": {key: value for key, value in stats.items() if not key.endswith("_last_updated")},
        "found": {
            mode: await lithos.found("zebra", mode=mode) for mode in ("fulltext", "semantic", "hybrid")
        },
    }


async def test_missing_source_is_resolved_once_it_appears(tmp_path: Path) -> None:
    """behaviour 42"""
    async with serving(tmp_path) as lithos:
        answer = await lithos.write("Derived", derived_from_ids=[MISSING_ID])
        assert (answer["status"], answer["warnings"]) == (
            "created",
            [f"derived_from_ids contains missing document: {MISSING_ID}"],
        )
    put_note(tmp_path, "source.md", f"---\nid: {MISSING_ID}\n---\n# Source\n")
    async with serving(tmp_path) as lithos:
        again = await lithos.write("Derived", id=answer["id"], derived_from_ids=[MISSING_ID])
        assert (again["version"], again["warnings"]) == (2, [])


async def test_slug_collision_on_disk_causes_only_a_warning(tmp_path: Path) -> None:
    """behaviour 14"""
    put_note(tmp_path, "a.md", "# Same title\n\nfirst zebra\n")
    put_note(tmp_path, "b.md", "# Same title\n\nsecond zebra\n")
    async with serving(tmp_path) as lithos:
        assert len(await lithos.found("zebra")) == 2
        first = (await lithos.call("lithos_read", path="a"))["id"]
        second = (await lithos.call("lithos_read", path="b"))["id"]
        answer = await lithos.call("lithos_write", title="Same title", content="", agent="a")
        assert refusal(answer, "slug_collision")
        assert answer["existing_id"] == first
        # A note does not collide with its own current title.
        assert (await lithos.write("Same title", id=second))["version"] == 2


async def test_unreadable_files_do_not_hide_notes(tmp_path: Path) -> None:
    """behaviour 22"""
    put_note(tmp_path, "good.md", "# Good\n\nzebra\n")
    put_note(tmp_path, "malformed.md", "---\ntags: [unclosed\n---\n# Zebra\n")
    put_note(tmp_path, "binary.md", b"\x00\x01zebra")
    put_note(tmp_path, "latin.md", "zebra é".encode("latin-1"))
    put_note(tmp_path, "torn.md", "---\ntitle: {\n---\nzebra\n")
    put_note(tmp_path, ".hidden/x.md", "# Zebra\n")
    put_note(tmp_path, "other.txt", "zebra")
    put_note(tmp_path, "empty.md", "")
    before = {path: path.read_bytes() for path in (tmp_path / "knowledge").rglob("*") if path.is_file()}
    async with serving(tmp_path) as lithos:
        assert await lithos.listed() == ["empty", "Good"]
        assert await lithos.found("zebra", mode="fulltext") == ["Good"]
        refusal(await lithos.call("lithos_read", path="malformed"), "doc_not_found")
    assert {path: path.read_bytes() for path in before} == before


async def test_malformed_note_can_be_neither_read_nor_overwritten(tmp_path: Path) -> None:
    """behaviour 22: Lithos never loses text that a person is editing."""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("N", "zebra")
        file = lithos.knowledge / "n.md"
        file.write_text("---\nid: [unclosed\n---\n# N\n\nby hand\n")
        answer = await lithos.call("lithos_write", id=note, title="N", content="new", agent="a")
        assert "n.md" in refusal(answer, "internal_error")
        assert "by hand" in file.read_text()
        refusal(await lithos.call("lithos_read", id=note), "doc_not_found")


async def test_scan_events_are_announced_once_after_a_journal_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 193: the manifest must not record removals that are not journalled yet."""
    file = put_note(tmp_path, "gone.md", "---\nid: 00000000-0000-4000-8000-000000000001\n---\n# Gone\n")
    async with serving(tmp_path):
        file.unlink()
    append, refused = CoordinationStore.append_events, []

    def refuse_once(self: CoordinationStore, events: Iterable[Event]) -> None:
        told = list(events)
        if told and not refused:
            refused.append(told)
            raise apsw.FullError("injected")
        append(self, told)

    monkeypatch.setattr(CoordinationStore, "append_events", refuse_once)
    async with serving(tmp_path) as lithos:
        await lithos.create("Other")
        first = lithos.first_seq
    assert refused
    async with serving(tmp_path) as lithos:
        told = [event.draft.type for event in lithos.server.get(Coordinator)._store.events_after(first)]
        assert told == ["note.deleted", "note.created"]


@pytest.mark.parametrize(
    ("copy", "kind", "counted"),
    [("Shared 2.md", "conflict_copy", "conflict_copies"), ("Archive/Shared.md", "duplicated", "duplicated")],
)
async def test_copy_of_a_note_is_reported_and_is_never_edited(
    tmp_path: Path, copy: str, kind: str, counted: str
) -> None:
    """behaviour 2: until a person resolves the conflict, the id refers to the same file across restarts."""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Shared", "the note itself", path="Shared.md")
        assert counted not in await _notes_component(lithos)
    text = (tmp_path / "knowledge/Shared.md").read_text()
    second = put_note(tmp_path, copy, text.replace("the note itself", "an older text"))
    async with serving(tmp_path) as lithos:
        answer = await lithos.read(note)
        assert (answer["path"], answer["content"]) == ("Shared.md", "the note itself")
        (warning,) = answer["warnings"]
        assert (warning["kind"], warning["id"], warning["distance"]) == (kind, note, 0)
        assert copy in warning["reason"]
        (row,) = (await lithos.call("lithos_list"))["items"]
        assert row["warnings"] == [warning]
        assert (await _notes_component(lithos))[counted] == 1
        told = refusal(await lithos.call("lithos_read", path=copy), "doc_not_found")
        assert note in told
        assert "'Shared.md'" in told
        await lithos.write("Shared", "edited by an agent", id=note)
        assert "an older text" in second.read_text()
        second.unlink()
    async with serving(tmp_path) as lithos:
        answer = await lithos.read(note)
        assert (answer["content"], answer.get("warnings")) == ("edited by an agent", None)
        assert counted not in await _notes_component(lithos)


async def _notes_component(lithos: Any) -> dict[str, Any]:
    _, body = await lithos.server.get(ServerState).report()
    assert body["components"]["knowledge_base"]["status"] == "ok"
    return body["components"]["knowledge_base"]
