"""Reader for data directories of upstream Lithos 0.2 to 0.6, which are not changed.

Notes are imported unchanged, and tables are imported as rows. Database content that this server does not know
is reported and not imported.

A database with a write-ahead log is read from a private copy (`kernel.databases.sqlite.snapshot`). Older
files are read as if a first start in place had migrated them (docs/spec/coordination.md §1).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import apsw
from attrs import evolve

from lithos.events.model.imported_rows import ACCESSES, CarriedColumn, CarriedTable, Database, TableRow, Value
from lithos.events.rows.store import CoordinationStore
from lithos.imports.files.markdown import read_folder
from lithos.imports.model.importing import TABLES, Degraded, ImportRefused, Item, Malformed, RowBatch
from lithos.kernel.databases.database import read_time
from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed, snapshot
from lithos.kernel.values.times import format_time
from lithos.memory.rows.edges import EdgeStore
from lithos.memory.rows.stats import StatsStore
from lithos.notes.model.ignored import Ignored
from lithos.tasks.model.imported_tables import TASK_EDGES, TASKS
from lithos.tasks.model.task import BLOCKS
from lithos.tasks.rows.task_tables import dependencies_of

NOTES: Final = "knowledge"
_KEYS: Final = ("knowledge_dir", "knowledge_subdir")
#: Maximum number of characters to read from `config.yaml`.
_CONFIG_READ: Final = 64 * 1024


class UpstreamSource:
    """Source of kind `lithos`: notes and databases of an upstream data directory."""

    kind = "lithos"

    def recognises(self, path: Path) -> bool:
        """Return whether `path` has notes in `knowledge/` and a task database, `.lithos` or `.chroma`."""
        if not find_notes(path).is_dir():
            return False
        signs = (path / ".lithos", path / ".chroma", database_path(path, "coordination.db"))
        return any(sign.exists() for sign in signs)

    def read(self, path: Path) -> Iterator[Item]:
        """Yield the notes in path order, the attachments, then the table rows. Raises `ImportRefused`."""
        notes = find_notes(path)
        if not notes.is_dir():
            raise ImportRefused(
                f"{path} has no {NOTES!r} folder, so it is not a data directory of Lithos. Name "
                "the directory that contains that folder, or import a notes folder with --from "
                "markdown."
            )
        yield from read_folder(notes, Ignored())
        yield from read_tables(path)


def find_notes(data: Path) -> Path:
    """Return the notes folder of a data directory: `knowledge`, or the folder that `config.yaml` names."""
    try:
        with (data / "config.yaml").open(encoding="utf-8", errors="replace") as file:
            lines = file.read(_CONFIG_READ).splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.strip().partition(":")
        name = value.split(" #")[0].strip().strip("'\"")
        if key in _KEYS and name and not os.path.isabs(name) and ".." not in Path(name).parts:
            return data / name
    return data / NOTES


_STORES: Final[dict[str, type[CoordinationStore | EdgeStore | StatsStore]]] = {
    "coordination.db": CoordinationStore,
    "edges.db": EdgeStore,
    "stats.db": StatsStore,
}
_COLUMNS: Final = (
    "SELECT tables.name, columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns"
    " WHERE tables.type='table' AND tables.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)


def unknown_columns(database: str, connection: apsw.Connection) -> Iterator[str]:
    """Yield the tables, and the columns as `table.column`, that this server never creates.

    `database` is the file name of the database, such as `edges.db`.
    """
    with closing(apsw.Connection(":memory:")) as ours:
        ours.execute(_STORES[database].layout.tables)
        known = columns_of(ours)
    known.get("tasks", set()).add("completed_at")  # imported as `resolved_at`
    found = columns_of(connection)
    for table in sorted(found):
        if table not in known:
            yield table
        else:
            yield from (f"{table}.{column}" for column in sorted(found[table] - known[table]))


def columns_of(connection: apsw.Connection) -> dict[str, set[str]]:
    """Return the columns of each table. SQLite's own tables are left out."""
    found: dict[str, set[str]] = {}
    for table, column in connection.execute(_COLUMNS):
        found.setdefault(str(table), set()).add(str(column))
    return found


