"""Tools of learning retrieval: `lithos_retrieve`, typed edges between notes, and statistics of notes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from attrs import frozen

from lithos.catalogue.catalogue import Catalogue
from lithos.core.errors import DocNotFound, InvalidInput
from lithos.core.learning.edges import (
    RESOLUTIONS,
    Edge,
    EdgeFilter,
    ResolveConflict,
    UpsertEdge,
    check_resolution,
)
from lithos.core.learning.memory import NodeStats, SurfacedConflict
from lithos.core.learning.questions import RememberedQuestion
from lithos.core.times import format_optional, format_time
from lithos.services.notes.edges import Edges
from lithos.services.retrieve.candidates import Gate
from lithos.services.retrieve.feedback import Learning
from lithos.services.retrieve.questions import PRIVATE
from lithos.services.retrieve.retrieve import Result, Retrieve, RetrieveRequest
from lithos.stores.indexes.fulltext_query import Filters
from lithos.tools.contract.arguments import argument, as_command
from lithos.tools.contract.bounds import FILTERS, LOOKUP, METADATA, NAME, NAMESPACE, NAMESPACES, QUERY
from lithos.tools.contract.registry import Answer, Tool
from lithos.tools.contract.rows import search_row, sliced_rows
from lithos.tools.contract.warnings import Veil, Warner

#: Who is recorded for an edge that nobody signed.
UNSIGNED = "lithos_edge_upsert"
#: Questions that `lithos_node_stats` shows.
MOST_QUESTIONS = 20


@frozen
class UpsertArguments:
    """Parameters of `lithos_edge_upsert`."""

    from_id: str = argument("Note it begins at.", bound=NAME, note="there")
    to_id: str = argument("Note it ends at.", bound=NAME, note="there")
    type: str = argument("Such as supports, contradicts, related_to.", bound=NAME)
    weight: float = argument("Strength, usually 0..1.")
    namespace: str = argument("Its namespace.", bound=NAMESPACE)
    provenance_actor: str | None = argument("Your id.", None, bound=NAME, is_caller=True)
    provenance_type: str | None = argument("Such as asserted.", None, bound=NAME)
    evidence: dict[str, Any] | list[Any] | None = argument(
        "Object or array that backs it.", None, bound=METADATA
    )
    conflict_state: str | None = argument("State of a contradicts edge.", None, bound=NAME)


@frozen
class ListArguments:
    """Parameters of `lithos_edge_list`."""

    from_id: str | None = argument("From this note.", None, bound=LOOKUP, note="there")
    to_id: str | None = argument("To this note.", None, bound=LOOKUP, note="there")
    type: str | None = argument("Only this kind.", None, bound=LOOKUP)
    namespace: str | None = argument("Only this namespace.", None, bound=LOOKUP)


@frozen
class ResolveArguments:
    """Parameters of `lithos_conflict_resolve`."""

    edge_id: str = argument("Id of a contradicts edge.", bound=LOOKUP)
    resolution: str = argument("What became of the conflict.", one_of=RESOLUTIONS, bound=LOOKUP)
    resolver: str = argument("Your id.", bound=NAME, is_caller=True)
    winner_id: str | None = argument("The note that stays valid.", None, bound=LOOKUP, note="there")


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
                "Relate two notes by a typed, weighted edge, or overwrite it.",
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
        command = as_command(
            UpsertEdge,
            given,
            agent=(given.provenance_actor or "").strip() or UNSIGNED,
            evidence=None if evidence is None else json.dumps(evidence, ensure_ascii=False),
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
            as_command(ResolveConflict, given, resolver=given.resolver.strip())
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


@frozen
class StatsArguments:
    """Parameters of `lithos_node_stats`."""

    node_id: str = argument("Note id.", bound=LOOKUP, note="there")


class MemoryTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, learning: Learning, catalogue: Catalogue) -> None:
        self._learning = learning
        self._catalogue = catalogue

    def tools(self) -> Sequence[Tool]:
        """The family."""
        return (
            Tool(
                "lithos_node_stats",
                "standard",
                "RI",
                "How a note fared in retrieval: salience, uses, feedback, what cited it.",
                StatsArguments,
                self.node_stats,
            ),
        )

    async def node_stats(self, given: StatsArguments) -> Answer:
        """`lithos_node_stats`."""
        if given.node_id not in self._catalogue:
            raise DocNotFound(
                f"No note has the id {given.node_id[:100]!r}. Find it with lithos_search or lithos_list."
            )
        stored = await self._learning.stats([given.node_id])
        stats = stored.get(given.node_id) or NodeStats(node_id=given.node_id)
        questions = await self._learning.questions_of(given.node_id, MOST_QUESTIONS)
        if not questions:
            return stats_row(stats)
        entry = self._catalogue.get(given.node_id)
        is_private = entry is None or entry.note.access_scope == PRIVATE
        return stats_row(stats) | {
            "cited_for": [question_row(each, is_private=is_private) for each in questions]
        }


def stats_row(stats: NodeStats) -> dict[str, Any]:
    """Node statistics on the wire."""
    return {
        "node_id": stats.node_id,
        "salience": stats.salience,
        "retrieval_count": stats.retrieval_count,
        "cited_count": stats.cited_count,
        "last_retrieved_at": format_optional(stats.last_retrieved_at),
        "last_used_at": format_optional(stats.last_used_at),
        "ignored_count": stats.ignored_count,
        "misleading_count": stats.misleading_count,
        "decay_rate": stats.decay_rate,
        "spaced_rep_strength": stats.spaced_rep_strength,
        "last_decay_applied_at": format_optional(stats.last_decay_applied_at),
    }


def question_row(question: RememberedQuestion, *, is_private: bool) -> dict[str, Any]:
    """One question that a note was cited for; without its words where these are nobody else's."""
    return {
        "question": None if is_private or question.is_private else question.question,
        "weight": question.weight,
        "for": question.a,
        "against": question.b,
        "last_at": format_optional(question.last_at),
    }


