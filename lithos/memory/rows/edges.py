"""Database `.lithos/edges.db`: typed edges between notes, and their event outbox (docs/spec/memory.md §5).

An event is written to the outbox in the same transaction as its edge. It stays there until the journal in
`coordination.db` contains it. Only a server or the first write creates the file.

`LearnedEdges` makes the changes that learning causes: weights, pairs and projected edges (docs/spec/memory.md
§3). No events announce these changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import apsw
import attrs

from lithos.events.model.imported_rows import Carried
from lithos.events.rows.imported_rows import LEDGER_TABLE, RowMerger
from lithos.kernel.databases.database import SET_ASIDE, DatabaseLayout, LearningDatabase, add_missing_columns
from lithos.kernel.databases.table import OBJECT, TIME, ColumnCodec, Table, listed, matching
from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.principals import ENRICH_AGENT
from lithos.kernel.values.times import EPOCH, format_time, parse_time
from lithos.memory.model.imported_tables import LEARNED, CarryLearned
from lithos.memory.model.memory import ProjectionOutcome, ProjectProvenance
from lithos.memory.rows.queue import LessonLedger
from lithos.notes.model.edges import (
    CONTRADICTS,
    DERIVED_FROM,
    FRONTMATTER,
    LINEAGE,
    RELATED_TO,
    Edge,
    EdgeFilter,
    UpsertEdge,
)

#: Weight that is added to an existing edge when both notes are cited together.
REINFORCEMENT: Final = 0.03
#: Weight of a new edge between notes that are cited together.
CITED_WEIGHT: Final = 0.5
#: Provenance type of edges that reinforcement creates.
REINFORCED: Final = "reinforcement"
#: Weight that is subtracted from each edge of a misleading note.
BLAME: Final = 0.05
#: Values of a projected edge: weight, actor, evidence and conflict state.
_PROJECTED: Final = (1.0, None, None, None)

#: Id of a note, id of its source, and namespace.
_Key = tuple[str, str, str]

_REINFORCE: Final = (
    "INSERT INTO edges(edge_id,from_id,to_id,type,weight,namespace,created_at,updated_at,provenance_actor,"
    f"provenance_type) VALUES(?1,?2,?3,'{RELATED_TO}',?4,?5,?6,?6,?7,?8)"
    " ON CONFLICT(from_id,to_id,type,namespace) DO UPDATE SET"
    f" weight=MAX(0.0, MIN(1.0, weight+{REINFORCEMENT})), updated_at=excluded.updated_at"
)
_WEAKEN: Final = (
    f"UPDATE edges SET weight=MAX(0.0, MIN(1.0, weight-{BLAME})), updated_at=?1 WHERE edge_id IN ("  # noqa: S608
    "SELECT edge_id FROM edges WHERE from_id IN (SELECT value FROM json_each(?2)) UNION "
    "SELECT edge_id FROM edges WHERE to_id IN (SELECT value FROM json_each(?2)))"
)
_STANDING: Final = (
    "SELECT from_id,to_id,namespace,edge_id,provenance_type,weight,provenance_actor,evidence,conflict_state"  # noqa: S608
    f" FROM edges WHERE type='{DERIVED_FROM}'"
)
_PROJECT: Final = (
    "INSERT INTO edges(edge_id,from_id,to_id,type,weight,namespace,created_at,updated_at,provenance_type)"
    f" VALUES(?,?,?,'{DERIVED_FROM}',1.0,?,?,?,'{FRONTMATTER}')"
)


class LearnedEdges(LessonLedger):
    """Changes of edges by learning. They use the writing connection in an open transaction."""

    def reinforce(
        self,
        pairs: Iterable[_Key],
        new_id: Callable[[], str],
        now: datetime,
    ) -> None:
        """Strengthen the `related_to` edge of each pair.

        If there is no such edge, create it with `CITED_WEIGHT`.
        """
        moment = format_time(now)
        for first, second, namespace in pairs:
            row = (new_id(), first, second, CITED_WEIGHT, namespace, moment, ENRICH_AGENT, REINFORCED)
            self.connection.execute(_REINFORCE, row)

    def weaken_touching(self, node_ids: Iterable[str], now: datetime) -> int:
        """Weaken every edge that starts or ends at these notes once. Return the number of weakened edges."""
        return self._run(_WEAKEN, format_time(now), listed(node_ids))

    # -- projection ----------------------------------------------------------------------------

    def project(
        self, command: ProjectProvenance, new_id: Callable[[], str], now: datetime
    ) -> ProjectionOutcome:
        """Reconcile the projected edges with the frontmatter.

        Edges with another provenance type are not changed.
        """
        standing = self._standing(command)
        wanted = wanted_edges(command.desired)
        missing = sorted(key for key in wanted if key not in standing)
        projected = {key: row for key, row in standing.items() if row[1] == FRONTMATTER}
        stale = [row[0] for key, row in projected.items() if key not in wanted]
        drifted = [row[0] for key, row in projected.items() if key in wanted and row[2:] != _PROJECTED]
        if not command.dry_run:
            self._apply(missing, stale, drifted, new_id, format_time(now))
        return ProjectionOutcome(len(missing), len(stale), len(drifted))

    def _standing(self, command: ProjectProvenance) -> dict[_Key, tuple[Any, ...]]:
        """Return the affected `derived_from` rows by key.

        Each has an id, a provenance type and repairable values.
        """
        if command.complete:
            notes, where = command.kept, " AND from_id NOT IN (SELECT value FROM json_each(?))"
        else:
            notes = frozenset([*command.desired, *command.gone])
            where = " AND from_id IN (SELECT value FROM json_each(?))"
        return {row[:3]: row[3:] for row in self._all(_STANDING + where, listed(notes))}

    def _apply(
        self, missing: list[_Key], stale: list[str], drifted: list[str], new_id: Callable[[], str], now: str
    ) -> None:
        self._drop_from("edges", "edge_id", stale)
        self._run_all(
            "UPDATE edges SET weight=1.0, provenance_actor=NULL, evidence=NULL, conflict_state=NULL,"
            " updated_at=? WHERE edge_id=?",
            [(now, edge_id) for edge_id in drifted],
        )
        rows = [(new_id(), note, source, space, now, now) for note, source, space in missing]
        self._run_all(_PROJECT, rows)


def wanted_edges(desired: Mapping[str, tuple[str, tuple[str, ...]]]) -> set[_Key]:
    """Return the keys that the projected edges of these notes should have."""
    return {(note, source, space) for note, (space, sources) in desired.items() for source in sources}


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
"""
_INDEXES: Final = """
CREATE INDEX IF NOT EXISTS edges_from ON edges(from_id);
CREATE INDEX IF NOT EXISTS edges_to ON edges(to_id);
CREATE INDEX IF NOT EXISTS edges_type ON edges(type);
CREATE INDEX IF NOT EXISTS edges_namespace ON edges(namespace);
"""
#: Key of upserts. It is a table constraint, except in older files that have no namespaces.
_KEY: Final = ("from_id", "namespace", "to_id", "type")
_KEY_INDEX: Final = "CREATE UNIQUE INDEX IF NOT EXISTS edges_key ON edges(from_id,to_id,type,namespace)"
#: Columns that older files may lack, and their definitions.
_LATER_COLUMNS: Final = {
    "weight": "REAL NOT NULL DEFAULT 1.0",
    "namespace": "TEXT NOT NULL DEFAULT 'default'",
    "created_at": "TEXT",
    "updated_at": "TEXT NOT NULL DEFAULT ''",
    "provenance_actor": "TEXT",
    "provenance_type": "TEXT",
    "evidence": "TEXT",
    "conflict_state": "TEXT",
}
_EDGES: Final = Table(
    "edges", Edge, "from_id,to_id,type,namespace", names={"id": "edge_id"}, kept=("edge_id", "created_at"),
    created_at=TIME, updated_at=TIME,
)  # fmt: skip
_OUTBOX: Final = Table(
    "outbox", EventDraft, order=("origin", "type", "agent", "payload", "timestamp"),
    payload=ColumnCodec(OBJECT.write, json.loads), timestamp=ColumnCodec(format_time, parse_time),
)  # fmt: skip
_TOUCHING: Final = (
    f"{_EDGES.select} WHERE rowid IN"  # noqa: S608 - constants
    " (SELECT rowid FROM edges WHERE from_id IN (SELECT value FROM json_each(?1))"
    " UNION SELECT rowid FROM edges WHERE to_id IN (SELECT value FROM json_each(?1)))"
    " ORDER BY created_at, rowid"
)
_TRUSTED: Final = sorted((*LINEAGE, CONTRADICTS))
#: Columns that trust needs, without evidence and times. There may be tens of thousands of edges.
_TRUST_NAMES: Final = (
    "id", "from_id", "to_id", "type", "weight", "namespace", "provenance_type", "conflict_state",
)  # fmt: skip
_TRUST: Final = (
    "SELECT edge_id,from_id,to_id,type,weight,namespace,provenance_type,conflict_state FROM edges"  # noqa: S608
    f" WHERE type IN (SELECT value FROM json_each(?)) AND provenance_type IS NOT '{FRONTMATTER}'"
)


