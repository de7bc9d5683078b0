"""The writer: decisions from durable state only, one order per note, and disk errors."""

from __future__ import annotations

import errno
import os

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown
from lithos.kernel.values.errors import (
    DocNotFound,
    Duplicate,
    InvalidInput,
    PathCollision,
    SlugCollision,
    StorageFailed,
    VersionConflict,
)
from lithos.notes.files import replacing as files_module
from lithos.notes.writing.messages import DeleteNote, WriteNote
from tests.fakes import ask_together, fail_writes, put_file, slip_in
from tests.kernel.actors.house import House

pytestmark = pytest.mark.autojump


def write(title: str, content: str = "text", **fields) -> WriteNote:
    return WriteNote(agent="a", title=title, content=content, **fields)


async def together(house: House, *requests) -> list[object]:
    """Return the outcomes or refusals of requests that wait in the mailbox together.

    The outcomes are in the order of the requests.
    """
    return await ask_together(house.ask, house.gate, write("Holds the writer"), *requests)


# -- normal writes -----------------------------------------------------------------------------------


async def test_written_note_is_in_file_catalogue_indexes_manifest_and_journal(house):
    async with house.running():
        created = await house.create("First note", path="a/b")
        assert (created.status, created.path, created.version) == ("created", "a/b/first-note.md", 1)
        assert await house.becomes_consistent()
        updated = await house.update(created.id, "First note, again", "new")
        assert (updated.status, updated.path, updated.version) == ("updated", created.path, 2)
        assert await house.becomes_consistent()
        assert b"new" in house.files.read(created.path).data
        deleted = await house.delete(created.id)
        assert (deleted.status, deleted.version) == ("deleted", 2)
        assert await house.becomes_consistent()
    assert house.files.list_notes() == []
    path = created.path
    assert house.told() == [("note.created", path), ("note.updated", path), ("note.deleted", path)]


async def test_waiting_requests_share_one_disk_access(house, monkeypatch):
    batches = []
    real = house.files.apply
    monkeypatch.setattr(
        house.files, "apply", lambda changes: (batches.append(len(changes)), real(changes))[1]
    )
    async with house.running():
        await together(house, *(write(f"n{n}") for n in range(20)))
    assert batches == [1, 20]
    assert house.is_consistent()


# -- concurrent requests -----------------------------------------------------------------------------


async def test_second_concurrent_creation_with_one_url_is_a_duplicate(house):
    """behaviour 28"""
    async with house.running():
        one, other = await together(
            house,
            write("One", source_url="https://x.org/a"),
            write("Other", source_url="HTTPS://X.org/a#part"),
        )
    assert one.status == "created"
    assert isinstance(other, Duplicate)
    assert other.extras["duplicate_of"]["id"] == one.id
    assert house.told().count(("note.created", "one.md")) == 1
    assert len(house.catalogue) == 2


async def test_second_concurrent_update_with_one_expected_version_conflicts(house):
    """behaviour 35"""
    async with house.with_note() as note:
        one, other = await together(
            house,
            write("Note", "one", id=note.id, expected_version=1),
            write("Note", "other", id=note.id, expected_version=1),
        )
    assert one.version == 2
    assert isinstance(other, VersionConflict)
    assert other.extras["current_version"] == 2
    assert house.files.read(note.path).data.endswith(b"one\n")


async def test_requests_for_one_note_keep_their_order(house):
    async with house.with_note() as note:
        results = await together(
            house,
            write("Note", "1", id=note.id),
            write("Note", "2", id=note.id),
            DeleteNote(id=note.id, agent="a"),
            write("Note", "3", id=note.id),
            write("Note", "again"),
        )
    assert [getattr(result, "version", None) for result in results] == [2, 3, 3, None, 1]
    assert isinstance(results[3], DocNotFound)
    assert results[4].id != note.id
    assert house.is_consistent()


@pytest.mark.parametrize(
    ("one", "other", "refusal"),
    [
        (write("Same title"), write("same TITLE!"), SlugCollision),
        (write("One", path="x.md"), write("Other", path="x.md"), PathCollision),
        (write("Plain"), write("Else", path="plain.md"), PathCollision),
        (write("Deep", path="d"), write("Else", path="d/deep.md"), PathCollision),
    ],
)
async def test_second_concurrent_claim_is_refused_naming_the_first_note(house, one, other, refusal):
    """A refusal always refers to a state on disk."""
    async with house.running():
        first, second = await together(house, one, other)
    assert first.status == "created"
    assert isinstance(second, refusal)
    assert second.extras["existing_id"] == first.id
    assert house.is_consistent()


