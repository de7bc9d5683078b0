"""External changes to files: each is announced once, by id, in order with tool writes."""

from __future__ import annotations

import math
import os
import shutil

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from lithos.kernel.values.errors import LithosError
from lithos.kernel.values.events import NOTE_CREATED, NOTE_DELETED, NOTE_RENAMED, NOTE_UPDATED
from lithos.notes.catalogue import note_reading
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.note_reading import examine
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.catalogue.scan import scan_folder
from lithos.notes.files.lookup import find_note
from lithos.notes.files.manifest import Manifest
from lithos.notes.rows_coordination import KeptNotes
from lithos.notes.writing.external_changes import ExternalReply, OutsideFiles, OutsideRemovals
from lithos.text.yaml.vault_style import VaultStyle
from tests.kernel.actors.watched import UUID, WatchedHouse, note


async def test_external_changes_reach_catalogue_indexes_journal_and_manifest(house):
    """behaviour 135"""
    async with house.watching():
        house.put("a.md", note(1, tags="[x]"))
        await house.settle_paths("a.md")
        house.put("a.md", note(1, "other words", tags="[y]"))
        await house.settle_paths("a.md")
        assert house.catalogue.tags.counts() == {"y": 1}
        house.put("b.md", note(2))
        (house.folder / "a.md").unlink()
        await house.settle_paths("a.md", "b.md")
    assert house.told() == [
        (NOTE_CREATED, "a.md"),
        (NOTE_UPDATED, "a.md"),
        (NOTE_CREATED, "b.md"),
        (NOTE_DELETED, "a.md"),
    ]
    events = [event.draft for event in house.store.events_after(0)]
    assert {event.agent for event in events} == {"watcher"}
    assert events[-1].tags == ("y",)
    assert house.is_consistent()
    assert house.counted == ["created", "updated", "created", "deleted"]


async def test_touch_without_a_change_causes_no_event_and_no_read(house, monkeypatch):
    house.put("a.md", note(1))
    async with house.watching():
        os.utime(house.folder / "a.md", ns=(5 * 10**18, 5 * 10**18))
        await house.compare()
        monkeypatch.setattr(note_reading, "digest_of", None)  # Make every read fail.
        await house.compare()
    assert house.told() == []


async def test_write_by_a_tool_is_not_announced_again(house):
    """behaviour 135"""
    async with house.watching():
        made = await house.create("Mine")
        await house.settle_paths(made.path)
        await house.compare()
        await house.update(made.id, "Mine", "more")
        await house.settle_paths(made.path)
        await house.delete(made.id)
        await house.settle_paths(made.path)
    assert [kind for kind, _ in house.told()] == [NOTE_CREATED, NOTE_UPDATED, NOTE_DELETED]
    assert house.counted == []


async def test_read_overtaken_by_a_tool_write_is_discarded(house):
    """The watcher read the file before a tool wrote it, so the tool's version stays."""
    async with house.watching():
        made = await house.create("Mine", "old")
        house.put(made.path, (house.folder / made.path).read_text() + "\nby hand\n")
        found = find_note(house.files, made.path)
        stale = examine(house.files, found, house.catalogue.at_path(made.path))
        await house.update(made.id, "Mine", "by tool")
        before = house.catalogue.get(made.id)
        taken = await house.writer.mailbox.ask(OutsideFiles((stale,)))
        assert isinstance(taken, ExternalReply)
        assert (taken.again, taken.changes) == ([made.path], [])
        assert house.catalogue.get(made.id) == before
    assert house.is_consistent()


async def test_note_is_not_removed_when_its_file_has_reappeared(house):
    house.put("a.md", note(1))
    async with house.watching():
        taken = await house.writer.mailbox.ask(OutsideRemovals((UUID.format(1), "unknown")))
        assert (taken.present, taken.changes) == ([UUID.format(1)], [])
    assert house.told() == []


async def test_moved_file_keeps_id_number_and_links(house):
    """behaviour 136"""
    house.put("a.md", note(1))
    house.put("b.md", note(2, "to [[new/place/a]]"))
    async with house.watching():
        serial = house.catalogue.get(UUID.format(1)).serial
        (house.folder / "new/place").mkdir(parents=True)
        (house.folder / "a.md").rename(house.folder / "new/place/a.md")
        await house.settle_paths("a.md", "new")
        entry = house.catalogue.get(UUID.format(1))
        assert (entry.path, entry.serial) == ("new/place/a.md", serial)
        assert house.catalogue.graph.counts().unresolved == 0
    (event,) = house.store.events_after(0)
    assert event.draft.payload == {"id": UUID.format(1), "src_path": "a.md", "dest_path": "new/place/a.md"}
    assert house.is_consistent()


