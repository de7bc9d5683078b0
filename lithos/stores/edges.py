"""`.lithos/edges.db`: typed edges between notes, and the outbox of their events (memory spec, section 5).

An event waits in the outbox, which is written in the same transaction as its edge, until the journal
in `coordination.db` has it. Only a server, or the first write, creates the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import apsw
import attrs

from lithos.core.edges import Edge, EdgeFilter, UpsertEdge
from lithos.core.events import EventDraft
from lithos.core.times import format_time, parse_time
from lithos.stores.database import Database, Layout, add_missing_columns, read_time
from lithos.stores.edges_learning import LearnedEdges

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS edges(
    edge_id TEXT PRIMARY KEY, from_id TEXT NOT NULL, to_id TEXT NOT NULL, type TEXT NOT NULL,
    weight REAL NOT NULL DEFAULT 1.0, namespace TEXT NOT NULL, created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL, provenance_actor TEXT, provenance_type TEXT, evidence TEXT,
    conflict_state TEXT, UNIQUE(from_id, to_id, type, namespace));
CREATE TABLE IF NOT EXISTS outbox(
    id INTEGER PRIMARY KEY, origin TEXT NOT NULL UNIQUE, type TEXT NOT NULL, agent TEXT NOT NULL,
    payload TEXT NOT NULL, timestamp TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS applied_lessons(id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS consolidation_ops(
    task_id TEXT NOT NULL, from_id TEXT NOT NULL, to_id TEXT NOT NULL,
    PRIMARY KEY(task_id, from_id, to_id)) WITHOUT ROWID;
"""
_INDEXES: Final = """
CREATE INDEX IF NOT EXISTS edges_from ON edges(from_id);
CREATE INDEX IF NOT EXISTS edges_to ON edges(to_id);
CREATE INDEX IF NOT EXISTS edges_type ON edges(type);
CREATE INDEX IF NOT EXISTS edges_namespace ON edges(namespace);
"""
#: Columns that older files may lack, with their definitions.
_LATER_COLUMNS: Final = {
    "weight": "REAL NOT NULL DEFAULT 1.0",
    "updated_at": "TEXT NOT NULL DEFAULT ''",
    "provenance_actor": "TEXT",
    "provenance_type": "TEXT",
    "evidence": "TEXT",
    "conflict_state": "TEXT",
}
_COLUMNS: Final = (
    "edge_id,from_id,to_id,type,weight,namespace,created_at,updated_at,"
    "provenance_actor,provenance_type,evidence,conflict_state"
)
_UPSERT: Final = (
    f"INSERT INTO edges({_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"
    " ON CONFLICT(from_id,to_id,type,namespace) DO UPDATE SET weight=excluded.weight,"
    " updated_at=excluded.updated_at, provenance_actor=excluded.provenance_actor,"
    " provenance_type=excluded.provenance_type, evidence=excluded.evidence,"
    f" conflict_state=excluded.conflict_state RETURNING {_COLUMNS}"
)
_TOUCHING: Final = (
    f"SELECT {_COLUMNS} FROM edges WHERE rowid IN"  # noqa: S608 - constants
    " (SELECT rowid FROM edges WHERE from_id IN (SELECT value FROM json_each(:ids))"
    " UNION SELECT rowid FROM edges WHERE to_id IN (SELECT value FROM json_each(:ids)))"
    " ORDER BY created_at, rowid"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _upgrade(connection: apsw.Connection) -> None:
    add_missing_columns(connection, {"edges": _LATER_COLUMNS})
    connection.execute(_INDEXES)


class EdgeStore(Database):
    """The edges; lists use the second connection."""

    layout = Layout(_TABLES, _upgrade)

    @property
    def learned(self) -> LearnedEdges:
        """What learning and projection change, inside a transaction."""
        return LearnedEdges(self._writer)

    # -- writing, inside a transaction ---------------------------------------------------------

    def upsert(self, wanted: UpsertEdge, new_id: str, now: datetime) -> Edge:
        """Insert the edge, or overwrite the one on its key, which keeps id and `created_at`."""
        moment = format_time(now)
        row = (
            new_id, wanted.from_id, wanted.to_id, wanted.type, wanted.weight, wanted.namespace,
            moment, moment, wanted.provenance_actor, wanted.provenance_type, wanted.evidence,
            wanted.conflict_state,
        )  # fmt: skip
        return _edge(self._writer.execute(_UPSERT, row).fetchall()[0])

    def edge(self, edge_id: str) -> Edge | None:
        """One edge as the open transaction sees it."""
        rows = self._writer.execute(f"SELECT {_COLUMNS} FROM edges WHERE edge_id=?", (edge_id,))  # noqa: S608
        found = rows.fetchall()
        return _edge(found[0]) if found else None

    def settle_conflict(self, edge: Edge, state: str, actor: str, now: datetime) -> Edge:
        """Set `conflict_state` and `provenance_actor` of an edge."""
        self._writer.execute(
            "UPDATE edges SET conflict_state=?, provenance_actor=?, updated_at=? WHERE edge_id=?",
            (state, actor, format_time(now), edge.id),
        )
        return attrs.evolve(edge, conflict_state=state, provenance_actor=actor, updated_at=now)

    def shift_weights(self, edge_ids: Iterable[str], by: float, now: datetime) -> int:
        """Add to the weight of each edge, within 0..1; how many there were."""
        sql = "UPDATE edges SET weight=MAX(0.0, MIN(1.0, weight+?)), updated_at=? WHERE edge_id=?"
        moment, shifted = format_time(now), 0
        for edge_id in edge_ids:
            self._writer.execute(sql, (by, moment, edge_id))
            shifted += self._writer.changes()
        return shifted

    def add_to_outbox(self, drafts: Iterable[EventDraft]) -> None:
        """Keep events until `clear_outbox`."""
        self._writer.executemany(
            "INSERT INTO outbox(origin,type,agent,payload,timestamp) VALUES(?,?,?,?,?)",
            [
                (
                    draft.origin, draft.type, draft.agent,
                    json.dumps(dict(draft.payload), ensure_ascii=False), format_time(draft.timestamp),
                )
                for draft in drafts
            ],
        )  # fmt: skip

    def clear_outbox(self, origins: Iterable[str]) -> None:
        """Forget events that the journal has."""
        self._writer.executemany("DELETE FROM outbox WHERE origin=?", [(origin,) for origin in origins])

    # -- reading -------------------------------------------------------------------------------

    def outbox(self) -> list[EventDraft]:
        """The events that may not be journalled yet, in order; for the writing caller."""
        if self._connections is None:
            return []
        rows = self._writer.execute("SELECT origin,type,agent,payload,timestamp FROM outbox ORDER BY id")
        return [
            EventDraft(
                type=type, agent=agent, payload=json.loads(payload), timestamp=parse_time(at), origin=origin
            )
            for origin, type, agent, payload, at in rows
        ]

    def edges(self, wanted: EdgeFilter) -> list[Edge]:
        """The edges that pass, oldest first, over the read connection."""
        given = {f"{name}=?": value for name, value in attrs.asdict(wanted).items() if value is not None}
        where = f" WHERE {' AND '.join(given)}" if given else ""
        sql = f"SELECT {_COLUMNS} FROM edges{where} ORDER BY created_at, rowid"  # noqa: S608 - constants
        return self._read(sql, tuple(given.values()))

    def edges_touching(self, note_ids: Iterable[str]) -> list[Edge]:
        """The edges that leave or reach any of these notes, each once, oldest first (read connection)."""
        return self._read(_TOUCHING, {"ids": json.dumps(list(note_ids))})

    def _read(self, sql: str, given: Any) -> list[Edge]:
        if self._connections is None:
            return []
        with self.noticing_damage():
            return [_edge(row) for row in self._connections[1].execute(sql, given)]


def _edge(row: tuple[Any, ...]) -> Edge:
    return Edge(
        id=row[0],
        from_id=row[1],
        to_id=row[2],
        type=row[3],
        weight=row[4],
        namespace=row[5],
        created_at=read_time(row[6]) or _EPOCH,
        updated_at=read_time(row[7] or row[6]) or _EPOCH,
        provenance_actor=row[8],
        provenance_type=row[9],
        evidence=row[10],
        conflict_state=row[11],
    )
