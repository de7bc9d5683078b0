"""Database rows: tables derived from attrs classes, and the base class for all classes that query rows.

A `Table` is defined by an attrs class, columns, a key, and the encoding of its values. From these, it derives
the list of columns, the tuple of values, the upsert and the row reader. Queries are written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

import apsw
from attrs import fields

from lithos.kernel.databases.database import read_time, stored_time
from lithos.kernel.databases.sqlite import load_object, load_texts
from lithos.kernel.values.times import format_optional, format_time

T = TypeVar("T")


class ColumnCodec(NamedTuple):
    """Functions that write and read the values of a column. With None, values are unchanged."""

    write: Callable[[Any], Any] | None
    read: Callable[[Any], Any]


def dump(value: object) -> str:
    """Return a value as JSON, without escaping non-ASCII characters."""
    return json.dumps(value, ensure_ascii=False)


def listed(values: Iterable[object]) -> str:
    """Return a list as JSON text for `json_each`."""
    return json.dumps(list(values))


def or_else(default: object) -> ColumnCodec:
    """Return the codec for a value that may be missing in older files.

    NULL and empty values are read as the default.
    """
    return ColumnCodec(None, lambda value: value or default)


def matching(wanted: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return an SQL condition and its values.

    Conditions with the value None are left out. Without conditions, every row matches.
    """
    given = {condition: value for condition, value in wanted.items() if value is not None}
    return " AND ".join(given) or "1", list(given.values())


#: Codecs of a required time and of an optional time.
TIME: Final = ColumnCodec(format_time, stored_time)
MOMENT: Final = ColumnCodec(format_optional, read_time)
TEXTS: Final = ColumnCodec(lambda texts: dump(list(texts)), load_texts)
OBJECT: Final = ColumnCodec(lambda mapping: dump(dict(mapping)), load_object)
FLAG: Final = ColumnCodec(int, bool)
COUNT: Final = or_else(0)


class Table(Generic[T]):
    """A database table for a class, with one column per attribute."""

    def __init__(
        self,
        name: str,
        of: type[T],
        key: str = "",
        *,
        names: Mapping[str, str] | None = None,
        kept: Collection[str] = (),
        order: Iterable[str] = (),
        **how: ColumnCodec,
    ) -> None:
        """Define a table.

        `key` lists the columns that identify a row. If the row exists, an upsert leaves the columns in `kept`
        unchanged.

        `names` maps attributes to SQL columns with another name. `order` replaces the attribute order of the
        class. `how` contains the codecs of attributes.
        """
        self._of = of
        self._attributes = tuple(order) or tuple(each.name for each in fields(of))  # type: ignore[arg-type]
        columns = [(names or {}).get(attribute, attribute) for attribute in self._attributes]
        changed = [column for column in columns if column not in {*key.split(","), *kept}]
        self.columns = ",".join(columns)
        self.select = f"SELECT {self.columns} FROM {name}"  # noqa: S608 - our names
        self.insert = f"INSERT INTO {name}({self.columns}) VALUES({','.join('?' * len(columns))})"
        self.upsert = f"{self.insert} ON CONFLICT({key}) DO UPDATE SET " + ", ".join(
            f"{column}=excluded.{column}" for column in changed
        )
        self._values = attrgetter(*self._attributes)
        writing = ((self._attributes.index(each), how[each].write) for each in how)
        self._writing = tuple((place, write) for place, write in writing if write is not None)
        self._reading = tuple((each, how[each].read) for each in how)

    def row(self, value: T) -> Sequence[Any]:
        """Return the column values of an object."""
        row = [*self._values(value)]
        for place, write in self._writing:
            row[place] = write(row[place])
        return row

    def read(self, row: Iterable[Any]) -> T:
        """Return the object stored in a row."""
        values = dict(zip(self._attributes, row, strict=True))
        for attribute, read in self._reading:
            values[attribute] = read(values[attribute])
        return self._of(**values)


class Rows:
    """Queries on one connection. Writing requires an open transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def _all(self, sql: str, *given: apsw.SQLiteValue) -> list[Any]:
        """Return all rows of a query."""
        return self.connection.execute(sql, given).fetchall()

    def _first(self, sql: str, *given: apsw.SQLiteValue) -> Any:
        """Return the first row, or None."""
        return self.connection.execute(sql, given).fetchone()

    def _find(self, table: Table[T], where: str, *given: apsw.SQLiteValue) -> list[T]:
        """Return the objects that a query on a table finds.

        `where` is the part of the query after the table name.
        """
        return list(map(table.read, self.connection.execute(f"{table.select} {where}", given)))

    def _texts(self, sql: str, *given: apsw.SQLiteValue) -> list[str]:
        """Return the first column of a query as a list of texts."""
        return [str(row[0]) for row in self.connection.execute(sql, given)]

    def _run(self, sql: str, *given: apsw.SQLiteValue) -> int:
        """Run a statement that changes rows. Return the number of changed rows."""
        self.connection.execute(sql, given)
        return self.connection.changes()

    def _drop_from(self, table: str, column: str, values: Iterable[object]) -> int:
        """Delete the rows in which a column has one of these values. Return the number of deleted rows."""
        sql = f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))"  # noqa: S608 - our names
        return self._run(sql, listed(values))

    def _run_all(self, sql: str, rows: Iterable[Sequence[apsw.SQLiteValue]]) -> None:
        """Run a statement once for each tuple of values."""
        self.connection.executemany(sql, rows)