def _upgrade(connection: apsw.Connection, _: datetime) -> None:
    add_missing_columns(connection, {"edges": _LATER_COLUMNS})
    connection.execute(_INDEXES)
    indexes = connection.execute("PRAGMA index_list('edges')").fetchall()
    keys = (connection.execute(f"PRAGMA index_info({json.dumps(row[1])})") for row in indexes if row[2])
    if _KEY not in (tuple(sorted(str(column[2]) for column in columns)) for columns in keys):
        connection.execute(_KEY_INDEX)


class EdgeStore(LearningDatabase):
    """The store of typed edges. Lists use the second connection."""

    layout = DatabaseLayout(_TABLES + LEDGER_TABLE, _upgrade, set_aside=SET_ASIDE)

    @property
    def learned(self) -> LearnedEdges:
        """Return the changes by learning and projection, for use in a transaction."""
        return LearnedEdges(self._writer)

    # -- writes inside a transaction ------------------------------------------------------------

    def upsert(self, wanted: UpsertEdge, new_id: str, now: datetime) -> Edge:
        """Insert the edge.

        If an edge with this key exists, overwrite it, but keep its id and `created_at`.
        """
        given = attrs.asdict(wanted, filter=lambda each, _: each.name != "agent")
        edge = Edge(id=new_id, created_at=now, updated_at=now, **given)
        sql = f"{_EDGES.upsert} RETURNING {_EDGES.columns}"
        return _edge(self._writer.execute(sql, _EDGES.row(edge)).fetchall()[0])

    def edge(self, edge_id: str) -> Edge | None:
        """Return an edge as seen in the open transaction."""
        found = self._writer.execute(f"{_EDGES.select} WHERE edge_id=?", (edge_id,)).fetchone()
        return None if found is None else _edge(found)

    def carry(self, command: CarryLearned) -> tuple[Carried, list[Edge]]:
        """Merge imported rows. Return the outcomes and the edges that were written."""
        merger = RowMerger(self._writer, LEARNED[command.table], dry_run=command.dry_run)
        carried = merger.merge(command.rows)
        written = [] if command.dry_run else [*merger.created, *merger.updated]
        return carried, [edge for row in written if (edge := self.edge(str(row[0]))) is not None]

    def settle_conflict(self, edge: Edge, state: str, actor: str, now: datetime) -> Edge:
        """Set the `conflict_state` and `provenance_actor` of an edge."""
        self._writer.execute(
            "UPDATE edges SET conflict_state=?, provenance_actor=?, updated_at=? WHERE edge_id=?",
            (state, actor, format_time(now), edge.id),
        )
        return attrs.evolve(edge, conflict_state=state, provenance_actor=actor, updated_at=now)

    def add_to_outbox(self, drafts: Iterable[EventDraft]) -> None:
        """Add events to the outbox. They stay there until `clear_outbox` is called."""
        self._writer.executemany(_OUTBOX.insert, map(_OUTBOX.row, drafts))

    def clear_outbox(self, origins: Iterable[str]) -> None:
        """Delete journalled events from the outbox."""
        self._writer.executemany("DELETE FROM outbox WHERE origin=?", [(origin,) for origin in origins])

    # -- reading -------------------------------------------------------------------------------

    def outbox(self) -> list[EventDraft]:
        """Return the events that may not be journalled yet, in order.

        Only the writing thread may call this.
        """
        if self._connections is None:
            return []
        return list(map(_OUTBOX.read, self._writer.execute(f"{_OUTBOX.select} ORDER BY id")))

    def trust_edges(self) -> list[Edge]:
        """Return the edges that affect trust, without projected edges. Only the writing thread may call this.

        The returned edges lack evidence, times and actors.
        """
        if self._connections is None:
            return []
        with self.noticing_damage():
            rows: Any = self._writer.execute(_TRUST, (json.dumps(_TRUSTED),))
            return [
                Edge(created_at=EPOCH, updated_at=EPOCH, **dict(zip(_TRUST_NAMES, row, strict=True)))
                for row in rows
            ]

    def edges(self, wanted: EdgeFilter) -> list[Edge]:
        """Return the edges that pass the filter, oldest first. Uses the read connection."""
        where, given = matching({f"{name}=?": value for name, value in attrs.asdict(wanted).items()})
        return self._read(f"{_EDGES.select} WHERE {where} ORDER BY created_at, rowid", *given)

    def edges_touching(self, note_ids: Iterable[str]) -> list[Edge]:
        """Return the edges that start or end at these notes, oldest first and without duplicates.

        Uses the read connection.
        """
        return self._read(_TOUCHING, listed(note_ids))

    def _read(self, sql: str, *given: str) -> list[Edge]:
        if self._connections is None:
            return []
        with self.noticing_damage():
            return [_edge(row) for row in self._reader.execute(sql, given)]


def _edge(row: tuple[Any, ...]) -> Edge:
    """Return an edge. If `updated_at` is missing, the creation time is used."""
    return _EDGES.read(row if row[7] else (*row[:7], row[6], *row[8:]))
