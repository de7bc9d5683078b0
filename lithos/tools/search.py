"""Tools that search, and the look before researching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from attrs import frozen

from lithos.core.errors import InvalidInput
from lithos.core.times import format_optional, format_time
from lithos.services.knowledge import CacheAnswer, CacheRequest, Knowledge
from lithos.services.retrieval import MODES, Retrieval, SearchRequest
from lithos.stores.fulltext import Filters
from lithos.tools.arguments import argument
from lithos.tools.registry import Answer, Tool
from lithos.tools.rows import search_row


@frozen
class SearchArguments:
    """Parameters of `lithos_search`."""

    query: str = argument("What to look for.", may_be_blank=True)
    limit: int = argument("Most results.", 10)
    mode: str = argument("How to search.", "hybrid", one_of=MODES)
    tags: tuple[str, ...] | None = argument("Only notes with all of these tags.", None)
    author: str | None = argument("Only this author.", None)
    path_prefix: str | None = argument("Only paths that begin so.", None)
    threshold: float | None = argument("Smallest similarity, 0..1.", None)
    seed_ids: tuple[str, ...] | None = argument("Where a graph search starts.", None)
    graph_depth: int = argument("Steps of a graph search, 1..3.", 2)
    entities: tuple[str, ...] | None = argument("Only notes with all of these entities.", None)
    agent_id: str | None = argument("Your agent id, for the audit.", None)


@frozen
class CacheArguments:
    """Parameters of `lithos_cache_lookup`."""

    query: str = argument("The question you are about to research.", may_be_blank=True)
    source_url: str | None = argument("Its web source, if it is one page.", None)
    max_age_hours: float | None = argument("Older answers are stale.", None)
    min_confidence: float = argument("Less certain answers do not count, 0..1.", 0.5)
    limit: int = argument("Candidates to consider.", 3)
    tags: tuple[str, ...] | None = argument("Only notes with all of these tags.", None)


class SearchTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, retrieval: Retrieval, knowledge: Knowledge, clock: Callable[[], datetime]) -> None:
        self._retrieval = retrieval
        self._knowledge = knowledge
        self._clock = clock

    def tools(self) -> Sequence[Tool]:
        """The family in listing order."""
        return (
            Tool(
                "lithos_search",
                "core",
                "RI",
                'Search notes. Mode fulltext knows "phrases", +must, -not, AND/OR/NOT, title:word.',
                SearchArguments,
                self.search,
            ),
            Tool(
                "lithos_cache_lookup",
                "core",
                "RI",
                "Look whether a fresh, trusted answer exists before you research.",
                CacheArguments,
                self.look_up,
            ),
        )

    async def search(self, arguments: SearchArguments) -> Answer:
        """`lithos_search`."""
        answer = await self._retrieval.search(
            SearchRequest(
                query=arguments.query,
                mode=arguments.mode,
                limit=arguments.limit,
                threshold=arguments.threshold,
                filters=Filters(
                    tags=arguments.tags or (),
                    author=arguments.author,
                    path_prefix=arguments.path_prefix,
                    entities=arguments.entities or (),
                ),
                agent_id=arguments.agent_id,
                seed_ids=arguments.seed_ids or (),
                graph_depth=arguments.graph_depth,
            )
        )
        now = self._clock()
        result: dict[str, object] = {"results": [search_row(hit, now) for hit in answer.hits]}
        if answer.failed:
            result |= {"degraded": True, "failed_backends": list(answer.failed), "message": answer.message}
        return result

    async def look_up(self, arguments: CacheArguments) -> Answer:
        """`lithos_cache_lookup`."""
        if arguments.max_age_hours is not None and not arguments.max_age_hours > 0:
            raise InvalidInput(f"max_age_hours must be above 0, not {arguments.max_age_hours}.")
        if not 0 <= arguments.min_confidence <= 1:
            raise InvalidInput(f"min_confidence must be between 0 and 1, not {arguments.min_confidence}.")
        if arguments.limit < 1:
            raise InvalidInput(f"limit must be at least 1, not {arguments.limit}.")
        answer = await self._knowledge.look_up(
            CacheRequest(
                query=arguments.query,
                source_url=arguments.source_url,
                max_age_hours=arguments.max_age_hours,
                min_confidence=arguments.min_confidence,
                limit=arguments.limit,
                tags=arguments.tags or (),
            )
        )
        return _cache_row(answer)


def _cache_row(answer: CacheAnswer) -> dict[str, object]:
    document: dict[str, object] | None = None
    if answer.entry is not None:
        note = answer.entry.note
        document = {
            "id": note.id,
            "title": note.title,
            "content": answer.content,
            "confidence": note.confidence,
            "updated_at": format_time(note.updated_at),
            "expires_at": format_optional(note.expires_at),
            "tags": list(note.tags),
            "source_url": note.source_url or "",
        }
    return {
        "hit": document is not None,
        "document": document,
        "stale_exists": answer.stale_id is not None,
        "stale_id": answer.stale_id,
    }
