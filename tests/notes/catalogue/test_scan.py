"""The start scan: changes made while no server ran are announced once, and no file is changed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lithos.kernel.values.events import NOTE_CREATED, NOTE_DELETED, NOTE_RENAMED, NOTE_UPDATED
from lithos.notes.files.files import NoteFiles
from lithos.notes.format.document import derive_id
from lithos.notes.writing.recording import first_version
from tests.fakes import put_file
from tests.kernel.actors.house import House

UUID = "11111111-1111-4111-8111-{:012}"


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    yield house
    house.close()


def note(n: int, title: str = "", **keys: str) -> str:
    lines = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return f"---\nid: {UUID.format(n)}\n{lines}---\n\n# {title or f'Note {n}'}\n\nbody of {n}\n"


def put(house: House, path: str, text: str) -> None:
    """Write a file with a modification time later than all earlier ones."""
    target = house.files.root / path
    before = target.stat().st_mtime_ns if target.exists() else 10**18
    put_file(house.files, path, text)
    os.utime(target, ns=(before + 10**9, before + 10**9))


def first_scan(house: House) -> None:
    house.settle(house.scan())


def rescan(house: House) -> list[tuple[str, str]]:
    """Restart the server, journal the events of the scan, and return their types and paths."""
    result = house.restart()
    house.settle(result)
    return [
        (event.type, str(event.payload.get("path", event.payload.get("dest_path"))))
        for event in result.events
    ]


def paths(house: House) -> list[str]:
    return sorted(entry.path for entry in house.catalogue)


def picture(root: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return the bytes, modification time and mode of every file."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode)
        for path in root.rglob("*")
        if path.is_file()
    }


# -- first and second scan --------------------------------------------------------------------------


def test_first_scan_indexes_all_notes_without_events(house):
    for n in range(5):
        put(house, f"d{n}/n.md", note(n))
    result = house.scan()
    assert result.events == ()
    assert (result.found, result.examined, len(result.rows)) == (5, 5, 5)
    assert len(house.catalogue) == 5


def test_second_scan_reads_no_unchanged_file(house, monkeypatch):
    for n in range(5):
        put(house, f"{n}.md", note(n))
    first_scan(house)
    before = list(house.catalogue)

    def read(self, path):
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(NoteFiles, "read", read)
    result = house.restart()
    assert (result.events, result.rows, result.removed, result.examined) == ((), (), (), 0)
    assert list(house.catalogue) == before


def test_killed_first_scan_is_repeated_as_a_first_scan(house):
    put(house, "a.md", note(1))
    house.scan()
    assert rescan(house) == [], "still the first scan: nothing was ever announced"
    put(house, "b.md", note(2))
    assert rescan(house) == [(NOTE_CREATED, "b.md")]


def test_scan_never_changes_file_bytes_or_times(house):
    """behaviour 176"""
    put(house, "plain.md", "no frontmatter at all")
    put(house, "windows.md", "\ufeff---\r\ntitle: x\r\n---\r\n\r\n# X\r\n")
    put(house, "full.md", note(1, tags="[a, b]", aliases="text, more"))
    put(house, "broken.md", "---\n: [\n---\n")
    put(house, "twin.md", note(1))
    before = picture(house.files.root)
    first_scan(house)
    rescan(house)
    assert picture(house.files.root) == before


def test_file_without_id_keeps_one_id_across_scans(house):
    """behaviour 177"""
    put(house, "inbox/idea.md", "just text")
    first_scan(house)
    (entry,) = house.catalogue
    assert entry.note.id == derive_id("inbox/idea.md") == "647ceeaa-b2f4-5f08-9b41-0701a41c063d"
    assert not entry.identified
    put(house, "inbox/idea.md", "other text")
    assert rescan(house) == [(NOTE_UPDATED, "inbox/idea.md")]
    (again,) = house.catalogue
    assert (again.note.id, again.serial) == (entry.note.id, entry.serial)


def test_moved_file_without_id_remains_the_same_note(house):
    """behaviour 270"""
    put(house, "a.md", "just text")
    first_scan(house)
    (house.files.root / "a.md").rename(house.files.root / "b.md")
    assert rescan(house) == [(NOTE_RENAMED, "b.md")]
    assert [entry.note.id for entry in house.catalogue] == [derive_id("a.md")]


def test_moved_and_changed_file_without_id_is_a_new_note(house):
    """behaviour 177"""
    put(house, "a.md", "just text")
    first_scan(house)
    (house.files.root / "a.md").unlink()
    put(house, "b.md", "other text")
    assert sorted(rescan(house)) == [(NOTE_CREATED, "b.md"), (NOTE_DELETED, "a.md")]


# -- changes between two scans -----------------------------------------------------------------------


def test_each_change_emits_an_event_by_the_agent_scan(house):
    for n, path in enumerate(("same.md", "changed.md", "gone.md", "moved.md", "touched.md")):
        put(house, path, note(n, tags=f"[t{n}]"))
    first_scan(house)
    serials = {entry.note.id: entry.serial for entry in house.catalogue}
    root = house.files.root
    put(house, "changed.md", note(1, "Changed", tags="[new]"))
    (root / "gone.md").unlink()
    (root / "sub").mkdir()
    (root / "moved.md").rename(root / "sub/elsewhere.md")
    put(house, "touched.md", note(4, tags="[t4]"))
    put(house, "new.md", note(9))
    result = house.restart()
    told = {event.type: event for event in result.events}
    assert len(result.events) == 4
    assert {event.agent for event in result.events} == {"scan"}
    assert told[NOTE_CREATED].payload == {"id": UUID.format(9), "title": "Note 9", "path": "new.md"}
    assert told[NOTE_UPDATED].payload == {"id": UUID.format(1), "title": "Changed", "path": "changed.md"}
    assert told[NOTE_UPDATED].tags == ("new",)
    assert told[NOTE_DELETED].payload == {"id": UUID.format(2), "path": "gone.md"}
    assert told[NOTE_DELETED].tags == ("t2",)
    assert told[NOTE_RENAMED].payload == {
        "id": UUID.format(3),
        "src_path": "moved.md",
        "dest_path": "sub/elsewhere.md",
    }
    assert set(result.removed) == {"gone.md", "moved.md"}
    assert result.examined == 4
    kept = {entry.note.id: entry.serial for entry in house.catalogue if entry.note.id in serials}
    assert kept.items() <= serials.items(), "numbers stay with their notes"
    house.settle(result)
    assert rescan(house) == []


def test_touched_file_is_recorded_without_an_event(house):
    put(house, "a.md", note(1))
    first_scan(house)
    put(house, "a.md", note(1))
    result = house.restart()
    assert (result.events, result.examined, len(result.rows)) == ((), 1, 1)
    house.settle(result)
    assert house.restart().examined == 0


def test_change_of_equal_size_is_detected_by_modification_time(house):
    put(house, "a.md", note(1, "Aaa"))
    first_scan(house)
    put(house, "a.md", note(1, "Bbb"))
    assert rescan(house) == [(NOTE_UPDATED, "a.md")]


def test_note_both_moved_and_edited_emits_one_rename_event(house):
    put(house, "a.md", note(1))
    first_scan(house)
    (house.files.root / "a.md").unlink()
    put(house, "b.md", note(1, "New title"))
    assert rescan(house) == [(NOTE_RENAMED, "b.md")]
    (entry,) = house.catalogue
    assert entry.note.title == "New title"


def test_two_notes_that_swap_files_emit_two_rename_events(house):
    put(house, "a.md", note(1))
    put(house, "b.md", note(2))
    first_scan(house)
    put(house, "a.md", note(2))
    put(house, "b.md", note(1))
    assert sorted(rescan(house)) == [(NOTE_RENAMED, "a.md"), (NOTE_RENAMED, "b.md")]
    assert house.catalogue.at_path("a.md").note.id == UUID.format(2)
    assert rescan(house) == []


def test_serial_numbers_of_deleted_notes_are_not_reused(house):
    for n in range(3):
        put(house, f"{n}.md", note(n))
    first_scan(house)
    highest = max(entry.serial for entry in house.catalogue)
    (house.files.root / "2.md").unlink()
    put(house, "new.md", note(9))
    rescan(house)
    assert house.catalogue.at_path("new.md").serial > highest


# -- files that cannot be indexed -------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage", [b"---\nkey: [\n---\n\n# x", b"\x00\xff\xfe binary", b"---\n\t- x: {\n---\n"]
)
def test_unreadable_files_are_skipped_and_other_files_are_indexed(house, damage):
    """behaviour 22"""
    put(house, "a.md", note(1))
    (house.files.root / "bad.md").write_bytes(damage)
    put(house, "z.md", note(2))
    first_scan(house)
    assert paths(house) == ["a.md", "z.md"]
    assert set(house.catalogue.skipped) == {"bad.md"}
    assert rescan(house) == []


@pytest.mark.parametrize("damage", [b"---\nkey: [\n---\n", b"\xff\xff"])
def test_known_note_keeps_its_last_state_when_it_becomes_unreadable(house, damage):
    put(house, "a.md", note(1, "Before"))
    first_scan(house)
    (house.files.root / "a.md").write_bytes(damage)
    for _ in range(2):
        assert rescan(house) == []
        (entry,) = house.catalogue
        assert entry.note.title == "Before"
        assert "a.md" in house.catalogue.skipped
    put(house, "a.md", note(1, "After"))
    assert rescan(house) == [(NOTE_UPDATED, "a.md")]
    assert house.catalogue.skipped == {}


def test_damaged_file_keeps_its_id_until_deleted(house):
    put(house, "b.md", note(1))
    first_scan(house)
    put(house, "a.md", note(1))
    (house.files.root / "b.md").write_bytes(b"\xff")
    assert rescan(house) == []
    assert (paths(house), set(house.catalogue.skipped)) == (["b.md"], {"a.md", "b.md"})
    (house.files.root / "b.md").unlink()
    assert rescan(house) == [(NOTE_RENAMED, "a.md")]
    assert house.catalogue.skipped == {}


def test_note_keeps_its_last_state_when_read_permission_is_missing(house, monkeypatch):
    put(house, "a.md", note(1))
    first_scan(house)
    put(house, "a.md", note(1, "Hidden edit"))

    def read(self, path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(NoteFiles, "read", read)
    assert rescan(house) == []
    assert paths(house) == ["a.md"]
    assert "Permission denied" in house.catalogue.skipped["a.md"].reason


def test_notes_in_an_unlistable_folder_are_not_deleted(house, monkeypatch):
    put(house, "a/x.md", note(1))
    put(house, "b/y.md", note(2))
    first_scan(house)
    real_open, real_read = os.open, NoteFiles.read

    def open_folder(path, *flags):
        if str(path).endswith("/a"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real_open(path, *flags)

    def read(self, path):
        if path.startswith("a/"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real_read(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_folder)
        patch.setattr(NoteFiles, "read", read)
        assert rescan(house) == []
        assert paths(house) == ["a/x.md", "b/y.md"]
        assert set(house.catalogue.skipped) == {"a/x.md"}
    assert rescan(house) == []
    assert house.catalogue.skipped == {}


def test_file_that_vanishes_during_the_scan_is_skipped(house, monkeypatch):
    put(house, "a.md", note(1))
    put(house, "b.md", note(2))
    real = NoteFiles.read

    def read(self, path):
        if path == "a.md":
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return real(self, path)

    monkeypatch.setattr(NoteFiles, "read", read)
    house.scan()
    assert paths(house) == ["b.md"]


# -- duplicates -------------------------------------------------------------------------------------


def test_first_path_is_indexed_when_two_files_share_an_id(house):
    put(house, "b.md", note(1, "Second"))
    put(house, "a/z.md", note(1, "First"))
    first_scan(house)
    assert paths(house) == ["a/z.md"]
    assert house.catalogue.skipped["b.md"].reason.startswith("DUPLICATE_ID")
    assert "a/z.md" in house.catalogue.skipped["b.md"].reason
    (house.files.root / "a/z.md").unlink()
    assert rescan(house) == [(NOTE_RENAMED, "b.md")]
    assert rescan(house) == []


COPIES = ("Shared 2.md", "Shared (conflicted copy).md", "Shared-1.md", "Archive/Shared.md", "A.md")


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("edited", ["Shared.md", "copy", ""])
@pytest.mark.parametrize("knows", ["manifest", "history"])
def test_path_keeps_its_id_when_its_file_is_copied(house, copy, edited, knows):
    put(house, "Shared.md", note(1))
    first_scan(house)
    keep_version(house, "Shared.md")
    put(house, copy, note(1))
    if edited:
        put(house, copy if edited == "copy" else edited, note(1, "Edited"))
    if knows == "history":
        house.close()
        (house.root / "manifest.db").unlink()
        house.open()
    rescan(house)
    assert paths(house) == ["Shared.md"]
    assert house.catalogue.doubles == {UUID.format(1): {copy}}
    assert rescan(house) == []


def keep_version(house: House, path: str) -> None:
    """Store a version of the note in the history, as the running server does."""
    entry = house.catalogue.at_path(path)
    assert entry is not None
    data = (house.files.root / path).read_bytes()
    house.history.add_lacking([(first_version(entry, data, house.clock()), None)])


@pytest.mark.parametrize("copy", COPIES[:-1])
def test_unknown_id_is_assigned_to_the_file_without_copy_suffix(house, copy):
    put(house, copy, note(1))
    put(house, "Shared.md", note(1))
    os.utime(house.files.root / copy, ns=(1, 1))  # The copy is older than the note.
    first_scan(house)
    assert paths(house) == ["Shared.md"]


def test_unknown_id_is_assigned_to_the_older_file(house):
    put(house, "a.md", note(1))
    put(house, "b.md", note(1))
    os.utime(house.files.root / "b.md", ns=(1, 1))
    first_scan(house)
    assert paths(house) == ["b.md"]


def test_moved_note_is_distinguished_from_its_copy_by_bytes(house):
    put(house, "b.md", note(1))
    put(house, "a.md", note(1, "Copy"))
    os.utime(house.files.root / "a.md", ns=(10**19, 10**19))
    first_scan(house)
    assert paths(house) == ["b.md"]
    (house.files.root / "b.md").rename(house.files.root / "z.md")
    assert rescan(house) == [(NOTE_RENAMED, "z.md")]


@pytest.mark.parametrize("order", [("a.md", "b.md", "c.md"), ("c.md", "b.md", "a.md")])
def test_first_path_keeps_the_slug_after_a_slug_collision(house, order):
    """behaviour 14, regardless of the order in which the files appeared."""
    first_scan(house)
    for path in order:
        put(house, path, note(ord(path[0]), "Same Title", source_url="https://x.org/p"))
        rescan(house)
    assert paths(house) == ["a.md", "b.md", "c.md"]
    first = house.catalogue.at_path("a.md").note.id
    assert house.catalogue.slugs.owner("same-title") == first
    assert house.catalogue.urls.owner("https://x.org/p") == first
    assert (house.catalogue.slugs.surplus, house.catalogue.urls.surplus) == (2, 2)
    (house.files.root / "a.md").unlink()
    rescan(house)
    assert house.catalogue.slugs.owner("same-title") == house.catalogue.at_path("b.md").note.id
    assert house.catalogue.urls.surplus == 1, "each scan counts anew"


def test_links_of_unchanged_files_are_known_without_rereading_the_files(house):
    put(house, "a.md", note(1) + "\n[[b]] and [[nowhere]]\n")
    put(house, "b.md", note(2))
    first_scan(house)
    counts = house.catalogue.graph.counts()
    assert counts.unresolved == 1
    house.restart()
    assert house.catalogue.graph.counts() == counts


# -- kills ------------------------------------------------------------------------------------------


def swallow_manifest(house: House, monkeypatch) -> None:
    """Simulate a kill before each write to the manifest: from now on, `store` does nothing."""
    monkeypatch.setattr(house.manifest, "store", lambda *_: None)


@pytest.mark.autojump
async def test_kill_between_journal_and_manifest_repeats_no_event(house, monkeypatch):
    """behaviour 187"""
    first_scan(house)
    async with house.running():
        kept = await house.create("Kept")
        gone = await house.create("Gone")
        swallow_manifest(house, monkeypatch)
        await house.create("New")
        await house.update(kept.id, "Kept", "changed")
        await house.delete(gone.id)
        brief = await house.create("Brief")
        await house.delete(brief.id)
    before = house.told()
    assert len(before) == 7
    assert rescan(house) == []
    assert paths(house) == ["kept.md", "new.md"]
    assert house.told() == before
    assert rescan(house) == []


@pytest.mark.autojump
async def test_kill_between_file_and_journal_loses_no_event(house, monkeypatch):
    """behaviour 187"""
    first_scan(house)
    async with house.running():
        kept = await house.create("Kept")
        gone = await house.create("Gone")
    put(house, "new.md", note(1))
    put(house, kept.path, (house.files.root / kept.path).read_text() + "half acknowledged")
    (house.files.root / gone.path).unlink()
    assert sorted(rescan(house)) == [
        (NOTE_CREATED, "new.md"),
        (NOTE_DELETED, "gone.md"),
        (NOTE_UPDATED, "kept.md"),
    ]
    assert rescan(house) == []


def test_scan_events_are_not_repeated_when_killed_before_the_manifest(house, monkeypatch):
    """behaviour 187: the rule also applies to the events of the scan itself."""
    put(house, "a.md", note(1))
    put(house, "b.md", note(2))
    first_scan(house)
    put(house, "a.md", note(1, "Changed"))
    (house.files.root / "b.md").rename(house.files.root / "c.md")
    put(house, "d.md", note(4))
    result = house.restart()
    assert len(result.events) == 3
    swallow_manifest(house, monkeypatch)
    house.settle(result)
    assert rescan(house) == []
    assert len(house.told()) == 3


@pytest.mark.autojump
async def test_changes_after_a_kill_are_announced_relative_to_earlier_events(house, monkeypatch):
    """behaviour 187: the next event is derived from the last event, not from the old manifest."""
    first_scan(house)
    async with house.running():
        moved = await house.create("Moved")
        back = await house.create("Back")
        swallow_manifest(house, monkeypatch)
        await house.update(moved.id, "Moved", "changed")
        text = (house.files.root / back.path).read_text()
        await house.delete(back.id)
        await house.create("Brief")
    (house.files.root / "moved.md").rename(house.files.root / "there.md")
    put(house, "back.md", text)
    (house.files.root / "brief.md").unlink()
    assert sorted(rescan(house)) == [
        (NOTE_CREATED, "back.md"),
        (NOTE_DELETED, "brief.md"),
        (NOTE_RENAMED, "there.md"),
    ]
    assert rescan(house) == []


@pytest.mark.autojump
async def test_withheld_change_is_announced_once_after_a_kill(house):
    """behaviours 63, 187"""
    first_scan(house)
    async with house.running():
        for index in house.indexes:
            index.failing = True
        with pytest.raises(Exception, match="no search index"):
            await house.create("Withheld")
    assert house.told() == []
    assert rescan(house) == [(NOTE_CREATED, "withheld.md")]
    assert rescan(house) == []


def test_lost_manifest_causes_no_events(house):
    """The scan counts as a first scan, because subscribers know the notes already."""
    put(house, "a.md", note(1))
    first_scan(house)
    house.close()
    for leftover in house.root.glob("manifest.db*"):
        leftover.unlink()
    house.open()
    result = house.scan()
    assert result.events == ()
    assert paths(house) == ["a.md"]


def test_file_time_in_the_far_future_is_accepted_at_start(house):
    put(house, "a.md", "no times of its own")
    os.utime(house.files.root / "a.md", (10**12, 10**12))
    first_scan(house)
    assert rescan(house) == []
    assert paths(house) == ["a.md"]


def test_times_at_the_calendar_limits_do_not_stop_the_start(house):
    put(house, "a.md", note(1, expires_at="9999-12-31T23:59:59.999999+00:00"))
    first_scan(house)
    assert rescan(house) == []
    (entry,) = house.catalogue
    assert entry.note.expires_at.year == 9999
