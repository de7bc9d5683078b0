"""SQLite through apsw, which bundles a current release: connections, transactions, read-only snapshots, JSON.

SQLite before 3.51.3 can corrupt a WAL database that two connections checkpoint at once, and the SQLite of
Python may be that old; apsw >= 3.51.3 is not. `snapshot` reads a database without leaving a trace, even while
another process writes it. `load_*` read JSON columns that older versions, or people, may have filled.
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

BUSY_TIMEOUT_MS = 5_000

#: Raised by any statement: full, read-only or broken storage.
DatabaseFailed = apsw.Error


class Durability(Enum):
    """The durability of a commit: `FULL` survives a power failure, `OFF` only the end of the process."""

    FULL = "FULL"
    OFF = "OFF"


class CorruptDatabase(Exception):
    """The file is not an intact SQLite database; its bytes are untouched."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason})")
        self.path = path


def reserve_private(path: Path) -> None:
    """Create an empty file that only its owner may read, if it is missing: a new database for SQLite.

    The files that SQLite creates next to a database get its mode. An existing file keeps its mode.
    """
    with suppress(OSError):  # SQLite tries the same, and reports the error itself
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def open_database(
    path: Path, schema: str, durability: Durability, *, read_whole: int | None = None
) -> apsw.Connection:
    """Open or create a WAL database and apply `schema` (idempotent statements).

    A file of more than `read_whole` bytes (None: of any size) is not read as a whole: then only its header,
    its length and the beginning of each table are checked. The connection may be used from any
    thread, by one at a time. Raises `CorruptDatabase`.
    """
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    reserve_private(path)
    _require_beginning(path)
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        # A damaged file keeps its bytes: until it is known to be sound, closing must not write the
        # WAL back, and nothing else may write either.
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
        # A commit for each statement: where a disk refuses some writes, each start gets further.
        connection.execute(schema)
    except (apsw.NotADBError, apsw.CorruptError) as damage:
        connection.close(True)
        raise CorruptDatabase(path, str(damage)) from damage
    except BaseException:
        connection.close(True)
        raise
    return connection


def _require_beginning(path: Path) -> None:
    """SQLite drops the WAL of an empty file: a person who removed the file would have removed that too."""
    wal = path.with_name(path.name + "-wal")
    with suppress(FileNotFoundError):
        if path.stat().st_size == 0 < wal.stat().st_size:
            raise CorruptDatabase(path, "another program removed or emptied it, and left its -wal")


def _read_all(connection: apsw.Connection) -> str | None:
    """Return the damage inside the file; it takes about a second for each 400 MB."""
    found = str(connection.execute("PRAGMA quick_check(1)").fetchall()[0][0])
    return None if found == "ok" else found


def _look_over(connection: apsw.Connection, path: Path) -> str | None:
    """Return the damage that a few pages show; raises the errors of SQLite for them."""
    wal = path.with_name(path.name + "-wal")
    ((pages,),), ((size,),) = (connection.execute(f"PRAGMA {name}") for name in ("page_count", "page_size"))
    # The last added pages may still be only in a WAL.
    if not (wal.exists() and wal.stat().st_size) and path.stat().st_size < int(pages) * int(size):
        return f"the file ends before its last page ({pages} of {size} bytes)"
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'").fetchall():
        connection.execute(f'SELECT * FROM "{table}" LIMIT 1').fetchall()  # noqa: S608 - names of our tables
    return None


def open_reader(path: Path) -> apsw.Connection:
    """A second, read-only connection to a database that is open already."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """One write transaction: committed on leaving, rolled back on an exception."""
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
    """Begin a part of a transaction, which is rolled back on its own on an exception.

    A full disk makes SQLite roll the whole transaction back at once, and then there is no savepoint.
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
    """Move a damaged file aside as `<name>.corrupt-<YYYYmmddTHHMMSSZ>[-n]` and return the new path.

    A database's `-wal` is moved with it, since it may hold the newest rows; `-shm` is only an index.
    """
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    target, number = path.with_name(f"{path.name}.corrupt-{stamp}"), 0
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.corrupt-{stamp}-{number}")
    wal = path.with_name(path.name + "-wal")
    if wal.exists():  # first: left behind by a kill, it would be replayed into the new database
        wal.rename(target.with_name(target.name + "-wal"))
    path.rename(target)
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
    return target


def copy_content(source: apsw.Connection, target: Path) -> None:
    """Create a durable database file without a WAL from the content that a connection sees."""
    target.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    reserve_private(target)
    writing = apsw.Connection(str(target))
    try:
        writing.execute("PRAGMA journal_mode=MEMORY").fetchall()  # a kill leaves one file alone
        with writing.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(-1)
        writing.execute("PRAGMA journal_mode=DELETE").fetchall()
    finally:
        writing.close()
    with target.open("rb") as written:
        os.fsync(written.fileno())


def load_json(text: str | None) -> Any:
    """Return the value; None for NULL and for invalid JSON (including NaN, which Python would write)."""
    try:
        return _DECODER.decode(text if isinstance(text, str) else bytes(text).decode()) if text else None
    except (ValueError, TypeError, RecursionError):
        return None


def load_object(text: str | None) -> dict[str, Any]:
    """Return the object; any other value reads as an empty one (docs/spec/coordination.md §1)."""
    value = load_json(text)
    return value if isinstance(value, dict) else {}


def load_texts(text: str | None) -> tuple[str, ...]:
    """Return the texts of a list; any other value reads as an empty one."""
    return texts_of(load_json(text))


def texts_of(value: object) -> tuple[str, ...]:
    """Return the texts of a list that was parsed already."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


#: Created once: `json.loads` would create one for each text.
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


@contextmanager
def snapshot(path: Path, *, is_live: bool) -> Iterator[apsw.Connection | None]:
    """Open a read-only connection for the block, None if there is no database. Raises `CorruptDatabase`.

    Reading a WAL database usually creates files next to it. With `is_live`, when its writer runs and these
    files exist anyway, it is read in place. Otherwise a sound one is opened as immutable, and one whose
    writer was killed is read from a copy, since reading its last commits would write.
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
