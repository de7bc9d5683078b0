"""Versions for edits by people: before and after ingestion, across restarts, and after losses."""

from __future__ import annotations

import os
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from lithos.events.journal.messages import Flush
from lithos.kernel.actors.threads import Threads
from lithos.kernel.values.errors import VersionConflict
from lithos.notes.files.values import digest_of
from lithos.notes.model.note import AssignedVersion
from lithos.notes.rows_coordination import KeptNotes, NoteRows
from lithos.notes.service.texts import NoteTexts
from lithos.notes.writing import external_changes
from lithos.notes.writing.messages import WriteOutcome
from tests.kernel.actors.watched import UUID, WatchedHouse, note


def edit(house: WatchedHouse, path: str, text: str) -> None:
    """Append a text to a file, so that its size and hash change."""
    file = house.folder / path
    file.write_text(file.read_text() + f"\n{text}\n")


async def read(house: WatchedHouse, note_id: str) -> int:
    """Return the version that a reader gets."""
    loaded = await NoteTexts(house.files, house.catalogue).load(house.catalogue.get(note_id))
    assert loaded is not None
    return loaded.document.note.version


def shown(house: WatchedHouse, note_id: str) -> int:
    """Return the version that lists and rows show."""
    return house.catalogue.get(note_id).note.version


def stored(house: WatchedHouse) -> dict[str, AssignedVersion]:
    return dict(house.store.rows(KeptNotes).load().versions)


async def saved(house: WatchedHouse) -> dict[str, AssignedVersion]:
    """Commit, which also deletes dropped rows. Return the stored rows."""
    await house.coordinator.mailbox.ask(Flush())
    return stored(house)


@pytest.mark.parametrize("is_taken_up", [False, True])
async def test_write_based_on_state_before_an_edit_is_refused(house, is_taken_up):
    """behaviour 269"""
    async with house.with_note() as made:
        edit(house, made.path, "by hand")
        if is_taken_up:
            await house.settle_paths(made.path)
        with pytest.raises(VersionConflict) as refused:
            await house.update(made.id, "Note", "mine", expected_version=1)
        assert refused.value.extras["current_version"] == 2
        assert "by hand" in (house.folder / made.path).read_text()
        outcome = await house.update(made.id, "Note", "mine", expected_version=2)
        assert (outcome.version, shown(house, made.id)) == (3, 3)
    assert "version: 3" in (house.folder / made.path).read_text()
    assert stored(house) == {}


async def test_version_is_stored_before_a_reader_gets_it(house):
    """If an edit was read but not ingested, its version number is never reused, even after a kill."""
    async with house.with_note() as made:
        edit(house, made.path, "first")
        assert await read(house, made.id) == 2
        assert stored(house)[made.id].version == 2
        assert await read(house, made.id) == 2
        edit(house, made.path, "second")
        with pytest.raises(VersionConflict):
            await house.update(made.id, "Note", "mine", expected_version=2)
        await house.settle_paths(made.path)
        assert (shown(house, made.id), await read(house, made.id)) == (3, 3)


async def test_edit_reverted_before_any_read_does_not_count(house):
    """behaviour 269"""
    async with house.with_note() as made:
        before = (house.folder / made.path).read_bytes()
        edit(house, made.path, "oops")
        (house.folder / made.path).write_bytes(before)
        await house.settle_paths(made.path)
        assert (shown(house, made.id), await read(house, made.id), await saved(house)) == (1, 1, {})


async def test_edit_reverted_after_a_read_creates_another_version(house):
    async with house.with_note() as made:
        before = (house.folder / made.path).read_bytes()
        edit(house, made.path, "oops")
        assert await read(house, made.id) == 2
        (house.folder / made.path).write_bytes(before)
        assert await read(house, made.id) == 3
        await house.settle_paths(made.path)
        assert shown(house, made.id) == 3


async def test_version_number_raised_by_a_person_is_accepted(house):
    """behaviour 269"""
    async with house.with_note() as made:
        file = house.folder / made.path
        file.write_text(file.read_text().replace("version: 1", "version: 7"))
        await house.settle_paths(made.path)
        assert (shown(house, made.id), await read(house, made.id), await saved(house)) == (7, 7, {})


async def test_edits_are_counted_across_restarts_and_while_server_is_stopped(house):
    """behaviour 269"""
    house.put("a.md", note(1))
    async with house.watching():
        edit(house, "a.md", "running")
        await house.settle_paths("a.md")
        assert shown(house, UUID.format(1)) == 2
    house.restart()
    assert shown(house, UUID.format(1)) == 2
    edit(house, "a.md", "offline")
    house.settle(house.restart())
    assert shown(house, UUID.format(1)) == 3
    house.restart()
    assert (shown(house, UUID.format(1)), stored(house)[UUID.format(1)].version) == (3, 3)


