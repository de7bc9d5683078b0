"""The lock file, its folder or the database removed or replaced by another program, under a living owner."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import lithos.stores.lock
from lithos.stores.coordination.store import CoordinationStore
from lithos.stores.database import DatabaseLost
from lithos.stores.lock import AlreadyOwned, OwnerLock, is_owned
from lithos.stores.owner_record import OwnerRecord, read_owner
from tests.fakes import START
from tests.stores.test_database_removed import move_folder, remove, remove_folder, replace, replace_by_copy
from tests.stores.test_lock import another_owner, held

Damage = Callable[[Path], None]


class Holder:
    """Who owns a data directory. Others in this process meet the locks of the system, as another's would."""

    def __init__(self, path: Path) -> None:
        self.lock = OwnerLock(path)
        self.lock.acquire("then")
        lithos.stores.lock._ours.clear()
        database = path.with_name("coordination.db")
        self._store = CoordinationStore.open(database, START)
        self.lock.hold_database()
        self.lock.publish(
            OwnerRecord(os.getpid(), os.uname().nodename, "http://127.0.0.1:9", "then", "t0ken")
        )

    def confirm(self) -> str | None:
        """The trouble it then tells of."""
        self.lock.confirm()
        return self.lock.trouble

    def end(self) -> None:
        self.lock.release()
        with suppress(DatabaseLost):
            self._store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / ".lithos" / "lock"


@pytest.fixture
def holder(path: Path) -> Iterator[Holder]:
    holder = Holder(path)
    yield holder
    holder.end()


def replace_by_empty(path: Path) -> None:
    replace(path, b"")


def replace_by_stranger(path: Path) -> None:
    replace(path, b'{"pid": 999999999, "host": "' + os.uname().nodename.encode() + b'", "started_at": "x"}')


def overwrite(path: Path) -> None:
    path.write_bytes(b"\0" * 20)


def replace_folder(path: Path) -> None:
    move_folder(path)
    # The owner may have made the folder anew by then.
    shutil.copytree(path.parent.with_name("away"), path.parent, dirs_exist_ok=True)


def replace_database(path: Path) -> None:
    replace_by_copy(path.with_name("coordination.db"))


FILE = [remove, replace_by_copy, replace_by_empty, replace_by_stranger, overwrite]
FOLDER = [move_folder, replace_folder, remove_folder, replace_database]


def assert_refused(path: Path) -> str:
    with pytest.raises(AlreadyOwned) as caught:
        OwnerLock(path).acquire("now")
    return str(caught.value)


@pytest.mark.parametrize("damage", FILE)
def test_a_lost_lock_file_lets_nobody_in_and_is_written_again(
    path: Path, holder: Holder, damage: Damage
) -> None:
    """docs/spec/lifecycle.md §2"""
    before = read_owner(path)
    assert holder.confirm() is None
    damage(path)
    refusal = assert_refused(path)
    assert str(os.getpid()) in refusal
    assert is_owned(path)
    trouble = holder.confirm()
    assert "written again" in trouble
    assert str(path) in trouble
    assert read_owner(path) == before, "bridges find the owner where it was"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "http://127.0.0.1:9" in assert_refused(path)
    holder.end()
    assert not is_owned(path)
    held(path).release()


@pytest.mark.parametrize("damage", FOLDER)
def test_a_lost_folder_or_database_lets_nobody_in_and_is_told(
    path: Path, holder: Holder, damage: Damage
) -> None:
    """docs/spec/lifecycle.md §2"""
    before = read_owner(path)
    damage(path)
    assert_refused(path)
    assert is_owned(path)
    for _ in range(2):
        trouble = holder.confirm()
        assert "was moved, removed or replaced" in trouble, "as long as it is so"
        assert "Stop the server" in trouble
        assert read_owner(path) == before
        assert_refused(path)


def test_a_folder_that_comes_back_ends_the_trouble(path: Path, holder: Holder) -> None:
    move_folder(path)
    assert "moved" in holder.confirm()
    shutil.rmtree(path.parent)
    path.parent.with_name("away").rename(path.parent)
    assert "moved, removed" not in (holder.confirm() or "")
    assert read_owner(path).url == "http://127.0.0.1:9"  # type: ignore[union-attr]
    assert_refused(path)


def replace_data(path: Path) -> None:
    data = path.parent.parent
    data.rename(data.with_name("before"))
    shutil.copytree(data.with_name("before"), data)


