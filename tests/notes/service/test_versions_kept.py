"""Version history: every state of a note is kept, whichever program changed or deleted the file."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio

from lithos.history.recording import recorder
from lithos.history.recording.backfill import CatchingUp
from lithos.history.rows.store import HistoryFailed, HistoryStore
from lithos.history.settings import HistoryConfig
from lithos.kernel.parts import utc_now
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.versions import VersionRow
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.deferred_removal import Keeper
from lithos.notes.writing.messages import RestoreNote
from lithos.server.service_state import ServerState
from tests.servers import Lithos, put_note, serving, until


def history_of(lithos: Lithos) -> HistoryStore:
    store = lithos.server.get(Writer)._recorder.store
    assert store is not None
    return store


def told(rows) -> list[tuple[int, str, str]]:
    return [(row.version, row.op, row.agent) for row in rows]


def versions(lithos: Lithos, note_id: str) -> list[tuple[int, str, str]]:
    return told(history_of(lithos).rows(note_id, 100)[0])


def check_bytes(lithos: Lithos, note_id: str, version: int, data: bytes) -> VersionRow:
    store = history_of(lithos)
    row = store.row(note_id, version)
    assert row is not None
    assert store.content(note_id, version) == data
    assert (row.digest, row.size) == (hashlib.sha256(data).hexdigest(), len(data))
    return row


async def test_every_tool_change_keeps_a_version_with_exact_bytes(tmp_path):
    """behaviour 221"""
    async with serving(tmp_path) as lithos:
        created = await lithos.write("Note", "first", agent="ada")
        note_id, file = created["id"], lithos.knowledge / created["path"]
        first = file.read_bytes()
        await lithos.write("Note", "second\n\nmore", id=note_id, agent="bob", tags=["x"])
        second = file.read_bytes()
        await lithos.call("lithos_note_update", id=note_id, agent="eve", status="archived")
        third = file.read_bytes()
        moved = await lithos.call("lithos_note_move", id=note_id, agent="ada", path="deep/moved.md")
        assert moved["path"] == "deep/moved.md"
        assert versions(lithos, note_id) == [
            (3, "renamed", "ada"), (3, "updated", "eve"), (2, "updated", "bob"), (1, "created", "ada"),
        ]  # fmt: skip
        await lithos.call("lithos_delete", id=note_id, agent="bob")
        assert versions(lithos, note_id)[0] == (4, "deleted", "bob")
        check_bytes(lithos, note_id, 1, first)
        assert check_bytes(lithos, note_id, 2, second).changed == ("body", "tags")
        row = check_bytes(lithos, note_id, 3, third)
        assert (row.path, row.changed) == ("deep/moved.md", ("path",))
        assert check_bytes(lithos, note_id, 4, third).op == "deleted"
        rows = history_of(lithos).rows(note_id, 10)[0]
        assert rows[2].changed == ("status",)
        assert history_of(lithos).recent(limit=5, is_deleted=True)[1] == 1


async def test_refused_write_leaves_no_version(tmp_path):
    """behaviour 221"""
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Note", "first")
        store = history_of(lithos)
        before = store.size()[0]
        target = lithos.knowledge / "note.md"
        shutil.copy(target, tmp_path / "kept.md")
        answer = await lithos.call("lithos_write", title="Note", content="x", agent="a")
        assert answer["code"] == "slug_collision"
        files = lithos.server.get(Writer)._files
        with pytest.MonkeyPatch.context() as patch:

            def refuse(changes):
                return [OSError(28, "No space left on device")] * len(changes)

            patch.setattr(files, "apply", refuse)
            answer = await lithos.call("lithos_write", id=note_id, title="Note", content="x", agent="a")
            assert answer["code"] == "internal_error"
            assert store.size()[0] == before
            assert not store.pending() or store.row(note_id, 2) is None
        await lithos.write("Note", "second", id=note_id)
        assert [row[0] for row in versions(lithos, note_id)] == [2, 1]


def refuse_files(changes: list[Any]) -> list[OSError]:
    return [OSError(5, "Input/output error")] * len(changes)


@pytest.fixture
def undroppable(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Block the deletion of rows in `history.db` until the returned function is called.

    New versions can still be stored.
    """
    drop, is_broken = HistoryStore._drop, True

    def drop_some(store: HistoryStore, places: Iterable[int]) -> int:
        if is_broken and list(places):
            raise apsw.IOError("disk I/O error")
        return drop(store, places)

    def mend() -> None:
        nonlocal is_broken
        is_broken = False

    monkeypatch.setattr(HistoryStore, "_drop", drop_some)
    return mend


