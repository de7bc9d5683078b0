"""Schema of `coordination.db`, composed of the capabilities' tables, and migration of older files.

The schema is specified in docs/spec/coordination.md §1. The migration is idempotent. Indexes are created
separately, because an older file must get its missing columns before an index can use them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

import apsw
from attrs import field, frozen

from lithos.kernel.databases.database import add_missing_columns, read_time
from lithos.kernel.log import get_logger
from lithos.kernel.values.times import EPOCH, format_time

log = get_logger("lithos.coordination")


@frozen(kw_only=True)
class CapabilityTables:
    """The `coordination.db` tables of one capability.

    * `place`: position in the creation order of tables;
    * `create`, `indexes`: SQL;
    * `columns`: columns that may be missing in older files, with their definitions;
    * `times`: columns that contain times. Times are compared as text and therefore need one format. True
      means that a time is required;
    * `protected`: names in `meta` under which the highest rowid of a table is stored when an older file is
      first served. Rows up to that rowid come from an upstream server and are kept, whatever their age;
    * `owners`: columns that contain the agent ids of row owners, by table. These agents are kept;
    * `prepare`: called before columns are added. It returns a callable that is called afterwards.
    """

    place: int
    create: str
    indexes: str = ""
    columns: Mapping[str, Mapping[str, str]] = field(factory=dict)
    times: Mapping[str, Mapping[str, bool]] = field(factory=dict)
    protected: Mapping[str, str] = field(factory=dict)
    owners: Mapping[str, str] = field(factory=dict)
    prepare: Callable[[apsw.Connection], Callable[[datetime], None]] | None = None


_WRITTEN_BY_US: Final = "____-__-__T__:__:__.______+00:00"


def upgrade(connection: apsw.Connection, now: datetime, tables: Sequence[CapabilityTables]) -> None:
    """Migrate a file of an older version: rename, add and convert columns. A current file does not change.

    The function runs inside a transaction after the tables were created, and creates their indexes.
    """
    converting = [each.prepare(connection) for each in tables if each.prepare is not None]
    for each in tables:
        add_missing_columns(connection, each.columns)
    if connection.execute("INSERT OR IGNORE INTO meta VALUES('times', 1) RETURNING 1").fetchall():
        _rewrite_times(connection, {name: of for each in tables for name, of in each.times.items()})
        for name, table in ((name, of) for each in tables for name, of in each.protected.items()):
            connection.execute(
                f"INSERT OR REPLACE INTO meta SELECT ?, COALESCE(MAX(rowid), 0) FROM {table}",  # noqa: S608
                (name,),
            )
    for convert in converting:
        convert(now)
    connection.execute("".join(each.indexes for each in tables))


def columns_of(connection: apsw.Connection, table: str) -> set[str]:
    """Return the names of a table's columns."""
    return {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}


def _rewrite_times(connection: apsw.Connection, times: Mapping[str, Mapping[str, bool]]) -> None:
    """Convert all times to UTC with microseconds.

    An invalid time becomes the epoch if a time is required, else NULL.

    The original value is kept in the table `unreadable_times`. NULL stays NULL.
    """

    def rewrite(*texts: apsw.SQLiteValue) -> str | None:
        found = read_time(texts[0])
        return None if found is None else format_time(found)

    connection.create_scalar_function("rewrite_time", rewrite, 1)
    for table, columns in times.items():
        for name, is_needed in columns.items():
            is_foreign = f"{name} IS NOT NULL AND {name} NOT LIKE '{_WRITTEN_BY_US}'"
            connection.execute(
                f"INSERT OR REPLACE INTO unreadable_times SELECT ?,?,rowid,{name} FROM {table}"  # noqa: S608
                f" WHERE {is_foreign} AND rewrite_time({name}) IS NULL",
                (table, name),
            )
            connection.execute(
                f"UPDATE {table} SET {name}=COALESCE(rewrite_time({name}), ?) WHERE {is_foreign}",  # noqa: S608
                (format_time(EPOCH) if is_needed else None,),
            )
    connection.create_scalar_function("rewrite_time", None)
    found = connection.execute("SELECT COUNT(*), MIN(stood_there) FROM unreadable_times").fetchall()
    if found[0][0]:
        log.warning("timestamps of older file unreadable", count=found[0][0], first=str(found[0][1]))
