"""Tools of earlier versions, for clients that still use them (`server.legacy_tools`)."""

from __future__ import annotations

from typing import Any

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import DocNotFound
from lithos.memory.tools.relations import entry_rows
from lithos.notes.service.relations import Graph
from lithos.notes.tools_rows import warn
from lithos.search.index.fulltext_schema import Filters
from lithos.search.service.search import Search, SearchRequest
from lithos.server.tools.arguments import argument, as_command
from lithos.server.tools.bounds import FILTERS, LOOKUP, NAME, QUERY
from lithos.server.tools.declaring import Answer, tool
from lithos.server.tools.fitting import MOST_BESIDE, CuttableAnswer


@tool(
    "lithos_links",
    "core",
    "RI",
    place=60,
    title="List links",
    paged=CuttableAnswer(rows=("outgoing", "incoming"), most=MOST_BESIDE, totals="each"),
    is_legacy=True,
)
class LinksTool:
    """List the wiki-links of a note. Newer: lithos_related."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    direction: str = argument(
        "Direction of the listed links.", "both", one_of=("both", "outgoing", "incoming"), bound=LOOKUP
    )
    depth: int = argument("Number of steps, 1 to 3.", 1)

    async def answer(self, using: Parts) -> Answer:
        """Return the links of a note. For an unknown note, return no links."""
        try:
            links = (await using.get(Graph).relate(self.id, ("links",), self.depth, None)).links
        except DocNotFound:
            links = None
        answer = {
            "outgoing": [] if links is None or self.direction == "incoming" else entry_rows(links.outgoing),
            "incoming": [] if links is None or self.direction == "outgoing" else entry_rows(links.incoming),
        }
        await warn(using, ((row["id"], row) for rows in answer.values() for row in rows))
        return answer


@tool(
    "lithos_semantic",
    "core",
    "RI",
    place=61,
    title="Semantic search",
    paged=CuttableAnswer(rows=("results",), totals="none"),
    is_legacy=True,
)
class SemanticTool:
    """Run a semantic search over notes. Newer: lithos_search."""

    query: str = argument("Words or question to search for.", may_be_blank=True, bound=QUERY)
    limit: int = argument("Maximum number of results.", 10)
    threshold: float | None = argument("Minimum similarity, 0 to 1.", None)
    tags: tuple[str, ...] = argument("Only notes with all of these tags.", (), bound=FILTERS)
    agent_id: str | None = argument("Your agent id.", None, bound=NAME, is_caller=True, is_listed=False)

    async def answer(self, using: Parts) -> Answer:
        request = as_command(SearchRequest, self, mode="semantic", filters=as_command(Filters, self))
        answer = await using.get(Search).search(request)
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
        await warn(using, ((row["id"], row) for row in rows))
        return {"results": rows}


@tool(
    "lithos_provenance",
    "core",
    "RI",
    place=62,
    title="List sources",
    paged=CuttableAnswer(rows=("sources", "derived", "unresolved_sources"), most=MOST_BESIDE, totals="each"),
    is_legacy=True,
)
class ProvenanceTool:
    """List what a note was derived from, and what was derived from it. Newer: lithos_related."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    direction: str = argument(
        "Direction of the listed notes.", "both", one_of=("both", "sources", "derived"), bound=LOOKUP
    )
    depth: int = argument("Number of steps, 1 to 3.", 1)
    include_unresolved: bool = argument("Also list sources that do not exist.", True)

    async def answer(self, using: Parts) -> Answer:
        found = (await using.get(Graph).relate(self.id, ("provenance",), self.depth, None)).provenance
        assert found is not None
        answer: dict[str, Any] = {
            "id": self.id,
            "sources": [] if self.direction == "derived" else entry_rows(found.sources),
            "derived": [] if self.direction == "sources" else entry_rows(found.derived),
        }
        await warn(using, ((row["id"], row) for row in (*answer["sources"], *answer["derived"])))
        if self.include_unresolved:
            answer["unresolved_sources"] = list(found.unresolved)
        return answer