async def write_refused(lithos: Lithos, note_id: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lithos.server.get(Writer)._files, "apply", refuse_files)
        answer = await lithos.call("lithos_write", id=note_id, title="Note", content="refused", agent="a")
    assert answer["code"] == "internal_error"
    assert "Nothing was changed" in answer["message"]


async def test_rows_of_refused_writes_are_dropped_once_history_is_writable(
    tmp_path, monkeypatch, undroppable
):
    """behaviour 221: the rows are dropped even if no client writes any more (simulation seed 647)."""
    monkeypatch.setattr(recorder, "TIDY_AFTER", 0.02)
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Note", "first")
        await write_refused(lithos, note_id)
        # Another commit without rows to drop may have succeeded in between.
        await until(lambda: lithos.server.get(Writer)._recorder.is_failing)
        undroppable()
        await until(lambda: not lithos.server.get(Writer)._recorder.is_failing)
        await until(lambda: versions(lithos, note_id) == [(1, "created", "tester")])


async def test_state_before_a_write_is_kept_without_refused_writes(tmp_path, undroppable):
    """behaviour 221: an unused row does not count as a version, and no version is recorded twice."""
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Note", "first")
        await lithos.server.get(CatchingUp).done.wait()
        await write_refused(lithos, note_id)
        undroppable()
        lithos.server.get(Writer)._recorder.is_caught_up = False  # Simulate a version that could not be kept.
        await lithos.write("Note", "second", id=note_id)
        assert versions(lithos, note_id) == [(2, "updated", "tester"), (1, "created", "tester")]


async def test_rows_pending_at_the_start_are_settled_while_server_runs(tmp_path, monkeypatch, undroppable):
    """behaviours 221 and 226: edits made before the rows are settled are recorded as well."""
    async with serving(tmp_path) as lithos:
        note_id, edited = await lithos.create("Note", "first"), await lithos.create("Edited", "first")
        await write_refused(lithos, note_id)
        store = history_of(lithos)  # Simulate the state after a kill.
        await lithos.server.get(Writer)._recorder.blocking.run(
            lambda: store._writer.execute("UPDATE versions SET pending=1")
        )
    with (lithos.knowledge / "edited.md").open("a") as file:
        file.write("A person's line.\n")
    monkeypatch.setattr(recorder, "TIDY_AFTER", 0.02)
    async with serving(tmp_path) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        assert versions(lithos, note_id)[0][0] == 2
        assert versions(lithos, edited) == [(1, "created", "tester")]
        undroppable()
        await until(lambda: versions(lithos, note_id) == [(1, "created", "tester")])
        await until(lambda: versions(lithos, edited) == [(2, "outside", "scan"), (1, "created", "tester")])


async def test_external_edit_rename_and_deletion_are_kept_after_ingestion(tmp_path):
    """behaviour 221"""
    async with serving(tmp_path, server={"watch_files": True}) as lithos:
        note_id = await lithos.create("Note", "first")
        file = lithos.knowledge / "note.md"
        edited = file.read_bytes() + b"A person's line.\r\n"
        file.write_bytes(edited)
        await until(lambda: len(versions(lithos, note_id)) == 2)
        row = check_bytes(lithos, note_id, 2, edited)
        assert (row.op, row.agent, row.changed) == ("outside", "watcher", ("body",))
        file.rename(lithos.knowledge / "other.md")
        await until(lambda: len(versions(lithos, note_id)) == 3)
        assert versions(lithos, note_id)[0] == (2, "renamed", "watcher")
        (lithos.knowledge / "other.md").unlink()
        await until(lambda: len(versions(lithos, note_id)) == 4)
        assert versions(lithos, note_id)[0] == (3, "deleted", "watcher")
        check_bytes(lithos, note_id, 3, edited)
        (lithos.knowledge / "new.md").write_bytes(b"# New\n\nFrom outside.\n")
        await until(lambda: any(entry.path == "new.md" for entry in lithos.server.get(Catalogue)))
        entry = lithos.server.get(Catalogue).at_path("new.md")
        assert entry is not None
        await until(lambda: versions(lithos, entry.note.id) != [])
        check_bytes(lithos, entry.note.id, 1, b"# New\n\nFrom outside.\n")
        assert versions(lithos, entry.note.id) == [(1, "created", "watcher")]


