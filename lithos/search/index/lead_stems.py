"""The stems and long words of all notes, for lead coverage (`leads.db`, next to the full-text index).

Tantivy stores positions, but its Python binding does not return them. Rows are read only for the best notes
of a search and cached up to a limit. Commits are not synced, because the file can be rebuilt. Each row has
the stamp of its note. The indexer compares this stamp with the current stamp.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from lithos.kernel.databases.database import READ_WHOLE, Connections, Database, DatabaseLayout
from lithos.kernel.databases.sqlite import Durability
from lithos.kernel.log import get_logger
from lithos.search.ranking.lead_coverage import LeadText

LEADS: Final = "leads.db"
#: Format of the rows. Raise the number when tokens or packing change. Rows of another format are deleted and
#: rebuilt from the notes.
FORMAT: Final = 3
#: Maximum number of bytes of stems in memory: about 8,000 notes of 2 KB. `_OVERHEAD` is the additional number
#: of bytes per note.
KEPT_BYTES: Final = 16 * 1024 * 1024
_OVERHEAD: Final = 400
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS leads(
    serial INTEGER PRIMARY KEY, stamp INTEGER NOT NULL, stems BLOB NOT NULL, long TEXT NOT NULL,
    language TEXT NOT NULL);
"""


def _drop_other_format(connection: apsw.Connection, _: datetime) -> None:
    ((found,),) = connection.execute("PRAGMA user_version").fetchall()
    if found != FORMAT:
        connection.execute("DROP TABLE leads")
        connection.execute(_SCHEMA)
        connection.execute(f"PRAGMA user_version={FORMAT}")


class LeadRow(NamedTuple):
    """The stems of a note, its long words, and the language in which they are stemmed."""

    serial: int
    stamp: int
    text: LeadText
    long_words: Sequence[str]
    language: str


class Leads(Database):
    """Stores the stems of notes by serial.

    The indexer writes, and one other thread at a time may read meanwhile.
    """

    layout = DatabaseLayout(_SCHEMA, _drop_other_format, Durability.OFF, set_aside="damaged stems set aside")
    log = get_logger("lithos.leads")

    def __init__(self, path: Path, connections: Connections | None = None) -> None:
        super().__init__(path, connections)
        #: Cached stems by serial, at most `KEPT_BYTES` in total.
        self._kept: dict[int, LeadText] = {}
        self._kept_bytes = 0
        self._changes = 0
        self._keeping = threading.Lock()

    def _read_whole(self) -> int | None:
        return READ_WHOLE

    @contextmanager
    def changed(self, upserts: Iterable[LeadRow], removals: Collection[int]) -> Iterator[None]:
        """Return a context that stores `upserts` and deletes the serials in `removals`.

        The changes are committed at the end of the block. If the block raises an error, the changes are
        undone.

        Raises `DatabaseFailed`.
        """
        rows = [
            (each.serial, each.stamp, each.text.pack(), "\n".join(each.long_words), each.language)
            for each in upserts
        ]
        with self.transaction():
            self._writer.executemany("DELETE FROM leads WHERE serial=?", [(serial,) for serial in removals])
            self._writer.executemany("INSERT OR REPLACE INTO leads VALUES(?,?,?,?,?)", rows)
            yield
        with self._keeping:  # From here on, readers see the new rows.
            self._changes += 1
            for serial in (*removals, *(row[0] for row in rows)):
                text = self._kept.pop(serial, None)
                self._kept_bytes -= text.size + _OVERHEAD if text is not None else 0

    def stamps(self) -> dict[int, int]:
        """Return the stamp of every note by serial.

        Only the writing thread may call this method. Raises `DatabaseFailed`.
        """
        rows: list[Any] = self._writer.execute("SELECT serial, stamp FROM leads").fetchall()
        return dict(rows)

    def long_words(self) -> Iterator[tuple[list[str], str]]:
        """Yield the long words of each note with its language.

        Only the writing thread may call this method. Raises `DatabaseFailed`.
        """
        for words, language in self._writer.execute("SELECT long, language FROM leads WHERE long<>''"):
            yield str(words).split("\n"), str(language)

    def texts(self, serials: Collection[int]) -> Mapping[int, LeadText]:
        """Return the stems of these notes.

        Notes without stems are left out. Raises `DatabaseFailed` and `ValueError`.
        """
        changes = self._changes
        found = {serial: text for serial in serials if (text := self._kept.get(serial)) is not None}
        missing = [serial for serial in serials if serial not in found]
        if missing:
            rows: list[Any] = self._reader.execute(
                "SELECT serial, stems FROM leads WHERE serial IN (SELECT value FROM json_each(?))",
                (json.dumps(missing),),
            ).fetchall()
            read = {serial: LeadText.unpack(packed) for serial, packed in rows}
            found |= read
            self._keep(read, changes)
        return found

    def _keep(self, read: Mapping[int, LeadText], changes: int) -> None:
        """Cache the rows that were read, unless they may be outdated.

        If the cache is full, empty it first.
        """
        with self._keeping:
            if changes != self._changes:
                return
            self._kept_bytes += sum(text.size + _OVERHEAD for text in read.values())
            if self._kept_bytes > KEPT_BYTES:
                self._kept.clear()
                self._kept_bytes = 0
                return
            self._kept.update(read)
