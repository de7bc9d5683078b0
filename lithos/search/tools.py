"""The tools lithos_search and lithos_cache_lookup."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import ALL_PROJECTS, WORKING_IN, ProjectFilter, asked_project
from lithos.kernel.values.times import format_optional, format_time
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.first_lines import FirstLooks
from lithos.notes.service.ports import PastSessions
from lithos.notes.service.row_kinds import (
    ALL_KINDS,
    ATTACHMENT,
    ATTACHMENTS_OFF,
    KINDS,
    KINDS_TOLD,
    NOTE,
    SESSION,
    SESSIONS_OFF,
    read_kinds,
)
from lithos.notes.tools_rows import add_projects, look_row, warn
from lithos.search.index.fulltext_schema import Filters
from lithos.search.ranking.match_strength import WEAK
from lithos.search.service.cache import CacheAnswer, CacheLookup, CacheRequest
from lithos.search.service.other_files import (
    BESIDE,
    OtherHit,
    OtherHits,
    OtherQuery,
    mix_hits,
    skipped,
    standings_of,
)
from lithos.search.service.prompts import PromptRequest, Prompts
from lithos.search.service.search import MODES, Search, SearchRequest
from lithos.search.settings import SearchConfig, room_of_rows
from lithos.search.tools_rows import search_row
from lithos.server.settings import ServerConfig
from lithos.server.tools.arguments import argument, as_command, check_choice
from lithos.server.tools.bounds import FILTERS, IDS, LOOKUP, NAME, QUERY, URL
from lithos.server.tools.compacting import CompactForm
from lithos.server.tools.declaring import Answer, tool
from lithos.server.tools.fitting import CuttableAnswer
from lithos.text.snippet import cut, truncate

_SEARCHED: Final = CompactForm(
    always=("results", "id", "title", "snippet", "path", "is_stale"),
    asked={"explain": ("score", "similarity", "derived_from_ids")},
)


@tool(
    "lithos_search",
    "core",
    "RI",
    place=4,
    title="Search notes",
    is_always_loaded=True,
    paged=CuttableAnswer(rows=("results",), totals="none"),
    sparing=_SEARCHED,
    is_heavy=True,
)
class SearchTool:
    """Find specific notes by keywords, meaning, tags, author or path. For notes that help with a task, use
    lithos_retrieve. mode=fulltext supports "phrases", +must, -not, AND/OR/NOT and title:word.
    """

    query: str = argument("Words or question to search for.", may_be_blank=True, bound=QUERY)
    limit: int = argument("Maximum number of results.", 10)
    mode: str = argument("Search method.", "hybrid", one_of=MODES, bound=LOOKUP)
    tags: tuple[str, ...] = argument("Only notes with all of these tags.", (), bound=FILTERS)
    author: str | None = argument("Only notes of this author.", None, bound=LOOKUP)
    path_prefix: str | None = argument("Only notes whose path starts with this.", None, bound=LOOKUP)
    project: str | None = argument("Only notes of this project.", None, bound=LOOKUP, may_be_blank=True)
    threshold: float | None = argument("Minimum similarity, 0 to 1.", None, is_rare=True)
    seed_ids: tuple[str, ...] = argument(
        "Ids of the start notes of a graph search.", (), bound=IDS, is_rare=True
    )
    graph_depth: int = argument("Depth of a graph search in links, 1 to 3.", 2, is_rare=True)
    entities: tuple[str, ...] = argument(
        "Only notes that have all of these entities.", (), bound=FILTERS, is_rare=True
    )
    agent_id: str | None = argument("Your agent id.", None, bound=NAME, is_caller=True)
    offset: int = argument("Number of results to skip.", 0, is_listed=False)
    prefix: bool = argument("Treat the last word as the start of a word.", False, is_listed=False)
    kinds: tuple[str, ...] | None = argument(KINDS_TOLD, None, bound=FILTERS, is_listed=False)
    explain: bool = argument("In compact answers, also return scores and sources.", False, is_listed=False)
    prompt: bool = argument(
        "Treat the query as a prompt: return at most two passages, and only for a strong match.",
        False,
        is_listed=False,
    )
    seen: tuple[str, ...] = argument(
        "With prompt: keys (passage) of passages to leave out.", (), bound=IDS, is_listed=False
    )

    async def answer(self, using: Parts) -> Answer:
        if self.prompt:
            return await self._answer_prompt(using)
        kinds = KINDS if self.kinds is None else read_kinds(self.kinds, known=ALL_KINDS)
        if SESSION in kinds:
            return await self._search_sessions(using, kinds)
        return await self._search_files(using, kinds, self.request(self._room(using)))

    def _room(self, using: Parts) -> int:
        return room_of_rows(using.get(ServerConfig), self.limit)

    async def _search_files(self, using: Parts, kinds: Collection[str], request: SearchRequest) -> Answer:
        """Return the rows of notes and attachments."""
        others, is_first = using.find(OtherHits), not request.offset
        if NOTE not in kinds:
            return await self._search_others(using, others, request)
        beside: Sequence[OtherHit] = ()
        if ATTACHMENT in kinds and others is not None and others.has_any(request.filters):
            beside = await others.beside(self.other_query(using, request, BESIDE))
        if beside and request.offset:  # The hits in other files were already on the first page.
            first = await using.get(Search).look(evolve(request, offset=0))
            before = skipped(first.hits, beside, max(1, request.limit), request.offset)
            request = evolve(request, offset=before)
        answer = await using.get(Search).search(request)
        now = using.clock()
        rows = [search_row(hit, now) for hit in answer.hits]
        await warn(using, ((row["id"], row) for row in rows))
        entries = (hit.entry for hit in answer.hits)
        add_projects(using, zip(entries, rows, strict=True), is_asked=self.explain)
        if others is not None and beside and is_first:
            rows = mix_hits(others, rows, standings_of(answer.hits), beside, max(1, request.limit))
        rows += self._first_looks(using, rows)
        result: dict[str, object] = {"results": rows}
        if answer.failed:
            result |= {"degraded": True, "failed_backends": list(answer.failed)}
        message = answer.message
        if not rows and not message:
            message = using.get(Catalogue).projects.missing(request.filters.project)
        return result | ({"message": message} if message else {})

    async def _search_sessions(self, using: Parts, kinds: Collection[str]) -> Answer:
        """Return the rows of past sessions, after the rows of the other kinds that were asked for.

        The other rows are those of a search without sessions. Turns that probably answer take the last rows
        of the page, and further turns only fill free rows. Turns have no tags, authors, entities and paths,
        so a filter by one of these excludes them.
        """
        check_choice("mode", self.mode, MODES)
        past, others = using.find(PastSessions), [kind for kind in KINDS if kind in kinds]
        is_there = past is not None and past.is_enabled
        limit = max(1, min(self.limit, using.get(SearchConfig).max_results))
        is_filtered = self.tags or self.author or self.entities or self.path_prefix or self.mode == "graph"
        rows: list[dict[str, Any]] = []
        if past is not None and is_there and self.query.strip() and not is_filtered:
            offset = 0 if others else self.offset
            wanted = asked_project(self.project)
            rows = await past.search_rows(self.query, wanted, offset, limit, self.agent_id)
        answer: dict[str, Any] = {"results": rows}
        if others:
            # The first page has fewer other rows, and the next page continues after them.
            sure = min(sum(row["match"] != WEAK.match for row in rows), limit - 1)
            most, offset = (limit, max(0, self.offset - sure)) if self.offset else (limit - sure, 0)
            request = evolve(self.request(self._room(using)), limit=most, offset=offset)
            answer = dict(await self._search_files(using, others, request) or {})
            if not self.offset:
                found = answer["results"][:most]
                answer["results"] = [*found, *rows[: limit - len(found)]]
        return answer if is_there else answer | {"message": SESSIONS_OFF}

    async def _answer_prompt(self, using: Parts) -> Answer:
        here = WORKING_IN.get()
        # At the prompt, notes of other projects are never given, even if they are the only ones that match.
        project = asked_project(self.project)
        if self.project is None and here is not None:
            project = ProjectFilter(here, has_common=True)
        filters = as_command(Filters, self, project=project)
        request = as_command(PromptRequest, self, filters=filters, seen=frozenset(self.seen))
        now, found = using.clock(), await using.get(Prompts).find(request)
        return {
            "results": [
                search_row(each.hit, now) | {"title": each.title, "passage": each.key} for each in found
            ]
        }

    def _first_looks(self, using: Parts, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Fill free rows with notes that are not indexed yet.

        Notes that are not indexed yet are found by their titles and first lines.
        """
        left = max(1, min(self.limit, using.get(SearchConfig).max_results)) - len(rows)
        # The previews have no tags, entities or projects.
        has_project = self.project not in (None, ALL_PROJECTS)
        is_filtered = self.tags or self.author or self.entities or self.offset or has_project
        is_of_words = self.mode in ("hybrid", "fulltext")
        if using.get(Opening).complete.is_set() or is_filtered or left < 1 or not is_of_words:
            return []
        shown = {row["path"] for row in rows}
        least = min((row["score"] for row in rows), default=1.0)
        found = using.get(FirstLooks).find(self.query, left + len(shown), self.path_prefix or "")
        return [look_row(look, least * score) for look, score in found if look.path not in shown][:left]

    def request(self, room: int = 0) -> SearchRequest:
        """Return the search request.

        `room` is the maximum number of JSON characters of all rows, 0 for no limit.
        """
        filters = as_command(Filters, self, project=asked_project(self.project))
        return as_command(SearchRequest, self, filters=filters, room=room)

    async def _search_others(self, using: Parts, others: OtherHits | None, request: SearchRequest) -> Answer:
        """Return rows of other files only."""
        check_choice("mode", self.mode, MODES)
        limit = max(1, min(request.limit, using.get(SearchConfig).max_results))
        if others is None:
            return {"results": [], "message": ATTACHMENTS_OFF}
        hits = await others.search(self.other_query(using, request, limit, offset=request.offset))
        result: dict[str, object] = {"results": [others.row(hit, hit.score) for hit in hits]}
        return result if others.is_enabled else result | {"message": ATTACHMENTS_OFF}

    def other_query(self, using: Parts, request: SearchRequest, limit: int, offset: int = 0) -> OtherQuery:
        """Return the query to the other files of the vault."""
        threshold = using.get(Search).threshold_of(request)
        return as_command(OtherQuery, request, threshold=threshold, limit=limit, offset=offset)


