"""Note files: listing, reading, durable writing, and recovery after disk errors."""

from __future__ import annotations

import errno
import os
import stat
import threading
from itertools import product
from pathlib import Path

import pytest

from lithos.notes.files import replacing
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.system_calls import KernelCalls, SystemCalls
from lithos.notes.files.tree import resolve_below
from lithos.notes.files.values import (
    FileChanged,
    FileOccupied,
    FileState,
    Kept,
    NotSynced,
    OutsideKnowledge,
    PathRedirected,
    Put,
    ReadFile,
    Remove,
    digest_of,
)

OLD, ONE = digest_of(b"old"), digest_of(b"one")


@pytest.fixture
def files(tmp_path):
    files = NoteFiles(tmp_path / "knowledge")
    files.create_root()
    return files


@pytest.fixture
def syncs(monkeypatch):
    """Return the list of synced folders, in the order of the syncs."""
    seen: list[str] = []
    real = replacing._sync

    def sync(calls: SystemCalls, folder: str) -> None:
        seen.append(folder)
        real(calls, folder)

    monkeypatch.setattr(replacing, "_sync", sync)
    return seen


def save_nothing(kept: Kept, data: bytes) -> None:
    raise AssertionError(f"{kept} holds bytes that nobody else has: {data!r}")


def everything(files: NoteFiles) -> dict[str, bytes]:
    """Settle all displaced files. Then return all files in the folder tree, including dot-files."""
    for kept in files.take_kept():
        files.settle(kept, save_nothing)
    return {
        str(path.relative_to(files.root)): path.read_bytes()
        for path in files.root.rglob("*")
        if path.is_file()
    }


def state_of(files: NoteFiles, path: str) -> FileState:
    return files.read(path).state


def edit(files: NoteFiles, path: str, data: bytes) -> None:
    """Edit a file externally, with a modification time later than all earlier ones."""
    target = files.root / path
    target.write_bytes(data)
    later = target.stat().st_mtime_ns + 1_000_000_000
    os.utime(target, ns=(later, later))


def paths(files: NoteFiles) -> list[str]:
    return [file.path for file in files.list_notes()]


# -- writing ----------------------------------------------------------------------------------------


def test_new_file_has_the_written_bytes_and_the_reported_state(files):
    (state,) = files.apply([Put("a.md", b"hello", None)])
    assert files.read("a.md") == ReadFile(b"hello", state)
    assert state.size == 5
    assert everything(files) == {"a.md": b"hello"}


def test_update_replaces_the_whole_file(files):
    files.apply([Put("a.md", b"one", None)])
    inode = (files.root / "a.md").stat().st_ino
    (second,) = files.apply([Put("a.md", b"two!", ONE)])
    assert files.read("a.md") == ReadFile(b"two!", second)
    assert (files.root / "a.md").stat().st_ino != inode, "readers of the old file keep it whole"


def test_concurrently_created_file_is_not_overwritten(files, monkeypatch):
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        (files.root / "a.md").write_bytes(b"somebody else")

    monkeypatch.setattr(os, "fsync", fsync)
    (result,) = files.apply([Put("a.md", b"mine", None)])
    assert isinstance(result, FileOccupied)
    assert everything(files) == {"a.md": b"somebody else"}


def test_edit_just_after_the_rename_is_detected_as_external(files, monkeypatch):
    """The reported state must describe the bytes of Lithos. Otherwise the edit would never be noticed."""
    files.apply([Put("a.md", b"one", None)])
    real = KernelCalls.exchange

    def exchange(calls: KernelCalls, one: str, other: str) -> None:
        real(calls, one, other)
        edit(files, "a.md", b"by hand")

    monkeypatch.setattr(KernelCalls, "exchange", exchange)
    (result,) = files.apply([Put("a.md", b"two", ONE)])
    assert isinstance(result, FileState)
    assert result != state_of(files, "a.md")


def test_new_file_follows_the_umask(files):
    before = os.umask(0o027)
    try:
        files.apply([Put("a.md", b"one", None)])
    finally:
        os.umask(before)
    assert stat.S_IMODE((files.root / "a.md").stat().st_mode) == 0o640


