"""Changes to notes while other programs write: no external change is lost, and no call blocks."""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from lithos.notes.files.files import NoteFiles
from lithos.notes.files.system_calls import KernelCalls
from lithos.notes.files.values import (
    LEAST_GRACE,
    FileBusy,
    FileChanged,
    FileOccupied,
    FileState,
    Kept,
    Put,
    Remove,
    digest_of,
)

OLD, NEW, THEIRS = b"old note", b"our new note", b"their note"
#: Name of the capability to store displaced files in a separate folder. Without it, they are stored next to
#: their notes.
PLACE = "place"
LACKING = {
    "a place of their own": (),
    "a place, a name from the beginning": ("link_unnamed",),
    "a place, two renames": ("exchange",),
    "a place, links": ("exchange", "rename_new", "lease", "link_unnamed"),
    "exchange and leases": (PLACE,),
    "exchange": (PLACE, "lease", "link_unnamed"),
    "two renames": (PLACE, "exchange"),
    "links": (PLACE, "exchange", "rename_new", "lease", "link_unnamed"),
}


class Calls(KernelCalls):
    """Real system calls. A test can disable some calls, or run an action before a call."""

    def __init__(self, lacking: tuple[str, ...] = ()) -> None:
        for name in {*lacking} - {PLACE}:
            setattr(self, name, _missing)

    def before(self, name: str, action: Callable[[], None], *, always: bool = False) -> None:
        """Run the action before the next call of this name, or before every call."""
        real = getattr(self, name)

        def call(*arguments: object) -> object:
            if not always:
                setattr(self, name, real)
            action()
            return real(*arguments)

        setattr(self, name, call)


def _missing(*_: object) -> None:
    raise OSError(22, "Invalid argument")


@attrs.define
class Desk:
    """A notes folder with one note, and the displaced bytes that were saved."""

    files: NoteFiles
    calls: Calls
    note: Path
    saved: list[bytes] = attrs.field(factory=list)

    def put(self, data: bytes = NEW, *, saves_old: bool = False) -> object:
        (result,) = self.files.apply([Put("note.md", data, digest_of(OLD), saves_old)])
        return result

    def remove(self) -> object:
        (result,) = self.files.apply([Remove("note.md", digest_of(OLD))])
        return result

    def settle(self) -> None:
        for kept in self.files.take_kept():
            self.files.settle(kept, lambda kept, data: self.saved.append(data))

    def others(self) -> list[str]:
        return sorted(path.name for path in self.everything() if path != self.note)

    def texts(self) -> list[bytes]:
        """Return the contents of all files and all saved bytes."""
        return [path.read_bytes() for path in self.everything()] + self.saved

    def everything(self) -> list[Path]:
        return [path for path in self.note.parents[1].rglob("*") if path.is_file()]


@pytest.fixture(params=LACKING)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    return make_desk(tmp_path, *LACKING[request.param])


@pytest.fixture
def best(tmp_path: Path) -> Desk:
    """Return a desk with every capability of a local Linux file system."""
    desk = make_desk(tmp_path)
    if not (desk.files.protection.exchange and desk.files.protection.leases):
        pytest.skip("this file system has neither exchange nor leases")
    return desk


def make_desk(tmp_path: Path, *lacking: str) -> Desk:
    calls = Calls(lacking)
    files = NoteFiles(tmp_path / "knowledge", calls, place=None if PLACE in lacking else tmp_path / "place")
    files.create_root()
    note = files.root / "note.md"
    note.write_bytes(OLD)
    assert files.protection.can_place
    assert files.protection.reaches_place != (PLACE in lacking)
    return Desk(files, calls, note)


def save(path: Path, data: bytes) -> None:
    """Save a file as most editors do: write another file, then rename it."""
    other = path.with_name(f"other-{os.urandom(4).hex()}")
    other.write_bytes(data)
    os.rename(other, path)


def quiet(*paths: Path) -> None:
    """Make the files look unchanged for a long time."""
    for path in paths:
        os.utime(path, (1e9, 1e9))


