"""`.lithos/stats.db`: what retrieval learns (memory spec, section 5).

Only a server, or the first write, creates the file; until then it reads as empty.
"""

from __future__ import annotations

from pathlib import Path

import apsw
from attrs import frozen

from lithos.stores.database import Database, Layout
from lithos.stores.stats_nodes import NodeRows
from lithos.stores.stats_queue import LedgerRows, QueueRows
from lithos.stores.stats_receipts import ReceiptRows
from lithos.stores.stats_schema import TABLES, upgrade


@frozen
class StatsTables:
    """The tables as one connection sees them."""

    nodes: NodeRows
    receipts: ReceiptRows
    queue: QueueRows
    ledgers: LedgerRows


class StatsStore(Database):
    """The statistics; `reading` uses the second connection."""

    layout = Layout(TABLES, upgrade)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        empty = apsw.Connection(":memory:")
        empty.execute(TABLES)
        #: The last committed state, for one reader at a time.
        self.reading = _tables(empty)
        #: The state inside the open transaction.
        self.writing = self.reading

    def _connect(self) -> None:
        super()._connect()
        assert self._connections is not None
        writer, reader = self._connections
        self.writing, self.reading = _tables(writer), _tables(reader)


def _tables(connection: apsw.Connection) -> StatsTables:
    return StatsTables(
        NodeRows(connection), ReceiptRows(connection), QueueRows(connection), LedgerRows(connection)
    )