async def test_claim_that_failed_on_disk_does_not_block_later_requests(house, monkeypatch):
    """Decisions depend only on durable state.

    The first of the two notes has no file, so the second note may have the title of the first.
    """
    fail_writes(monkeypatch, b"doomed", errno.ENOSPC, times=1)
    async with house.running():
        first, second = await together(
            house,
            write("Same", "doomed", source_url="https://x.org"),
            write("Same", "fine", source_url="https://x.org"),
        )
    assert isinstance(first, StorageFailed)
    assert second.status == "created"
    assert house.is_consistent()


# -- disk errors -------------------------------------------------------------------------------------


async def test_disk_error_affects_only_one_change_of_its_batch(house, monkeypatch):
    """behaviour 1"""
    fail_writes(monkeypatch, b"doomed", errno.EIO)
    async with house.running():
        old = await house.create("Old", "kept")
        results = await together(
            house, write("A"), write("B", "doomed"), write("Old", "doomed", id=old.id), write("C")
        )
        assert [type(result).__name__ for result in results] == [
            "WriteOutcome",
            "StorageFailed",
            "StorageFailed",
            "WriteOutcome",
        ]
        for refusal in results[1:3]:
            assert refusal.code == "internal_error"
            assert "Input/output error" in refusal.message
            assert "Nothing was changed" in refusal.message
        assert await house.becomes_consistent()
        assert b"kept" in house.files.read("old.md").data
    assert [path for kind, path in house.told() if kind == "note.updated"] == []
    assert not [name for name in os.listdir(house.files.root) if name.startswith(".")]


async def test_unconfirmed_change_is_reported_and_state_stays_consistent(house, monkeypatch):
    """The files are the source of truth. Catalogue, indexes and journal contain the same state."""

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    async with house.running():
        note = await house.create("Old")
        monkeypatch.setattr(files_module, "_sync", fail)
        for request in (write("New"), write("Old", "changed", id=note.id), DeleteNote(id=note.id, agent="a")):
            with pytest.raises(StorageFailed, match="did not confirm") as caught:
                await house.ask(request)
            assert caught.value.extras["path"] in ("new.md", "old.md")
            await trio.sleep(1)
            assert house.is_consistent()
    assert house.told() == [
        ("note.created", "old.md"),
        ("note.created", "new.md"),
        ("note.updated", "old.md"),
        ("note.deleted", "old.md"),
    ]


async def test_note_path_below_an_existing_file_is_invalid(house):
    put_file(house.files, "plain", "a file where a folder is wanted")
    async with house.running():
        with pytest.raises(InvalidInput):
            await house.create("X", path="plain/x.md")
        assert await house.becomes_consistent()


async def test_unknown_file_is_not_overwritten(house):
    data = put_file(house.files, "x.md", "made by hand since the scan")
    async with house.running():
        with pytest.raises(PathCollision) as caught:
            await house.create("X")
        assert caught.value.extras["existing_id"] is None
    assert house.files.read("x.md").data == data


# -- external edits -----------------------------------------------------------------------------------


def edit(house: House, path: str, old: bytes, new: bytes) -> None:
    target = house.files.root / path
    target.write_bytes(target.read_bytes().replace(old, new))
    later = target.stat().st_mtime_ns + 10**9
    os.utime(target, ns=(later, later))


async def test_update_starts_from_the_current_file(house):
    async with house.with_note(tags=("old",)) as note:
        edit(house, note.path, b"- old", b"- by-hand")
        outcome = await house.update(note.id, "Note", "new")
        assert outcome.version == 3
        assert house.catalogue.get(note.id).note.tags == ("by-hand",)
        assert await house.becomes_consistent()


async def test_update_of_a_changed_file_is_decided_on_new_bytes(house, monkeypatch):
    async with house.with_note(tags=("old",)) as note:
        slip_in(monkeypatch, house.files, lambda: edit(house, note.path, b"- old", b"- by-hand"))
        await house.update(note.id, "Note", "new")
        assert house.catalogue.get(note.id).note.tags == ("by-hand",)
        assert b"by-hand" in house.files.read(note.path).data
        assert await house.becomes_consistent()


async def test_repeated_decision_may_end_in_a_refusal(house, monkeypatch):
    """A person raised the version, so the first decision must not be written."""
    async with house.with_note() as note:
        slip_in(monkeypatch, house.files, lambda: edit(house, note.path, b"version: 1", b"version: 7"))
        with pytest.raises(VersionConflict) as caught:
            await house.update(note.id, "Note", "new", expected_version=1)
        assert caught.value.extras["current_version"] == 7
    assert b"version: 7" in house.files.read(note.path).data


async def test_update_of_a_constantly_changing_file_fails_without_a_write(house, monkeypatch):
    async with house.with_note("text") as note:
        slip_in(monkeypatch, house.files, lambda: edit(house, note.path, b"text", b"text+"), times=100)
        with pytest.raises(StorageFailed, match="keeps changing"):
            await house.update(note.id, "Note", "mine")
    assert b"mine" not in house.files.read(note.path).data