#: Limits of a batch: maximum number of rows, and size in bytes after which no row is added.
BATCH: Final = 250
BATCH_BYTES: Final = 1024 * 1024
#: Maximum number of bytes of the texts in one row. Longer rows are malformed.
ROW_BYTES: Final = 16 * 1024 * 1024
#: Data that is not imported, because this server rebuilds it or stores its own. The report names it.
BUILT_ANEW: Final = (
    ".chroma", "graph.pickle", ".graph", ".tantivy", ".usearch", ".lithos/manifest.db", ".lithos/history.db",
)  # fmt: skip
#: Task edges come before tasks. Otherwise an interrupted import could show a blocked task as ready.
_ORDER: Final = (TASK_EDGES, *(table for table in TABLES.values() if table is not TASK_EDGES))
_WHOLE_RANGE: Final = range(-(2**63), 2**63)


def database_path(data: Path, name: str) -> Path:
    """Return the path of a database in a data directory.

    The database is in `.lithos`, or in older layouts next to the notes folder.
    """
    inside = data / ".lithos" / name
    return inside if inside.exists() else data / name


def read_tables(data: Path) -> Iterator[RowBatch | Degraded | Malformed]:
    """Yield the rows of all imported tables, task edges first. Then yield notices about other content.

    Blocks between items.

    For a damaged database, yield one `Malformed`. Raises `ImportRefused` if another program writes to a
    database at the same time.
    """
    left: list[Degraded] = []
    names: dict[Database, None] = {table.database: None for table in TABLES.values()}
    for name in names:
        path = database_path(data, name)
        try:
            with _reading(path) as connection:
                if connection is not None:
                    columns = columns_of(connection)
                    if name == TASKS.database:
                        yield from _look_at_tasks(connection, columns)
                    for table in _ORDER:
                        if table.database == name:
                            yield from _read_table(connection, table, columns)
                    left += _leftovers(connection, name, columns)
        except (CorruptDatabase, DatabaseFailed, OSError) as damage:
            yield Malformed(name, f"the database cannot be read: {damage}")
    yield from left
    for built in BUILT_ANEW:
        if (data / built).exists():
            yield Degraded(built, "indexes and caches are not imported: they are rebuilt from the notes")


@contextmanager
def _reading(path: Path) -> Iterator[apsw.Connection | None]:
    before = _state(path)
    with snapshot(path, is_live=False) as connection:
        yield connection
    if _state(path) != before:
        raise ImportRefused(
            f"{path} was changed while it was read. Stop the server that uses the file, then import again."
        )


def _state(path: Path) -> list[tuple[int, int] | None]:
    """Return the size and modification time of a database file and of its write-ahead log."""
    found: list[tuple[int, int] | None] = []
    for each in (path, path.with_name(path.name + "-wal")):
        try:
            stat = each.stat()
            found.append((stat.st_size, stat.st_mtime_ns))
        except FileNotFoundError:
            found.append(None)
    return found


def _look_at_tasks(connection: apsw.Connection, columns: dict[str, set[str]]) -> Iterator[RowBatch]:
    """Yield the tasks before all rows that refer to them, to detect task ids that are already used here."""
    for batch in _read_table(connection, TASKS, columns):
        if isinstance(batch, RowBatch):
            yield evolve(batch, is_look=True)


def _read_table(
    connection: apsw.Connection, table: CarriedTable, columns: dict[str, set[str]]
) -> Iterator[RowBatch | Malformed]:
    source = _name_of_log(connection, columns) if table is ACCESSES else ""
    rows: list[TableRow] = []
    size = 0
    for item in _items(connection, table, columns):
        if isinstance(item, Malformed):
            yield item
            continue
        rows.append(item)
        size += sum(len(value) for value in item if isinstance(value, str))
        if len(rows) >= BATCH or size >= BATCH_BYTES:
            yield RowBatch(table, tuple(rows), source)
            rows, size = [], 0
    if rows:
        yield RowBatch(table, tuple(rows), source)


def _items(
    connection: apsw.Connection, table: CarriedTable, columns: dict[str, set[str]]
) -> Iterator[TableRow | Malformed]:
    if table.name in columns:
        names = columns[table.name]
        wanted = ", ".join(_expression(column, names) for column in table.columns)
        order = "id" if table is ACCESSES and "id" in names else "1"
        found = connection.execute(f"SELECT {wanted} FROM {table.name} ORDER BY {order}")  # noqa: S608
        for number, values in enumerate(found, 1):
            item = _row(table, values, f"{table.database}, {table.name}, row {number}")
            if item is not None:
                yield item
    if table is TASK_EDGES and "tasks" in columns and "task_type" not in columns["tasks"]:
        yield from _edges_of_metadata(connection, columns["tasks"])


