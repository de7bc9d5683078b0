"""Databases removed, replaced or cut short by another program while they are open.

Specified in docs/spec/lifecycle.md §2.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from lithos.stores.coordination.store import CoordinationStore
from lithos.stores.database import Database, LearningDatabase
from lithos.stores.history.store import HistoryStore
from lithos.stores.learning.edges import EdgeStore
from lithos.stores.learning.stats import StatsStore
from lithos.stores.lock import OwnerLock
from lithos.stores.manifest import Manifest
from lithos.stores.sqlite import MOST_ASIDE, CorruptDatabase, copy_content, finish_rescues
from tests.fakes import START

Kind = type[Database]
Damage = Callable[[Path], None]
KINDS: dict[str, Kind] = {
    "coordination.db": CoordinationStore,
    "edges.db": EdgeStore,
    "stats.db": StatsStore,
    "history.db": HistoryStore,
    "manifest.db": Manifest,
}
FOREIGN = b"of another program"


def with_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def remove(path: Path) -> None:
    path.unlink()


def remove_with_wal(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        with_suffix(path, suffix).unlink()


def remove_wal(path: Path) -> None:
    with_suffix(path, "-wal").unlink()


def replace(path: Path, content: bytes = FOREIGN) -> None:
    new = path.with_name("new")
    new.write_bytes(content)
    new.rename(path)


def replace_by_copy(path: Path) -> None:
    replace(path, path.read_bytes())


def replace_with_wal(path: Path) -> None:
    replace(path)
    replace(with_suffix(path, "-wal"))


def empty(path: Path) -> None:
    os.truncate(path, 0)


def move_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("away"))


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


#: After `empty` all is still in the WAL of a new database.
WAYS = [
    remove,
    remove_with_wal,
    remove_wal,
    replace,
    replace_by_copy,
    replace_with_wal,
    empty,
    move_folder,
    remove_folder,
]


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[OwnerLock]:
    lock = OwnerLock(tmp_path / "data" / ".lithos" / "lock")
    lock.acquire("then")
    yield lock
    lock.release()


def open_watched(lock: OwnerLock, name: str) -> tuple[Database, Path]:
    path = lock.path.with_name(name)
    store = KINDS[name].open(path, START)
    if isinstance(store, LearningDatabase):
        store.try_writing()  # it is made by the first write
    lock.hold_database()
    store.watch(lock)
    with store.transaction():
        store._writer.execute("CREATE TABLE kept(number INTEGER)")
    return store, path


def keep(store: Database, *numbers: int) -> None:
    with store.transaction():
        store._writer.executemany("INSERT INTO kept VALUES(?)", [(number,) for number in numbers])


def kept(connection: apsw.Connection) -> list[int]:
    return [number for (number,) in connection.execute("SELECT number FROM kept ORDER BY number")]


def kept_at(path: Path) -> list[int]:
    """What the next process finds there: read from a copy, as another's locks would be in the way."""
    copies = path.parent.parent / "copies"
    copies.mkdir()
    for suffix in ("", "-wal"):
        if with_suffix(path, suffix).exists():
            shutil.copy(with_suffix(path, suffix), copies)
    with closing(apsw.Connection(str(copies / path.name))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = kept(connection)
    shutil.rmtree(copies)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KINDS)
