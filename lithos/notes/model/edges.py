"""Typed edges between notes: values, commands, and conflict resolution (docs/spec/memory.md §3 and §5)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from attrs import frozen

from lithos.kernel.values.errors import InvalidInput, NotFound
from lithos.kernel.values.events import EDGE_UPSERTED, TOOL, EventDraft
from lithos.kernel.values.messages import Command, R_co

CONTRADICTS: Final = "contradicts"
RELATED_TO: Final = "related_to"
DERIVED_FROM: Final = "derived_from"
#: Edges of these types mean that a note rests on another one.
LINEAGE: Final = frozenset((DERIVED_FROM, "depends_on", "refines"))
#: Provenance types of edges that were not asserted: conclusions of a model, and shadows of
#: `derived_from_ids`.
INFERRED: Final = "inferred"
FRONTMATTER: Final = "frontmatter"
SUPERSEDED: Final = "superseded"
RESOLUTIONS: Final = ("accepted_dual", SUPERSEDED, "refuted", "merged")


@frozen(kw_only=True)
class Edge:
    """One edge. (`from_id`, `to_id`, `type`, `namespace`) is unique; the notes need not exist.

    `evidence` is JSON text.
    """

    id: str
    from_id: str
    to_id: str
    type: str
    weight: float
    namespace: str
    created_at: datetime
    updated_at: datetime
    provenance_actor: str | None = None
    provenance_type: str | None = None
    evidence: str | None = None
    conflict_state: str | None = None


def is_lineage(edge: Edge) -> bool:
    """Return whether the edge says that its note rests on another one: nothing inferred or projected does."""
    return edge.type in LINEAGE and edge.provenance_type not in (INFERRED, FRONTMATTER)


def is_unresolved(edge: Edge) -> bool:
    """Return whether the edge is a contradiction without any of the `RESOLUTIONS`."""
    return edge.type == CONTRADICTS and edge.conflict_state not in RESOLUTIONS


class EdgeCommand(Command[R_co]):
    """Requests about edges."""

    __slots__ = ()


@frozen(kw_only=True)
class UpsertEdge(EdgeCommand[Edge]):
    """Upsert an edge: an existing one keeps only its id and `created_at`; the reply is the `Edge`.

    `agent` is the agent of the event.
    """

    agent: str
    from_id: str
    to_id: str
    type: str
    weight: float
    namespace: str
    provenance_actor: str | None = None
    provenance_type: str | None = None
    evidence: str | None = None
    conflict_state: str | None = None


@frozen(kw_only=True)
class ResolveConflict(EdgeCommand[Edge]):
    """Settle a `contradicts` edge; the reply is the `Edge`. `resolution` is one of `RESOLUTIONS`."""

    edge_id: str
    resolution: str
    resolver: str
    winner_id: str | None = None


@frozen(kw_only=True)
class EdgeFilter:
    """Which edges to list: all that are given must match exactly."""

    from_id: str | None = None
    to_id: str | None = None
    type: str | None = None
    namespace: str | None = None


def check_conflict(edge: Edge | None, command: ResolveConflict) -> Edge:
    """Return the edge, if the command may settle it. Raises `NotFound`, `InvalidInput`."""
    if edge is None:
        raise NotFound(f"No edge has the id {command.edge_id[:100]!r}. Find it with lithos_edge_list.")
    if edge.type != CONTRADICTS:
        raise InvalidInput(
            f"Only edges of type '{CONTRADICTS}' have a conflict to resolve; this one is {edge.type!r}."
        )
    if command.resolution == SUPERSEDED and command.winner_id not in (edge.from_id, edge.to_id):
        given = f"not {command.winner_id!r}" if command.winner_id else "it is missing"
        raise InvalidInput(
            f"Resolution '{SUPERSEDED}' needs winner_id, the note that stays valid: {edge.from_id!r} or "
            f"{edge.to_id!r}; {given}."
        )
    return edge


def other_end(edge: Edge, note_id: str) -> str:
    """Return the id at the other end of an edge that touches `note_id`."""
    return edge.to_id if note_id == edge.from_id else edge.from_id


def announce_edge(edge: Edge, agent: str, delivery: str, source: str = TOOL) -> EventDraft:
    """Return the event of a changed edge; `delivery` is unique to it, so that it is never journalled twice.

    `source` is that of the hidden origin.
    """
    return EventDraft(
        type=EDGE_UPSERTED,
        agent=agent,
        payload={
            "edge_id": edge.id,
            "from_id": edge.from_id,
            "to_id": edge.to_id,
            "type": edge.type,
            "namespace": edge.namespace,
            "conflict_state": edge.conflict_state,
        },
        timestamp=edge.updated_at,
        origin=f"{source}:{delivery}",
    )