@frozen
class RetrieveArguments:
    """Parameters of `lithos_retrieve`."""

    query: str = argument("What you want to know.", may_be_blank=True, bound=QUERY)
    limit: int = argument("Most results.", 10)
    namespace_filter: tuple[str, ...] | None = argument("Only these namespaces.", None, bound=NAMESPACES)
    agent_id: str | None = argument("Your id.", None, bound=NAME, is_caller=True)
    task_id: str | None = argument("Your task; shows its notes too.", None, bound=NAME)
    surface_conflicts: bool = argument("Tell unsettled contradictions.", False)
    max_context_nodes: int | None = argument("Notes to look around; default limit.", None)
    tags: tuple[str, ...] | None = argument("With all these tags.", None, bound=FILTERS)
    path_prefix: str | None = argument("Paths that begin so.", None, bound=LOOKUP)
    offset: int = argument("Results to skip.", 0, is_listed=False)


class RetrieveTools:
    """Handlers; each takes its arguments class."""

    def __init__(
        self, retrieve: Retrieve, clock: Callable[[], datetime], warner: Warner, catalogue: Catalogue
    ) -> None:
        self._retrieve = retrieve
        self._clock = clock
        self._warner = warner
        self._catalogue = catalogue

    def tools(self) -> Sequence[Tool]:
        """The family in listing order."""
        return (
            Tool(
                "lithos_retrieve",
                "core",
                "R",
                "Find what helps with a task: by words, meaning, links and past use. Keep receipt_id for "
                "lithos_task_complete.",
                RetrieveArguments,
                self.retrieve,
            ),
        )

    async def retrieve(self, arguments: RetrieveArguments) -> Answer:
        """`lithos_retrieve`."""
        answer = await self._retrieve.retrieve(
            RetrieveRequest(
                query=arguments.query,
                limit=max(1, arguments.limit) + arguments.offset,
                namespaces=arguments.namespace_filter or None,
                agent_id=arguments.agent_id,
                task_id=arguments.task_id,
                surface_conflicts=arguments.surface_conflicts,
                max_context_nodes=arguments.max_context_nodes or None,
                filters=Filters(tags=arguments.tags or (), path_prefix=arguments.path_prefix or None),
            )
        )
        now = self._clock()
        rows = [retrieve_row(each, now) for each in answer.results[arguments.offset :]]
        await self._warner.warn(((row["id"], row) for row in rows), self._veil(arguments))
        result: dict[str, Any] = {
            "results": rows,
            "temperature": answer.receipt.temperature,
            "terrace_reached": answer.receipt.terrace_reached,
            "receipt_id": answer.receipt.id,
            "degraded": answer.degraded,
            "failed_scouts": list(answer.failed_scouts),
        }
        if answer.conflicts is not None:
            result["conflicts"] = [conflict_row(each) for each in answer.conflicts]
        return result

    def _veil(self, given: RetrieveArguments) -> Veil:
        """What this asker is told of the notes that warnings name."""
        spaces = given.namespace_filter
        gate = Gate(
            namespaces=frozenset(spaces) if spaces else None, task_id=given.task_id, agent_id=given.agent_id
        )
        return lambda warning: gate.veil(warning, self._catalogue.get(warning.id))


def retrieve_row(result: Result, now: datetime) -> dict[str, Any]:
    """One result: a search row, and how it came about."""
    traits = result.traits
    assert traits is not None  # of an answer that was given
    return search_row(result.hit, now) | {
        "reasons": list(result.reasons),
        "scouts": list(result.scouts),
        "salience": traits.salience,
        "usage_score": traits.usage,
    }


def conflict_row(conflict: SurfacedConflict) -> dict[str, Any]:
    """One contradiction."""
    return {
        "edge_id": conflict.edge_id,
        "from_id": conflict.from_id,
        "to_id": conflict.to_id,
        "conflict_state": conflict.conflict_state,
    }
