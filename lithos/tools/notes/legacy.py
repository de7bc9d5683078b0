"""Tools of earlier versions, for clients that still call them (`server.legacy_tools`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from lithos.catalogue.catalogue import Entry
from lithos.core.errors import DocNotFound
from lithos.services.notes.relations import Graph
from lithos.services.search.search import Search, SearchRequest
from lithos.stores.indexes.fulltext_query import Filters
from lithos.tools.contract.arguments import argument
from lithos.tools.contract.bounds import FILTERS, LOOKUP, NAME, QUERY
from lithos.tools.contract.registry import Answer, Tool
from lithos.tools.contract.warnings import Warner


@frozen
class LinksArguments:
    """Parameters of `lithos_links`."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    direction: str = argument("Which links.", "both", one_of=("both", "outgoing", "incoming"), bound=LOOKUP)
    depth: int = argument("Steps, 1..3.", 1)


@frozen
class SemanticArguments:
    """Parameters of `lithos_semantic`."""

    query: str = argument("What to look for.", may_be_blank=True, bound=QUERY)
    limit: int = argument("Most results.", 10)
    threshold: float | None = argument("Smallest similarity, 0..1.", None)
    tags: tuple[str, ...] | None = argument("With all these tags.", None, bound=FILTERS)
    agent_id: str | None = argument("Your id.", None, bound=NAME, is_caller=True, is_listed=False)


@frozen
class ProvenanceArguments:
    """Parameters of `lithos_provenance`."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    direction: str = argument("Which way.", "both", one_of=("both", "sources", "derived"), bound=LOOKUP)
    depth: int = argument("Steps, 1..3.", 1)
    include_unresolved: bool = argument("Also name sources that do not exist.", True)


class LegacyTools:
    """Handlers; each takes its arguments class. Every profile lists them, where they exist at all."""

    def __init__(self, graph: Graph, search: Search, warner: Warner) -> None:
        self._graph = graph
        self._search = search
        self._warner = warner

    def tools(self) -> Sequence[Tool]:
        """The family in listing order."""
        return (
            Tool(
                "lithos_links",
                "core",
                "RI",
                "Wiki-links of a note. Newer: lithos_related.",
                LinksArguments,
                self.links,
            ),
            Tool(
                "lithos_semantic",
                "core",
                "RI",
                "Search notes by meaning. Newer: lithos_search.",
                SemanticArguments,
                self.search,
            ),
            Tool(
                "lithos_provenance",
                "core",
                "RI",
                "What a note was derived from, and what from it. Newer: lithos_related.",
                ProvenanceArguments,
                self.provenance,
            ),
        )

    async def links(self, given: LinksArguments) -> Answer:
        """`lithos_links`; an unknown note has none."""
        try:
            links = (await self._graph.relate(given.id, ("links",), given.depth, None)).links
        except DocNotFound:
            links = None
        answer = {
            "outgoing": [] if links is None or given.direction == "incoming" else _rows(links.outgoing),
            "incoming": [] if links is None or given.direction == "outgoing" else _rows(links.incoming),
        }
        await self._warner.warn((row["id"], row) for rows in answer.values() for row in rows)
        return answer

    async def search(self, given: SemanticArguments) -> Answer:
        """`lithos_semantic`."""
        answer = await self._search.search(
            SearchRequest(
                query=given.query,
                mode="semantic",
                limit=given.limit,
                threshold=given.threshold,
                filters=Filters(tags=given.tags or ()),
                agent_id=given.agent_id,
            )
        )
        rows: list[dict[str, Any]] = [
            {
                "id": hit.entry.note.id,
                "title": hit.entry.note.title,
                "snippet": hit.snippet,
                "similarity": hit.similarity,
                "path": hit.entry.path,
            }
            for hit in answer.hits
        ]
        await self._warner.warn((row["id"], row) for row in rows)
        return {"results": rows}

    async def provenance(self, given: ProvenanceArguments) -> Answer:
        """`lithos_provenance`."""
        found = (await self._graph.relate(given.id, ("provenance",), given.depth, None)).provenance
        assert found is not None
        answer: dict[str, Any] = {
            "id": given.id,
            "sources": [] if given.direction == "derived" else _rows(found.sources),
            "derived": [] if given.direction == "sources" else _rows(found.derived),
        }
        await self._warner.warn((row["id"], row) for row in (*answer["sources"], *answer["derived"]))
        if given.include_unresolved:
            answer["unresolved_sources"] = list(found.unresolved)
        return answer


def _rows(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    return [{"id": entry.note.id, "title": entry.note.title} for entry in entries]