async def test_unnoticed_edit_is_kept_before_a_write_replaces_it(tmp_path):
    """behaviours 219, 221"""
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Note", "first")
        file = lithos.knowledge / "note.md"
        edited = file.read_bytes() + b"A person's line.\n"
        file.write_bytes(edited)
        os.utime(file, (1_700_000_000, 1_700_000_000))  # A file that was saved recently counts as busy.
        answer = await lithos.write("Note", "of the agent", id=note_id)
        assert answer["version"] == 3
        assert versions(lithos, note_id) == [
            (3, "updated", "tester"), (2, "outside", "watcher"), (1, "created", "tester"),
        ]  # fmt: skip
        check_bytes(lithos, note_id, 2, edited)


async def test_changes_made_while_server_is_stopped_are_recorded_at_start(tmp_path):
    """behaviour 221"""
    async with serving(tmp_path) as lithos:
        kept, gone, moved = [await lithos.create(title) for title in ("Kept", "Gone", "Moved")]
    notes = tmp_path / "knowledge"
    edited = (notes / "kept.md").read_bytes() + b"More.\n"
    (notes / "kept.md").write_bytes(edited)
    (notes / "gone.md").unlink()
    (notes / "moved.md").rename(notes / "elsewhere.md")
    async with serving(tmp_path) as lithos:
        await until(lambda: len(versions(lithos, gone)) == 2 and len(versions(lithos, moved)) == 2)
        await until(lambda: len(versions(lithos, kept)) == 2)
        assert versions(lithos, kept)[0] == (2, "outside", "scan")
        assert versions(lithos, gone)[0] == (2, "deleted", "scan")
        assert versions(lithos, moved)[0] == (1, "renamed", "scan")
        check_bytes(lithos, kept, 2, edited)
        size = history_of(lithos).size()[0]
    async with serving(tmp_path) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        assert history_of(lithos).size()[0] == size


async def test_older_data_directory_first_records_the_current_states(tmp_path):
    """behaviour 221: the server starts with a history for the first time."""
    for number in range(120):
        put_note(tmp_path, f"{number:03}.md", f"---\ntitle: Note {number}\n---\n" + "text " * number)
    off = HistoryConfig(enabled=False)
    async with serving(tmp_path, history=off) as lithos:
        ids = [entry.note.id for entry in sorted(lithos.server.get(Catalogue), key=lambda entry: entry.path)]
        await lithos.write("Note 7", "changed", id=ids[7], agent="bob")
        assert lithos.server.get(Writer)._recorder.store is None
    assert not (tmp_path / ".lithos" / "history.db").exists()
    async with serving(tmp_path) as lithos:
        await until(lambda: history_of(lithos).size()[0] == 120)
        assert versions(lithos, ids[7]) == [(2, "updated", "bob")]
        for note_id in (ids[0], ids[7], ids[119]):
            entry = lithos.server.get(Catalogue).get(note_id)
            assert entry is not None
            data = (lithos.knowledge / entry.path).read_bytes()
            row = check_bytes(lithos, note_id, entry.note.version, data)
            assert row.at == entry.note.updated_at


async def test_note_changed_before_the_catch_up_keeps_its_earlier_state(tmp_path):
    async with serving(tmp_path, history=HistoryConfig(enabled=False)) as lithos:
        note_id = await lithos.create("Note", "first")
        first = (lithos.knowledge / "note.md").read_bytes()
    async with serving(tmp_path) as lithos:
        # Simulate that the catch-up has not reached the note. The thread that writes the store drops the
        # rows.
        await lithos.server.get(Writer)._recorder.blocking.run(lambda: history_of(lithos).drop([1]))
        await lithos.write("Note", "second", id=note_id)
        assert [row[:2] for row in versions(lithos, note_id)] == [(2, "updated"), (1, "created")]
        check_bytes(lithos, note_id, 1, first)


async def test_file_is_unchanged_when_its_version_cannot_be_kept(tmp_path):
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Note", "first")
        store = history_of(lithos)
        recorder = lithos.server.get(Writer)._recorder
        while not recorder.is_caught_up:
            await trio.sleep(0.01)
        await recorder._tidy()  # Tidy up now. Otherwise the tidying would be the refused write.
        with pytest.MonkeyPatch.context() as patch:

            def refuse(*_, **__):
                store._note_failure(OSError(28, "disk full"))
                raise HistoryFailed("history.db does not answer: disk full. Check free space.")

            patch.setattr(store, "add", refuse)
            patch.setattr(store, "ensure", refuse)
            patch.setattr(store, "probe", refuse)
            one = await lithos.call("lithos_write", id=note_id, title="Note", content="second", agent="a")
            assert one["code"] == "internal_error"
            assert "is updated in note.md" in one["message"]
            assert "could not be kept" in one["message"]
            before = (lithos.knowledge / "note.md").read_bytes()
            other = await lithos.call("lithos_write", id=note_id, title="Note", content="third", agent="a")
            assert other["code"] == "internal_error"
            assert "nothing was changed" in other["message"]
            assert (lithos.knowledge / "note.md").read_bytes() == before
            status, body = await lithos.server.get(ServerState).report()
            assert (status, body["components"]["history"]["status"]) == (200, "degraded")
            assert "history.db cannot be written" in body["components"]["history"]["error"]
        answer = await lithos.write("Note", "third", id=note_id)
        assert answer["version"] == 3
        assert [row[0] for row in versions(lithos, note_id)] == [3, 2, 1]
        body = (await lithos.server.get(ServerState).report())[1]
        assert body["components"]["history"]["status"] == "ok"


