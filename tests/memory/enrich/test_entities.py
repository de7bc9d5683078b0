"""Note entities in the database or in note files. Choices and edits by people are kept."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import attrs
import pytest

from lithos.events.journal.coordinator import Coordinator
from lithos.memory.enrich.entities import EntityExtraction
from lithos.memory.enrich.worker import Enrichment
from lithos.memory.model.memory import ForgetNotes, RecordEntities
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.settings import LcmaConfig
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.entities import MARKER
from lithos.search.index.fulltext_schema import remove_index
from lithos.search.indexing.indexer import FulltextIndexer
from lithos.upkeep.checks.checks import Installed
from lithos.upkeep.checks.reconcile import reconcile
from tests.servers import Lithos, put_note, serving

writing = partial(serving, lcma=LcmaConfig(write_entities=True))

BODY = b"\r\n# Raft\r\n\r\nWritten by [[Diego Ongaro]] \t\r\n\r\n\r\nNo final newline"
CURATED = "---\nid: 11111111-1111-4111-8111-111111111111\ntitle: Kept\nentities: [My Choice]\n---\n[[Raft]]\n"
STALE = "---\nid: {id}\ntitle: Stale {id}\nversion: 4\nentities: [Old]\nentities_extractor: 9\n---\n{body}\n"
FIRST, SECOND = "22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"


def stored(lithos: Lithos, note_id: str) -> tuple[tuple[str, ...], int | None, int]:
    """Return the stored entities, the marker, and the version of a note."""
    entry = lithos.server.get(Catalogue).get(note_id)
    assert entry is not None
    return entry.note.entities, entry.note.entities_extractor, entry.note.version


async def shown(lithos: Lithos, note_id: str) -> tuple[list[str], int | None]:
    """Return the entities and the marker of a note as readers get them."""
    metadata = (await lithos.read(note_id))["metadata"]
    return metadata["entities"], metadata["entities_extractor"]


async def test_extracted_entities_are_searchable_without_changing_a_file(tmp_path: Path) -> None:
    """Behaviour 158: bytes, version, times and events do not change.

    A given `expected_version` therefore still applies.
    """
    text = "---\ntitle: Raft # mine\n---\nThe log, by [[Diego Ongaro]].\n"
    file = put_note(tmp_path, "raft.md", text)
    async with serving(tmp_path) as lithos:
        entry = lithos.server.get(Catalogue).at_path("raft.md")
        assert entry is not None
        note_id, before = entry.note.id, (await lithos.read(entry.note.id))["metadata"]
        lithos.server.get(FulltextIndexer).note_search()
        assert await lithos.server.get(EntityExtraction).refresh(note_id)
        assert await shown(lithos, note_id) == (["Diego Ongaro"], MARKER)
        after = (await lithos.read(note_id))["metadata"]
        found = {"entities": ["Diego Ongaro"], "entities_extractor": MARKER}
        assert after == before | found
        assert await lithos.listed(entities=["Diego Ongaro"]) == ["Raft"]
        assert await lithos.listed(entities=["Diego"]) == []
        for mode in ("fulltext", "semantic", "hybrid", "graph"):
            assert await lithos.found("log", mode=mode, entities=["Diego Ongaro"]) == ["Raft"], mode
            assert await lithos.found("log", mode=mode, entities=["Diego"]) == [], mode
        assert await lithos.found("entities:ongaro", mode="fulltext") == ["Raft"]
        assert file.read_text() == text
        assert lithos.events() == []
        assert lithos.server.get(Catalogue).get(note_id) is entry
        assert not await lithos.server.get(EntityExtraction).refresh(note_id)
        await lithos.write("Raft", "Mine.", id=note_id, expected_version=before["version"])
    async with serving(tmp_path) as lithos:
        assert await shown(lithos, note_id) == (["Diego Ongaro"], MARKER)
        assert "Diego" not in file.read_text()
        assert await lithos.found("entities:ongaro", mode="fulltext") == ["Raft"]
        assert await lithos.server.get(EntityExtraction).refresh(note_id)
        assert await shown(lithos, note_id) == ([], None)
        assert await lithos.found("entities:ongaro", mode="fulltext") == []


async def test_index_gets_missing_entities_at_startup(
    tmp_path: Path,
) -> None:
    """The process ended between the two database writes, or the index was deleted."""
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Raft", "The log, by [[Diego Ongaro]].")
        extraction = lithos.server.get(EntityExtraction)
        extraction._index = None
        assert await lithos.found("log", mode="fulltext") == ["Raft"]
        assert await extraction.refresh(note_id)
        assert await lithos.found("entities:ongaro", mode="fulltext") == []
        (indices,) = await reconcile(lithos.server.get(Installed), ["indices"], dry_run=True)
        assert [each.reason for each in indices.actions] == ["doc_set_mismatch"]
    for _ in range(2):
        async with serving(tmp_path) as lithos:
            assert await lithos.found("entities:ongaro", mode="fulltext") == ["Raft"]
            assert (await reconcile(lithos.server.get(Installed), ["indices"], dry_run=True))[0].actions == ()
        remove_index(tmp_path / ".tantivy")


async def test_curated_entities_apply_and_extracted_entities_stay_in_files(
    tmp_path: Path,
) -> None:
    """Behaviour 158."""
    curated = put_note(tmp_path, "kept.md", CURATED)
    first = put_note(tmp_path, "first.md", STALE.format(id=FIRST, body="By [[Raft]]."))
    second = put_note(tmp_path, "second.md", STALE.format(id=SECOND, body="nothing now"))
    before = [file.read_bytes() for file in (curated, first, second)]
    note_id = "11111111-1111-4111-8111-111111111111"
    async with serving(tmp_path) as lithos:
        assert await shown(lithos, FIRST) == (["Old"], 9)
        assert await lithos.listed(entities=["Old"]) == [f"Stale {FIRST}", f"Stale {SECOND}"]
        assert not await lithos.server.get(EntityExtraction).refresh(note_id, force=True)
        assert await lithos.server.get(EntityExtraction).refresh_stale() == 2
        assert await lithos.server.get(EntityExtraction).refresh_stale() == 0
        assert await shown(lithos, FIRST) == (["Raft"], MARKER)
        assert await shown(lithos, SECOND) == ([], 9)
        assert await shown(lithos, note_id) == (["My Choice"], None)
        assert await lithos.listed(entities=["Old"]) == []
        assert [file.read_bytes() for file in (curated, first, second)] == before
        assert lithos.events() == []


async def test_entities_written_by_a_person_apply_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, settled=False) as lithos:
        note_id = await lithos.create("Raft", "By [[Diego Ongaro]].")
        assert await lithos.server.get(EntityExtraction).refresh(note_id)
        file = lithos.knowledge / "raft.md"
        file.write_text(file.read_text().replace("status: active", "status: active\nentities: [Mine]"))
    async with serving(tmp_path) as lithos:
        assert await shown(lithos, note_id) == (["Mine"], None)
        assert await lithos.found("entities:mine", mode="fulltext") == ["Raft"]
        assert await lithos.found("entities:ongaro", mode="fulltext") == []
        assert not await lithos.server.get(EntityExtraction).refresh(note_id)


async def test_entities_are_deleted_with_notes_and_outdated_entities_extracted_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        kept, learning = lithos.server.get(Catalogue).entities, lithos.server.get(Learning)
        note_id = await lithos.create("Raft", "By [[Diego Ongaro]].")
        other = await lithos.create("Other", "By [[Ada Lovelace]].")
        await lithos.server.find(Enrichment).drain()
        found = kept.get(note_id)
        assert found is not None
        old = attrs.evolve(found, entities=("Old Name",), extractor=MARKER - 1)
        await learning.submit(RecordEntities(note_id, old))
        assert await shown(lithos, note_id) == (["Old Name"], MARKER - 1)
        assert await lithos.server.get(EntityExtraction).refresh_stale() == 1
        assert kept.get(note_id) == found
        await lithos.call("lithos_delete", id=note_id, agent="tester")
        await lithos.server.find(Enrichment).drain()
        assert kept.get(note_id) is None
        assert set(await learning.read(lambda tables: tables.ledgers.entities())) == {other}
        await learning.submit(ForgetNotes((other,)))
        assert kept.get(other) is None


async def test_entities_are_discarded_when_the_note_changes_during_extraction(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Raft", "By [[Diego Ongaro]].")
        found = await lithos.server.get(EntityExtraction).look(note_id)
        assert found is not None
        await lithos.write("Raft", "By [[Somebody Else]].", id=note_id)
        assert not await lithos.server.get(EntityExtraction).store(found)
        assert lithos.server.get(Catalogue).entities.get(note_id) is None


async def test_notes_are_written_only_once_when_write_entities_is_on(tmp_path: Path) -> None:
    """The test switches `lcma.write_entities` on and off again."""
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Raft", "By [[Diego Ongaro]].")
        bare = await lithos.create("Bare", "By [[Ada Lovelace]].")
        assert await lithos.server.get(EntityExtraction).refresh(note_id)
        assert await lithos.server.get(EntityExtraction).refresh(bare)
        await lithos.write("Bare", "nobody", id=bare)
    async with writing(tmp_path) as lithos:
        assert await lithos.server.get(EntityExtraction).refresh(note_id), (
            "the same entities, now in the file"
        )
        assert stored(lithos, note_id) == (("Diego Ongaro",), MARKER, 2)
        assert lithos.server.get(Catalogue).entities.get(note_id) is None
        await lithos.server.get(EntityExtraction).refresh(bare)
        assert await shown(lithos, bare) == ([], MARKER)
        assert await lithos.found("entities:lovelace", mode="fulltext") == []
    async with serving(tmp_path) as lithos:
        file = (lithos.knowledge / "raft.md").read_bytes()
        assert await shown(lithos, note_id) == (["Diego Ongaro"], MARKER)
        await lithos.write("Raft", "By [[Barbara Liskov]].", id=note_id)
        assert await lithos.server.get(EntityExtraction).refresh(note_id)
        assert await shown(lithos, note_id) == (["Barbara Liskov"], MARKER)
        assert stored(lithos, note_id)[0] == ("Diego Ongaro",)
        assert file != (lithos.knowledge / "raft.md").read_bytes()


async def test_entities_are_written_without_changing_the_note_body(tmp_path: Path) -> None:
    file = put_note(tmp_path, "raft.md", b"---\r\ntitle: Raft\r\ncolor: red # mine\r\n---" + BODY)
    async with writing(tmp_path) as lithos:
        entry = lithos.server.get(Catalogue).at_path("raft.md")
        assert entry is not None
        note_id = entry.note.id
        assert await lithos.server.get(EntityExtraction).refresh(note_id)
        assert stored(lithos, note_id) == (("Diego Ongaro",), MARKER, 2)
        assert file.read_bytes().endswith(b"---" + BODY)
        assert b"color: red # mine\r\n" in file.read_bytes()
        assert await lithos.listed(entities=["Diego Ongaro"]) == ["Raft"]
        event = lithos.server.get(Coordinator)._store.events_after(lithos.first_seq)[-1].draft
        assert (event.type, event.agent) == ("note.updated", "lithos-enrich")
        assert event.origin.startswith("enrichment:")
        assert not await lithos.server.get(EntityExtraction).refresh(note_id)
        assert stored(lithos, note_id)[2] == 2


async def test_note_without_names_is_not_written(tmp_path: Path) -> None:
    async with writing(tmp_path) as lithos:
        note_id = await lithos.create(content="nothing to see here")
        assert not await lithos.server.get(EntityExtraction).refresh(note_id)
        assert stored(lithos, note_id) == ((), None, 1)
        assert not await lithos.server.get(EntityExtraction).refresh("no such note")


async def test_curated_entities_stay_and_outdated_entities_are_replaced_or_removed(tmp_path: Path) -> None:
    """Behaviour 158."""
    curated = put_note(tmp_path, "kept.md", CURATED)
    put_note(tmp_path, "first.md", STALE.format(id=FIRST, body="By [[Raft]].\n\n```\n[[Fenced]]\n```"))
    put_note(tmp_path, "second.md", STALE.format(id=SECOND, body="nothing now"))
    async with writing(tmp_path) as lithos:
        assert not await lithos.server.get(EntityExtraction).refresh("11111111-1111-4111-8111-111111111111")
        assert curated.read_text() == CURATED
        assert await lithos.server.get(EntityExtraction).refresh_stale() == 2
        assert stored(lithos, FIRST) == (("Raft",), MARKER, 5)
        assert stored(lithos, SECOND) == ((), MARKER, 5)
        assert await lithos.server.get(EntityExtraction).refresh_stale() == 0


@pytest.mark.parametrize("edit", ["write", "delete"])
async def test_concurrent_edit_takes_precedence_over_extracted_entities(tmp_path: Path, edit: str) -> None:
    async with writing(tmp_path) as lithos:
        note_id = await lithos.create("Raft", "By [[Diego Ongaro]].")
        found = await lithos.server.get(EntityExtraction).look(note_id)
        assert found is not None
        if edit == "write":
            await lithos.write("Raft", "By [[Somebody Else]].", id=note_id)
        else:
            await lithos.call("lithos_delete", id=note_id, agent="tester")
        assert not await lithos.server.get(EntityExtraction).store(found)
        if edit == "write":
            assert stored(lithos, note_id) == ((), None, 2)
            assert await lithos.server.get(EntityExtraction).refresh(note_id)
            assert stored(lithos, note_id)[0] == ("Somebody Else",)


async def test_unreadable_note_does_not_end_the_sweep(tmp_path: Path) -> None:
    broken = put_note(tmp_path, "first.md", STALE.format(id=FIRST, body="[[Raft]]"))
    put_note(tmp_path, "second.md", STALE.format(id=SECOND, body="[[Raft]]"))
    async with writing(tmp_path) as lithos:
        entities = lithos.server.get(EntityExtraction)
        assert await entities.look(FIRST) is not None
        broken.unlink()
        broken.mkdir()
        assert await entities.refresh_stale() == 1
        assert stored(lithos, SECOND)[0] == ("Raft",)


async def test_rewritten_note_gets_the_entities_of_its_new_text(tmp_path: Path) -> None:
    """Behaviour 158."""
    async with writing(tmp_path, settled=False) as lithos:
        note_id = await lithos.create("Raft", "By [[Diego Ongaro]].")
        refresh = lithos.server.get(EntityExtraction).refresh
        assert await refresh(note_id)
        await lithos.write("Raft", "By [[Barbara Liskov]].", id=note_id)
        assert await refresh(note_id)
        assert stored(lithos, note_id) == (("Barbara Liskov",), MARKER, 4)
        await lithos.write("Raft", "By [[Barbara Liskov]] again.", id=note_id)
        assert not await refresh(note_id)
        await lithos.write("Raft", "nobody", id=note_id)
        assert await refresh(note_id)
        assert stored(lithos, note_id)[0] == ()


async def test_manually_edited_entities_and_their_marker_do_not_change(tmp_path: Path) -> None:
    """Behaviour 158."""
    async with writing(tmp_path, settled=False) as lithos:
        note_id = await lithos.create("Raft", "By [[Diego Ongaro]].")
        assert await lithos.server.get(EntityExtraction).refresh(note_id)
        file = lithos.knowledge / "raft.md"
        edited = file.read_text().replace("- Diego Ongaro", "- My Choice")
        edited = edited.replace("[[Diego Ongaro]]", "[[Leslie Lamport]]")
        assert "My Choice" in edited
        file.write_text(edited)
        assert not await lithos.server.get(EntityExtraction).refresh(note_id), "before anybody has noticed"
    async with writing(tmp_path, settled=False) as lithos:
        assert stored(lithos, note_id)[:2] == (("My Choice",), MARKER)
        assert not await lithos.server.get(EntityExtraction).refresh(note_id)
        assert file.read_text() == edited