def lose_manifest(house: WatchedHouse) -> None:
    house.close()
    for file in house.root.glob("manifest.db*"):
        file.unlink()
    house.open()
    house.make_watcher()


@pytest.mark.parametrize("edits_offline", [0, 1])
async def test_edits_are_counted_after_the_manifest_is_lost(house, edits_offline):
    """behaviour 269: versions created before the loss also count.

    The events of the journal contain these versions.
    """
    async with house.with_note() as made:
        await house.update(made.id, "Note", "more")
        edit(house, made.path, "running")
        await house.settle_paths(made.path)
        other = await house.create("Other")
    for _ in range(edits_offline):
        edit(house, made.path, "offline")
        edit(house, other.path, "offline")
    lose_manifest(house)
    house.settle(house.scan())
    assert (shown(house, made.id), shown(house, other.id)) == (3 + edits_offline, 1 + edits_offline)


async def test_edit_counts_after_a_kill_before_the_manifest_write(house, monkeypatch):
    """The last event of a note in the journal shows to which bytes the note's version belongs."""
    async with house.with_note() as made:
        assert await house.becomes_consistent()
        monkeypatch.setattr(house.manifest, "store", lambda *_: None)
        assert (await house.update(made.id, "Note", "acknowledged")).version == 2
    monkeypatch.undo()
    edit(house, made.path, "after the kill")
    house.restart()
    assert shown(house, made.id) == 3


async def test_version_rows_are_deleted_with_their_notes(house):
    async with house.with_note() as made:
        edit(house, made.path, "by hand")
        await house.settle_paths(made.path)
        assert list(stored(house)) == [made.id]
        await house.delete(made.id)
    assert stored(house) == {}


async def test_version_rows_of_removed_notes_are_dropped_at_start(house):
    house.put("a.md", note(1))
    rows = NoteRows({UUID.format(9): AssignedVersion(5, "x")}, {"gone.md": UUID.format(8)})
    with house.store.transaction():
        house.store.put_along(rows)
    house.settle(house.restart())
    assert house.store.rows(KeptNotes).load() == NoteRows({}, {})


async def test_bytes_read_during_a_tool_write_get_a_separate_version(house):
    """Another program overwrote a tool's file.

    The edit was read before the catalogue contained the tool's file.
    """
    async with house.with_note() as made:
        entry = house.catalogue.get(made.id)
        assert house.catalogue.see_version(made.id, "saved over", 2) == 2
        await house.update(made.id, "Note", "tool")
        assert house.catalogue.see_version(made.id, "saved again", 2) > shown(house, made.id) > 1
        assert entry.note.version == 1


