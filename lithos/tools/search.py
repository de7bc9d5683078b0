"""Tools that look for what is known: search, cache lookup, and a briefing that fits a budget.

The last is `lithos_context` (docs/spec/context.md §1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from lithos.core.attachments.parts import Part
from lithos.core.context.briefing import Item
from lithos.core.context.parts import PATH_SHOWN, SECTION_SHOWN, TITLE_SHOWN, AboutNote, LeftOut, one_line
from lithos.core.errors import InvalidInput
from lithos.core.text.snippet import cut, truncate
from lithos.core.times import format_optional, format_time
from lithos.services.attachments.searching import (
    ATTACHMENT,
    BESIDE,
    KINDS,
    NOTE,
    AttachmentHit,
    AttachmentQuery,
)
from lithos.services.context.context import SECTIONS, ContextAnswer, ContextRequest
from lithos.services.notes.knowledge import CacheAnswer, CacheRequest
from lithos.services.search.search import MODES, SearchRequest
from lithos.stores.indexes.fulltext_schema import Filters
from lithos.tools.attachments import (
    ATTACHMENTS_OFF,
    KINDS_TOLD,
    hit_row,
    mix_hits,
    read_kinds,
    skipped,
    standings_of,
)
from lithos.tools.contract.arguments import argument, as_command, check_choice
from lithos.tools.contract.bounds import FILTERS, IDS, LOOKUP, NAME, NAMESPACES, QUERY, URL
from lithos.tools.contract.declaring import Answer, Services, tool
from lithos.tools.contract.fitting import Paged
from lithos.tools.contract.rows import look_row, row_of, search_row, warn


@tool("lithos_search", "core", "RI", place=4, paged=Paged(rows=("results",), totals="none"), is_heavy=True)
class SearchTool:
    """Find certain notes by words, tags, author or path; for what helps with a task take lithos_retrieve.
    Mode fulltext knows "phrases"~3, +must, -not, AND/OR, title:word^3.
    """

    query: str = argument("What to look for.", may_be_blank=True, bound=QUERY)
    limit: int = argument("Most results.", 10)
    mode: str = argument("How to search.", "hybrid", one_of=MODES, bound=LOOKUP)
    tags: tuple[str, ...] = argument("With all these tags.", (), bound=FILTERS)
    author: str | None = argument("Only this author.", None, bound=LOOKUP)
    path_prefix: str | None = argument("Paths that begin so.", None, bound=LOOKUP)
    threshold: float | None = argument("Smallest similarity, 0..1.", None)
    seed_ids: tuple[str, ...] = argument("Start of a graph search.", (), bound=IDS)
    graph_depth: int = argument("Steps of a graph search, 1..3.", 2)
    entities: tuple[str, ...] = argument("With all these entities.", (), bound=FILTERS)
    agent_id: str | None = argument("Your id.", None, bound=NAME, is_caller=True)
    offset: int = argument("Results to skip.", 0, is_listed=False)
    prefix: bool = argument("The last word may be the beginning of one.", False, is_listed=False)
    kinds: tuple[str, ...] | None = argument(KINDS_TOLD, None, bound=FILTERS, is_listed=False)

    async def answer(self, using: Services) -> Answer:
        kinds = KINDS if self.kinds is None else read_kinds(self.kinds)
        request = self.request()
        if NOTE not in kinds:
            return await self._search_attachments(using, request)
        beside: Sequence[AttachmentHit] = ()
        if ATTACHMENT in kinds and using.attachment_search.has_any(request.filters):
            beside = await using.attachment_search.beside(self.attachment_query(using, request, BESIDE))
        if beside and request.offset:  # they were on the first page
            first = await using.search.look(evolve(request, offset=0))
            before = skipped(first.hits, beside, max(1, request.limit), request.offset)
            request = evolve(request, offset=before)
        answer = await using.search.search(request)
        now = using.clock()
        rows = [search_row(hit, now) for hit in answer.hits]
        await warn(using, ((row["id"], row) for row in rows))
        if beside and not self.offset:
            rows = mix_hits(using, rows, standings_of(answer.hits), beside, max(1, request.limit))
        rows += self._first_looks(using, rows)
        result: dict[str, object] = {"results": rows}
        if answer.failed:
            result |= {"degraded": True, "failed_backends": list(answer.failed)}
        return result | ({"message": answer.message} if answer.message else {})

    def _first_looks(self, using: Services, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Rows for places that are left, of notes known by title and first lines until they are indexed."""
        left = max(1, min(self.limit, using.config.search.max_results)) - len(rows)
        is_filtered = self.tags or self.author or self.entities or self.offset
        is_of_words = self.mode in ("hybrid", "fulltext")
        if using.opening.complete.is_set() or is_filtered or left < 1 or not is_of_words:
            return []
        shown = {row["path"] for row in rows}
        least = min((row["score"] for row in rows), default=1.0)
        found = using.first_looks.find(self.query, left + len(shown), self.path_prefix or "")
        return [look_row(look, least * score) for look, score in found if look.path not in shown][:left]

    def request(self) -> SearchRequest:
        """What the search is asked."""
        return as_command(SearchRequest, self, filters=as_command(Filters, self))

    async def _search_attachments(self, using: Services, request: SearchRequest) -> Answer:
        """Rows of attachments alone."""
        check_choice("mode", self.mode, MODES)
        limit = max(1, min(request.limit, using.config.search.max_results))
        hits = await using.attachment_search.search(
            self.attachment_query(using, request, limit, offset=request.offset)
        )
        result: dict[str, object] = {"results": [hit_row(using, hit, hit.score) for hit in hits]}
        return result if using.config.reads_attachments else result | {"message": ATTACHMENTS_OFF}

    def attachment_query(
        self, using: Services, request: SearchRequest, limit: int, offset: int = 0
    ) -> AttachmentQuery:
        """What is looked for among the files beside the notes."""
        threshold = using.search.threshold_of(request)
        return as_command(AttachmentQuery, request, threshold=threshold, limit=limit, offset=offset)


