"""SQLite database files. Each has one connection for writing and one for reading.

`Database` opens a file, sets its pragmas, and creates or migrates its tables. The layout determines whether a
damaged file is refused, or quarantined and replaced by a new file.

A `LearningDatabase` (`edges.db`, `stats.db`) is created by a server or by the first write. It records for
`/health` whether writes succeed. If a query finds damage while a server runs, the file stays in use for now.
A marker file then makes the next opening check the whole file, whatever its size.

Other programs may remove or replace an open file. Later writes would then go to a file without a name, and
would be lost when the process ends. A database therefore compares its open files with the files at their
paths before each transaction. If they differ, it refuses to write (`DatabaseLost`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Final, Self

import apsw
from attrs import frozen

from lithos.kernel.databases.lock import Identity, identity_of
from lithos.kernel.databases.sqlite import (
    CorruptDatabase,
    DatabaseFailed,
    Durability,
    open_database,
    open_reader,
    quarantine,
    savepoint,
    transaction,
)
from lithos.kernel.log import get_logger
from lithos.kernel.values.times import EPOCH, parse_time

#: The connection for writing and the connection for reading. They may be the same connection.
Connections = tuple[apsw.Connection, apsw.Connection]
#: Identities of the database file and its WAL. These files contain a commit.
_Files = tuple[Identity | None, Identity | None]


@frozen
class DatabaseLayout:
    """The tables of a database. `upgrade` changes the tables of an older file in a transaction."""

    tables: str
    upgrade: Callable[[apsw.Connection, datetime], None]
    durability: Durability = Durability.FULL
    #: Whether one thread reads while another thread writes.
    has_reader: bool = True
    #: Log event for replacing a damaged file by a new one. If None, a damaged file cannot be opened.
    set_aside: str | None = None
    #: Whether foreign keys are enforced. The upstream project never enforced them for its tables, so old rows
    #: may violate them.
    has_references: bool = False


class DatabaseLost(OSError):
    """Error because the file was removed, replaced or truncated while it was open.

    The message says what to do.
    """


class Database:
    """An open database. One caller writes in `transaction()`. Reads use the second connection."""

    layout: ClassVar[DatabaseLayout]
    log: ClassVar = get_logger("lithos.database")

    def __init__(self, path: Path, connections: Connections | None = None) -> None:
        self._path = path
        self._connections = connections
        self._files: _Files = (None, None)
        #: Largest known size of the file in bytes. An intact file never shrinks.
        self._size = 0
        #: Description of how another program changed the files, and how to recover. None if it did not.
        self.loss: str | None = None
        self._is_closed = False

    @classmethod
    def open(cls, path: Path, now: datetime) -> Self:
        """Open or create the database.

        Raises `CorruptDatabase` if the file is damaged and its layout does not allow a replacement.
        """
        store = cls(path)
        store._connect_or_replace(now)
        return store

    @property
    def name(self) -> str:
        """Return the file name of the database."""
        return self._path.name

    def transaction(self) -> AbstractContextManager[None]:
        """Begin a write transaction.

        Raises `DatabaseFailed`, and `DatabaseLost` if the file is no longer at its path.
        """
        self.look()
        if self.loss is not None:
            raise DatabaseLost(self.loss)
        return transaction(self._writer)

    def part(self) -> AbstractContextManager[None]:
        """Begin a savepoint in the open transaction.

        An exception rolls back only the changes since the savepoint.
        """
        return savepoint(self._writer)

    def close(self) -> None:
        """Close both connections. Closing the last connection checkpoints the WAL.

        May raise `DatabaseLost` after closing.
        """
        if self._connections is None or self._is_closed:
            return
        self.look()
        self._is_closed = True
        for connection in dict.fromkeys(reversed(self._connections)):  # The writer may also be the reader.
            if self.loss is not None:  # SQLite uses the WAL at the path, even if another program created it.
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.close(True)
        if self.loss is not None:
            raise DatabaseLost(self.loss)

    @property
    def _writer(self) -> apsw.Connection:
        assert self._connections is not None
        return self._connections[0]

    @property
    def _reader(self) -> apsw.Connection:
        assert self._connections is not None
        return self._connections[1]

    def _connect_or_replace(self, now: datetime) -> None:
        try:
            self._connect(now)
        except CorruptDatabase as damage:
            if self.layout.set_aside is None:
                raise
            moved = quarantine(self._path, now)
            self.log.warning(self.layout.set_aside, path=str(moved), reason=str(damage))
            self._connect(now)

    def _connect(self, now: datetime) -> None:
        layout = self.layout
        writer = open_database(self._path, layout.tables, layout.durability, read_whole=self._read_whole())
        try:
            if not layout.has_references:
                writer.execute("PRAGMA foreign_keys=OFF")
            with transaction(writer):
                layout.upgrade(writer, now)
            # `shrink_memory` frees up to 2 MB per file, because queries will not need the pages that the
            # check has read.
            writer.execute("PRAGMA shrink_memory")
            reader = open_reader(self._path) if layout.has_reader else writer
            self._files, self._size = self._find()
        except BaseException:
            writer.close(True)
            raise
        self._connections = (writer, reader)

    def _read_whole(self) -> int | None:
        """Return the maximum size in bytes of a file that opening reads as a whole. None means any size."""
        return None

    # -- its place -----------------------------------------------------------------------------

    def look(self) -> None:
        """Compare the open files with the files at their paths, and set or clear `loss`.

        Any thread may call this.
        """
        if self._connections is None or self._files[0] is None or self._is_closed:
            return  # A database that reads through snapshot connections also returns here.
        files, size = self._find()
        if files == self._files and size >= self._size:
            self._size, self.loss = size, None
            return
        if self.loss is None:
            self.log.error("database lost", path=str(self._path))
        self.loss = (
            f"{self._path} was removed, replaced or cut short by another program while it was "
            "open. Changes that need it are refused, because they would be lost. Stop the "
            "server, restore a backup with `lithos restore`, or start without the data of this "
            "file"
        )

    def _find(self) -> tuple[_Files, int]:
        """Return the identities of the files that are at the paths now, and the database's size in bytes."""
        with suppress(FileNotFoundError, NotADirectoryError):
            found = os.stat(self._path)
            wal = identity_of(self._path.with_name(self._path.name + "-wal"))
            return ((found.st_dev, found.st_ino), wal), found.st_size
        return (None, None), 0