@tool(
    "lithos_cache_lookup",
    "core",
    "RI",
    place=9,
    title="Look up a known answer",
    paged=CuttableAnswer(content="document.content"),
    sparing=CompactForm(always=("hit", "id", "title", "content"), defaults={"confidence": 1.0}),
    is_heavy=True,
)
class CacheLookupTool:
    """Check whether a fresh, trusted note already answers one specific question. Use it before web research.
    hit=false means that none does; to explore related notes, use lithos_retrieve.
    """

    query: str = argument("Question to answer.", may_be_blank=True, bound=QUERY)
    source_url: str | None = argument("Web page that the answer comes from.", None, bound=URL)
    max_age_hours: float | None = argument("Maximum age in hours; older notes are stale.", None)
    min_confidence: float = argument("Minimum confidence of the note, 0 to 1.", 0.5, is_rare=True)
    limit: int = argument("Maximum number of candidates to check.", 3, is_rare=True)
    tags: tuple[str, ...] = argument("Only notes with all of these tags.", (), bound=FILTERS, is_rare=True)
    max_length: int = argument("Maximum number of characters of content.", 4_000, is_rare=True)
    project: str | None = argument(
        "Only notes of this project.", None, bound=LOOKUP, may_be_blank=True, is_rare=True
    )

    async def answer(self, using: Parts) -> Answer:
        if self.max_age_hours is not None and not self.max_age_hours > 0:
            raise InvalidInput(f"max_age_hours must be above 0, not {self.max_age_hours}.")
        if not 0 <= self.min_confidence <= 1:
            raise InvalidInput(f"min_confidence must be between 0 and 1, not {self.min_confidence}.")
        truncate("", self.max_length)  # `truncate` refuses an invalid length before the search runs.
        if self.limit < 1:
            raise InvalidInput(f"limit must be at least 1, not {self.limit}.")
        answer = await using.get(CacheLookup).look_up(self.request())
        row = _cache_row(answer, self.max_length)
        if answer.entry is not None:
            await warn(using, [(answer.entry.note.id, row)])
        return row

    def request(self) -> CacheRequest:
        """Return the request of the lookup."""
        filters = Filters(tags=self.tags, project=asked_project(self.project))
        return as_command(CacheRequest, self, filters=filters)


def _cache_row(answer: CacheAnswer, max_length: int) -> dict[str, object]:
    """Return the answer of `lithos_cache_lookup`. It is marked if the content is cut."""
    document: dict[str, object] | None = None
    if answer.entry is not None:
        note = answer.entry.note
        is_cut = 0 < max_length < len(answer.content)
        content, end = cut(answer.content, max_length) if is_cut else (answer.content, 0)
        document = {
            "id": note.id,
            "title": note.title,
            "content": content,
            "confidence": note.confidence,
            "updated_at": format_time(note.updated_at),
            "expires_at": format_optional(note.expires_at),
            "tags": list(note.all_tags),
            "source_url": note.source_url or "",
        }
        document |= {"truncated": True, "next_offset": end} if is_cut else {}
    row: dict[str, object] = {
        "hit": document is not None,
        "document": document,
        "stale_exists": answer.stale_id is not None,
        "stale_id": answer.stale_id,
        "probability": None if answer.probability is None else round(answer.probability, 4),
        "because": answer.because,
    }
    if answer.candidates:
        row["candidates"] = [
            {"id": each.entry.note.id, "title": each.entry.note.title, "snippet": each.line}
            for each in answer.candidates
        ]
    return row