def test_write_succeeds_on_a_file_system_without_file_modes(files, monkeypatch):
    files.apply([Put("a.md", b"one", None)])

    def fchmod(descriptor: int, mode: int) -> None:
        raise PermissionError(errno.EPERM, "no modes here")

    monkeypatch.setattr(os, "fchmod", fchmod)
    (result,) = files.apply([Put("a.md", b"two", ONE)])
    assert isinstance(result, FileState)


def test_short_writes_are_continued_until_complete(files, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:3]))
    files.apply([Put("a.md", b"0123456789", None)])
    assert files.read("a.md").data == b"0123456789"


@pytest.mark.parametrize("code", [None, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_first_of_two_creations_wins_even_without_hard_links(files, monkeypatch, code):
    if code is not None:
        monkeypatch.setattr(os, "link", fail(code))
    first, second = files.apply([Put("a.md", b"one", None), Put("a.md", b"two", None)])
    assert isinstance(first, FileState)
    assert isinstance(second, FileOccupied)
    assert everything(files) == {"a.md": b"one"}


# -- removing ---------------------------------------------------------------------------------------


def test_removed_file_is_deleted_and_its_folder_synced(files, syncs):
    files.apply([Put("a/b.md", b"one", None)])
    syncs.clear()
    assert files.apply([Remove("a/b.md", ONE)]) == [None]
    assert everything(files) == {}
    assert syncs == [str(files.root / "a")]


def test_removing_a_missing_file_raises_an_error(files):
    (result,) = files.apply([Remove("a.md", None)])
    assert isinstance(result, FileNotFoundError)


# -- durability -------------------------------------------------------------------------------------


def test_deep_folders_are_created_and_every_changed_folder_synced(files, syncs):
    files.apply([Put("a/b/c/d.md", b"one", None)])
    root = files.root
    assert {Path(folder) for folder in syncs} == {root, root / "a", root / "a/b", root / "a/b/c"}
    assert files.read("a/b/c/d.md").data == b"one"


def choose_way(files: NoteFiles, monkeypatch: pytest.MonkeyPatch, *, unnamed: bool) -> None:
    """Choose whether new files are nameless at first or have a name from the start.

    Not every system supports nameless files.
    """
    if not unnamed:
        monkeypatch.setattr(KernelCalls, "link_unnamed", fail(errno.EOPNOTSUPP))
    elif not files.protection.unnamed:
        pytest.skip("every file has a name here")


@pytest.mark.parametrize("name", ["link_unnamed", "rename_new"])
def test_file_is_synced_before_it_gets_its_name(files, monkeypatch, name):
    choose_way(files, monkeypatch, unnamed=name == "link_unnamed")
    steps: list[str] = []
    real_sync, real_name, real_folder = os.fsync, getattr(KernelCalls, name), replacing._sync
    files.protection  # noqa: B018 - tries all calls out, once
    monkeypatch.setattr(os, "fsync", lambda fd: (steps.append("fsync"), real_sync(fd))[1])
    monkeypatch.setattr(KernelCalls, name, lambda *names: (steps.append("name"), real_name(*names))[1])
    monkeypatch.setattr(replacing, "_sync", lambda *at: (steps.append("folder"), real_folder(*at))[1])
    files.apply([Put("a.md", b"one", None)])
    assert steps == ["fsync", "name", "folder", "fsync"]


def test_file_system_is_probed_again_only_by_a_change(files, monkeypatch):
    """Regression: a read also created probe files among the notes, which sync clients could see."""
    files.apply([Put("a.md", b"one", None)])
    monkeypatch.setattr(KernelCalls, "link_unnamed", fail(errno.EOPNOTSUPP))
    monkeypatch.setattr(files._roots.main.replacing, "is_outdated", True)
    made: list[str] = []
    real = KernelCalls.open
    monkeypatch.setattr(
        KernelCalls,
        "open",
        lambda calls, path, flags: (flags & os.O_CREAT and made.append(path), real(calls, path, flags))[1],
    )
    assert files.read_quiet("a.md", ONE).data == b"one"
    assert made == []
    files.apply([Put("b.md", b"two", None)])
    assert made
    assert not files._roots.main.replacing.is_outdated


def test_changes_in_one_folder_share_one_folder_sync(files, syncs):
    files.apply([Put(f"{i}.md", b"x", None) for i in range(20)] + [Remove("3.md", digest_of(b"x"))])
    assert syncs == [str(files.root)]


def test_files_of_a_batch_are_synced_in_parallel(files, monkeypatch):
    real, both = os.fsync, threading.Barrier(2)

    def fsync(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            both.wait(timeout=60)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    results = files.apply([Put("a.md", b"one", None), Put("b/b.md", b"two", None)])
    assert [type(result) for result in results] == [FileState, FileState]
    assert everything(files) == {"a.md": b"one", "b/b.md": b"two"}


def test_changes_to_one_file_under_two_names_are_serialised(files):
    files.apply([Put("a/n.md", b"one", None)])
    expected = ONE
    (files.root / "b").symlink_to(files.root / "a")
    for size in range(10, 30):
        new = b"a" * size
        updates = [
            Put("a/n.md", new, expected),
            Put("b/n.md", b"b", expected, real="a/n.md"),
            Put("c.md", b"", None),
        ]
        first, second, _ = files.apply(updates)
        assert isinstance(first, FileState)
        assert isinstance(second, FileChanged)
        expected = digest_of(new)


def fail(code: int):
    def raising(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return raising


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("is_update", [False, True])
@pytest.mark.parametrize("step", ["write", "fsync", "first name", "name"])
@pytest.mark.parametrize("unnamed", [True, False])
def test_failed_write_keeps_the_old_file_without_temporary_files(
    files, monkeypatch, step, is_update, code, unnamed
):
    """behaviour 1"""
    choose_way(files, monkeypatch, unnamed=unnamed)
    if is_update:
        files.apply([Put("a.md", b"old", None)])
    expected = OLD if is_update else None
    before = everything(files)
    assert files.protection.exchange
    first = "link_unnamed" if unnamed else "rename"
    if step == "name":
        last = "exchange" if is_update else "link_unnamed" if unnamed else "rename_new"
        monkeypatch.setattr(KernelCalls, last, fail(code))
    elif step == "first name":
        monkeypatch.setattr(KernelCalls, first, fail(code))
    else:
        monkeypatch.setattr(os, step, fail(code))
    (result,) = files.apply([Put("a.md", b"new", expected)])
    if step == "first name" and first == "rename" and not is_update:
        assert isinstance(result, FileState), "a creation needs no second name"
        return
    assert isinstance(result, OSError)
    assert not isinstance(result, NotSynced)
    assert result.errno == code
    assert everything(files) == before


def test_interrupted_write_leaves_no_temporary_file(files, monkeypatch):
    """behaviour 1: an exception other than `OSError` is propagated after the temporary file is deleted."""

    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.apply([Put("a.md", b"new", None)])
    assert everything(files) == {}


def test_unsyncable_folder_is_distinguished_from_a_failed_write(files, monkeypatch):
    """behaviour 1: the change is made, but its durability is unknown. No temporary file is left."""
    files.apply([Put("b.md", b"old", None), Put("c.md", b"old", None)])
    monkeypatch.setattr(replacing, "_sync", fail(errno.EIO))
    results = files.apply([Put("a.md", b"new", None), Remove("b.md", OLD), Put("c.md", b"new", OLD)])
    assert all(isinstance(result, NotSynced) for result in results[:2])
    assert results[0].state == state_of(files, "a.md")
    assert results[1].state is None
    assert results[0].errno == errno.EIO
    assert set(everything(files)) == {"a.md", "c.md"}


def test_failed_change_is_not_reported_as_unsynced(files, monkeypatch):
    """The folder is created, but the file does not fit on the disk."""
    monkeypatch.setattr(os, "write", fail(errno.ENOSPC))
    monkeypatch.setattr(replacing, "_sync", fail(errno.EIO))
    (result,) = files.apply([Put("a/b.md", b"new", None)])
    assert not isinstance(result, NotSynced)
    assert result.errno == errno.ENOSPC


def test_failed_change_does_not_affect_other_changes_of_its_batch(files, monkeypatch):
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if bytes(data) == b"bad":
            raise OSError(errno.EIO, "Input/output error")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    results = files.apply([Put("a.md", b"one", None), Put("b.md", b"bad", None), Put("c.md", b"two", None)])
    assert [isinstance(result, FileState) for result in results] == [True, False, True]
    assert everything(files) == {"a.md": b"one", "c.md": b"two"}


def test_impossible_file_name_is_reported_as_an_error(files):
    files.apply([Put("a", b"a file", None)])
    in_file, too_long = files.apply([Put("a/b.md", b"x", None), Put("x" * 300 + ".md", b"x", None)])
    assert isinstance(in_file, OSError)
    assert too_long.errno == errno.ENAMETOOLONG
    assert everything(files) == {"a": b"a file"}


# -- listing ----------------------------------------------------------------------------------------


def test_listing_is_sorted_and_contains_only_notes(files):
    for path in (
        "b/a.md",
        "a.md",
        "b.md",
        "a/z.md",
        ".hidden.md",
        ".git/x.md",
        "b/.d/x.md",
        "t.txt",
        "d.md/n.md",
    ):
        target = files.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"x")
    assert paths(files) == ["a.md", "a/z.md", "b.md", "b/a.md", "d.md/n.md"]
    assert files.list_notes()[0].state == state_of(files, "a.md")


def test_file_name_that_is_not_utf8_is_skipped(files):
    (files.root / os.fsdecode(b"caf\xe9.md")).write_bytes(b"x")
    (files.root / "café.md").write_bytes(b"x")
    assert paths(files) == ["café.md"]


def test_symlinks_leading_outside_are_neither_listed_read_nor_written(files, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_bytes(b"secret")
    (files.root / "file.md").symlink_to(outside / "secret.md")
    (files.root / "folder").symlink_to(outside)
    sibling = tmp_path / "knowledge-2"  # The folder name begins with the name of the notes folder.
    sibling.mkdir()
    (sibling / "a.md").write_bytes(b"x")
    (files.root / "sibling").symlink_to(sibling)
    (files.root / "nowhere.md").symlink_to("nowhere")
    assert paths(files) == []
    for path in ("file.md", "folder/secret.md", "../outside/secret.md"):
        with pytest.raises(OutsideKnowledge):
            files.read(path)
    results = files.apply(
        [Put("folder/new.md", b"x", None), Put("file.md", b"x", None), Remove("file.md", None)]
    )
    assert all(isinstance(result, OutsideKnowledge) for result in results)
    assert {path.name for path in outside.iterdir()} == {"secret.md"}


def test_path_is_resolved_as_the_operating_system_resolves_it(files, tmp_path, monkeypatch):
    root = os.path.realpath(files.root)
    (files.root / "a/b").mkdir(parents=True)
    (files.root / "a/note.md").touch()
    (files.root / "link").symlink_to(files.root / "a")
    (files.root / "a/out").symlink_to(tmp_path)
    (files.root / "a/loop").symlink_to(files.root / "a/loop")
    names = ["a", "b", "link", "out", "loop", "note.md", "none", "..", ".", "", "/", "x.md"]
    for path in map("/".join, product(names, repeat=3)):
        assert resolve_below(root, path) == os.path.realpath(os.path.join(root, path)), path
    looked: list[str] = []
    real = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path: (looked.append(path), real(path))[1])
    assert resolve_below(root, "a/note.md") == f"{root}/a/note.md"
    assert len(looked) == 2


def test_symlink_loops_end_and_linked_folders_are_listed_once(files):
    (files.root / "real").mkdir()
    (files.root / "real" / "a.md").write_bytes(b"x")
    (files.root / "real" / "up").symlink_to("..")
    (files.root / "alias").symlink_to("real")
    (files.root / "self").symlink_to("self")
    (files.root / "all").symlink_to(".")
    assert paths(files) == ["real/a.md"]


def test_folders_that_link_to_each_other_are_listed_quickly(files):
    """Each folder links to all other folders, so a walk along every path would never end."""
    for i in range(12):
        (files.root / str(i)).mkdir()
        (files.root / str(i) / "n.md").write_bytes(b"x")
        for j in range(12):
            (files.root / str(i) / f"to{j}").symlink_to(f"../{j}")
    assert len(paths(files)) == 12


def test_hidden_folder_is_listed_under_its_first_symlink(files):
    (files.root / ".store").mkdir()
    (files.root / ".store" / "a.md").write_bytes(b"x")
    (files.root / "z").symlink_to(".store")
    (files.root / "b").symlink_to(".store")
    assert paths(files) == ["b/a.md"]


def test_symlinked_file_inside_the_vault_is_written_at_its_target(files):
    files.apply([Put("real.md", b"one", None)])
    (files.root / "link.md").symlink_to("real.md")
    (refused,) = files.apply([Put("link.md", b"two", ONE)])
    assert isinstance(refused, PathRedirected)
    assert (refused.path, refused.real) == ("link.md", "real.md")
    (result,) = files.apply([Put("link.md", b"two", ONE, real="real.md")])
    assert isinstance(result, FileState)
    assert (files.root / "link.md").is_symlink()
    assert (files.root / "real.md").read_bytes() == b"two"


def test_root_behind_a_symlink_is_accepted(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    files = NoteFiles(tmp_path / "link")
    files.create_root()
    files.apply([Put("a.md", b"x", None)])
    assert paths(files) == ["a.md"]
    assert (tmp_path / "real" / "a.md").exists()


def test_redirected_root_symlink_is_followed(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(name)
    (tmp_path / "link").symlink_to("one")
    files = NoteFiles(tmp_path / "link")
    files.create_root()
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").replace(tmp_path / "link")
    assert paths(files) == ["two.md"]
    files.apply([Put("own.md", b"x", None)])
    assert (tmp_path / "two/own.md").exists()
    (tmp_path / "two").rename(tmp_path / "three")
    assert paths(files) == []
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("three")
    assert files.read("two.md").data == b"two"


def test_named_pipe_in_place_of_a_note_is_ignored(files):
    os.mkfifo(files.root / "pipe.md")
    (files.root / "folder.md").mkdir()
    assert paths(files) == []
    with pytest.raises(FileNotFoundError):
        files.read("pipe.md")
    with pytest.raises(IsADirectoryError):
        files.read("folder.md")


def test_unreadable_folder_hides_only_its_own_notes(files, monkeypatch):
    files.apply([Put("a/x.md", b"x", None), Put("b/y.md", b"x", None)])
    real = os.open

    def open_folder(path: str, *flags: int):
        if path.endswith("/a"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *flags)

    monkeypatch.setattr(os, "open", open_folder)
    assert paths(files) == ["b/y.md"]


def test_listing_of_a_missing_root_is_empty(tmp_path):
    assert NoteFiles(tmp_path / "none").list_notes() == []


def test_file_time_beyond_the_sqlite_range_is_clamped(files, monkeypatch):
    files.apply([Put("a.md", b"x", None)])
    try:
        os.utime(files.root / "a.md", ns=(2**63 + 5, 2**63 + 5))
    except OverflowError:
        os.utime(files.root / "a.md", (10**10, 10**10))
    assert -(2**63) < files.list_notes()[0].state.mtime_ns < 2**63


# -- leftovers --------------------------------------------------------------------------------------


def test_start_deletes_only_leftover_temporary_files(files):
    keep = ["a.md", ".lithos-notes.md", "x.tmp", "d/b.md", ".obsidian/.lithos-1.tmp"]
    for path in [*keep, ".lithos-00ff.tmp", "d/.lithos-11ee.tmp", "d/e/.lithos-1.tmp"]:
        target = files.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"x")
    assert files.recover(save_nothing) == 3
    assert sorted(everything(files)) == sorted(keep)
    assert files.recover(save_nothing) == 0


def test_undeletable_temporary_file_does_not_prevent_the_start(files, monkeypatch):
    (files.root / ".lithos-1.tmp").write_bytes(b"x")
    monkeypatch.setattr(os, "unlink", fail(errno.EROFS))
    assert files.recover(save_nothing) == 0
    assert paths(files) == []
