"""Rows of a database: tables that know the class of their values, and what all classes of rows share.

A `Table` has an attrs class, its columns, their key, and how values are stored; from it follow the list of
columns, the tuple of values, the upsert and the row reader. Queries are written by hand.
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
    """How the values of a column are written (None: as they are) and read."""

    write: Callable[[Any], Any] | None
    read: Callable[[Any], Any]


def dump(value: object) -> str:
    """JSON, in the characters that texts have."""
    return json.dumps(value, ensure_ascii=False)


def listed(values: Iterable[object]) -> str:
    """A list as `json_each` takes it."""
    return json.dumps(list(values))


def or_else(default: object) -> ColumnCodec:
    """A value that older files may lack: NULL, and what is empty, reads as the default."""
    return ColumnCodec(None, lambda value: value or default)


def matching(wanted: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """What SQL asks for and the values it is given: the conditions whose value is not None, or any row."""
    given = {condition: value for condition, value in wanted.items() if value is not None}
    return " AND ".join(given) or "1", list(given.values())


#: A time that there must be, and one that may be missing.
TIME: Final = ColumnCodec(format_time, stored_time)
MOMENT: Final = ColumnCodec(format_optional, read_time)
TEXTS: Final = ColumnCodec(lambda texts: dump(list(texts)), load_texts)
OBJECT: Final = ColumnCodec(lambda mapping: dump(dict(mapping)), load_object)
FLAG: Final = ColumnCodec(int, bool)
COUNT: Final = or_else(0)


class Table(Generic[T]):
    """The table of a class's values: a column for each attribute."""

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
        """`key` names the columns of a conflict; `kept` are others that an upsert leaves as they are.

        `names` has the columns that are called otherwise than their attributes, in SQL; `order` is another
        order of the attributes than that of the class, `how` what of them is not stored as it is.
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
        """The values of the columns."""
        row = [*self._values(value)]
        for place, write in self._writing:
            row[place] = write(row[place])
        return row

    def read(self, row: Iterable[Any]) -> T:
        """What the columns say."""
        values = dict(zip(self._attributes, row, strict=True))
        for attribute, read in self._reading:
            values[attribute] = read(values[attribute])
        return self._of(**values)


class Rows:
    """Rows as one connection sees them; writing needs an open transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def _all(self, sql: str, *given: apsw.SQLiteValue) -> list[Any]:
        """All rows of a query."""
        return self.connection.execute(sql, given).fetchall()

    def _first(self, sql: str, *given: apsw.SQLiteValue) -> Any:
        """The first row; None where there is none."""
        return self.connection.execute(sql, given).fetchone()

    def _find(self, table: Table[T], where: str, *given: apsw.SQLiteValue) -> list[T]:
        """What a table has; `where` is the rest of the query."""
        return list(map(table.read, self.connection.execute(f"{table.select} {where}", given)))

    def _texts(self, sql: str, *given: apsw.SQLiteValue) -> list[str]:
        """The first column."""
        return [str(row[0]) for row in self.connection.execute(sql, given)]

    def _run(self, sql: str, *given: apsw.SQLiteValue) -> int:
        """Change something; how many rows."""
        self.connection.execute(sql, given)
        return self.connection.changes()

    def _drop_from(self, table: str, column: str, values: Iterable[object]) -> int:
        """Delete the rows that have one of these values; how many there were."""
        sql = f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))"  # noqa: S608 - our names
        return self._run(sql, listed(values))

    def _run_all(self, sql: str, rows: Iterable[Sequence[apsw.SQLiteValue]]) -> None:
        """Change something for each of some rows of values."""
        self.connection.executemany(sql, rows)