@tool("lithos_cache_lookup", "core", "RI", place=9, paged=Paged(content="document.content"), is_heavy=True)
class CacheLookupTool:
    """Ask this before you research a question: it answers if a fresh, trusted note does; to look around take
    lithos_retrieve.
    """

    query: str = argument("Question to research.", may_be_blank=True, bound=QUERY)
    source_url: str | None = argument("Its web source.", None, bound=URL)
    max_age_hours: float | None = argument("Older ones are stale.", None)
    min_confidence: float = argument("Least certainty, 0..1.", 0.5)
    limit: int = argument("Candidates.", 3)
    tags: tuple[str, ...] = argument("With all these tags.", (), bound=FILTERS)
    max_length: int = argument("Most characters of content.", 4_000)

    async def answer(self, using: Services) -> Answer:
        if self.max_age_hours is not None and not self.max_age_hours > 0:
            raise InvalidInput(f"max_age_hours must be above 0, not {self.max_age_hours}.")
        if not 0 <= self.min_confidence <= 1:
            raise InvalidInput(f"min_confidence must be between 0 and 1, not {self.min_confidence}.")
        truncate("", self.max_length)  # refuse a bad length before anything is looked for
        if self.limit < 1:
            raise InvalidInput(f"limit must be at least 1, not {self.limit}.")
        answer = await using.knowledge.look_up(as_command(CacheRequest, self))
        row = _cache_row(answer, self.max_length)
        if answer.entry is not None:
            await warn(using, [(answer.entry.note.id, row)])
        return row


def _cache_row(answer: CacheAnswer, max_length: int) -> dict[str, object]:
    """The answer of `lithos_cache_lookup`; a content that is cut says so."""
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


#: Characters of a reason.
REASON_SHOWN = 240


