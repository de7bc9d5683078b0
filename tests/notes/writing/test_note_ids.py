"""Note ids: a note whose file has no id, or lacks its id temporarily, remains the same note."""

from __future__ import annotations

import attrs
import pytest

from lithos.kernel.values.events import NOTE_CREATED, NOTE_RENAMED, NOTE_UPDATED
from lithos.notes.catalogue.note_reading import examine
from lithos.notes.files.lookup import find_note
from lithos.notes.format.document import derive_id
from lithos.notes.rows_coordination import KeptNotes
from lithos.notes.writing.external_changes import OutsideFiles
from lithos.notes.writing.messages import MoveNote
from tests.history.recording.test_versions import lose_manifest
from tests.kernel.actors.watched import UUID, WatchedHouse, note


def move(house: WatchedHouse, source: str, target: str) -> None:
    (house.folder / source).rename(house.folder / target)


async def settle_move(house: WatchedHouse, source: str, target: str) -> None:
    move(house, source, target)
    await house.settle_paths(source, target)


def ids(house: WatchedHouse) -> dict[str, str]:
    return {entry.path: entry.note.id for entry in house.catalogue}


def stored(house: WatchedHouse) -> dict[str, str | None]:
    return dict(house.store.rows(KeptNotes).load().ids)


async def test_moved_note_permanently_keeps_its_id_number_and_links(house):
    """behaviour 270"""
    house.put("a.md", "# Target\n\njust text")
    house.put("b.md", note(2, "see [[Target]]"))
    a = derive_id("a.md")
    async with house.watching():
        serial = house.catalogue.get(a).serial
        await settle_move(house, "a.md", "c.md")
        assert (ids(house)["c.md"], house.catalogue.get(a).serial) == (a, serial)
        assert house.catalogue.graph.counts().edges == 1
    assert (house.told(), stored(house)) == ([(NOTE_RENAMED, "c.md")], {"c.md": a})
    house.put("c.md", "# Target\n\nedited while nothing runs")
    house.settle(house.restart())
    assert ids(house)["c.md"] == a
    lose_manifest(house)
    house.settle(house.scan())
    assert (ids(house)["c.md"], stored(house)) == (a, {"c.md": a})


async def test_note_moved_back_to_first_path_has_no_stored_id(house):
    house.put("a.md", "just text")
    async with house.watching():
        for source, target in (("a.md", "b.md"), ("b.md", "c.md"), ("c.md", "a.md")):
            await settle_move(house, source, target)
        assert ids(house) == {"a.md": derive_id("a.md")}
    assert stored(house) == {}


@pytest.mark.parametrize("is_running", [True, False])
async def test_new_file_at_the_old_path_is_a_new_note(house, is_running):
    """behaviour 270: two files never share an id, and each file keeps its own."""
    house.put("a.md", "just text")
    a = derive_id("a.md")
    async with house.watching():
        await settle_move(house, "a.md", "b.md")
        if is_running:
            house.put("a.md", "a new text")
            await house.settle_paths("a.md")
    if not is_running:
        house.put("a.md", "a new text")
        house.settle(house.restart())
    fresh = derive_id("a.md", 2)
    assert ids(house) == {"b.md": a, "a.md": fresh}
    (house.folder / "b.md").unlink()
    house.settle(house.restart())
    assert (ids(house), stored(house)) == ({"a.md": fresh}, {"a.md": fresh})


async def test_id_written_into_a_moved_file_is_not_reused(house):
    house.put("a.md", "just text")
    a = derive_id("a.md")
    async with house.watching():
        await settle_move(house, "a.md", "b.md")
        await house.update(a, "Title", "by a tool")
        assert a in (house.folder / "b.md").read_text()
        house.put("a.md", "a new text")
        await house.settle_paths("a.md")
        assert ids(house) == {"b.md": a, "a.md": derive_id("a.md", 2)}
    assert stored(house) == {"a.md": derive_id("a.md", 2)}
    lose_manifest(house)
    house.settle(house.scan())
    assert ids(house) == {"b.md": a, "a.md": derive_id("a.md", 2)}


async def test_identical_files_that_move_together_keep_separate_ids(house):
    house.put("a.md", "same")
    house.put("b.md", "same")
    before = {derive_id("a.md"), derive_id("b.md")}
    async with house.watching():
        move(house, "a.md", "c.md")
        move(house, "b.md", "d.md")
        await house.settle_paths("a.md", "b.md", "c.md", "d.md")
        assert set(ids(house).values()) == before
        assert set(ids(house)) == {"c.md", "d.md"}
    assert [kind for kind, _ in house.told()] == [NOTE_RENAMED, NOTE_RENAMED]


