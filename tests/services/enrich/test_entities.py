"""Entities in the notes: written by machine, never over a person's choice, never over an edit."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.core.text.entities import MARKER
from tests.servers import Lithos, put_note, serving

BODY = b"\r\n# Raft\r\n\r\nWritten by [[Diego Ongaro]] \t\r\n\r\n\r\nNo final newline"
CURATED = "---\nid: 11111111-1111-4111-8111-111111111111\ntitle: Kept\nentities: [My Choice]\n---\n[[Raft]]\n"
STALE = "---\nid: {id}\ntitle: Stale {id}\nversion: 4\nentities: [Old]\nentities_extractor: 9\n---\n{body}\n"
FIRST, SECOND = "22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"


def stored(lithos: Lithos, note_id: str) -> tuple[tuple[str, ...], int | None, int]:
    """Entities, marker and version."""
    entry = lithos.server.catalogue.get(note_id)
    assert entry is not None
    return entry.note.entities, entry.note.entities_extractor, entry.note.version


async def test_a_note_gets_its_entities_and_keeps_its_body(tmp_path: Path) -> None:
    file = put_note(tmp_path, "raft.md", b"---\r\ntitle: Raft\r\ncolor: red # mine\r\n---" + BODY)
    async with serving(tmp_path) as lithos:
        entry = lithos.server.catalogue.at_path("raft.md")
        assert entry is not None
        note_id = entry.note.id
        assert await lithos.server.entities.refresh(note_id)
        assert stored(lithos, note_id) == (("Diego Ongaro",), MARKER, 2)
        assert file.read_bytes().endswith(b"---" + BODY)
        assert b"color: red # mine\r\n" in file.read_bytes()
        assert await lithos.listed(entities=["Diego Ongaro"]) == ["Raft"]
        event = lithos.server.coordinator._store.events_after(lithos.first_seq)[-1].draft
        assert (event.type, event.agent) == ("note.updated", "lithos-enrich")
        assert event.origin.startswith("enrichment:")
        assert not await lithos.server.entities.refresh(note_id)
        assert stored(lithos, note_id)[2] == 2


async def test_a_note_without_names_is_not_written(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create(content="nothing to see here")
        assert not await lithos.server.entities.refresh(note_id)
        assert stored(lithos, note_id) == ((), None, 1)
        assert not await lithos.server.entities.refresh("no such note")


async def test_curated_entities_stay_and_stale_ones_are_replaced_or_cleared(tmp_path: Path) -> None:
    """Behaviour 158."""
    curated = put_note(tmp_path, "kept.md", CURATED)
    put_note(tmp_path, "first.md", STALE.format(id=FIRST, body="By [[Raft]].\n\n```\n[[Fenced]]\n```"))
    put_note(tmp_path, "second.md", STALE.format(id=SECOND, body="nothing now"))
    async with serving(tmp_path) as lithos:
        assert not await lithos.server.entities.refresh("11111111-1111-4111-8111-111111111111")
        assert curated.read_text() == CURATED
        assert await lithos.server.entities.refresh_stale() == 2
        assert stored(lithos, FIRST) == (("Raft",), MARKER, 5)
        assert stored(lithos, SECOND) == ((), MARKER, 5)
        assert await lithos.server.entities.refresh_stale() == 0


@pytest.mark.parametrize("edit", ["write", "delete"])
async def test_who_changes_the_note_meanwhile_wins(tmp_path: Path, edit: str) -> None:
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Raft", "By [[Diego Ongaro]].")
        found = await lithos.server.entities.look(note_id)
        assert found is not None
        if edit == "write":
            await lithos.write("Raft", "By [[Somebody Else]].", id=note_id)
        else:
            await lithos.call("lithos_delete", id=note_id, agent="tester")
        assert not await lithos.server.entities.store(found)
        if edit == "write":
            assert stored(lithos, note_id) == ((), None, 2)
            assert await lithos.server.entities.refresh(note_id)
            assert stored(lithos, note_id)[0] == ("Somebody Else",)


async def test_a_note_that_cannot_be_read_does_not_end_the_sweep(tmp_path: Path) -> None:
    broken = put_note(tmp_path, "first.md", STALE.format(id=FIRST, body="[[Raft]]"))
    put_note(tmp_path, "second.md", STALE.format(id=SECOND, body="[[Raft]]"))
    async with serving(tmp_path) as lithos:
        entities = lithos.server.entities
        assert await entities.look(FIRST) is not None
        broken.unlink()
        broken.mkdir()
        assert await entities.refresh_stale() == 1
        assert stored(lithos, SECOND)[0] == ("Raft",)


async def test_a_rewritten_note_gets_the_entities_of_its_new_text(tmp_path: Path) -> None:
    """Behaviour 158."""
    async with serving(tmp_path, settled=False) as lithos:
        note_id = await lithos.create("Raft", "By [[Diego Ongaro]].")
        refresh = lithos.server.entities.refresh
        assert await refresh(note_id)
        await lithos.write("Raft", "By [[Barbara Liskov]].", id=note_id)
        assert await refresh(note_id)
        assert stored(lithos, note_id) == (("Barbara Liskov",), MARKER, 4)
        await lithos.write("Raft", "By [[Barbara Liskov]] again.", id=note_id)
        assert not await refresh(note_id)
        await lithos.write("Raft", "nobody", id=note_id)
        assert await refresh(note_id)
        assert stored(lithos, note_id)[0] == ()


async def test_entities_edited_by_hand_stay_as_their_marker_does(tmp_path: Path) -> None:
    """Behaviour 158."""
    async with serving(tmp_path, settled=False) as lithos:
        note_id = await lithos.create("Raft", "By [[Diego Ongaro]].")
        assert await lithos.server.entities.refresh(note_id)
        file = lithos.knowledge / "raft.md"
        edited = file.read_text().replace("- Diego Ongaro", "- My Choice")
        edited = edited.replace("[[Diego Ongaro]]", "[[Leslie Lamport]]")
        assert "My Choice" in edited
        file.write_text(edited)
        assert not await lithos.server.entities.refresh(note_id), "before anybody has noticed"
    async with serving(tmp_path, settled=False) as lithos:
        assert stored(lithos, note_id)[:2] == (("My Choice",), MARKER)
        assert not await lithos.server.entities.refresh(note_id)
        assert file.read_text() == edited
