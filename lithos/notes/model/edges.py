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
#: Types of edges that make one note depend on another note.
LINEAGE: Final = frozenset((DERIVED_FROM, "depends_on", "refines"))
#: Provenance types of edges that were not asserted by an agent. `inferred` edges are conclusions of a model,
#: `frontmatter` edges are copies of `derived_from_ids`.
INFERRED: Final = "inferred"
FRONTMATTER: Final = "frontmatter"
SUPERSEDED: Final = "superseded"
RESOLUTIONS: Final = ("accepted_dual", SUPERSEDED, "refuted", "merged")


@frozen(kw_only=True)
class Edge:
    """An edge between two notes, which need not exist.

    The tuple (`from_id`, `to_id`, `type`, `namespace`) is unique.

    `evidence` is a JSON text.
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
    """Return whether the edge makes its first note depend on the second note.

    Edges that were inferred or copied from the frontmatter do not count.
    """
    return edge.type in LINEAGE and edge.provenance_type not in (INFERRED, FRONTMATTER)


def is_unresolved(edge: Edge) -> bool:
    """Return whether the edge is a contradiction that does not have one of the `RESOLUTIONS`."""
    return edge.type == CONTRADICTS and edge.conflict_state not in RESOLUTIONS


class EdgeCommand(Command[R_co]):
    """Base class of the commands about edges."""

    __slots__ = ()


@frozen(kw_only=True)
class UpsertEdge(EdgeCommand[Edge]):
    """Command to create or overwrite an edge. An existing edge keeps its id and `created_at`.

    `agent` is recorded as the agent of the event. The reply is the `Edge`.
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
    """Command to resolve a `contradicts` edge.

    `resolution` is one of `RESOLUTIONS`. The reply is the `Edge`.
    """

    edge_id: str
    resolution: str
    resolver: str
    winner_id: str | None = None


@frozen(kw_only=True)
class EdgeFilter:
    """A filter for edges. An edge must have exactly the values of all fields that are not None."""

    from_id: str | None = None
    to_id: str | None = None
    type: str | None = None
    namespace: str | None = None


def check_conflict(edge: Edge | None, command: ResolveConflict) -> Edge:
    """Return the edge if the command may resolve it.

    Raises `NotFound` if `edge` is None, and `InvalidInput` for an invalid command.
    """
    if edge is None:
        raise NotFound(f"Unknown edge id {command.edge_id[:100]!r}. Find the edge with lithos_edge_list.")
    if edge.type != CONTRADICTS:
        raise InvalidInput(
            f"Only edges of type '{CONTRADICTS}' can be resolved. This edge has the type {edge.type!r}."
        )
    if command.resolution == SUPERSEDED and command.winner_id not in (edge.from_id, edge.to_id):
        given = f"not {command.winner_id!r}" if command.winner_id else "it is missing"
        raise InvalidInput(
            f"Resolution '{SUPERSEDED}' needs winner_id, the id of the note that stays valid: "
            f"{edge.from_id!r} or {edge.to_id!r}; {given}."
        )
    return edge


def other_end(edge: Edge, note_id: str) -> str:
    """Return the id of the note at the opposite end of an edge. `note_id` is at one of the ends."""
    return edge.to_id if note_id == edge.from_id else edge.from_id


def announce_edge(edge: Edge, agent: str, delivery: str, source: str = TOOL) -> EventDraft:
    """Return the event for a changed edge. `delivery` is a unique key, so the event is journalled only once.

    `source` is the source that is recorded in the hidden origin of the event.
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