async def test_copied_note_gets_its_own_id(house):
    house.put("a.md", "same")
    async with house.watching():
        house.put("b.md", "same")
        await house.settle_paths("b.md")
        assert ids(house) == {"a.md": derive_id("a.md"), "b.md": derive_id("b.md")}
    assert house.told() == [(NOTE_CREATED, "b.md")]


async def test_move_over_another_file_deletes_the_other_note(house):
    house.put("a.md", "mover")
    house.put("b.md", "under it")
    async with house.watching():
        (house.folder / "a.md").replace(house.folder / "b.md")
        await house.settle_paths("a.md", "b.md")
        assert ids(house) == {"b.md": derive_id("a.md")}
    assert house.is_consistent()


@pytest.mark.parametrize("has_id", [True, False])
async def test_note_with_broken_frontmatter_keeps_its_id_across_a_start(house, has_id):
    """behaviour 270"""
    text = note(1, "see [[Two]]") if has_id else "---\ntags: [x]\n---\n\n# One\n\nsee [[Two]]\n"
    house.put("old.md", text)
    house.put("two.md", note(2, title="Two").replace("# Note 2", "# Two"))
    async with house.watching():
        await settle_move(house, "old.md", "new.md")
        (entry,) = [each for each in house.catalogue if each.path == "new.md"]
        house.put("new.md", "---\ntags: [\n---\n")
        await house.settle_paths("new.md")
        assert house.catalogue.get(entry.note.id) == entry
    house.settle(house.restart())
    assert (house.catalogue.get(entry.note.id), house.catalogue.graph.counts().edges) == (entry, 1)
    house.make_watcher()
    async with house.running():
        house.put("new.md", text)
        await house.settle_paths("new.md")
        assert house.catalogue.get(entry.note.id).path == "new.md"
    assert house.told() == [(NOTE_RENAMED, "new.md")]
    lose_manifest(house)
    house.put("new.md", "---\ntags: [\n---\n")
    house.settle(house.scan())
    house.put("new.md", text)
    house.settle(house.restart())
    assert ids(house)["new.md"] == entry.note.id


async def test_note_keeps_its_removed_id_until_another_file_names_it(house):
    """behaviour 270"""
    house.put("a.md", note(1))
    async with house.watching():
        house.put("a.md", note(1).replace("---", "--"))
        await house.settle_paths("a.md")
        await house.taking.settle(house.pending.take())
        assert ids(house) == {"a.md": UUID.format(1)}
    assert house.told() == [(NOTE_UPDATED, "a.md")]
    assert stored(house) == {"a.md": UUID.format(1)}
    house.restart()
    assert ids(house) == {"a.md": UUID.format(1)}
    house.make_watcher()
    async with house.running():
        house.put("b.md", note(1))
        await house.settle_paths("b.md")
        await house.taking.settle(house.pending.take())
        assert ids(house) == {"b.md": UUID.format(1), "a.md": derive_id("a.md")}
    assert stored(house) == {}


async def test_moved_file_is_found_by_its_bytes_before_its_removal(house):
    """The watcher was notified only of the old name."""
    house.put("a.md", "just text")
    async with house.watching():
        move(house, "a.md", "b.md")
        await house.settle_paths("a.md")
        await house.taking.settle(house.pending.take())
        assert ids(house) == {"b.md": derive_id("a.md")}
    assert house.told() == [(NOTE_RENAMED, "b.md")]


async def test_note_keeps_id_when_watcher_reads_an_unfinished_tool_move(house):
    """behaviour 255: the watcher read the file at its new path before the catalogue contained this path."""
    house.put("a.md", "just text")
    note_id = derive_id("a.md")
    async with house.watching():
        await house.settle_paths("a.md")
        (house.folder / "b.md").write_text("just text")
        halfway = examine(house.files, find_note(house.files, "b.md"), None)
        (house.folder / "b.md").unlink()
        await house.ask(MoveNote(id=note_id, path="b.md", agent="ann"))
        state = find_note(house.files, "b.md").state
        await house.writer.mailbox.ask(OutsideFiles((attrs.evolve(halfway, state=state),)))
        assert ids(house) == {"b.md": note_id}
    assert stored(house) == {"b.md": note_id}
