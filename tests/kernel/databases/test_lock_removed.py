"""Lock files and folders that another program removes or replaces while the owner is alive."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lithos.kernel.databases.lock import AlreadyOwned, OwnerLock, OwnerRecord, is_owned, read_owner
from tests.kernel.databases.test_database_removed import (
    move_folder,
    remove,
    remove_folder,
    replace,
    replace_by_copy,
)
from tests.kernel.databases.test_lock import another_owner, held

Damage = Callable[[Path], None]


class Holder:
    """The owner of a data directory."""

    def __init__(self, path: Path) -> None:
        self.lock = OwnerLock(path)
        self.lock.acquire("then")
        self.lock.publish(
            OwnerRecord(os.getpid(), os.uname().nodename, "http://127.0.0.1:9", "then", "t0ken")
        )

    def confirm(self) -> str | None:
        """Check the lock. Return the message that health then reports."""
        self.lock.confirm()
        return self.lock.trouble

    def end(self) -> None:
        self.lock.release()


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
    # The owner may already have created the folder again.
    shutil.copytree(path.parent.with_name("away"), path.parent, dirs_exist_ok=True)


FILE = [remove, replace_by_copy, replace_by_empty, replace_by_stranger, overwrite]
FOLDER = [move_folder, replace_folder, remove_folder]


def assert_refused(path: Path) -> str:
    with pytest.raises(AlreadyOwned) as caught:
        OwnerLock(path).acquire("now")
    return str(caught.value)


@pytest.mark.parametrize("damage", [*FILE, replace_folder])
def test_lock_excludes_other_owners_and_rewrites_its_lost_file(
    path: Path, holder: Holder, damage: Damage
) -> None:
    """docs/spec/lifecycle.md §2"""
    before = read_owner(path)
    assert holder.confirm() is None
    damage(path)
    assert_refused(path)
    assert is_owned(path)
    assert holder.confirm() is None
    assert read_owner(path) == before, "bridges find the owner where it was"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "http://127.0.0.1:9" in assert_refused(path)
    holder.end()
    assert not is_owned(path)
    held(path).release()


@pytest.mark.parametrize("damage", [move_folder, remove_folder])
def test_lost_folder_still_excludes_other_owners_and_is_reported(
    path: Path, holder: Holder, damage: Damage
) -> None:
    """docs/spec/lifecycle.md §2"""
    damage(path)
    for _ in range(2):
        trouble = holder.confirm()
        assert trouble is not None
        assert "Stop the server" in trouble, "as long as it is so"
        assert is_owned(path)
    assert_refused(path)


def test_lock_is_no_longer_lost_when_its_folder_is_restored(path: Path, holder: Holder) -> None:
    move_folder(path)
    assert holder.confirm() is not None
    path.parent.with_name("away").rename(path.parent)
    assert holder.confirm() is None
    assert "http://127.0.0.1:9" in assert_refused(path)


def replace_data(path: Path) -> None:
    data = path.parent.parent
    data.rename(data.with_name("before"))
    shutil.copytree(data.with_name("before"), data)


def test_replaced_data_directory_is_locked_once_noticed(path: Path, holder: Holder) -> None:
    replace_data(path)
    assert holder.confirm() is None
    assert "http://127.0.0.1:9" in assert_refused(path)


@pytest.mark.slow
def test_owner_ends_when_another_process_owns_its_data_directory(path: Path, holder: Holder) -> None:
    replace_data(path)
    with another_owner(path):
        with pytest.raises(AlreadyOwned, match="Another process uses the data directory: process 4711"):
            holder.confirm()
        assert read_owner(path).pid == 4711  # type: ignore[union-attr]


def test_unwritable_lock_file_is_reported_and_retried(path: Path, holder: Holder) -> None:
    path.unlink()
    path.mkdir()
    for _ in range(2):
        assert "cannot be locked again" in str(holder.confirm())
    assert_refused(path)
    path.rmdir()
    assert holder.confirm() is None


def count_descriptors(folder: Path) -> int:
    """Return the number of this process's descriptors for files in a folder, including deleted files."""
    found = 0
    for number in os.listdir("/dev/fd"):
        with suppress(FileNotFoundError):  # this is the descriptor of the listing itself
            found += os.readlink(f"/dev/fd/{number}").startswith(str(folder))
    return found


def test_repeated_lock_loss_leaves_no_open_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "data" / ".lithos" / "lock"
    lock = held(path)
    opened = count_descriptors(tmp_path)
    assert opened == 2
    for damage in [*FILE, replace_folder] * 5:
        damage(path)
        lock.confirm()
        shutil.rmtree(path.parent.with_name("away"), ignore_errors=True)
    assert count_descriptors(tmp_path) == opened
    lock.release()
    assert count_descriptors(tmp_path) == 0
    assert not is_owned(path)
    lock.confirm()
    assert not is_owned(path), "a lock that was given up is not taken again"


@pytest.mark.slow
@pytest.mark.parametrize("damage", FILE + FOLDER)
def test_second_owner_is_refused_while_the_lock_is_rewritten(
    path: Path, holder: Holder, damage: Damage
) -> None:
    """docs/spec/lifecycle.md §2: ten attempts per kind of damage.

    Meanwhile, other processes try to get the lock without a pause.
    """
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
            path.parent.mkdir(exist_ok=True)
            path.touch()
            damage(path)
            holder.confirm()
            assert not entered
    finally:
        is_over.set()
        for intruder in intruders:
            intruder.join()
    assert not entered
