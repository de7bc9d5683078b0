"""Tables of `coordination.db`, which registered capabilities add."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

from lithos.app.capabilities import CAPABILITIES
from lithos.events.rows.schema import CapabilityTables
from lithos.events.rows.store import CoordinationStore
from tests.fakes import START

ALL: list[CapabilityTables] = [table for capability in CAPABILITIES for table in capability.tables]


def made(path: Path, tables: list[CapabilityTables]) -> list[str]:
    """Create a file and return its tables in creation order."""

    class Store(CoordinationStore):
        """Store that has only these tables."""

    Store.lay_out(tables)
    Store.open(path, START).close()
    with closing(apsw.Connection(str(path))) as connection:
        rows = connection.execute("SELECT name FROM sqlite_schema WHERE type='table' ORDER BY rowid")
        return [str(row[0]) for row in rows]


def test_tables_are_created_in_a_fixed_order(tmp_path: Path) -> None:
    """Files equal the files of earlier versions, independent of the order of the capabilities."""
    names = made(tmp_path / "a.db", ALL)
    assert made(tmp_path / "b.db", ALL[::-1]) == names
    firsts = ["tasks", "citations", "requests", "agents", "read_counts", "note_versions"]
    assert [name for name in names if name in firsts] == firsts
    assert names[-1] == "imported_rows"
