"""Tools for retrieval that learns (`lithos_retrieve`), typed edges between notes, and note statistics."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import asked_project
from lithos.kernel.values.times import format_optional
from lithos.memory.model.memory import NodeStats
from lithos.memory.model.questions import RememberedQuestion
from lithos.memory.model.salience import salience_of, usage_of
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.retrieve.questions import PRIVATE
from lithos.memory.retrieve.retrieve import Retrieve, RetrievedNote, RetrieveRequest
from lithos.memory.service.edges import Edges
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.edges import RESOLUTIONS, Edge, EdgeFilter, ResolveConflict, UpsertEdge
from lithos.notes.service.row_kinds import ATTACHMENT, NOTE, read_kinds
from lithos.notes.tools_rows import Veil, add_projects, warn
from lithos.search.index.fulltext_schema import Filters
from lithos.search.service.other_files import (
    BESIDE,
    OtherHit,
    OtherHits,
    OtherQuery,
    mix_hits,
    skipped,
    standings_of,
)
from lithos.search.service.retrieval_filter import RetrievalFilter
from lithos.search.service.search import Search
from lithos.search.settings import room_of_rows
from lithos.search.tools_rows import search_row
from lithos.server.settings import ServerConfig
from lithos.server.tools.arguments import argument, as_command, check_choice
from lithos.server.tools.bounds import FILTERS, LOOKUP, METADATA, NAME, NAMESPACE, NAMESPACES, QUERY
from lithos.server.tools.compacting import CompactForm
from lithos.server.tools.declaring import Answer, tool
from lithos.server.tools.fitting import CuttableAnswer
from lithos.server.tools.serialization import row_of, sliced_rows

#: Retrieval fields for an attachment hit. Retrieval does not learn from attachments.
_UNLEARNED: Mapping[str, Any] = {
    "reasons": ["matches the query"],
    "scouts": [],
    "salience": 0.0,
    "usage_score": 0.0,
}
#: Agent that is recorded if an edge has no author.
UNSIGNED = "lithos_edge_upsert"
#: Statistics of a note that was never used.
_UNUSED: Final = dict.fromkeys(
    ("cited_count", "ignored_count", "misleading_count", "decay_rate", "spaced_rep_strength"), 0
)
#: Maximum number of questions that `lithos_node_stats` returns.
MOST_QUESTIONS = 20


@tool("lithos_edge_upsert", "standard", "I", place=6, title="Link two notes")
class EdgeUpsertTool:
    """Record that one note supports, contradicts or relates to another (a typed, weighted edge). An existing
    edge is overwritten.
    """

    from_id: str = argument("Id of the source note.", bound=NAME, note="there")
    to_id: str = argument("Id of the target note.", bound=NAME, note="there")
    type: str = argument("Kind of edge, e.g. supports, contradicts, related_to.", bound=NAME)
    weight: float = argument("Strength, usually 0 to 1.")
    namespace: str = argument("Namespace of the edge, usually that of the source note.", bound=NAMESPACE)
    provenance_actor: str | None = argument("Your agent id.", None, bound=NAME, is_caller=True)
    provenance_type: str | None = argument(
        "Origin of the edge, e.g. asserted.", None, bound=NAME, is_rare=True
    )
    evidence: dict[str, Any] | list[Any] | None = argument(
        "Evidence for the edge.", None, bound=METADATA, is_rare=True
    )
    conflict_state: str | None = argument("State of a contradicts edge.", None, bound=NAME, is_rare=True)

    async def answer(self, using: Parts) -> Answer:
        if not math.isfinite(self.weight):
            raise InvalidInput(f"weight must be a finite number such as 0.8, not {self.weight}.")
        evidence = self.evidence
        command = as_command(
            UpsertEdge,
            self,
            agent=(self.provenance_actor or "").strip() or UNSIGNED,
            evidence=None if evidence is None else json.dumps(evidence, ensure_ascii=False),
        )
        return {"status": "ok", "edge_id": (await using.get(Edges).upsert(command)).id}


@tool(
    "lithos_edge_list",
    "standard",
    "RI",
    place=7,
    title="List links between notes",
    paged=CuttableAnswer(rows=("edges", "results")),
    sparing=CompactForm(always=("edges",)),
)
class EdgeListTool:
    """List typed edges between notes, for example all contradictions."""

    from_id: str | None = argument("Only edges from this note.", None, bound=LOOKUP, note="there")
    to_id: str | None = argument("Only edges to this note.", None, bound=LOOKUP, note="there")
    type: str | None = argument("Only edges of this kind.", None, bound=LOOKUP)
    namespace: str | None = argument("Only edges of this namespace.", None, bound=LOOKUP, is_rare=True)

    async def answer(self, using: Parts) -> Answer:
        (found,) = await using.get(Edges).list_edges(as_command(EdgeFilter, self))
        rows = await sliced_rows(found, edge_row)
        return {"edges": rows, "results": rows}


@tool("lithos_conflict_resolve", "standard", place=8, title="Resolve a contradiction")
class ConflictResolveTool:
    """Record how a contradiction between two notes was settled. superseded needs winner_id: that note then
    supersedes the other. Not for version conflicts.
    """

    edge_id: str = argument("Id of the contradicts edge (lithos_edge_list).", bound=LOOKUP)
    resolution: str = argument("Resolution of the conflict.", one_of=RESOLUTIONS, bound=LOOKUP)
    resolver: str = argument("Your agent id.", bound=NAME, is_caller=True)
    winner_id: str | None = argument("Id of the note that stays valid.", None, bound=LOOKUP, note="there")

    async def answer(self, using: Parts) -> Answer:
        check_choice("resolution", self.resolution, RESOLUTIONS)
        edge, warnings = await using.get(Edges).resolve(
            as_command(ResolveConflict, self, resolver=self.resolver.strip())
        )
        answer = {"status": "ok", "edge_id": edge.id, "conflict_state": edge.conflict_state}
        return answer | ({"warnings": list(warnings)} if warnings else {})


def edge_row(edge: Edge) -> dict[str, Any]:
    """Return the row of an edge for clients."""
    return {"edge_id": edge.id, **row_of(edge)}


@tool(
    "lithos_node_stats",
    "standard",
    "RI",
    place=25,
    title="Show usage of a note",
    sparing=CompactForm(defaults=_UNUSED),
)
class NodeStatsTool:
    """Show how useful a note has been: salience, uses, feedback and the questions it was cited for."""

    node_id: str = argument("Note id.", bound=LOOKUP, note="there")

    async def answer(self, using: Parts) -> Answer:
        using.get(Catalogue).require(self.node_id)
        stored = await using.get(Learning).stats([self.node_id])
        stats = stored.get(self.node_id) or NodeStats(node_id=self.node_id)
        questions = await using.get(Learning).read(
            lambda tables: tables.questions.of_note(self.node_id, MOST_QUESTIONS)
        )
        row = node_stats_row(stats)
        if not questions:
            return row
        entry = using.get(Catalogue).get(self.node_id)
        is_private = entry is None or entry.note.access_scope == PRIVATE
        return row | {"cited_for": [question_row(each, is_private=is_private) for each in questions]}


def node_stats_row(stats: NodeStats) -> dict[str, Any]:
    """Return the counters and derived values of a note.

    Keys for values that are no longer stored still exist.
    """
    row = row_of(stats)
    return {
        "node_id": row.pop("node_id"),
        "salience": salience_of(stats),
        **row,
        "decay_rate": 0.0,
        "spaced_rep_strength": 0.0,
        "last_decay_applied_at": None,
    }


def question_row(question: RememberedQuestion, *, is_private: bool) -> dict[str, Any]:
    """Return one question for which a note was cited. A private question is returned without its words."""
    return {
        "question": None if is_private or question.is_private else question.question,
        "weight": question.weight,
        "for": question.a,
        "against": question.b,
        "last_at": format_optional(question.last_at),
    }


_RETRIEVED: Final = CompactForm(
    always=("results", "id", "title", "snippet", "path", "receipt_id"),
    asked={
        "explain": (
            "score", "similarity", "derived_from_ids", "reasons", "scouts", "salience", "usage_score",
            "temperature", "terrace_reached",
        )
    },
)  # fmt: skip


@tool(
    "lithos_retrieve",
    "core",
    "R",
    place=5,
    title="Retrieve notes on a topic",
    paged=CuttableAnswer(rows=("results",), totals="none", beside=("conflicts",)),
    sparing=_RETRIEVED,
    is_heavy=True,
)
class RetrieveTool:
    """Explore a topic: rank notes by keywords, meaning, links and what helped in earlier tasks. To find one
    known note, use lithos_search. Pass receipt_id to lithos_task_complete.
    """

    query: str = argument("Question or topic.", may_be_blank=True, bound=QUERY)
    limit: int = argument("Maximum number of results.", 10)
    namespace_filter: tuple[str, ...] | None = argument(
        "Only notes of these namespaces.", None, bound=NAMESPACES, is_rare=True
    )
    agent_id: str | None = argument("Your agent id.", None, bound=NAME, is_caller=True)
    task_id: str | None = argument("Id of your task; notes about it are found too.", None, bound=NAME)
    surface_conflicts: bool = argument(
        "Also return unresolved contradictions between the results.", False, is_rare=True
    )
    max_context_nodes: int | None = argument(
        "Number of top notes to expand through links; default: limit.", None, is_rare=True
    )
    tags: tuple[str, ...] = argument("Only notes with all of these tags.", (), bound=FILTERS)
    path_prefix: str | None = argument("Only notes whose path starts with this.", None, bound=LOOKUP)
    project: str | None = argument(
        "Only notes of this project.", None, bound=LOOKUP, may_be_blank=True, is_rare=True
    )
    offset: int = argument("Number of results to skip.", 0, is_listed=False)
    kinds: tuple[str, ...] | None = argument(
        "Kinds to include; note leaves out attachments.", None, bound=FILTERS, is_listed=False
    )
    explain: bool = argument("In compact answers, also return reasons and scores.", False, is_listed=False)

    async def answer(self, using: Parts) -> Answer:
        others = using.find(OtherHits)
        beside = await self._beside(using, others)
        limit = max(1, self.limit)
        request = self.request(room_of_rows(using.get(ServerConfig), limit))
        answer = await using.get(Retrieve).retrieve(request)
        now = using.clock()
        hits = [each.hit for each in answer.results]
        before = skipped(hits[:limit], beside, limit, self.offset) if beside and self.offset else self.offset
        shown = answer.results[before : before + limit]
        rows = [retrieve_row(each, now) for each in shown]
        await warn(using, ((row["id"], row) for row in rows), self._veil(using.get(Catalogue)))
        entries = (each.hit.entry for each in shown)
        add_projects(using, zip(entries, rows, strict=True), is_asked=self.explain)
        if others is not None and beside and not self.offset:
            rows = mix_hits(others, rows, standings_of(hits[:limit]), beside, limit)
            rows = [{**_UNLEARNED, **row} if row.get("kind") == ATTACHMENT else row for row in rows]
        result: dict[str, Any] = {
            "results": rows,
            "temperature": answer.receipt.temperature,
            "terrace_reached": answer.receipt.terrace_reached,
            "receipt_id": answer.receipt.id,
            "degraded": answer.degraded,
            "failed_scouts": list(answer.failed_scouts),
        }
        if answer.conflicts is not None:
            result["conflicts"] = [row_of(each) for each in answer.conflicts]
        message = "" if rows else using.get(Catalogue).projects.missing(request.filters.project)
        return result | ({"message": message} if message else {})

    def request(self, room: int = 0) -> RetrieveRequest:
        """Return the retrieval request for all rows up to the end of the requested page.

        `room` is the limit in characters.
        """
        return as_command(
            RetrieveRequest,
            self,
            limit=max(1, self.limit) + self.offset,
            room=room,
            namespaces=self.namespace_filter or None,
            max_context_nodes=self.max_context_nodes or None,
            filters=self.filters(),
        )

    def filters(self) -> Filters:
        """Return the filters of the search."""
        return as_command(Filters, self, project=asked_project(self.project))

    async def _beside(self, using: Parts, others: OtherHits | None) -> Sequence[OtherHit]:
        """Return the attachment hits that are mixed with the notes.

        If a namespace is requested, return no hits.
        """
        kinds, filters = read_kinds(self.kinds), self.filters()
        if NOTE not in kinds:
            raise InvalidInput("lithos_retrieve finds notes. For attachments alone, use lithos_search.")
        if ATTACHMENT not in kinds or self.namespace_filter or others is None or not others.has_any(filters):
            return ()
        query = OtherQuery(
            query=self.query, filters=filters, threshold=using.get(Search).threshold, limit=BESIDE
        )
        return await others.beside(query)

    def _veil(self, catalogue: Catalogue) -> Veil:
        """Return the filter for warnings about notes that this caller may not see."""
        spaces = self.namespace_filter
        gate = as_command(RetrievalFilter, self, namespaces=frozenset(spaces) if spaces else None)
        return lambda warning: gate.veil(warning, catalogue.get(warning.id))


def retrieve_row(result: RetrievedNote, now: datetime) -> dict[str, Any]:
    """Return the row of one result: a search row with reasons and statistics."""
    return search_row(result.hit, now) | {
        "reasons": list(result.reasons),
        "scouts": list(result.scouts),
        "salience": salience_of(result.stats),
        "usage_score": usage_of(result.stats),
    }
