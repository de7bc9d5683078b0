"""The stems of the notes beside the full-text index (`leads.db`): what lead coverage is computed from.

Tantivy keeps positions, but its Python binding does not give them. Rows are read for the best notes of a
search only, so memory is bounded by SQLite's page cache. Rebuildable: commits are not synced, and each row
has the stamp of its note, which the indexer compares with what the note has now.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import apsw

from lithos.core.learning.lead import LeadText
from lithos.stores.database import READ_WHOLE, Database, Layout
from lithos.stores.sqlite import Durability
from lithos.telemetry import get_logger

LEADS: Final = "leads.db"
#: Raise it when tokens or packing change: rows of another format are dropped, and made anew from the notes.
FORMAT: Final = 1
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS leads(
    serial INTEGER PRIMARY KEY, stamp INTEGER NOT NULL, stems BLOB NOT NULL);
"""


def _drop_other_format(connection: apsw.Connection, _: datetime) -> None:
    ((found,),) = connection.execute("PRAGMA user_version").fetchall()
    if found != FORMAT:
        connection.execute("DELETE FROM leads")
        connection.execute(f"PRAGMA user_version={FORMAT}")


class Leads(Database):
    """Stems by serial. The indexer writes; another thread may read meanwhile, one at a time."""

    layout = Layout(_SCHEMA, _drop_other_format, Durability.OFF, set_aside="damaged stems set aside")
    log = get_logger("lithos.leads")

    def _read_whole(self) -> int | None:
        return READ_WHOLE

    @contextmanager
    def changed(
        self, upserts: Iterable[tuple[int, int, LeadText]], removals: Collection[int]
    ) -> Iterator[None]:
        """Upsert (serial, stamp, stems) and delete; committed after the block, undone if it raises.

        Raises `DatabaseFailed`.
        """
        with self.transaction():
            self._writer.executemany("DELETE FROM leads WHERE serial=?", [(serial,) for serial in removals])
            self._writer.executemany(
                "INSERT OR REPLACE INTO leads VALUES(?,?,?)",
                [(serial, stamp, text.pack()) for serial, stamp, text in upserts],
            )
            yield

    def stamps(self) -> dict[int, int]:
        """The stamp of every note by serial, for the thread that writes. Raises `DatabaseFailed`."""
        rows: list[Any] = self._writer.execute("SELECT serial, stamp FROM leads").fetchall()
        return dict(rows)

    def texts(self, serials: Collection[int]) -> Mapping[int, LeadText]:
        """The stems of these notes, without those that have none. Raises `DatabaseFailed`, `ValueError`."""
        rows: list[Any] = self._reader.execute(
            "SELECT serial, stems FROM leads WHERE serial IN (SELECT value FROM json_each(?))",
            (json.dumps(list(serials)),),
        ).fetchall()
        return {serial: LeadText.unpack(packed) for serial, packed in rows}