def copy_at_next_entry(house: WatchedHouse, to: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the directory before the catalogue shows the next write, in the state that a kill would leave."""
    enter = house.catalogue.put_in_steps

    def copy_and_enter(entry):
        if not to.exists():
            shutil.copytree(house.root, to)
        return enter(entry)

    monkeypatch.setattr(house.catalogue, "put_in_steps", copy_and_enter)


@pytest.mark.parametrize("says", [1, 2])
@pytest.mark.parametrize("is_new", [False, True])
async def test_edit_after_a_kill_is_numbered_after_shown_write(house, tmp_path, monkeypatch, says, is_new):
    """behaviour 269: the catalogue shows a write before the journal does.

    The version of the write is therefore recorded first.
    """
    left = tmp_path / "left"
    async with house.watching():
        if is_new:
            copy_at_next_entry(house, left, monkeypatch)
        made = await house.create("Note")
        if not is_new:
            copy_at_next_entry(house, left, monkeypatch)
            await house.update(made.id, "Note", "only shown")
    shown_before = shown(house, made.id)
    after = WatchedHouse(left)
    file = after.folder / made.path
    file.write_text(file.read_text().replace(f"version: {shown_before}", f"version: {says}") + "\nby hand\n")
    after.settle(after.scan())
    assert shown(after, made.id) == max(says, shown_before + 1)
    after.close()


async def test_unrecorded_write_keeps_its_version_after_a_kill(house, tmp_path, monkeypatch):
    left = tmp_path / "left"
    async with house.with_note() as made:
        copy_at_next_entry(house, left, monkeypatch)
        await house.update(made.id, "Note", "only shown")
    after = WatchedHouse(left)
    after.settle(after.scan())
    assert shown(after, made.id) == 2
    after.close()


async def test_intended_write_that_never_happened_counts_no_version(house):
    async with house.with_note() as made:
        pass
    rows = NoteRows(intents={(made.id, 2): "never written"})
    with house.store.transaction():
        house.store.put_along(rows)
    house.settle(house.restart())
    assert shown(house, made.id) == 1


async def test_write_intent_is_dropped_once_the_manifest_contains_the_write(house):
    async with house.with_note() as made:
        await house.update(made.id, "Note", "more")
        with pytest.raises(VersionConflict):
            await house.update(made.id, "Note", "refused", expected_version=1)
        await house.delete((await house.create("Other")).id)
    assert house.store.rows(KeptNotes).load() == NoteRows({}, {}, {})


def see_more_after(read, house: WatchedHouse, made: WriteOutcome):
    """Edit and read a file again directly after its first `read`."""
    is_first = True

    def read_and_edit(*arguments):
        nonlocal is_first
        found = read(*arguments)
        if is_first:
            is_first = False
            edit(house, made.path, "second")
            data = (house.folder / made.path).read_bytes()
            assert house.catalogue.see_version(made.id, digest_of(data), 1) == 2
        return found

    return read_and_edit


async def test_read_before_a_later_edit_adds_no_write_version(house, monkeypatch):
    """behaviour 269: versions are assigned in the order of the edits.

    The order in which reads end does not matter.
    """
    async with house.with_note() as made:
        edit(house, made.path, "first")
        monkeypatch.setattr(house.files, "read_quiet", see_more_after(house.files.read_quiet, house, made))
        assert (await house.update(made.id, "Note", "mine")).version == 3


async def test_read_before_a_later_edit_adds_no_watcher_version(house, monkeypatch):
    """behaviour 269"""
    async with house.with_note() as made:
        edit(house, made.path, "first")
        look = external_changes.current_state
        monkeypatch.setattr(external_changes, "current_state", see_more_after(look, house, made))
        await house.settle_paths(made.path)
        await house.settle_paths(made.path)
        assert (shown(house, made.id), await read(house, made.id)) == (2, 2)


@asynccontextmanager
async def applying(house: WatchedHouse, made: WriteOutcome, apply, monkeypatch: pytest.MonkeyPatch):
    """Let `apply` apply the next write, read the note during the write, and return the answers."""
    told, undecided = [], house.catalogue.records._undecided

    async def tell():
        told.append(await read(house, made.id))

    async def show():
        nursery.start_soon(tell)
        with trio.fail_after(60):
            while not any(event.statistics().tasks_waiting for event in undecided.values()):
                await trio.sleep(0.001)

    def apply_once(operations):
        once.undo()
        return apply(operations)

    monkeypatch.setattr(house.writer._applying, "blocking", Threads())
    async with trio.open_nursery() as nursery:
        with pytest.MonkeyPatch.context() as once:
            once.setattr(house.files, "apply", apply_once)
            yield told, lambda: trio.from_thread.run(show)


async def test_reverted_write_is_never_shown_and_gets_no_version(house, monkeypatch):
    """behaviour 269: a writer writes its text, finds that it displaced another text, and restores it."""
    async with house.with_note() as made:
        file = house.folder / made.path
        apply = house.files.apply

        def place_and_take_back(operations):
            edit(house, made.path, "by hand")
            staged = file.with_name(".staged")
            staged.write_bytes(operations[0].data)
            os.rename(file, file.with_name(".displaced"))
            os.rename(staged, file)
            reads()
            os.rename(file.with_name(".displaced"), file)
            return apply(operations)

        async with applying(house, made, place_and_take_back, monkeypatch) as (told, reads):
            assert (await house.update(made.id, "Note", "mine")).version == 3
        assert told in ([2], [3])


async def test_edit_of_a_write_not_yet_catalogued_adds_one_version(house):
    """behaviour 269: the text of the write is in the file, with the version of the write."""
    async with house.with_note() as made:
        house.catalogue.records.intend(made.id, AssignedVersion(2, "written"))
        assert house.catalogue.see_version(made.id, "edited after that", 2) == 3


async def test_reader_waits_for_the_write_in_progress(house, monkeypatch):
    """behaviour 269: only after the write is it known whether other bytes are an edit of the written text."""
    async with house.with_note() as made:
        apply = house.files.apply

        def apply_then_edit(operations):
            done = apply(operations)
            edit(house, made.path, "by hand")
            reads()
            return done

        async with applying(house, made, apply_then_edit, monkeypatch) as (told, reads):
            assert (await house.update(made.id, "Note", "mine")).version == 2
        assert told == [3]


async def test_write_intent_identifies_a_write_when_next_write_begins(house):
    """The manifest and the journal are written later, when the next write may already have begun."""
    async with house.with_note() as made:
        await house.update(made.id, "Note", "second")
    data = (house.folder / made.path).read_bytes()
    house.close()
    for file in house.root.glob("*.db*"):
        file.unlink()
    house.open()
    rows = NoteRows(intents={(made.id, 2): digest_of(data), (made.id, 3): "never written"})
    with house.store.transaction():
        house.store.put_along(rows)
    house.close()
    house.open()
    house.settle(house.scan())
    assert shown(house, made.id) == 2
    assert house.catalogue.see_version(made.id, "edited", 2) == 4
