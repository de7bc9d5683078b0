"""Opening of databases, also after damage or a failed upgrade."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import apsw
import pytest

from lithos.events.rows.store import CoordinationStore
from lithos.kernel.databases.database import Database, DatabaseLayout
from lithos.kernel.databases.sqlite import CorruptDatabase
from lithos.notes.files.manifest import Manifest
from tests.fakes import START
from tests.kernel.databases.test_database_removed import KINDS

TABLES = "CREATE TABLE IF NOT EXISTS things(id INTEGER PRIMARY KEY)"


def no_upgrade(_: apsw.Connection, now: datetime) -> None:
    """Upgrade function for an unchanged layout."""


class Things(Database):
    """A database that is refused if damaged."""

    layout = DatabaseLayout(TABLES, no_upgrade)


class Replaceable(Database):
    """A database that is set aside if damaged."""

    layout = DatabaseLayout(TABLES, no_upgrade, set_aside="damaged things set aside", has_reader=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "things.db"


def open_files(path: Path) -> list[str]:
    return [one.filename for one in apsw.connections() if one.filename == str(path)]


@pytest.mark.parametrize("kind", [Things, Replaceable])
def test_rows_are_readable_and_closed_database_is_one_file(path: Path, kind: type[Database]) -> None:
    store = kind.open(path, START)
    with store.transaction():
        store._writer.execute("INSERT INTO things VALUES(1)")
        with pytest.raises(apsw.ConstraintError), store.part():
            store._writer.execute("INSERT INTO things VALUES(2), (1)")
    assert store._reader.execute("SELECT id FROM things").fetchall() == [(1,)]
    assert len(open_files(path)) == (2 if kind is Things else 1)
    store.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with pytest.raises(apsw.ConnectionClosedError):
        store._reader.execute("SELECT 1")


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "damaged", [b"no database at all" * 500, b"SQLite format 3\0" + b"\xff" * 8000, b"SQLite format 3\0junk"]
)
def test_damaged_database_is_refused_only_if_it_is_irreplaceable(
    tmp_path: Path, name: str, damaged: bytes
) -> None:
    """behaviour 89"""
    path = tmp_path / name
    path.write_bytes(damaged)
    if name == "coordination.db":
        with pytest.raises(CorruptDatabase):
            KINDS[name].open(path, START)
        assert [file.read_bytes() for file in tmp_path.iterdir()] == [damaged]
        return
    store = KINDS[name].open(path, START)
    assert (tmp_path / f"{name}.corrupt-20260102T030405Z").read_bytes() == damaged
    with store.transaction():
        store._writer.execute("CREATE TABLE works(number INTEGER)")
    assert store._reader.execute("SELECT * FROM works").fetchall() == []
    store.close()


@pytest.mark.parametrize("kind", [CoordinationStore, Manifest])
def test_no_file_stays_open_when_upgrade_fails(path: Path, kind: type[CoordinationStore | Manifest]) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE meta(something)")
    connection.close()
    with pytest.raises(apsw.SQLError):
        kind.open(path, START)
    assert open_files(path) == []