@tool("lithos_context", "core", "R", place=38, is_heavy=True, fits_itself=True)
class ContextTool:
    """Begin a task with this: what is known about it, as one text within a budget; for one question take
    lithos_cache_lookup. Its receipt_id is for lithos_task_complete.
    """

    query: str | None = argument("What you want to know or do.", None, bound=QUERY)
    task_id: str | None = argument("Your task.", None, bound=NAME)
    budget: int = argument("Most tokens, 200..20000.", 2_000)
    agent_id: str | None = argument("Your id.", None, bound=NAME, is_caller=True)
    tags: tuple[str, ...] = argument("With all these tags.", (), bound=FILTERS)
    path_prefix: str | None = argument("Paths that begin so.", None, bound=LOOKUP)
    namespace_filter: tuple[str, ...] | None = argument("Only these namespaces.", None, bound=NAMESPACES)
    since: str | None = argument("Only what changed since.", None, bound=LOOKUP)
    sections: tuple[str, ...] | None = argument(
        f"Of {', '.join(SECTIONS)}; default all.", None, bound=FILTERS
    )
    explain: bool = argument(
        "Compact answers: also why each excerpt is there, and what was left out.", False, is_listed=False
    )
    kinds: tuple[str, ...] | None = argument(
        "note leaves attachments out.", None, bound=FILTERS, is_listed=False
    )

    def request(self, *, is_compact: bool = False) -> ContextRequest:
        """What the context service is asked."""
        return as_command(
            ContextRequest,
            self,
            is_compact=is_compact,
            query=self.query or "",
            filters=as_command(Filters, self),
            namespaces=self.namespace_filter or None,
            sections=self.sections or SECTIONS,
            kinds=read_kinds(self.kinds),
        )

    async def answer(self, using: Services) -> Answer:
        if using.config.answers_compactly:
            told = using.proposals.told()
            return await using.context.brief_whole(self.request(is_compact=True), told, explains=self.explain)
        answer = await using.context.brief(self.request())
        return briefing_row(answer) | using.proposals.told()


def briefing_row(answer: ContextAnswer) -> dict[str, Any]:
    """A briefing with what it is made of."""
    briefing = answer.briefing
    return {
        "text": briefing.text,
        "tokens": briefing.tokens,
        "budget": answer.budget,
        "items": [item_row(item) | place_row(answer.places.get(item.id)) for item in briefing.items],
        "dropped": [left_out_row(each) for each in briefing.dropped],
        "warnings": [
            *(trouble_row(kind, reason) for kind, reason in answer.troubles),
            *(about_row(each) for each in briefing.warnings),
        ],
        "cursor": answer.cursor,
        "receipt_id": answer.receipt_id,
        "degraded": answer.degraded,
    }


def trouble_row(kind: str, reason: str) -> dict[str, Any]:
    """Why a briefing is degraded, among its warnings."""
    return {"kind": kind, "id": None, "title": None, "reason": reason, "distance": 0}


def item_row(item: Item) -> dict[str, Any]:
    """One excerpt; long names are shortened as in the text."""
    return row_of(item) | {
        "section": item.section[: 4 * SECTION_SHOWN],
        "title": one_line(item.title, TITLE_SHOWN),
        "path": item.path if len(item.path) <= 4 * PATH_SHOWN else one_line(item.path, 4 * PATH_SHOWN),
        "reason": one_line(item.reason, REASON_SHOWN),
    }


def place_row(part: Part | None) -> dict[str, Any]:
    """What an excerpt of an attachment says besides; nothing of a note."""
    if part is None:
        return {}
    row: dict[str, Any] = {"kind": ATTACHMENT, "place": part.place}
    return row if part.page is None else row | {"page": part.page}


def left_out_row(left: LeftOut) -> dict[str, Any]:
    """A candidate that is not in the text; `tokens` of its whole content, about."""
    return row_of(left) | {
        "title": one_line(left.title, TITLE_SHOWN),
        "reason": one_line(left.reason, REASON_SHOWN),
    }


def about_row(about: AboutNote) -> dict[str, Any]:
    """A warning, and which note it is about."""
    return row_of(about.warning) | {
        "note_id": about.note_id,
        "note_title": one_line(about.note_title, TITLE_SHOWN),
    }