async def test_manually_retitled_note_can_get_its_old_title_again(house):
    """In the catalogue, the slug belongs to the note itself, so this is not a collision."""
    async with house.running():
        note = await house.create("Before")
        edit(house, note.path, b"Before", b"By hand")
        assert (await house.update(note.id, "Before")).version == 3
        assert await house.becomes_consistent()


async def test_missing_file_is_reported_and_nothing_changes(house):
    async with house.with_note() as note:
        (house.files.root / note.path).unlink()
        with pytest.raises(StorageFailed, match="missing"):
            await house.update(note.id, "Note", "new")
        assert note.id in house.catalogue
        assert (await house.delete(note.id)).status == "deleted"
        assert await house.becomes_consistent()
    assert house.told()[-1] == ("note.deleted", note.path)


@pytest.mark.parametrize("damage", [b"---\n: [\n---\nx", b"\xff\xfe\x00binary", b"---\nid: [1\n---\n"])
async def test_file_that_cannot_be_parsed_is_not_overwritten(house, damage):
    async with house.with_note() as note:
        (house.files.root / note.path).write_bytes(damage)
        with pytest.raises(StorageFailed, match="Nothing was changed"):
            await house.update(note.id, "Note", "new")
        assert house.files.read(note.path).data == damage
        assert (await house.delete(note.id)).status == "deleted"


async def test_unreadable_file_is_reported(house, monkeypatch):
    async with house.with_note() as note:

        def read(path, known):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(house.files, "read_quiet", read)
        with pytest.raises(StorageFailed, match="Permission denied"):
            await house.update(note.id, "Note", "new")


async def test_file_that_now_belongs_to_another_note_is_not_changed(house):
    async with house.with_note() as note:
        other = b"---\nid: 11111111-1111-4111-8111-111111111111\n---\n\n# Other\n"
        (house.files.root / note.path).write_bytes(other)
        with pytest.raises(DocNotFound):
            await house.update(note.id, "Note", "new")
        with pytest.raises(DocNotFound):
            await house.delete(note.id)
    assert house.files.read(note.path).data == other


# -- indexes, cancellation and crashes ---------------------------------------------------------------


async def test_change_in_progress_is_applied_when_its_caller_is_cancelled(house):
    async with house.running() as nursery:
        house.gate.shut()
        with trio.CancelScope() as scope:
            nursery.start_soon(house.create, "Other")
            await wait_all_tasks_blocked()
            async with trio.open_nursery() as callers:
                callers.start_soon(house.create, "Queued")
                await wait_all_tasks_blocked()
                scope.cancel()
        house.gate.open()
        await trio.sleep(1)
        assert [entry.path for entry in house.catalogue] == ["other.md"], "what was queued is dropped"
        house.gate.shut()
        with trio.move_on_after(5):
            await house.create("Under way")
        house.gate.open()
        await trio.sleep(1)
        assert await house.becomes_consistent()
    assert house.told() == [("note.created", "other.md"), ("note.created", "under-way.md")]


async def test_queued_requests_survive_a_writer_crash(house, monkeypatch):
    real, crashes = house.preparation.prepare_creation, [1]

    def prepare(request):
        if crashes:
            crashes.pop()
            raise RuntimeError("a bug")
        return real(request)

    monkeypatch.setattr(house.preparation, "prepare_creation", prepare)
    async with house.running():
        house.gate.shut()
        queued = [await house.writer.mailbox.post(write("Doomed"))]
        await wait_all_tasks_blocked()
        queued.append(await house.writer.mailbox.post(write("Fine")))
        house.gate.open()
        with pytest.raises(ActorDown):
            await queued[0].reply()
        accepted = await queued[1].reply()
        assert (await accepted.reply()).status == "created"
        assert await house.becomes_consistent()
    assert house.writer.mailbox.stats.restarts == 1


async def test_queued_changes_are_written_and_announced_at_shutdown(house):
    async with house.running():
        queued = [await house.writer.mailbox.post(write(f"n{n}")) for n in range(50)]
    for envelope in queued:
        accepted = await envelope.reply()
        assert (await accepted.reply()).status == "created"
    assert len(house.told()) == 50
    assert house.is_consistent()
    with pytest.raises(ShuttingDown):
        await house.writer.mailbox.ask(write("late"))


async def test_restart_after_writes_finds_no_changes(house):
    async with house.with_note(tags=("a",), path="deep/er") as note:
        await house.update(note.id, "Note 2", metadata={"k": [1]})
        await house.create("Other")
    result = house.restart()
    assert (result.events, result.rows, result.removed, result.examined) == ((), (), (), 0)