async def test_disabled_history_keeps_no_versions_but_changes_nothing_else(tmp_path):
    """behaviour 225"""
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Note", "first")
    before = (tmp_path / ".lithos" / "history.db").read_bytes()
    async with serving(tmp_path, history=HistoryConfig(enabled=False)) as lithos:
        assert (await lithos.write("Note", "second", id=note_id))["version"] == 2
        body = (await lithos.server.get(ServerState).report())[1]
        assert body["components"]["history"]["status"] == "ok"
    assert (tmp_path / ".lithos" / "history.db").read_bytes() == before
    async with serving(tmp_path) as lithos:
        await until(lambda: len(versions(lithos, note_id)) == 2)


async def test_damaged_history_is_moved_aside_and_notes_remain_usable(tmp_path):
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Note", "first")
    path = tmp_path / ".lithos" / "history.db"
    path.write_bytes(b"\xff" * 20_000)
    async with serving(tmp_path) as lithos:
        await lithos.write("Note", "second", id=note_id)
        await until(lambda: [row[0] for row in versions(lithos, note_id)] == [2, 1])
    assert [each.read_bytes() for each in path.parent.glob("history.db.corrupt-*")] == [b"\xff" * 20_000]


async def test_displaced_bytes_get_their_own_version(tmp_path):
    """behaviour 219: another program saved these bytes to a displaced file."""
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Note", "first")
        await lithos.server.get(CatchingUp).done.wait()
        answer = await lithos.write("Note", "second", id=note_id)
        second = (lithos.knowledge / "note.md").read_bytes()
        late = b"---\nid: " + note_id.encode() + b"\n---\n# Note\n\nLate words.\n"
        displaced = lithos.server.get(Keeper).displaced
        displaced.save("note.md", late, utc_now())
        displaced.save("note.md", second, utc_now())  # The history contains these bytes already.
        lithos.server.get(Writer)._recorder.look_again()
        await until(lambda: len(versions(lithos, note_id)) == 4)
        assert [row[:2] for row in versions(lithos, note_id)] == [
            (4, "outside"), (3, "outside"), (2, "updated"), (1, "created"),
        ]  # fmt: skip
        check_bytes(lithos, note_id, 3, late)
        check_bytes(lithos, note_id, 4, second)
        assert (await lithos.read(note_id))["metadata"]["version"] == 4
        stale = await lithos.call(
            "lithos_write", id=note_id, title="Note", content="x", agent="a",
            expected_version=answer["version"],
        )  # fmt: skip
        assert stale["code"] == "version_conflict"
    async with serving(tmp_path) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        assert len(versions(lithos, note_id)) == 4
        assert (await lithos.write("Note", "third", id=note_id))["version"] == 5


async def test_restore_does_not_reuse_the_version_of_a_concurrent_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 223: the note is changed and deleted after the restore read its newest version (seed 827)."""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Plan", "one")
        await lithos.write("Plan", "two", id=note)
        write, was_changed = Knowledge.write, False

        async def changed_first(self: Knowledge, request: Any) -> Any:
            nonlocal was_changed
            if isinstance(request, RestoreNote) and not was_changed:
                was_changed = True
                third = await lithos.call("lithos_note_update", id=note, tags=["x"], agent="ann")
                assert third["version"] == 3
                await lithos.call("lithos_delete", id=note, agent="ann")
            return await write(self, request)

        monkeypatch.setattr(Knowledge, "write", changed_first)
        restored = await lithos.call("lithos_restore", id=note, version=1, agent="bob")
        assert (restored["status"], restored["version"]) == ("created", 5)
        rows = (await lithos.call("lithos_history", id=note))["versions"]
        assert [row["version"] for row in rows] == [5, 4, 3, 2, 1]
