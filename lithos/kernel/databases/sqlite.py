"""SQLite through apsw, which bundles a current release: connections, transactions, read-only snapshots, JSON.

SQLite before 3.51.3 can corrupt a WAL database if two connections checkpoint it at the same time. Python may
include such an old SQLite, but apsw >= 3.51.3 does not. `snapshot` reads a database without leaving any files
behind, even while another process writes to it. The `load_*` functions read JSON columns that older versions
or people may have written.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import quote

import apsw

from lithos.kernel.databases.private_files import PRIVATE_FOLDER
from lithos.kernel.operating_system import CLOSE_ON_EXEC

BUSY_TIMEOUT_MS = 5_000

#: Error that any statement may raise if the storage is full, read-only or broken.
DatabaseFailed = apsw.Error


class Durability(Enum):
    """Durability of a commit.

    `FULL` survives a power failure, and `OFF` survives only the end of the process.
    """

    FULL = "FULL"
    OFF = "OFF"


class CorruptDatabase(Exception):
    """Error for a file that is not an intact SQLite database. The file is unchanged."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason})")
        self.path = path


def reserve_private(path: Path) -> None:
    """Create an empty file for a new database if the file is missing. Only the owner may read it.

    SQLite gives the files next to a database the same mode. The mode of an existing file is not changed.
    """
    with suppress(OSError):  # SQLite repeats the attempt and reports the error.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOSE_ON_EXEC, 0o600))


def open_database(
    path: Path, schema: str, durability: Durability, *, read_whole: int | None = None
) -> apsw.Connection:
    """Open or create a WAL database and apply `schema`, which must consist of idempotent statements.

    If a file is larger than `read_whole` bytes, only its header, its length and the beginning of each table
    are checked. With None, a file of any size is read as a whole. Any thread may use the connection, but only
    one thread at a time. Raises `CorruptDatabase`.
    """
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    reserve_private(path)
    _require_beginning(path)
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        # A damaged file must keep its bytes. Until the file is known to be intact, closing must not
        # checkpoint the WAL, and other code must not write.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        is_small = read_whole is None or path.stat().st_size <= read_whole
        problem = _read_all(connection) if is_small else _look_over(connection, path)
        if problem is not None:
            raise CorruptDatabase(path, problem)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.execute(f"PRAGMA synchronous={durability.value}")
        connection.execute("PRAGMA fullfsync=ON")  # where a sync may stay in the disk's own memory (macOS)
        connection.execute("PRAGMA foreign_keys=ON")
        # Each statement is committed separately. If a disk refuses some writes, each start gets a little
        # further.
        connection.execute(schema)
    except (apsw.NotADBError, apsw.CorruptError) as damage:
        connection.close(True)
        raise CorruptDatabase(path, str(damage)) from damage
    except BaseException:
        connection.close(True)
        raise
    return connection


def _require_beginning(path: Path) -> None:
    """Raise `CorruptDatabase` if there is a WAL without a database.

    SQLite would delete the WAL of an empty file.
    """
    wal = path.with_name(path.name + "-wal")
    with suppress(FileNotFoundError):
        if path.stat().st_size == 0 < wal.stat().st_size:
            raise CorruptDatabase(path, "another program removed or emptied it, and left its -wal")


def _read_all(connection: apsw.Connection) -> str | None:
    """Return the damage in the file, or None. The check takes about one second per 400 MB."""
    found = str(connection.execute("PRAGMA quick_check(1)").fetchall()[0][0])
    return None if found == "ok" else found


def _look_over(connection: apsw.Connection, path: Path) -> str | None:
    """Return the damage that a few pages show, or None. Raises the SQLite errors of reading these pages."""
    wal = path.with_name(path.name + "-wal")
    ((pages,),), ((size,),) = (connection.execute(f"PRAGMA {name}") for name in ("page_count", "page_size"))
    # The last pages of the database may still be only in the WAL.
    if not (wal.exists() and wal.stat().st_size) and path.stat().st_size < int(pages) * int(size):
        return f"the file ends before its last page ({pages} of {size} bytes)"
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'").fetchall():
        connection.execute(f'SELECT * FROM "{table}" LIMIT 1').fetchall()  # noqa: S608 - names of our tables
    return None