async def test_moved_folder_keeps_the_identity_of_its_notes(house):
    """behaviour 136"""
    for n in range(30):
        house.put(f"old/{n}.md", note(n))
    async with house.watching():
        (house.folder / "old").rename(house.folder / "renamed")
        await house.settle_paths("old", "renamed")
    assert {kind for kind, _ in house.told()} == {NOTE_RENAMED}
    assert len(house.told()) == 30
    assert house.guard.vanished == 0
    assert house.is_consistent()


#: Each entry has the initial files, the changes (a rename, or a note's text written to a path), the final
#: paths of the notes, and the events. The order of the events counts only if they are a list.
CHANGES = {
    "two files that swap their names are two renamings": (
        {1: "a.md", 2: "b.md"}, [("a.md", "t.md"), ("b.md", "a.md"), ("t.md", "b.md")],
        {1: "b.md", 2: "a.md"}, {(NOTE_RENAMED, "a.md"), (NOTE_RENAMED, "b.md")},
    ),
    "a file that takes another's place ends that note": (
        {1: "a.md", 2: "b.md"}, [("b.md", "a.md")],
        {1: None, 2: "a.md"}, [(NOTE_RENAMED, "a.md"), (NOTE_DELETED, "a.md")],
    ),
    "an id edited in place is another note": (
        {1: "a.md"}, [(2, "a.md")], {1: None, 2: "a.md"}, [(NOTE_CREATED, "a.md"), (NOTE_DELETED, "a.md")],
    ),
    "a copy written over a note ends that note": (
        {1: "a.md", 2: "b.md"}, [(1, "b.md")], {1: "a.md", 2: None}, [(NOTE_DELETED, "b.md")],
    ),
    "only the case of a name may change": (
        {1: "note.md"}, [("note.md", "Note.md")], {1: "Note.md"}, [(NOTE_RENAMED, "Note.md")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "steps", "after", "told"), CHANGES.values(), ids=CHANGES)
async def test_renames_with_replaced_texts_emit_the_expected_events(house, before, steps, after, told):
    """behaviour 136"""
    for n, path in before.items():
        house.put(path, note(n))
    async with house.watching():
        for source, target in steps:
            if isinstance(source, int):
                house.put(target, note(source))
            else:
                (house.folder / source).replace(house.folder / target)
        await house.settle_paths(*(path for step in steps for path in step if isinstance(path, str)))
        assert {n: house.path_of(n) for n in after} == after
        copies = {path for source, path in steps if source in before}
        assert set(house.catalogue.skipped) == copies
    assert type(told)(house.told()) == told
    assert len(house.told()) == len(told)
    assert house.is_consistent() is not bool(copies)


async def test_second_file_with_an_id_waits_until_the_first_vanishes(house):
    house.put("a.md", note(1))
    async with house.watching():
        house.put("0.md", note(1, "copy"))
        await house.settle_paths("0.md")
        assert house.path_of(1) == "a.md"
        assert "a.md has the same id" in house.catalogue.skipped["0.md"].reason
        (house.folder / "a.md").unlink()
        await house.settle_paths("a.md")
        assert house.path_of(1) == "0.md"
        assert house.catalogue.skipped == {}
    assert house.told() == [(NOTE_RENAMED, "0.md")]
    assert house.is_consistent()


@pytest.mark.parametrize("gives_up", ["no id any more", note(2), None, "moved"])
async def test_second_file_becomes_the_note_when_the_id_is_released(house, gives_up):
    """behaviour 136: however the first file releases its id, no file stays invisible until a restart."""
    async with house.watching():
        house.put("b.md", note(1))
        await house.settle_paths("b.md")
        house.put("a.md", note(1, "copy"))
        await house.settle_paths("a.md")
        assert list(house.catalogue.doubles.values()) == [{"a.md"}]
        if gives_up is None:
            (house.folder / "b.md").unlink()
        elif gives_up == "moved":
            (house.folder / "b.md").rename(house.folder / "c.txt")
        else:
            house.put("b.md", gives_up)
        await house.settle_paths("b.md", "c.txt")
        for _ in range(3):
            await house.compare()
        assert house.path_of(1) == "a.md"
        assert house.catalogue.skipped == {}
        assert len(house.catalogue) == len(house.files.list_notes())
    assert house.is_consistent()


async def test_briefly_missing_note_keeps_its_id_despite_a_copy(house):
    """behaviour 136: a folder is moved in two steps, or an editor deletes the file before saving."""
    house.pending.debounce = 5.0
    async with house.watching():
        house.put("b.md", note(1))
        await house.settle_paths("b.md")
        house.put("a.md", note(1, "copy"))
        await house.settle_paths("a.md")
        (house.folder / "b.md").rename(house.root / "away")
        await house.settle_paths("b.md")
        (house.root / "away").rename(house.folder / "c.md")
        await house.settle_paths("c.md")
        assert house.path_of(1) == "c.md"
        assert list(house.catalogue.doubles.values()) == [{"a.md"}]


async def test_id_returns_from_a_conflict_copy_to_its_original_path(house):
    """behaviour 136: Syncthing renames the local file and puts the remote file in its place."""
    async with house.watching():
        house.put("Plan.md", note(1, "mine"))
        await house.settle_paths("Plan.md")
        copy = "Plan.sync-conflict-20260102-030405-ABCDEFG.md"
        (house.folder / "Plan.md").rename(house.folder / copy)
        await house.settle_paths("Plan.md", copy)
        house.put("Plan.md", note(1, "theirs"))
        await house.settle_paths("Plan.md")
        await house.compare()
        assert house.path_of(1) == "Plan.md"
        assert set(house.catalogue.skipped) == {copy}


async def test_second_file_becomes_the_note_when_the_first_is_deleted(house):
    house.put("a.md", note(1))
    house.put("b.md", note(1, "copy"))
    async with house.watching():
        await house.delete(UUID.format(1))
        await house.settle_paths("a.md")
        assert house.path_of(1) == "b.md"
    assert house.told() == [(NOTE_DELETED, "a.md"), (NOTE_CREATED, "b.md")]


async def test_partially_written_file_keeps_its_last_complete_state(house):
    whole = note(1, "the whole text", tags="[t]")
    async with house.watching():
        house.put("new.md", "---\nid: [\n---\n")
        await house.settle_paths("new.md")
        assert set(house.catalogue.skipped) == {"new.md"}
        house.put("new.md", whole)
        await house.settle_paths("new.md")
        entry = house.catalogue.get(UUID.format(1))
        house.put("new.md", "---\nid: ]\n---\n")
        await house.settle_paths("new.md")
        assert house.catalogue.get(UUID.format(1)) == entry
        assert "new.md" in house.catalogue.skipped
        house.put("new.md", whole)
        await house.settle_paths("new.md")
        assert house.catalogue.skipped == {}
    assert house.told() == [(NOTE_CREATED, "new.md")]


async def test_known_note_that_lost_its_id_is_checked_twice(house):
    """behaviour 270: temporary edits of the frontmatter do not change the identity of a note."""
    house.put("a.md", note(1))
    async with house.watching():
        entry = house.catalogue.get(UUID.format(1))
        house.put("a.md", "")
        await house.settle_paths("a.md")
        assert list(house.catalogue) == [entry]
        house.put("a.md", note(1, "written again"))
        await house.settle_paths("a.md")
        assert house.path_of(1) == "a.md"
        house.put("a.md", "no id any more")
        await house.settle_paths("a.md")
        await house.taking.settle(house.pending.take())
        assert house.path_of(1) == "a.md"
    assert house.told() == [(NOTE_UPDATED, "a.md"), (NOTE_UPDATED, "a.md")]
    assert house.is_consistent()


async def test_files_that_are_not_notes_are_ignored(house):
    """behaviour 135"""
    async with house.watching():
        for path in ("x.txt", ".obsidian/a.md", "sub/.trash/b.md", ".hidden.md", "c.md.swp"):
            house.put(path, note(1))
        (house.folder / "folder.md").mkdir()
        await house.settle_paths("x.txt", ".obsidian/a.md", ".hidden.md", "c.md.swp", "folder.md", "sub")
        assert len(house.catalogue) == 0
        assert house.catalogue.skipped == {}
    assert house.told() == []


async def test_note_replaced_by_another_kind_of_file_is_removed(house):
    house.put("a.md", note(1))
    house.put("b.md", note(2))
    async with house.watching():
        (house.folder / "a.md").rename(house.folder / "a.txt")
        (house.folder / "b.md").rename(house.folder / ".b.md")
        await house.settle_paths("a.md", "a.txt", "b.md")
        assert len(house.catalogue) == 0
    assert {kind for kind, _ in house.told()} == {NOTE_DELETED}


async def test_huge_file_is_reported_and_not_read(house, monkeypatch):
    monkeypatch.setattr(note_reading, "LARGEST_FILE", 1000)
    async with house.watching():
        house.put("huge.md", "x" * 1001)
        await house.settle_paths("huge.md")
        assert "1001 bytes" in house.catalogue.skipped["huge.md"].reason
        (house.folder / "huge.md").unlink()
        await house.settle_paths("huge.md")
        assert house.catalogue.skipped == {}


async def test_start_after_a_kill_announces_no_change_twice(house, monkeypatch):
    """The start scan takes the watcher's events into account, even if they are not in the manifest."""
    house.put("a.md", note(1))
    async with house.watching():
        monkeypatch.setattr(house.manifest, "store", lambda *_: None)
        house.put("a.md", note(1, "edited"))
        house.put("b.md", note(2))
        (house.folder / "a.md").rename(house.folder / "c.md")
        await house.settle_paths("a.md", "b.md", "c.md")
    assert len(house.told()) == 2
    assert {row.path for row in house.manifest.load()} == {"a.md"}
    assert house.restart().events == ()


async def test_edit_permanently_changes_links_provenance_and_title(house):
    """behaviour 137"""
    house.put("a.md", note(1, "[[Note 2]]"))
    house.put("b.md", note(2))
    house.put("c.md", note(3, source_url="https://x.org/1"))
    async with house.watching():
        edited = note(1, "nothing", derived_from_ids=f"[{UUID.format(2)}]", source_url="https://x.org/1")
        house.put("a.md", edited.replace("# Note 1", "# Note 2"))
        await house.settle_paths("a.md")
        entry = house.catalogue.get(UUID.format(1))
        assert (entry.note.title, entry.links) == ("Note 2", ())
        assert house.catalogue.slugs.surplus == 1
        assert house.catalogue.slugs.owner("note-2") == UUID.format(2)
        assert house.catalogue.urls.owner("https://x.org/1") == UUID.format(3)
        assert house.catalogue.graph.counts().edges == 0
        assert (UUID.format(1), UUID.format(2)) in house.catalogue.graph.provenance.edges()
    assert house.is_consistent()


NAMES = ("a", "b", "a 2", "a (conflicted copy)", "Archive/a")
ids, names = st.integers(1, 3), st.sampled_from(NAMES)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), ids, names),
        st.tuples(st.just("nameless"), ids, names),
        st.tuples(st.sampled_from(["copy", "clone"]), names, names),
        st.tuples(st.just("move"), names, names),
        st.tuples(st.just("swap"), names, names),
        st.tuples(st.just("touch"), names, names),
        st.tuples(st.just("delete"), names, st.none()),
        st.tuples(st.just("break"), names, st.none()),
        st.tuples(st.just("update"), ids, st.none()),
        st.tuples(st.just("remove"), ids, st.none()),
        st.tuples(st.sampled_from(["settle", "settle", "compare", "restart"]), st.none(), st.none()),
    ),
    max_size=16,
)
SETTLE = ("settle", None, None)