def test_what_is_acknowledged_after_the_loss_is_at_the_path_with_all_before(
    lock: OwnerLock, name: str, way: Damage
) -> None:
    store, path = open_watched(lock, name)
    writer, reader = store._writer, store._reader
    keep(store, 1)
    way(path)
    keep(store, 2)
    assert kept_at(path) == [1, 2]
    assert kept(reader) == kept(writer) == [1, 2], "those who hold a connection need not know"
    assert str(path.parent) in str(lock.trouble)
    keep(store, 3)
    store.look()
    assert (kept_at(path), kept(reader), kept(writer)) == ([1, 2, 3],) * 3, "after the old file was closed"
    store.close()
    assert kept_at(path) == [1, 2, 3]
    assert not list(path.parent.glob("*.part*"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KINDS)
def test_a_stop_puts_back_what_was_lost_and_not_written_since(
    lock: OwnerLock, name: str, way: Damage
) -> None:
    store, path = open_watched(lock, name)
    keep(store, 1)
    way(path)
    store.close()
    assert kept_at(path) == [1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KINDS)
def test_a_look_tells_of_the_loss_and_of_nothing_else(lock: OwnerLock, name: str, way: Damage) -> None:
    store, path = open_watched(lock, name)
    keep(store, 1)
    store.look()
    assert not store.is_away
    way(path)
    store.look()
    assert store.is_away
    if isinstance(store, LearningDatabase):
        assert store.failure is not None, "so that writing is tried within a second"
    keep(store, 2)
    store.look()
    assert not store.is_away
    assert not isinstance(store, LearningDatabase) or store.failure is None
    store.close()


def test_no_byte_of_the_file_that_was_put_there_is_lost(lock: OwnerLock) -> None:
    store, path = open_watched(lock, "history.db")
    keep(store, 1)
    replace_with_wal(path)
    keep(store, 2)
    aside = sorted(path.parent.glob("history.db.replaced-*"))
    assert [file.read_bytes() for file in aside] == [FOREIGN, FOREIGN]
    assert aside[1].name == aside[0].name + "-wal"
    assert str(aside[0]) in str(lock.trouble)
    store.close()


def test_a_program_that_replaces_it_again_and_again_is_told_to_stop(lock: OwnerLock) -> None:
    store, path = open_watched(lock, "edges.db")
    for number in range(MOST_ASIDE):
        replace(path)
        keep(store, number)
    replace(path)
    with pytest.raises(OSError, match="Stop the program that does"):
        keep(store, 99)
    assert path.read_bytes() == FOREIGN
    for file in path.parent.glob("edges.db.replaced-*"):
        file.unlink()
    keep(store, 99)
    assert kept_at(path) == [*range(MOST_ASIDE), 99]
    store.close()


def test_a_directory_that_went_to_another_owner_is_left_alone(lock: OwnerLock) -> None:
    """As where the whole data directory was replaced, and a second server started in the new one."""
    store, path = open_watched(lock, "history.db")
    keep(store, 1)
    data = path.parent.parent
    data.rename(data.with_name("before"))
    path.parent.mkdir(parents=True)
    path.write_bytes(FOREIGN)
    lock.path.write_bytes(data.with_name("before").joinpath(".lithos", "lock").read_bytes())
    with lock.path.open("rb+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="is not this process's"):
            keep(store, 2)
        store.close()
    assert path.read_bytes() == FOREIGN
    assert sorted(file.name for file in path.parent.iterdir()) == ["history.db", "lock"]


@pytest.mark.parametrize("name", KINDS)
def test_pages_that_are_nowhere_are_refused_loudly(lock: OwnerLock, name: str) -> None:
    store, path = open_watched(lock, name)
    keep(store, *range(5_000))
    store._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for connection in {store._writer, store._reader}:
        connection.execute("PRAGMA shrink_memory").fetchall()  # else it remembers some
    keep(store, 5_000)
    os.truncate(path, 8_192)
    for _ in range(2):
        with pytest.raises(apsw.CorruptError, match="took away parts of"):
            keep(store, 5_001)
    assert not list(path.parent.glob("*.part*"))
    store.close()
    if isinstance(store, CoordinationStore):
        with pytest.raises(CorruptDatabase):
            CoordinationStore.open(path, START)
        return
    anew = KINDS[name].open(path, START)
    anew.close()
    assert list(path.parent.glob(f"{name}.corrupt-*")), "its bytes are kept"


def test_a_file_that_was_emptied_under_a_killed_process_is_no_new_database(tmp_path: Path) -> None:
    """SQLite would drop the WAL, with all that there is."""
    path = tmp_path / "coordination.db"
    store = CoordinationStore.open(path, START)
    copies = {suffix: with_suffix(path, suffix).read_bytes() for suffix in ("", "-wal")}
    store.close()
    path.unlink()
    with_suffix(path, "-wal").write_bytes(copies["-wal"])
    with pytest.raises(CorruptDatabase, match="left its -wal"):
        CoordinationStore.open(path, START)
    assert with_suffix(path, "-wal").read_bytes() == copies["-wal"]
    path.write_bytes(copies[""])
    CoordinationStore.open(path, START).close()


@pytest.mark.parametrize("left", ["-wal", ""])
def test_a_kill_before_the_copy_is_in_its_place_loses_nothing(lock: OwnerLock, left: str) -> None:
    store, path = open_watched(lock, "history.db")
    keep(store, 1)
    copy_content(store._writer, with_suffix(path, ".rescued"))
    with_suffix(path, ".part").write_bytes(b"half")
    store._keeper = None
    store.close()
    path.unlink()
    with_suffix(path, left).write_bytes(FOREIGN)
    finish_rescues(path.parent, START)
    assert kept_at(path) == [1]
    assert with_suffix(next(path.parent.glob("history.db.replaced-*")), "").read_bytes() == FOREIGN
    assert not list(path.parent.glob("*.rescued")) + list(path.parent.glob("*.part"))


def test_a_database_that_nobody_watches_is_left_where_it_went(tmp_path: Path) -> None:
    """Commands open some for a moment; only who owns the data directory may put things there."""
    store = HistoryStore.open(tmp_path / "history.db", START)
    remove(tmp_path / "history.db")
    with store.transaction():
        store._writer.execute("CREATE TABLE kept(number INTEGER)")
    assert not (tmp_path / "history.db").exists()
    store.close()