def test_a_replaced_data_directory_is_held_too_once_it_is_seen(path: Path, holder: Holder) -> None:
    """Nothing joins the two but their name, so what came first has it."""
    replace_data(path)
    assert str(path.parent.parent) in holder.confirm()
    assert_refused(path)
    with pytest.raises(AlreadyOwned):
        OwnerLock(path.parent.parent.with_name("before") / ".lithos" / "lock").acquire("now")


@pytest.mark.slow
def test_an_owner_whose_data_directory_went_to_another_one_is_told_to_end(path: Path, holder: Holder) -> None:
    replace_data(path)
    with another_owner(path):
        with pytest.raises(AlreadyOwned, match="The data directory is in use by process 4711"):
            holder.confirm()
        assert read_owner(path).pid == 4711  # type: ignore[union-attr]


@pytest.mark.parametrize("damage", [remove, replace_by_copy, replace_by_empty])
def test_the_database_keeps_others_out_where_folders_know_no_locks(
    path: Path, holder: Holder, damage: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on network file systems."""
    if not hasattr(fcntl, "F_OFD_SETLK"):
        pytest.skip("this system has no locks of open files")
    real = fcntl.flock

    def refuse_folders(descriptor: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "no locks for folders")
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", refuse_folders)
    damage(path)
    assert_refused(path)
    assert "written again" in holder.confirm()
    assert is_owned(path)


def test_a_lock_file_that_cannot_be_written_again_is_told_and_tried_again(path: Path, holder: Holder) -> None:
    path.unlink()
    path.mkdir()
    for _ in range(2):
        trouble = holder.confirm()
        assert "cannot be written again" in trouble
        assert "tried again" in trouble
    assert_refused_somehow(path)
    path.rmdir()
    assert "has been written again" in holder.confirm()


def assert_refused_somehow(path: Path) -> None:
    with pytest.raises((AlreadyOwned, OSError)):
        OwnerLock(path).acquire("now")


def count_descriptors(folder: Path) -> int:
    """Descriptors of this process that lead into a folder, also to files that are gone."""
    found = 0
    for number in os.listdir("/dev/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            found += os.readlink(f"/dev/fd/{number}").startswith(str(folder))
    return found


def test_no_descriptor_is_left_however_often_the_lock_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "data" / ".lithos" / "lock"
    lock = held(path)
    path.with_name("coordination.db").touch()
    lock.hold_database()
    for damage in FILE + FOLDER:
        lock.confirm()
        path.with_name("coordination.db").touch()
        damage(path)
        shutil.rmtree(path.parent.with_name("away"), ignore_errors=True)
    lock.confirm()
    opened = count_descriptors(tmp_path)
    assert opened > 0
    for damage in [*FILE, remove_folder] * 5:
        damage(path)
        lock.confirm()
    assert count_descriptors(tmp_path) <= opened
    lock.release()
    assert not is_owned(path)


def test_the_trouble_of_a_lock_written_again_is_told_for_an_hour(path: Path) -> None:
    now = [1_800_000_000.0]
    lock = OwnerLock(path, lambda: now[0])
    lock.acquire("now")
    assert lock.trouble is None
    path.unlink()
    lock.confirm()
    now[0] += 3599
    lock.confirm()
    assert lock.trouble is not None
    now[0] += 2
    assert lock.trouble is None
    lock.release()
    lock.confirm()
    assert not is_owned(path), "a lock that was given up is not taken again"


@pytest.mark.slow
@pytest.mark.parametrize("damage", FILE + FOLDER)
def test_nobody_gets_in_while_the_lock_is_written_again(path: Path, holder: Holder, damage: Damage) -> None:
    """docs/spec/lifecycle.md §2: ten times each, with others that try without a pause."""
    entered: list[str] = []
    is_over = threading.Event()

    def try_to_enter() -> None:
        while not is_over.is_set():
            lock = OwnerLock(path)
            try:
                lock.acquire("now")
            except (AlreadyOwned, OSError):
                continue
            entered.append("in")
            lock.release()

    intruders = [threading.Thread(target=try_to_enter) for _ in range(2)]
    try:
        for intruder in intruders:
            intruder.start()
        for _ in range(10):
            shutil.rmtree(path.parent.with_name("away"), ignore_errors=True)
            path.with_name("coordination.db").touch()
            damage(path)
            holder.confirm()
            assert not entered
    finally:
        is_over.set()
        for intruder in intruders:
            intruder.join()
    assert not entered
