"""What learning changes among the edges: weights, pairs, projected and inferred edges (memory spec, 3).

None of it is announced, but for inferred edges.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import apsw

from lithos.core.edges import DERIVED_FROM, RELATED_TO
from lithos.core.events import ENRICH_AGENT
from lithos.core.memory import ProjectionOutcome, ProjectProvenance
from lithos.core.times import format_time

#: What a shared use adds to the weight of an edge that is there.
REINFORCEMENT: Final = 0.03
#: The weight of an edge made for notes cited together.
CITED_WEIGHT: Final = 0.5
#: What a note that misled costs each edge that touches it.
BLAME: Final = 0.05
FRONTMATTER: Final = "frontmatter"
#: What a projected edge looks like: weight, actor, evidence, conflict state.
_PROJECTED: Final = (1.0, None, None, None)

#: A note, its source and the namespace.
_Key = tuple[str, str, str]

_REINFORCE: Final = (
    "INSERT INTO edges(edge_id,from_id,to_id,type,weight,namespace,created_at,updated_at,provenance_actor,"
    f"provenance_type) VALUES(:id,:from_id,:to_id,'{RELATED_TO}',:initial,:namespace,:now,:now,:actor,:kind)"
    " ON CONFLICT(from_id,to_id,type,namespace) DO UPDATE SET"
    f" weight=MAX(0.0, MIN(1.0, weight+{REINFORCEMENT})), updated_at=excluded.updated_at"
)
_WEAKEN: Final = (
    f"UPDATE edges SET weight=MAX(0.0, MIN(1.0, weight-{BLAME})), updated_at=:now WHERE edge_id IN ("  # noqa: S608
    "SELECT edge_id FROM edges WHERE from_id IN (SELECT value FROM json_each(:notes)) UNION "
    "SELECT edge_id FROM edges WHERE to_id IN (SELECT value FROM json_each(:notes)))"
)
_STANDING: Final = (
    "SELECT from_id,to_id,namespace,edge_id,provenance_type,weight,provenance_actor,evidence,conflict_state"  # noqa: S608
    f" FROM edges WHERE type='{DERIVED_FROM}'"
)
_PROJECT: Final = (
    "INSERT INTO edges(edge_id,from_id,to_id,type,weight,namespace,created_at,updated_at,provenance_type)"
    f" VALUES(?,?,?,'{DERIVED_FROM}',1.0,?,?,?,'{FRONTMATTER}')"
)


class LearnedEdges:
    """Works on the writing connection inside an open transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def reinforce(
        self,
        pairs: Iterable[_Key],
        initial: float,
        provenance_type: str,
        new_id: Callable[[], str],
        now: datetime,
    ) -> None:
        """Strengthen the `related_to` edge of each pair, or make it with the `initial` weight."""
        common = {
            "initial": initial, "now": format_time(now), "actor": ENRICH_AGENT, "kind": provenance_type
        }  # fmt: skip
        for first, second, namespace in pairs:
            row = {"id": new_id(), "from_id": first, "to_id": second, "namespace": namespace}
            self._connection.execute(_REINFORCE, common | row)

    def note_consolidated(self, task_id: str, pairs: Iterable[_Key]) -> list[_Key]:
        """Enter pairs in this database's own ledger; those that were not there before.

        The ledger of the specification is in `stats.db`, which is committed after this one. Should the
        process end between the two commits, the repetition finds here which weights it has changed.
        """
        fresh = []
        for first, second, namespace in pairs:
            self._connection.execute(
                "INSERT OR IGNORE INTO consolidation_ops(task_id,from_id,to_id) VALUES(?,?,?)",
                (task_id, first, second),
            )
            if self._connection.changes():
                fresh.append((first, second, namespace))
        return fresh

    def note_lesson(self, lesson_id: str) -> bool:
        """Enter a lesson in this database's own ledger; False when it was there."""
        self._connection.execute("INSERT OR IGNORE INTO applied_lessons VALUES(?)", (lesson_id,))
        return self._connection.changes() > 0

    def forget_lessons(self, ids: Iterable[str]) -> None:
        """Drop entries."""
        self._connection.executemany("DELETE FROM applied_lessons WHERE id=?", [(one,) for one in ids])

    def weaken_touching(self, node_ids: Iterable[str], now: datetime) -> int:
        """Weaken every edge that touches any of these notes, each once; how many there were."""
        self._connection.execute(_WEAKEN, {"now": format_time(now), "notes": json.dumps(list(node_ids))})
        return self._connection.changes()

    def is_inferable(self, from_id: str, to_id: str, type: str, namespace: str) -> bool:
        """Whether inference may write this key: nothing stands there, or an undisputed inferred edge."""
        rows = self._connection.execute(
            "SELECT provenance_type='inferred' AND conflict_state IS NULL FROM edges"
            " WHERE from_id=? AND to_id=? AND type=? AND namespace=?",
            (from_id, to_id, type, namespace),
        ).fetchall()
        return not rows or bool(rows[0][0])

    # -- projection ----------------------------------------------------------------------------

    def project(
        self, command: ProjectProvenance, new_id: Callable[[], str], now: datetime
    ) -> ProjectionOutcome:
        """Make projected edges say what `command` wants; other rows on their keys stand."""
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
        """All `derived_from` rows in question: key to id, provenance type and what may drift."""
        if command.complete:
            notes, where = command.kept, " AND from_id NOT IN (SELECT value FROM json_each(?))"
        else:
            notes = frozenset([*command.desired, *command.gone])
            where = " AND from_id IN (SELECT value FROM json_each(?))"
        rows = self._connection.execute(_STANDING + where, (json.dumps(list(notes)),))
        return {(row[0], row[1], row[2]): row[3:] for row in rows}

    def _apply(
        self, missing: list[_Key], stale: list[str], drifted: list[str], new_id: Callable[[], str], now: str
    ) -> None:
        execute = self._connection.executemany
        execute("DELETE FROM edges WHERE edge_id=?", [(edge_id,) for edge_id in stale])
        execute(
            "UPDATE edges SET weight=1.0, provenance_actor=NULL, evidence=NULL, conflict_state=NULL,"
            " updated_at=? WHERE edge_id=?",
            [(now, edge_id) for edge_id in drifted],
        )
        rows = [(new_id(), note, source, space, now, now) for note, source, space in missing]
        execute(_PROJECT, rows)


def wanted_edges(desired: Mapping[str, tuple[str, tuple[str, ...]]]) -> set[_Key]:
    """The keys of the projected edges of these notes."""
    return {(note, source, space) for note, (space, sources) in desired.items() for source in sources}