@example([("write", 1, "a"), SETTLE, ("break", "a", None), ("write", 1, "b")], False)
@example([("write", 1, "b"), SETTLE, ("write", 1, "a"), ("break", "b", None)], True)
@example([("write", 1, "b"), SETTLE, ("write", 1, "a"), SETTLE, ("nameless", 1, "b"), SETTLE], False)
@example([("write", 1, "a"), ("nameless", 1, "b"), SETTLE, ("swap", "a", "b")], False)
@example([("nameless", 1, "a"), ("clone", "a", "b"), SETTLE, ("delete", "a", None)], False)
@example([("write", 3, "a 2"), ("restart", None, None), ("write", 3, "a")], False)
@example([("nameless", 1, "a"), ("clone", "a", "a 2")], False)
@example([("write", 1, "a"), SETTLE, ("break", "a", None), ("restart", None, None)], False)
@example([("write", 1, "a"), ("break", "a", None), SETTLE, ("copy", "a", "a 2")], True)
@given(steps, st.booleans())
def test_every_file_is_a_note_or_reported_after_a_restart(tmp_path_factory, steps, serves_broken):
    """behaviours 136 and 270: the live catalogue equals the result of a start scan with the same data.

    Every file is a note, is unreadable, has the id of another file that may name it, or is a conflict copy. A
    scan without the manifest, which has only the history, gives each known id to the same file.
    """
    house = WatchedHouse(tmp_path_factory.mktemp("any"))
    style = VaultStyle(serves_broken=serves_broken)
    trio.run(_live_through, house, steps, style)
    catalogue = house.catalogue
    held = {entry.note.id: (entry.path, entry.digest) for entry in catalogue}
    for file in house.files.list_notes():
        skipped = catalogue.skipped.get(file.path)
        assert catalogue.at_path(file.path) or skipped, f"{file.path} is nowhere"
        if skipped is not None and skipped.note_id is not None:
            holder = catalogue.get(skipped.note_id)
            assert holder is not None
            assert holder.path != file.path
            assert holder.may_name_id or skipped.copy is not None
    assert catalogue.skipped.keys() <= {file.path for file in house.files.list_notes()}
    # An index that was empty at the start cannot contain the text of a note whose file is unreadable.
    lost = {entry.serial for entry in catalogue if entry.path in catalogue.skipped}
    for index in house.indexes:
        assert {**catalogue.stamps(), **index.held} == catalogue.stamps()
        assert catalogue.stamps().keys() - index.held.keys() <= lost
    doubles = {note_id: set(paths) for note_id, paths in catalogue.doubles.items()}
    _reopen(house, style)
    result = house.scan()
    assert {entry.note.id: (entry.path, entry.digest) for entry in house.catalogue} == held
    assert house.catalogue.doubles == doubles
    assert (result.events, result.removed) == ((), ())
    unread = {path for path, why in house.catalogue.skipped.items() if why.note_id is None}
    if not unread:  # Of unreadable files, only the manifest contains more than the name.
        fresh = Catalogue(NoteRecords(house.store.rows(KeptNotes).load()), style)
        scan_folder(house.files, Manifest.view(None), fresh, (), house.clock(), recorded=house.history.places)
        known = house.history.places(held)  # A scan records no versions if no server runs.
        told = {each for each in held if each in known and known[each][0] == held[each][0]}
        assert {e.note.id: (e.path, e.digest) for e in fresh if e.note.id in told} == {
            each: held[each] for each in told
        }
    house.close()


