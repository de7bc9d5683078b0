"""Holding a database by a byte: SQLite neither sees it nor ends it."""

from __future__ import annotations

import fcntl
import shutil
import sqlite3
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from lithos.stores.backup import copy_database
from lithos.stores.coordination.store import CoordinationStore
from lithos.stores.holds import Held, Hold, hold, is_held
from tests.fakes import START

pytestmark = pytest.mark.skipif(
    not hasattr(fcntl, "F_OFD_SETLK"), reason="this system has no locks of open files"
)
READ = "import apsw, sys; c = apsw.Connection(sys.argv[1]); print(c.execute('PRAGMA quick_check').fetchall())"
WRITE = "import apsw, sys; c = apsw.Connection(sys.argv[1]); c.execute('CREATE TABLE x(y)'); c.close()"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "coordination.db"
    CoordinationStore.open(path, START).close()
    return path


def keep(path: Path) -> Hold:
    held = hold(path)
    assert held is not None
    assert held.descriptor is not None, "this file system knows the locks"
    return held


@pytest.mark.slow
def test_a_held_database_is_read_written_copied_and_checkpointed_by_all(
    database: Path, tmp_path: Path
) -> None:
    held = keep(database)
    for script in (READ, WRITE, READ):
        done = subprocess.run(
            [sys.executable, "-c", script, str(database)], capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
    store = CoordinationStore.open(database, START + timedelta(seconds=1))
    assert copy_database(database, tmp_path / "copy" / "coordination.db", is_live=True) is not None
    store._writer.wal_checkpoint()
    store.close()
    shutil.copyfile(database, tmp_path / "plain")
    with sqlite3.connect(database) as other:
        other.execute("VACUUM")
    held.close()


def test_closing_the_database_ends_no_hold(database: Path) -> None:
    """The locks of `fcntl.lockf` would go with the first descriptor that is closed."""
    held = keep(database)
    for _ in range(3):
        CoordinationStore.open(database, START).close()
        with open(database, "rb"):
            pass
        with pytest.raises(Held):
            hold(database)
    held.close()
    keep(database).close()


def test_a_held_folder_is_told_and_free_again(tmp_path: Path) -> None:
    held = keep(tmp_path)
    assert is_held(tmp_path)
    with pytest.raises(Held):
        hold(tmp_path)
    held.close()
    assert not is_held(tmp_path)


def test_where_there_is_nothing_there_is_nothing_to_hold(tmp_path: Path) -> None:
    assert hold(tmp_path / "none") is None
    assert not is_held(tmp_path / "none")
