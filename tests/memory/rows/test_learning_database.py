"""Databases that the first write creates: reports of failed writes and damage."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import lithos.kernel.databases.database
from lithos.kernel.databases.database import SET_ASIDE, DatabaseLayout, LearningDatabase
from tests.e2e.faults.injection import faulty_disk
from tests.fakes import START

ROW = "x" * 500


class Things(LearningDatabase):
    """Database with one table and one index."""

    layout = DatabaseLayout(
        "CREATE TABLE IF NOT EXISTS things(id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
        lambda connection, now: None,
        set_aside=SET_ASIDE,
    )

    def add(self, number: int) -> None:
        with self.transaction(), self.part():
            self._writer.execute("INSERT INTO things VALUES(?,?)", (number, ROW))

    def count(self) -> int:
        with self.noticing_damage():
            ((count,),) = self._writer.execute("SELECT COUNT(text) FROM things").fetchall()
        return int(count)


def fill(path: Path) -> bytes:
    """Write a closed database of about fifty pages to `path`. Return the bytes of the file."""
    store = Things.open(path, START)
    with store.transaction():
        store._writer.executemany("INSERT INTO things VALUES(?,?)", [(number, ROW) for number in range(300)])
    store.close()
    return path.read_bytes()


def damage(path: Path, data: bytes) -> bytes:
    """Overwrite a page in the middle of the file."""
    middle = len(data) // 4096 // 2 * 4096
    broken = data[:middle] + b"\xff" * 4096 + data[middle + 4096 :]
    path.write_bytes(broken)
    return broken


def set_aside(path: Path) -> Path:
    (aside,) = (file for file in path.parent.glob("*.corrupt-*") if not file.name.endswith("-wal"))
    return aside


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "things.db"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every file as too large to be read completely."""
    monkeypatch.setattr(lithos.kernel.databases.database, "READ_WHOLE", 0)


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError, apsw.ReadOnlyError])
def test_failed_write_is_reported_until_a_write_succeeds(path: Path, error: type[apsw.Error]) -> None:
    with faulty_disk() as disk:
        store = Things.open(path, START)
        store.add(1)
        assert store.failure is None
        with disk.refusing("things.db", error):
            with pytest.raises(error):
                store.add(2)
            assert store.failure == "injected"
            with store.transaction():
                pass  # an empty transaction does not prove that writes work
            assert store.failure == "injected"
            with pytest.raises(error):
                store.try_writing()
            assert store.failure == "injected"
        store.try_writing()
        assert store.failure is None
        assert store.count() == 1
        store.close()


def test_invalid_command_does_not_count_as_database_failure(path: Path) -> None:
    store = Things.open(path, START)
    store.add(1)
    with store.transaction(), pytest.raises(apsw.ConstraintError), store.part():
        store._writer.execute("INSERT INTO things VALUES(1,'again')")
    assert (store.failure, store.damage) == (None, None)
    store.close()


def test_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = Things.open(tmp_path / "file" / "things.db", START)
    with pytest.raises(OSError, match="file"):
        store.add(1)
    assert store.failure is not None
    assert "file" in store.failure


@pytest.mark.usefixtures("large")
def test_large_damaged_file_is_set_aside_at_the_next_opening(path: Path) -> None:
    """behaviour 89"""
    broken = damage(path, fill(path))
    store = Things.open(path, START)
    assert path.read_bytes() == broken
    with pytest.raises(apsw.CorruptError):
        store.count()
    assert store.damage is not None
    store.try_writing()
    assert store.damage is not None, "it does not heal by itself"
    store.close()
    again = Things.open(path, START)
    aside = set_aside(path)
    assert aside.read_bytes()[4096:] == broken[4096:]
    assert list(path.parent.glob("*.suspect")) == []
    assert again.count() == 0
    again.close()


@pytest.mark.usefixtures("large")
def test_false_suspicion_of_damage_is_cleared(path: Path) -> None:
    fill(path)
    mark = path.with_name("things.db.suspect")
    mark.touch()
    store = Things.open(path, START)
    assert store.count() == 300
    assert not mark.exists()
    store.close()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("kind", ["header", "cut", "schema"])
def test_beginning_of_a_large_file_is_checked(path: Path, kind: str) -> None:
    """behaviour 89"""
    data = fill(path)
    broken = {
        "header": b"no database at all" + data[18:],
        "cut": data[: len(data) // 2],
        "schema": data[:100] + b"\xff" * 100 + data[200:],
    }[kind]
    path.write_bytes(broken)
    store = Things.open(path, START)
    aside = set_aside(path)
    assert aside.read_bytes() == broken
    store.close()