def _expression(column: CarriedColumn, names: set[str]) -> str:
    """Return the SQL expression that reads a column.

    Texts are read as bytes, so that invalid UTF-8 does not cause an error.
    """
    name = column.name
    if name == "resolved_at" and "completed_at" in names:
        theirs = "CASE WHEN status<>'open' THEN completed_at END" if "status" in names else "completed_at"
        value = f"COALESCE(resolved_at, {theirs})" if name in names else theirs
    elif name in names:
        value = f'"{name}"'
    else:
        return "NULL"
    return f"CASE WHEN typeof({value})='text' THEN CAST({value} AS BLOB) ELSE {value} END"


def _row(table: CarriedTable, values: Iterable[Any], position: str) -> TableRow | Malformed | None:
    """Return a row for the import, or None for a row that this server rebuilds itself."""
    row: list[Value] = []
    try:
        for column, value in zip(table.columns, values, strict=True):
            row.append(_value(column, value))
    except ValueError as problem:
        return Malformed(position, f"{column.name}: {problem}")
    if any(value is None or value == "" for value in row[: table.keys]):
        return Malformed(position, f"{table.columns[0].name} is missing")
    if sum(len(value) for value in row if isinstance(value, str)) > ROW_BYTES:
        return Malformed(position, f"the row has more than {ROW_BYTES} characters")
    if table.name == "edges" and row[table.names.index("provenance_type")] == "frontmatter":
        return None  # this server derives these rows from the notes
    return tuple(row)


def _value(column: CarriedColumn, value: Any) -> Value:
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise ValueError("the value is not valid UTF-8") from None
    if value is None:
        return column.default
    if column.kind == "time":
        moment = read_time(value)
        return column.default if moment is None else format_time(moment)
    if column.kind == "text":
        return str(value)
    try:
        number = int(value) if column.kind == "whole" else float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{value!r} is not a number") from None
    if math.isnan(number) or (column.kind == "whole" and number not in _WHOLE_RANGE):
        raise ValueError(f"{value!r} is not a number that can be stored")
    return number


def _edges_of_metadata(connection: apsw.Connection, names: set[str]) -> Iterator[TableRow]:
    """Yield the dependencies in the metadata of open tasks.

    Starting this server on the old data directory also converts them to `blocks` edges.
    """
    if "metadata" not in names:
        return
    known = {row[0] for row in _task_rows(connection, names)}
    seen: set[TableRow] = set()
    for task_id, status, created_at, metadata in _task_rows(connection, names):
        if status != "open":
            continue
        for key, before in dependencies_of(metadata):
            row = (before, task_id, BLOCKS)
            if before in known and before != task_id and row not in seen:
                seen.add(row)
                yield (*row, json.dumps({"migrated_from": f"metadata.{key}"}), "migration", created_at)


def _task_rows(connection: apsw.Connection, names: set[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the id, status, creation time and metadata of the imported tasks."""
    picked = [TASKS.columns[TASKS.names.index(name)] for name in ("id", "status", "created_at", "metadata")]
    wanted = ", ".join(_expression(column, names) for column in picked)
    for values in connection.execute(f"SELECT {wanted} FROM tasks ORDER BY 1"):  # noqa: S608 - our names
        try:
            row = [str(_value(column, value)) for column, value in zip(picked, values, strict=True)]
        except ValueError:
            continue  # the import of the task table reports this row
        yield row[0], row[1], row[2], row[3]


def _name_of_log(connection: apsw.Connection, columns: dict[str, set[str]]) -> str:
    """Return an id of this access log: a hash of its first row. Appended rows do not change it."""
    if ACCESSES.name not in columns:
        return ""
    first = connection.execute(f"SELECT * FROM {ACCESSES.name} ORDER BY 1 LIMIT 1").fetchall()  # noqa: S608
    return hashlib.blake2b(repr(first).encode(), digest_size=12).hexdigest()


def _leftovers(connection: apsw.Connection, database: str, columns: dict[str, set[str]]) -> list[Degraded]:
    """Return notices about tables with rows that are not imported, and about unknown columns."""
    left = []
    unknown = set(unknown_columns(database, connection))
    for table in sorted(columns.keys() - TABLES.keys()):
        quoted = table.replace('"', '""')
        ((count,),) = connection.execute(f'SELECT COUNT(*) FROM "{quoted}"').fetchall()  # noqa: S608
        if count:
            why = (
                "this server does not know the table"
                if table in unknown
                else "this server creates its own rows"
            )
            left.append(Degraded(f"{database}, {table}", f"{count} rows are not imported: {why}"))
    for name in sorted(unknown - columns.keys()):
        left.append(
            Degraded(f"{database}, {name}", "this column is not imported: this server does not know it")
        )
    return left
