"""Databases that another program removes, replaces or truncates while they are open.

Specified in docs/spec/lifecycle.md §2.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lithos.events.rows.store import CoordinationStore
from lithos.history.rows.store import HistoryStore
from lithos.kernel.databases.database import Database, DatabaseLost, LearningDatabase
from lithos.kernel.databases.sqlite import CorruptDatabase, snapshot
from lithos.memory.rows.edges import EdgeStore
from lithos.memory.rows.stats import StatsStore
from lithos.notes.files.manifest import Manifest
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


def open_store(folder: Path, name: str) -> tuple[Database, Path]:
    path = folder / "data" / ".lithos" / name
    store = KINDS[name].open(path, START)
    if isinstance(store, LearningDatabase):
        store.try_writing()  # the first write creates the file
    with store.transaction():
        store._writer.execute("CREATE TABLE kept(number INTEGER)")
    return store, path


def keep(store: Database, *numbers: int) -> None:
    with store.transaction():
        store._writer.executemany("INSERT INTO kept VALUES(?)", [(number,) for number in numbers])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KINDS)
def test_lost_database_refuses_writes_with_advice(tmp_path: Path, name: str, way: Damage) -> None:
    """docs/spec/lifecycle.md §2"""
    store, path = open_store(tmp_path, name)
    keep(store, 1)
    assert store.loss is None
    way(path)
    before = path.read_bytes() if path.exists() else None
    for _ in range(2):
        with pytest.raises(DatabaseLost, match="restore a backup") as refused:
            keep(store, 2)
        assert str(path) in str(refused.value)
    assert not isinstance(store, LearningDatabase) or store.failure is not None
    with pytest.raises(DatabaseLost, match="restore a backup"):
        store.close()
    assert (path.read_bytes() if path.exists() else None) == before, "another program's file is left alone"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KINDS)
def test_database_check_detects_a_lost_database_without_a_write(
    tmp_path: Path, name: str, way: Damage
) -> None:
    store, path = open_store(tmp_path, name)
    store.look()
    assert store.loss is None
    way(path)
    store.look()
    assert str(path) in str(store.loss)
    with pytest.raises(DatabaseLost):
        store.close()


def test_database_is_no_longer_lost_when_its_folder_is_restored(tmp_path: Path) -> None:
    store, path = open_store(tmp_path, "history.db")
    move_folder(path)
    with pytest.raises(DatabaseLost):
        keep(store, 1)
    path.parent.with_name("away").rename(path.parent)
    keep(store, 1)
    assert store.loss is None
    store.close()


def test_closing_a_database_keeps_the_wal_of_another_program(tmp_path: Path) -> None:
    store, path = open_store(tmp_path, "history.db")
    keep(store, 1)
    replace_with_wal(path)
    with pytest.raises(DatabaseLost):
        store.close()
    assert path.read_bytes() == with_suffix(path, "-wal").read_bytes() == FOREIGN


def test_emptied_file_of_killed_process_is_refused(tmp_path: Path) -> None:
    """SQLite would delete the WAL, which contains all data."""
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


def test_store_opened_from_a_snapshot_never_counts_as_lost(tmp_path: Path) -> None:
    """Commands such as `lithos events --no-follow` read a snapshot while a server is running."""
    path = tmp_path / "coordination.db"
    CoordinationStore.open(path, START).close()
    with snapshot(path, is_live=False) as connection:
        assert connection is not None
        store = CoordinationStore(path, (connection, connection))
        store.look()
        assert store.loss is None
        store.close()
