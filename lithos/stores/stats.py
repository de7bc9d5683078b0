"""`.lithos/stats.db`: what retrieval learns (memory spec, section 5).

Only a server, or the first write, creates the file; until then it reads as empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import apsw
from attrs import frozen

from lithos.stores.sqlite import (
    CorruptDatabase,
    Durability,
    open_database,
    open_reader,
    quarantine,
    savepoint,
    transaction,
)
from lithos.stores.stats_nodes import NodeRows
from lithos.stores.stats_queue import LedgerRows, QueueRows
from lithos.stores.stats_receipts import ReceiptRows
from lithos.stores.stats_schema import INDEXES, TABLES, add_missing_columns
from lithos.telemetry import get_logger

log = get_logger("lithos.stats")


@frozen
class StatsTables:
    """The tables as one connection sees them."""

    nodes: NodeRows
    receipts: ReceiptRows
    queue: QueueRows
    ledgers: LedgerRows


class StatsStore:
    """Writes go through one caller inside `transaction()`; `reading` uses a second connection."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connections: tuple[apsw.Connection, apsw.Connection] | None = None
        empty = apsw.Connection(":memory:")
        empty.execute(TABLES)
        #: The last committed state, for one reader at a time.
        self.reading = _tables(empty)
        #: The state inside the open transaction.
        self.writing = self.reading

    @classmethod
    def open(cls, path: Path, now: datetime) -> StatsStore:
        """Open the database if there is one; a damaged one is set aside and a new one made."""
        store = cls(path)
        if path.exists():
            try:
                store._connect()
            except CorruptDatabase as damage:
                moved = quarantine(path, now)
                log.warning("damaged statistics set aside", path=str(moved), reason=str(damage))
                store._connect()
        return store

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One durable write transaction, in a new database if there is none."""
        if self._connections is None:
            self._connect()
        with transaction(self._writer):
            yield

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part of the open transaction, undone by itself on an exception."""
        with savepoint(self._writer):
            yield

    @property
    def is_there(self) -> bool:
        """Whether there is a database."""
        return self._connections is not None

    @property
    def is_in_transaction(self) -> bool:
        """False also when SQLite gave the open one up, as on a full disk."""
        return self._connections is not None and self._writer.in_transaction

    def close(self) -> None:
        """Close both connections; the last one writes the WAL back."""
        if self._connections is not None:
            writer, reader = self._connections
            reader.close()
            writer.close()
            self._connections = None

    @property
    def _writer(self) -> apsw.Connection:
        assert self._connections is not None
        return self._connections[0]

    def _connect(self) -> None:
        writer = open_database(self._path, TABLES, Durability.FULL)
        try:
            with transaction(writer):
                add_missing_columns(writer)
                writer.execute(INDEXES)
            reader = open_reader(self._path)
        except BaseException:
            writer.close(True)
            raise
        self._connections = (writer, reader)
        self.writing, self.reading = _tables(writer), _tables(reader)


def _tables(connection: apsw.Connection) -> StatsTables:
    return StatsTables(
        NodeRows(connection), ReceiptRows(connection), QueueRows(connection), LedgerRows(connection)
    )
