"""Import of single rows into a table, in an open transaction (docs/spec/integration.md §1).

The table `imported_rows` stores the hash of each row at the time of its import. The hash determines what a
later import may do. A row that is unchanged here is updated from the source. A row that was changed or
deleted here stays so. If a different row with the same key already existed here, that row stays as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import apsw

from lithos.events.model.agents import READ, Agent
from lithos.events.model.imported_rows import (
    ACCESSES,
    EPOCH_TEXT,
    Carried,
    CarriedTable,
    KeptRow,
    TableRow,
    Value,
)
from lithos.events.model.imported_rows import AGENTS as CARRIED_AGENTS
from lithos.kernel.databases.sqlite import load_object
from lithos.kernel.databases.table import MOMENT, TIME, ColumnCodec, Table

# kept rows: imported_rows: one for each row that an import carried over
LEDGER_TABLE: Final = """
CREATE TABLE IF NOT EXISTS imported_rows(
    of_table TEXT NOT NULL, of_key TEXT NOT NULL, hash TEXT NOT NULL,
    PRIMARY KEY(of_table, of_key)) WITHOUT ROWID;
"""
AGENTS: Final = Table(
    "agents", Agent, "id", order=CARRIED_AGENTS.names, first_seen_at=TIME, last_seen_at=TIME,
    archived_at=MOMENT,
    metadata=ColumnCodec(lambda metadata: json.dumps(dict(metadata)), load_object),
)  # fmt: skip
_DIGEST: Final = 12
_GONE: Final = "it was deleted here after an earlier import"
_CHANGED: Final = "it was changed here after an earlier import"
_TAKEN: Final = "another row here has the same key and was kept"


class RowMerger:  # bounded: ends with its call
    """Importer of rows into one table. It uses the writing connection.

    With `dry_run`, the import only reports its results.
    """

    def __init__(self, connection: apsw.Connection, table: CarriedTable, *, dry_run: bool) -> None:
        names = table.names
        self._connection = connection
        self._table = table
        self._dry_run = dry_run
        quoted = [f'"{name}"' for name in names]
        where = " AND ".join(f"{name}=?" for name in quoted[: table.keys])
        self._select = f"SELECT {','.join(quoted)} FROM {table.name} WHERE {where}"  # noqa: S608
        marks = ",".join("?" * len(names))
        self._insert = f"INSERT INTO {table.name}({','.join(quoted)}) VALUES({marks})"
        rest = ", ".join(f"{name}=?" for name in quoted[table.keys :])
        self._update = f"UPDATE {table.name} SET {rest} WHERE {where}" if rest else ""  # noqa: S608
        taken = " AND ".join(f"{name}=?" for name in table.unique)
        self._taken = f"SELECT 1 FROM {table.name} WHERE {taken}" if taken else ""  # noqa: S608
        self._uniques = [names.index(name) for name in table.unique]
        #: Inserted rows, and updated rows.
        self.created: list[TableRow] = []
        self.updated: list[TableRow] = []

    def merge(self, rows: Iterable[TableRow]) -> Carried:
        """Merge rows and return the results."""
        same, kept = 0, list[KeptRow]()
        for row in rows:
            reason = self._merge(row)
            if reason is None:
                same += 1
            elif reason:
                kept.append(KeptRow(key_text(self._table.key(row)), reason, reason is _TAKEN))
        return Carried(len(self.created), len(self.updated), same, tuple(kept))

    def _merge(self, row: TableRow) -> str | None:
        """Merge one row.

        Return the reason if the row was not imported, "" if it was written, or None if it already existed
        here.
        """
        key, digest = self._table.key(row), digest_of(row)
        noted = self._noted(key)
        found: list[Any] = self._connection.execute(self._select, key).fetchall()
        if not found:
            return self._create(row, key, digest, noted)
        here = digest_of(found[0])
        if here == digest:
            if noted is None:
                self._note(key, digest)
            return None
        if noted is None:
            return _TAKEN
        if noted != here:
            return _CHANGED
        if not self._dry_run:
            self._connection.execute(self._update, (*row[self._table.keys :], *key))
        self._note(key, digest)
        self.updated.append(row)
        return ""

    def _create(self, row: TableRow, key: TableRow, digest: str, noted: str | None) -> str:
        if noted is not None:
            return _GONE
        unique = tuple(row[place] for place in self._uniques)
        if self._taken and self._connection.execute(self._taken, unique).fetchall():
            return _TAKEN
        if not self._dry_run:
            self._connection.execute(self._insert, row)
        self._note(key, digest)
        self.created.append(row)
        return ""

    def _noted(self, key: TableRow) -> str | None:
        rows: list[Any] = self._connection.execute(
            "SELECT hash FROM imported_rows WHERE of_table=? AND of_key=?", (self._table.name, key_text(key))
        ).fetchall()
        return str(rows[0][0]) if rows else None

    def _note(self, key: TableRow, digest: str) -> None:
        if not self._dry_run:
            note_imported(self._connection, self._table.name, key_text(key), digest)


def note_imported(connection: apsw.Connection, table: str, key: str, value: str) -> None:
    """Record that a row was imported, by its key."""
    connection.execute("INSERT OR REPLACE INTO imported_rows VALUES(?,?,?)", (table, key, value))


def key_text(key: TableRow) -> str:
    """Return a readable form of a key. A key of one text is that text, and other keys are a JSON list."""
    return key[0] if len(key) == 1 and isinstance(key[0], str) else json.dumps(key, ensure_ascii=False)


def digest_of(row: Iterable[Value]) -> str:
    """Return a hash of the values in a row, including their types."""
    text = json.dumps(list(row), default=repr)
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST).hexdigest()


def merge_agents(connection: apsw.Connection, rows: Iterable[TableRow], *, dry_run: bool) -> Carried:
    """Merge agents by id. Missing values are filled in. The earliest and latest times are kept."""
    created, updated, same, agents = 0, 0, 0, list[Agent]()
    for row in rows:
        found: list[Any] = connection.execute(f"{AGENTS.select} WHERE id=?", (row[0],)).fetchall()
        merged = united(found[0] if found else (row[0], *[None] * 6), row)
        if found and merged == tuple(found[0]):
            same += 1
            continue
        created, updated = created + (not found), updated + bool(found)
        if not dry_run:
            connection.execute(AGENTS.upsert, merged)
            agents.append(AGENTS.read(merged))
    return Carried(created, updated, same, agents=tuple(agents))


def united(here: TableRow, theirs: TableRow) -> TableRow:
    """Return two rows of an agent merged into one.

    Values from here win. The earliest and latest times are kept. Only a new agent is archived by an import.
    """
    times = [str(moment) for moment in (*here[3:5], *theirs[3:5]) if moment is not None] or [EPOCH_TEXT]
    lasts = [str(row[4]) for row in (here, theirs) if row[4] is not None] or [max(times)]
    return (
        here[0],
        here[1] if here[1] is not None else theirs[1],
        here[2] if here[2] is not None else theirs[2],
        min(times),
        max(lasts),
        here[5] if here[5] not in (None, "", "{}") else theirs[5],
        theirs[6] if here[3] is None else here[6],
    )


def merge_accesses(
    connection: apsw.Connection, source: str, rows: Iterable[TableRow], *, dry_run: bool
) -> Carried:
    """Append the accesses that come after the last imported access in the log of `source`."""
    noted: list[Any] = connection.execute(
        "SELECT hash FROM imported_rows WHERE of_table=? AND of_key=?", (ACCESSES.name, source)
    ).fetchall()
    through = int(noted[0][0]) if noted else -(2**63)
    given = list(rows)
    new = [row for row in given if isinstance(row[0], int) and row[0] > through]
    reads = Counter(str(row[2]) for row in new if row[3] == READ)
    if new and not dry_run:
        connection.executemany(
            "INSERT INTO access_log(agent_id,doc_id,operation,timestamp) VALUES(?,?,?,?)",
            [row[1:] for row in new],
        )
        note_imported(connection, ACCESSES.name, source, str(max(int(str(row[0])) for row in new)))
    return Carried(created=len(new), same=len(given) - len(new), reads={} if dry_run else dict(reads))
