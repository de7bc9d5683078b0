"""Tools of typed edges between notes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from lithos.core.edges import (
    RESOLUTIONS,
    Edge,
    EdgeFilter,
    ResolveConflict,
    UpsertEdge,
    check_resolution,
)
from lithos.core.errors import InvalidInput
from lithos.core.times import format_time
from lithos.services.memory import Edges
from lithos.tools.arguments import argument
from lithos.tools.registry import Answer, Tool
from lithos.tools.task_rows import sliced_rows

#: Who is recorded for an edge that nobody signed.
UNSIGNED = "lithos_edge_upsert"


@frozen
class UpsertArguments:
    """Parameters of `lithos_edge_upsert`."""

    from_id: str = argument("Note id where the edge begins.")
    to_id: str = argument("Note id where it ends.")
    type: str = argument("Kind of relation, such as supports, contradicts, related_to.")
    weight: float = argument("Strength, usually 0..1.")
    namespace: str = argument("Namespace of the edge.")
    provenance_actor: str | None = argument("Your agent id.", None)
    provenance_type: str | None = argument("How it was found, such as asserted.", None)
    evidence: dict[str, Any] | list[Any] | None = argument("Object or array that backs it.", None)
    conflict_state: str | None = argument("State of the conflict, for contradicts.", None)


@frozen
class ListArguments:
    """Parameters of `lithos_edge_list`."""

    from_id: str | None = argument("Only edges from this note.", None)
    to_id: str | None = argument("Only edges to this note.", None)
    type: str | None = argument("Only this kind.", None)
    namespace: str | None = argument("Only this namespace.", None)


@frozen
class ResolveArguments:
    """Parameters of `lithos_conflict_resolve`."""

    edge_id: str = argument("Id of a contradicts edge.")
    resolution: str = argument("What became of the conflict.", one_of=RESOLUTIONS)
    resolver: str = argument("Your agent id.")
    winner_id: str | None = argument("For superseded: the note that stays valid.", None)


class EdgeTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges

    def tools(self) -> Sequence[Tool]:
        """The family in listing order."""
        return (
            Tool(
                "lithos_edge_upsert",
                "standard",
                "I",
                "Relate two notes by a typed, weighted edge, or overwrite the one there is.",
                UpsertArguments,
                self.upsert,
            ),
            Tool(
                "lithos_edge_list",
                "standard",
                "RI",
                "Typed edges between notes, oldest first.",
                ListArguments,
                self.list_edges,
            ),
            Tool(
                "lithos_conflict_resolve",
                "standard",
                "",
                "Settle a contradicts edge; superseded marks the winner note.",
                ResolveArguments,
                self.resolve,
            ),
        )

    async def upsert(self, given: UpsertArguments) -> Answer:
        """`lithos_edge_upsert`."""
        if not math.isfinite(given.weight):
            raise InvalidInput(f"weight must be a finite number, such as 0.8; not {given.weight}.")
        evidence = given.evidence
        command = UpsertEdge(
            agent=(given.provenance_actor or "").strip() or UNSIGNED,
            from_id=given.from_id,
            to_id=given.to_id,
            type=given.type,
            weight=given.weight,
            namespace=given.namespace,
            provenance_actor=given.provenance_actor,
            provenance_type=given.provenance_type,
            evidence=None if evidence is None else json.dumps(evidence, ensure_ascii=False),
            conflict_state=given.conflict_state,
        )
        return {"status": "ok", "edge_id": (await self._edges.upsert(command)).id}

    async def list_edges(self, given: ListArguments) -> Answer:
        """`lithos_edge_list`."""
        wanted = EdgeFilter(
            from_id=given.from_id, to_id=given.to_id, type=given.type, namespace=given.namespace
        )
        rows = await sliced_rows(await self._edges.list_edges(wanted), edge_row)
        return {"edges": rows, "results": rows}

    async def resolve(self, given: ResolveArguments) -> Answer:
        """`lithos_conflict_resolve`."""
        check_resolution(given.resolution)
        edge, warnings = await self._edges.resolve(
            ResolveConflict(
                edge_id=given.edge_id,
                resolution=given.resolution,
                resolver=given.resolver.strip(),
                winner_id=given.winner_id,
            )
        )
        answer = {"status": "ok", "edge_id": edge.id, "conflict_state": edge.conflict_state}
        return answer | ({"warnings": list(warnings)} if warnings else {})


def edge_row(edge: Edge) -> dict[str, Any]:
    """An edge on the wire."""
    return {
        "edge_id": edge.id,
        "id": edge.id,
        "from_id": edge.from_id,
        "to_id": edge.to_id,
        "type": edge.type,
        "weight": edge.weight,
        "namespace": edge.namespace,
        "created_at": format_time(edge.created_at),
        "updated_at": format_time(edge.updated_at),
        "provenance_actor": edge.provenance_actor,
        "provenance_type": edge.provenance_type,
        "evidence": edge.evidence,
        "conflict_state": edge.conflict_state,
    }