def add_missing_columns(connection: apsw.Connection, tables: Mapping[str, Mapping[str, str]]) -> None:
    """Add the columns that the tables of an older file lack. Existing rows get the default values.

    `tables` maps each table name to columns with their definitions.
    """
    for name, columns in tables.items():
        known = {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
        for column, definition in columns.items():
            if column not in known:
                connection.execute(f'ALTER TABLE {name} ADD COLUMN "{column}" {_for_old_rows(definition)}')


def _for_old_rows(definition: str) -> str:
    """Return the column definition for existing rows.

    SQLite cannot add a NOT NULL column without a default.
    """
    if "NOT NULL" not in definition or "DEFAULT" in definition:
        return definition
    return f"{definition} DEFAULT {0 if definition.startswith('INTEGER') else chr(39) * 2}"


def read_time(text: object) -> datetime | None:
    """Return a stored time, or None if it is invalid. An older version or a person may have written it."""
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None


def stored_time(text: object) -> datetime:
    """Return a required time. If the time is invalid, return the epoch (docs/spec/coordination.md §1)."""
    return read_time(text) or EPOCH


#: Maximum size in bytes of a file that opening reads as a whole. Reading takes about 0.2 s, or a second on a
#: slow disk. Retrieval data may be many times as large.
READ_WHOLE: Final = 64 * 1024 * 1024
SUSPECT: Final = ".suspect"
#: Log event for replacing a damaged file by a new one.
SET_ASIDE: Final = "damaged database set aside"

_DAMAGED: Final = (apsw.CorruptError, apsw.NotADBError)


class LearningDatabase(Database):
    """A database that has no connections until its file exists."""

    #: Whether opening creates a missing file.
    is_made_at_once: ClassVar = False

    def __init__(self, path: Path, now: datetime) -> None:
        super().__init__(path)
        self._opened_at = now
        #: Reason why the last write failed. None if it succeeded.
        self.failure: str | None = None
        #: Damage that was found in the file. It is kept until the file is opened again.
        self.damage: str | None = None

    @classmethod
    def open(cls, path: Path, now: datetime) -> Self:
        """Open an existing database. A missing database is created only if `is_made_at_once` is set.

        A damaged file is moved aside and replaced by a new one.
        """
        store = cls(path, now)
        if cls.is_made_at_once or path.exists():
            store._connect_or_replace(now)
            store._mark.unlink(missing_ok=True)
        return store

    @property
    def is_there(self) -> bool:
        """Return whether the database file exists."""
        return self._connections is not None

    @property
    def is_in_transaction(self) -> bool:
        """Return whether a transaction is open.

        SQLite also ends a transaction when it rolls it back, for example on a full disk.
        """
        return self._connections is not None and self._writer.in_transaction

    # -- writing -------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin a durable write transaction. A missing database is created first."""
        with self.noticing_damage():
            try:
                if self._connections is None:
                    self._connect(self._opened_at)
                with super().transaction():
                    before = self._writer.total_changes()
                    yield
            except (DatabaseFailed, OSError) as failure:
                self._note_failure(failure)
                raise
        if self._writer.total_changes() != before:  # Without changes, nothing was written to disk.
            self._note_success()

    @contextmanager
    def part(self) -> Iterator[None]:
        """Begin a savepoint in the open transaction.

        An exception rolls back only the changes since the savepoint.
        """
        try:
            with self.noticing_damage(), super().part():
                yield
        except DatabaseFailed as failure:
            if not self._writer.in_transaction:  # a caller may wrap the exception before the transaction does
                self._note_failure(failure)
            raise

    def try_writing(self) -> None:
        """Write an unused value to test whether writes succeed. Raises `DatabaseFailed` and `OSError`."""
        with self.transaction():
            self._writer.execute("PRAGMA user_version=0")
        self._note_success()

    def _note_failure(self, failure: Exception) -> None:
        if self.failure is None:
            self.log.error("database refuses to write", path=str(self._path), reason=str(failure))
        self.failure = str(failure)

    def _note_success(self) -> None:
        if self.failure is not None:
            self.log.info("database works again", path=str(self._path))
        self.failure = None

    # -- damage --------------------------------------------------------------------------------

    @contextmanager
    def noticing_damage(self) -> Iterator[None]:
        """Record damage that is found in the block, and check the whole file at the next opening."""
        try:
            yield
        except _DAMAGED as damage:
            if self.damage is None:
                self.log.error("database is damaged", path=str(self._path), reason=str(damage))
            self.damage = str(damage)
            try:
                self._mark.touch()
            except OSError as failure:
                self.log.warning("database not marked", path=str(self._mark), reason=str(failure))
            raise

    @property
    def _mark(self) -> Path:
        return self._path.with_name(self._path.name + SUSPECT)

    def _read_whole(self) -> int | None:
        return None if self._mark.exists() else READ_WHOLE


def trouble_of(store: LearningDatabase) -> str | None:
    """Return the problem of a database and how to fix it, or None."""
    if store.loss:
        return store.loss
    if store.damage:
        return (
            f"{store.name} is damaged ({store.damage}). Restart the server: it reads the whole file, and "
            "may move it aside with its bytes intact. Restore it from a backup, if there is one"
        )
    if store.failure:
        return (
            f"{store.name} cannot be written ({store.failure}). Free space on its disk and check "
            "its permissions. Lithos retries the write every second"
        )
    return None