# -- one change at a time ----------------------------------------------------------------------------


def test_note_is_replaced_and_no_other_file_is_left(desk: Desk) -> None:
    desk.note.chmod(0o640)
    assert isinstance(desk.put(), FileState)
    assert desk.note.read_bytes() == NEW
    assert desk.note.stat().st_mode & 0o777 == 0o640
    desk.settle()
    assert (desk.others(), desk.saved) == ([], [])


def test_note_changed_before_the_write_is_not_replaced(desk: Desk) -> None:
    save(desk.note, THEIRS)
    for result in (desk.put(), desk.remove()):
        assert isinstance(result, FileChanged)
    assert (desk.note.read_bytes(), desk.others()) == (THEIRS, [])
    desk.note.unlink()
    assert isinstance(desk.put(), FileChanged)
    assert desk.everything() == []


def test_change_of_equal_size_and_time_is_detected(desk: Desk) -> None:
    before = desk.note.stat()
    desk.note.write_bytes(OLD[::-1])
    os.utime(desk.note, ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert isinstance(desk.put(), FileChanged)


@pytest.mark.parametrize("change", ["put", "remove"])
def test_external_save_during_a_change_is_kept(desk: Desk, change: str) -> None:
    """Issue 11, defect 3."""
    step = "exchange" if change == "put" and desk.files.protection.exchange else "rename"
    # Skip the rename that gives the new bytes their private name if nameless files are not supported.
    skip = change == "put" and step == "rename" and not desk.files.protection.unnamed

    def at_once() -> None:
        save(desk.note, THEIRS)

    desk.calls.before(step, (lambda: desk.calls.before(step, at_once)) if skip else at_once)
    result = desk.put() if change == "put" else desk.remove()
    assert isinstance(result, FileChanged)
    assert desk.note.read_bytes() == THEIRS
    desk.settle()
    assert (desk.others(), desk.saved) == ([], [])


def test_unreported_displaced_bytes_are_saved(desk: Desk) -> None:
    assert isinstance(desk.put(saves_old=True), FileState)
    quiet(*desk.everything())
    if not desk.files.protection.leases:
        desk.calls.now = lambda: time.time() + 60  # type: ignore[method-assign]
    desk.settle()
    assert (desk.others(), desk.saved) == ([], [OLD])


def test_removed_note_is_deleted(desk: Desk) -> None:
    assert desk.remove() is None
    assert not desk.note.exists()
    desk.settle()
    assert (desk.others(), desk.saved) == ([], [])


def test_changes_are_refused_without_a_safe_system_call(tmp_path: Path) -> None:
    calls = Calls(("exchange", "rename_new", "link", "link_unnamed"))
    files = NoteFiles(tmp_path / "knowledge", calls)
    files.create_root()
    (files.root / "note.md").write_bytes(OLD)
    changes = [
        Put("note.md", NEW, digest_of(OLD)),
        Put("new.md", NEW, None),
        Remove("note.md", digest_of(OLD)),
    ]
    for change in changes:
        (result,) = files.apply([change])
        assert isinstance(result, OSError)
        assert "without overwriting" in str(result)
    assert {path.name: path.read_bytes() for path in files.root.iterdir()} == {"note.md": OLD}


@pytest.mark.parametrize(("call", "capability"), [("exchange", "exchange"), ("link_unnamed", "unnamed")])
def test_capability_is_probed_again_after_a_failed_system_call(
    best: Desk, call: str, capability: str
) -> None:
    if not getattr(best.files.protection, capability):
        pytest.skip("this file system has it not")
    setattr(best.calls, call, _missing)
    assert isinstance(best.put(), FileState)
    assert best.note.read_bytes() == NEW
    assert not getattr(best.files.protection, capability)
    assert isinstance(best.files.apply([Put("other.md", NEW, None)])[0], FileState)


# -- files outside the notes folder ------------------------------------------------------------------


def test_displaced_file_is_stored_outside_the_notes_folder(tmp_path: Path) -> None:
    """Issue 25, number 9. Regression: `git add -A` added replaced text to the repository."""
    desk = make_desk(tmp_path)
    assert isinstance(desk.put(), FileState)
    assert os.listdir(desk.note.parent) == ["note.md"]
    assert [path.read_bytes() for path in (tmp_path / "place").iterdir()] == [OLD]
    (kept,) = desk.files.take_kept()
    assert (kept.note, kept.is_beside) == (str(desk.note), False)


def test_new_file_is_nameless_until_complete(tmp_path: Path) -> None:
    """Issue 25. Regression: `git add -A` added a file that Lithos was still writing."""
    notes = tmp_path / "knowledge"
    notes.mkdir()
    seen: list[set[str]] = []
    calls = Calls()
    for name in ("open", "write", "fsync", "link", "link_unnamed", "rename_new", "exchange", "unlink"):
        calls.before(name, lambda: seen.append(set(os.listdir(notes))), always=True)
    files = NoteFiles(notes, calls, is_foreign=True, place=tmp_path / "place")
    if not files.protection.unnamed:
        pytest.skip("every file has a name here")
    for change in (Put("note.md", OLD, None), Put("note.md", NEW, digest_of(OLD))):
        assert isinstance(files.apply([change])[0], FileState)
        (result,) = files.apply([Put("note.md", THEIRS, None)])
        assert isinstance(result, FileOccupied)
    assert len(seen) > 20
    assert set().union(*seen) == {"note.md"}, "the trial of the file system included"


@pytest.mark.parametrize("lacking", [(), ("link_unnamed",)], ids=["unnamed", "named"])
def test_new_note_inherits_group_and_access_list(tmp_path: Path, lacking: tuple[str, ...]) -> None:
    """The note gets the folder's group (setgid bit) and access list, as the folder's owner intended."""
    desk = make_desk(tmp_path, *lacking)
    folder = desk.files.root / "shared"
    folder.mkdir()
    entries = [(1, 7, -1), (2, 6, os.getuid() + 1), (4, 5, -1), (16, 7, -1), (32, 0, -1)]
    try:
        os.chown(folder, -1, next(iter({*os.getgroups(), 12_345} - {os.getegid()})))
        folder.chmod(0o2775)
        acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
        os.setxattr(folder, "system.posix_acl_default", acl)
    except OSError:
        pytest.skip("no other group, or no access lists")
    (folder / "plain").write_bytes(OLD)
    assert isinstance(desk.files.apply([Put("shared/note.md", OLD, None)])[0], FileState)
    assert isinstance(desk.files.apply([Put("shared/note.md", NEW, digest_of(OLD))])[0], FileState)
    one, other = (
        (path.stat().st_gid, path.stat().st_mode, os.getxattr(path, "system.posix_acl_access"))
        for path in (folder / "plain", folder / "note.md")
    )
    assert one == other
    assert one[0] == folder.stat().st_gid != os.getegid()


def test_displaced_file_name_contains_the_path_of_its_note(tmp_path: Path) -> None:
    """A path that is too long for a file name is not shortened.

    If the path is too long, the displaced file is stored next to its note.
    """
    desk = make_desk(tmp_path)
    paths = ["a %2F b/50%/ü.md", "-".join(["long"] * 45) + ".md", "/".join(["deep"] * 45) + ".md"]
    for path in paths:
        note = desk.files.root / path
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_bytes(OLD)
    quiet(*desk.everything())
    results = desk.files.apply([Put(path, NEW, digest_of(OLD), saves_old=True) for path in paths])
    assert all(isinstance(result, FileState) for result in results), results
    assert [kept.is_beside for kept in sorted(desk.files.take_kept(), key=lambda kept: len(kept.note))] == [
        False, True, True,
    ]  # fmt: skip
    later = NoteFiles(desk.files.root, Calls(), place=tmp_path / "place")  # Simulate the start after a crash.
    saved: dict[str, bytes] = {}
    later.recover(lambda kept, data: saved.update({later.relative(kept.note): data}))
    assert (saved[paths[0]], saved[paths[2]]) == (OLD, OLD)
    assert set(saved.values()) == {OLD}
    assert len(saved) == 3


def remote(calls: Calls, place: Path) -> None:
    """Simulate that the folder for displaced files is on another volume than the notes folder `far`."""
    real = calls.rename

    def rename(source: str, target: str) -> None:
        if source.startswith(str(place)) != target.startswith(str(place)) and "/far/" in source + target:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real(source, target)

    real_link = calls.link_unnamed

    def link_unnamed(descriptor: int, target: str) -> None:
        if target.startswith(str(place)) and "/far/" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real_link(descriptor, target)

    calls.rename, calls.link_unnamed = rename, link_unnamed  # type: ignore[method-assign]


@pytest.mark.parametrize("change", ["put", "remove"])
def test_displaced_file_is_next_to_its_note_on_another_volume(tmp_path: Path, change: str) -> None:
    desk = make_desk(tmp_path)
    remote(desk.calls, tmp_path / "place")
    far = desk.files.root / "far"
    far.mkdir()
    synced: list[int] = []
    real_sync, expected = desk.calls.fsync, digest_of(OLD)
    desk.calls.fsync = lambda number: (synced.append(number), real_sync(number))[1]  # type: ignore[method-assign]
    for name, syncs in (("far/1.md", 2), ("far/2.md", 1)):
        (desk.files.root / name).write_bytes(OLD)
        synced.clear()
        (result,) = desk.files.apply(
            [Put(name, NEW, expected) if change == "put" else Remove(name, expected)]
        )
        assert not isinstance(result, Exception), result
        assert len(synced) == 1 + (syncs if change == "put" else 0), "only the first one is written again"
        (kept,) = desk.files.take_kept()
        assert kept.is_beside
        if kept.is_leased:
            assert kept.grace == LEAST_GRACE
        desk.files.settle(kept, lambda kept, data: desk.saved.append(data))
    assert isinstance(desk.put(), FileState), "other folders keep the place"
    assert [kept.is_beside for kept in desk.files.take_kept()] == [False]
    assert desk.saved == []


def test_data_directory_on_another_volume_is_detected(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as other:
        if os.stat(other).st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is but one volume here")
        files = NoteFiles(tmp_path / "knowledge", place=Path(other) / "place")
        files.create_root()
        (files.root / "note.md").write_bytes(OLD)
        assert not files.protection.reaches_place
        assert isinstance(files.apply([Put("note.md", NEW, digest_of(OLD))])[0], FileState)
        assert [kept.is_beside for kept in files.take_kept()] == [True]
        assert os.listdir(f"{other}/place") == []


def test_deleted_folder_for_displaced_files_is_created_again(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    (tmp_path / "place").rmdir()
    assert isinstance(desk.put(), FileChanged)
    assert isinstance(desk.put(), FileState)
    assert desk.note.read_bytes() == NEW


# -- renames of a folder during a change ---------------------------------------------------------------


def put_in_folder(desk: Desk) -> object:
    (desk.files.root / "one").mkdir()
    (desk.files.root / "one" / "note.md").write_bytes(OLD)
    (result,) = desk.files.apply([Put("one/note.md", NEW, digest_of(OLD))])
    return result


@pytest.mark.parametrize("step", ["write", "link_unnamed", "rename", "exchange", "rename_new", "lease"])
def test_folder_rename_before_the_exchange_counts_as_changed_file(desk: Desk, step: str) -> None:
    """Issue 25, number 10: no displaced file is left in the folder.

    The folder's old name is not created again.
    """

    def rename() -> None:
        os.rename(desk.files.root / "one", desk.files.root / "two")

    desk.calls.before(step, rename)
    result = put_in_folder(desk)
    lost = desk.files.take_kept()
    if isinstance(result, FileState):
        assert not (desk.files.root / "two").exists(), "this file system is used without that call"
        return
    assert isinstance(result, FileChanged)
    assert not (desk.files.root / "one").exists()
    for kept in [*desk.files.find_renamed(lost), *(kept for kept in lost if not kept.is_beside)]:
        quiet(*desk.everything())
        desk.files.settle(kept, lambda kept, data: desk.saved.append(data))
    there = desk.files.root / "two" / "note.md"
    if there.exists():
        assert (there.read_bytes(), desk.others(), desk.saved) == (OLD, ["note.md"], [])
    else:
        assert step == "rename_new", "while the note's name is missing"
        assert (desk.others(), desk.saved) == ([], [OLD])


def test_everything_is_synced_when_folder_is_renamed_after_exchange(best: Desk) -> None:
    """The new name of the folder is unknown, and the folder contains the written note."""
    all_synced: list[bool] = []
    best.calls.sync_all = lambda: all_synced.append(True)  # type: ignore[method-assign]
    real = best.calls.exchange

    def exchange(one: str, other: str) -> None:
        real(one, other)
        os.rename(best.files.root / "one", best.files.root / "two")

    best.calls.exchange = exchange  # type: ignore[method-assign]
    assert isinstance(put_in_folder(best), FileState)
    assert all_synced == [True]
    assert (best.files.root / "two" / "note.md").read_bytes() == NEW


# -- files that another program has open -------------------------------------------------------------


def test_note_open_for_writing_is_immediately_reported_as_busy(best: Desk) -> None:
    quiet(best.note)
    with best.note.open("r+b") as file:
        with pytest.raises(FileBusy):
            best.files.read_quiet("note.md", digest_of(OLD))
        assert isinstance(best.put(), FileBusy)
        assert isinstance(best.remove(), FileBusy)
        assert best.others() == []
        file.write(b"OLD")
    assert best.note.read_bytes() == b"OLD note"


def test_recently_written_unknown_bytes_make_a_note_busy(desk: Desk) -> None:
    """A note that Lithos adopts must not count as empty while its editor writes the file."""
    desk.calls.now = lambda: desk.note.stat().st_ctime + 0.05  # type: ignore[method-assign]
    with pytest.raises(FileBusy):
        desk.files.read_quiet("note.md")
    assert desk.files.read_quiet("note.md", digest_of(OLD)).data == OLD
    desk.note.write_bytes(b"")
    desk.calls.now = lambda: desk.note.stat().st_ctime + 0.5  # type: ignore[method-assign]
    with pytest.raises(FileBusy):
        desk.files.read_quiet("note.md", digest_of(b""))
    desk.calls.now = lambda: desk.note.stat().st_ctime + 1.5  # type: ignore[method-assign]
    assert desk.files.read_quiet("note.md").data == b""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["exchange", "pin"])
def test_bytes_are_kept_when_program_opens_note_during_its_replacement(best: Desk, step: str) -> None:
    """The `open()` of the program waits for the lease of Lithos and then gets the file at the path."""
    program = (
        f"import time; f = open({str(best.note)!r}, 'wb')\n"
        "f.write(b'their '); f.flush(); time.sleep(.05); f.write(b'note')"
    )
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        started.append(subprocess.Popen([sys.executable, "-c", program]))
        if step == "exchange":
            probe = os.open(best.note, os.O_RDONLY)
            with contextlib.suppress(BlockingIOError):
                while started[0].poll() is None:  # Loop until the program waits for the lease.
                    best.calls.lease(probe)
                    best.calls.end_lease(probe)
                    time.sleep(0.01)
            os.close(probe)

    best.calls.before(step, start)
    result = best.put()
    assert started[0].wait(60) == 0
    assert isinstance(result, FileChanged if step == "exchange" else (FileState, FileChanged, FileBusy))
    assert THEIRS in best.texts()
    assert best.note.read_bytes() == THEIRS


def test_displaced_file_records_the_path_of_its_note(desk: Desk) -> None:
    desk.put()
    (kept,) = desk.files.take_kept()
    assert isinstance(kept, Kept)
    assert desk.files.relative(kept.note) == "note.md"
    assert kept.known == {digest_of(OLD)}
    assert (kept.grace < 2) == desk.files.protection.leases
