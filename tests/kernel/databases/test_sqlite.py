"""SQLite databases: opening, transactions, and damaged files that must be kept byte for byte."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from lithos.kernel.databases.sqlite import (
    CorruptDatabase,
    Durability,
    open_database,
    open_reader,
    quarantine,
    transaction,
)
from tests.fakes import START

SCHEMA = "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b TEXT NOT NULL)"


def open_at(path: Path, durability: Durability = Durability.FULL) -> apsw.Connection:
    return open_database(path, SCHEMA, durability)


def damage_page(path: Path) -> bytes:
    """Overwrite the middle of the file, but not its header."""
    data = bytearray(path.read_bytes())
    data[4096 + 8 : 8192] = b"\xff" * (4096 - 8)
    path.write_bytes(data)
    return bytes(data)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sub" / "x.db"


def test_sqlite_is_recent_enough_for_shared_wal():
    assert tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) >= (3, 51, 3)


@pytest.mark.parametrize(("durability", "level"), [(Durability.FULL, 2), (Durability.OFF, 0)])
def test_database_uses_wal_with_requested_durability(path, durability, level):
    connection = open_at(path, durability)
    assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    assert connection.execute("PRAGMA synchronous").fetchall() == [(level,)]
    assert connection.execute("PRAGMA foreign_keys").fetchall() == [(1,)]
    connection.close()
    assert list(path.parent.iterdir()) == [path], "closing writes the WAL back"


def test_transaction_is_all_or_nothing(path):
    connection = open_at(path)
    with transaction(connection):
        connection.execute("INSERT INTO t VALUES(1,'a')")
    with pytest.raises(apsw.ConstraintError), transaction(connection):
        connection.executemany("INSERT INTO t VALUES(?,'x')", [(2,), (1,)])
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
    assert not connection.in_transaction
    connection.close()


def test_reader_sees_commits_and_cannot_write(path):
    connection = open_at(path)
    reader = open_reader(path)
    with transaction(connection):
        connection.execute("INSERT INTO t VALUES(1,'a')")
        assert reader.execute("SELECT * FROM t").fetchall() == []
    assert reader.execute("SELECT * FROM t").fetchall() == [(1, "a")]
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("INSERT INTO t VALUES(2,'b')")
    reader.close()
    connection.close()


def fill(connection: apsw.Connection) -> None:
    with transaction(connection):
        connection.executemany("INSERT INTO t VALUES(?,?)", [(i, "x" * 100) for i in range(300)])


@pytest.mark.parametrize("is_database", [True, False])
def test_damaged_and_foreign_files_are_refused_and_untouched(path, is_database):
    connection = open_at(path)
    fill(connection)
    connection.close()
    data = damage_page(path) if is_database else b"hello " * 1000
    path.write_bytes(data)
    with pytest.raises(CorruptDatabase) as caught:
        open_at(path)
    assert caught.value.path == path
    assert str(path) in str(caught.value)
    assert path.read_bytes() == data
    assert is_database or list(path.parent.iterdir()) == [path]


def test_check_of_damaged_database_keeps_its_wal(path, tmp_path):
    """The WAL of a killed process may contain the newest rows.

    The damaged database must not absorb these rows.
    """
    connection = open_at(path)
    fill(connection)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with transaction(connection):
        connection.execute("INSERT INTO t VALUES(1000,'newest')")
    killed = tmp_path / "killed"
    killed.mkdir()
    for part in path.parent.iterdir():
        (killed / part.name).write_bytes(part.read_bytes())
    connection.close()
    copy = killed / path.name
    data, wal = damage_page(copy), (killed / "x.db-wal").read_bytes()
    with pytest.raises(CorruptDatabase):
        open_at(copy)
    assert copy.read_bytes() == data
    assert (killed / "x.db-wal").read_bytes() == wal
    aside = quarantine(copy, START)
    assert aside.read_bytes() == data
    assert (killed / (aside.name + "-wal")).read_bytes() == wal
    assert {part.name for part in killed.iterdir()} == {aside.name, aside.name + "-wal"}
    fresh = open_at(copy)
    assert fresh.execute("SELECT * FROM t").fetchall() == [], "no old WAL is replayed into the new one"
    fresh.close()


def test_wal_is_moved_before_its_database(path, monkeypatch):
    """A kill between the two moves must not combine the WAL with a new database."""
    path.parent.mkdir()
    path.write_bytes(b"db")
    path.with_name("x.db-wal").write_bytes(b"wal")
    moved: list[str] = []
    real = Path.rename
    monkeypatch.setattr(Path, "rename", lambda self, target: (moved.append(self.name), real(self, target))[1])
    quarantine(path, START)
    assert moved == ["x.db-wal", "x.db"]


def test_quarantines_within_one_second_keep_all_damaged_files(path):
    path.parent.mkdir()
    names = []
    for content in (b"one", b"two", b"three"):
        path.write_bytes(content)
        aside = quarantine(path, START)
        names.append(aside.name)
        assert aside.read_bytes() == content
    assert names == [f"x.db.corrupt-20260102T030405Z{tail}" for tail in ("", "-1", "-2")]


def test_unwritable_folder_does_not_count_as_damage(path):
    path.mkdir(parents=True)
    with pytest.raises(apsw.CantOpenError):
        open_at(path)
