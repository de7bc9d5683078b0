"""What of another Lithos's database this server does not know: it stays, and is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import apsw

from lithos.stores.coordination.store import CoordinationStore
from lithos.stores.learning.edges import EdgeStore
from lithos.stores.learning.stats import StatsStore

_LAYOUTS: Final = {
    "coordination.db": CoordinationStore.layout,
    "edges.db": EdgeStore.layout,
    "stats.db": StatsStore.layout,
}
_COLUMNS: Final = (
    "SELECT tables.name, columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns"
    " WHERE tables.type='table' AND tables.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)


def unknown_columns(database: str, connection: apsw.Connection) -> Iterator[str]:
    """Tables, and columns as `table.column`, that this server does not make; `database` is a file name."""
    with closing(apsw.Connection(":memory:")) as ours:
        ours.execute(_LAYOUTS[database].tables)
        known = columns_of(ours)
    known.get("tasks", set()).add("completed_at")  # read as resolved_at
    found = columns_of(connection)
    for table in sorted(found):
        if table not in known:
            yield table
        else:
            yield from (f"{table}.{column}" for column in sorted(found[table] - known[table]))


def columns_of(connection: apsw.Connection) -> dict[str, set[str]]:
    """The columns of each table, but for those of SQLite itself."""
    found: dict[str, set[str]] = {}
    for table, column in connection.execute(_COLUMNS):
        found.setdefault(str(table), set()).add(str(column))
    return found