def open_reader(path: Path) -> apsw.Connection:
    """Open a second, read-only connection to a database that is already open."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Begin a write transaction. It is committed at the end of the block, and rolled back on an exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def savepoint(connection: apsw.Connection) -> Iterator[None]:
    """Begin a savepoint in a transaction. An exception rolls back only the changes since the savepoint.

    On a full disk, SQLite immediately rolls back the whole transaction, and the savepoint no longer exists.
    """
    connection.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO part; RELEASE part")
        raise
    connection.execute("RELEASE part")


def quarantine(path: Path, now: datetime) -> Path:
    """Rename a damaged file to `<name>.corrupt-<YYYYmmddTHHMMSSZ>[-n]` and return the new path.

    The `-wal` of a database is moved too, because it may contain the newest rows. `-shm` is only an index.
    """
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    target, number = path.with_name(f"{path.name}.corrupt-{stamp}"), 0
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.corrupt-{stamp}-{number}")
    wal = path.with_name(path.name + "-wal")
    if wal.exists():  # moved first: a WAL left behind by a kill would be replayed into the new database
        wal.rename(target.with_name(target.name + "-wal"))
    path.rename(target)
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
    return target


def copy_content(source: apsw.Connection, target: Path) -> None:
    """Copy the content that a connection sees into a new and durable database file without a WAL."""
    target.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    reserve_private(target)
    writing = apsw.Connection(str(target))
    try:
        writing.execute("PRAGMA journal_mode=MEMORY").fetchall()  # In this mode, a kill leaves only one file.
        with writing.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(-1)
        writing.execute("PRAGMA journal_mode=DELETE").fetchall()
    finally:
        writing.close()
    with target.open("rb") as written:
        os.fsync(written.fileno())


def load_json(text: str | None) -> Any:
    """Return the parsed value.

    Return None for NULL and for invalid JSON (including NaN, which Python can write).
    """
    try:
        return _DECODER.decode(text if isinstance(text, str) else bytes(text).decode()) if text else None
    except (ValueError, TypeError, RecursionError):
        return None


def load_object(text: str | None) -> dict[str, Any]:
    """Return the parsed object.

    For any other value, return an empty object (docs/spec/coordination.md §1).
    """
    value = load_json(text)
    return value if isinstance(value, dict) else {}


def load_texts(text: str | None) -> tuple[str, ...]:
    """Return the texts in a JSON list. For any other value, return an empty tuple."""
    return texts_of(load_json(text))


def texts_of(value: object) -> tuple[str, ...]:
    """Return the texts in a list that is already parsed."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


#: Created only once, because `json.loads` with this option creates a new decoder for each text.
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


@contextmanager
def snapshot(path: Path, *, is_live: bool) -> Iterator[apsw.Connection | None]:
    """Open a read-only connection for the block, or None if there is no database. Raises `CorruptDatabase`.

    Reading a WAL database usually creates files next to it. `is_live` means that a writer runs. These files
    then exist anyway, so the database is read in place. Otherwise an intact database is opened as immutable.
    If the writer of a database was killed, the database is read from a copy, because reading its last commits
    would write to it.
    """
    if not path.exists():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="lithos-") as folder:
        wal, flags = path.with_name(path.name + "-wal"), apsw.SQLITE_OPEN_READONLY
        if is_live and wal.exists():
            uri = _uri(path, "mode=ro")
        elif wal.exists() and wal.stat().st_size:
            copy = Path(folder) / path.name
            for source, target in ((path, copy), (wal, copy.with_name(wal.name))):
                shutil.copyfile(source, target)
            uri, flags = _uri(copy, "mode=rw"), apsw.SQLITE_OPEN_READWRITE
        else:
            uri = _uri(path, "immutable=1")
        connection = apsw.Connection(uri, flags=flags | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            _require_whole(path, connection)
            yield connection
        finally:
            connection.close(True)


def _uri(path: Path, parameters: str) -> str:
    return f"file:{quote(str(path.absolute()))}?{parameters}"


def _require_whole(path: Path, connection: apsw.Connection) -> None:
    try:
        problem = _read_all(connection)
    except (apsw.NotADBError, apsw.CorruptError) as damage:
        raise CorruptDatabase(path, str(damage)) from damage
    if problem is not None:
        raise CorruptDatabase(path, problem)