def _reopen(house: WatchedHouse, style: VaultStyle) -> None:
    house.close()
    house.open()
    house.catalogue.style = style
    house.make_watcher()


async def _live_through(
    house: WatchedHouse, steps: list[tuple[str, object, object]], style: VaultStyle
) -> None:
    number = 0
    while number <= len(steps):
        _reopen(house, style)
        house.settle(house.scan())
        _reopen(house, style)  # The coordinator numbers new events after the existing ones.
        async with house.watching():
            touched: set[str] = set()
            for kind, one, other in steps[number:]:
                number += 1
                if kind == "restart":
                    break
                if kind == "settle":
                    await house.settle_paths(*touched, *house.pending.take().touched)
                    touched.clear()
                elif kind == "compare":
                    await house.compare()
                elif kind in ("update", "remove"):
                    touched |= await _use_tool(house, kind, int(str(one)), number)
                else:
                    touched |= _carry_out(house, kind, one, other, number)
            else:
                number += 1
            if number > len(steps):
                await house.settle_paths(*touched)
                for _ in range(20):
                    await house.compare()
                    if house.pending.due == math.inf:
                        break
                assert house.pending.due == math.inf, "it never comes to rest"


async def _use_tool(house: WatchedHouse, kind: str, n: int, number: int) -> set[str]:
    path = house.path_of(n)
    try:
        if kind == "update":
            await house.update(UUID.format(n), f"Note {n}", f"by tool {number}")
        else:
            await house.delete(UUID.format(n))
    except LithosError:
        return set()  # The note is deleted, broken or replaced, and the watcher has not reported this yet.
    return {path} if path else set()


def _carry_out(house: WatchedHouse, kind: str, one: object, other: object, number: int) -> set[str]:
    source, target = house.folder / f"{one}.md", house.folder / f"{other}.md"
    told = {str(path.relative_to(house.folder)) for path in (source, target)}
    target.parent.mkdir(exist_ok=True)
    if kind == "write":
        house.put(f"{other}.md", note(int(str(one)), f"words {number}"))
    elif kind == "nameless":
        house.put(f"{other}.md", f"no id {number}")
    elif source.exists():
        if kind == "copy" and source != target:
            target.write_bytes(source.read_bytes())
        elif kind == "clone" and source != target:
            shutil.copy2(source, target)  # The copy keeps the modification time.
        elif kind == "move":
            source.replace(target)
        elif kind == "swap" and target.exists() and source != target:
            source.rename(house.folder / "t")
            target.rename(source)
            (house.folder / "t").rename(target)
        elif kind == "touch":
            os.utime(source)
        elif kind == "delete":
            source.unlink()
        elif kind == "break":
            source.write_text(f"---\n: [\n---\n{number}\n")
    return told
