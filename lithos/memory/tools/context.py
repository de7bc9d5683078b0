"""The briefing tool `lithos_context`. Its answers fit a budget (docs/spec/context.md §1)."""

from __future__ import annotations

from typing import Any

from lithos.kernel.parts import Parts
from lithos.kernel.values.projects import WORKING_IN
from lithos.memory.briefing.briefing import Item
from lithos.memory.briefing.parts import PATH_SHOWN, SECTION_SHOWN, TITLE_SHOWN, AboutNote, LeftOut, one_line
from lithos.memory.context.context import Context
from lithos.memory.context.opening import OPENING
from lithos.memory.context.project_scope import scope_of
from lithos.memory.context.request import SECTIONS, ContextAnswer, ContextRequest, WaitingKeys
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.service.row_kinds import ALL_KINDS, ATTACHMENT, read_kinds
from lithos.search.index.fulltext_schema import Filters
from lithos.search.service.other_files import OtherHit
from lithos.server.settings import ServerConfig
from lithos.server.tools.arguments import argument, as_command
from lithos.server.tools.bounds import FILTERS, LOOKUP, NAME, NAMESPACES, QUERY
from lithos.server.tools.declaring import Answer, tool
from lithos.server.tools.serialization import row_of

#: Maximum number of characters of a reason.
REASON_SHOWN = 240


@tool(
    "lithos_context",
    "core",
    "R",
    place=38,
    title="Get a briefing",
    is_always_loaded=True,
    is_heavy=True,
    fits_itself=True,
)
class ContextTool:
    """Start here: get one ready-to-read briefing on a question or task within a token budget, with relevant
    passages, their sources, warnings and recent activity. To read on in a note, use lithos_read; to list
    matching notes, use lithos_search. Pass receipt_id to lithos_task_complete.
    """

    query: str | None = argument("Question to answer, or work to do.", None, bound=QUERY)
    task_id: str | None = argument("Id of your task.", None, bound=NAME)
    budget: int = argument("Maximum number of tokens, 200 to 20000.", 2_000)
    agent_id: str | None = argument("Your agent id.", None, bound=NAME, is_caller=True)
    tags: tuple[str, ...] = argument("Only notes with all of these tags.", (), bound=FILTERS)
    path_prefix: str | None = argument("Only notes whose path starts with this.", None, bound=LOOKUP)
    namespace_filter: tuple[str, ...] | None = argument(
        "Only notes of these namespaces.", None, bound=NAMESPACES, is_rare=True
    )
    since: str | None = argument("Only changes since this cursor of an earlier answer.", None, bound=LOOKUP)
    sections: tuple[str, ...] | None = argument(
        f"Any of {', '.join(SECTIONS)} (the default), {', '.join(OPENING)}.",
        None,
        bound=FILTERS,
        is_rare=True,
    )
    explain: bool = argument(
        "Compact answers: also why each excerpt was chosen, and the excerpts left out.",
        False,
        is_listed=False,
    )
    cursor: bool = argument("Compact answers: also return a cursor for since.", False, is_listed=False)
    project: str | None = argument("Project; * for all.", None, bound=LOOKUP, may_be_blank=True)
    kinds: tuple[str, ...] | None = argument(
        "Kinds to include; note leaves out attachments and sessions.", None, bound=FILTERS, is_listed=False
    )

    @property
    def has_cursor(self) -> bool:
        """Return whether a compact answer includes a cursor."""
        return self.cursor or self.explain or self.since is not None

    def request(self, *, is_compact: bool = False) -> ContextRequest:
        """Return the request for the context service."""
        scope = scope_of(self.project, WORKING_IN.get())
        return as_command(
            ContextRequest,
            self,
            is_compact=is_compact,
            query=self.query or "",
            filters=as_command(Filters, self, project=scope.filter),
            scope=scope,
            namespaces=self.namespace_filter or None,
            sections=self.sections or SECTIONS,
            kinds=read_kinds(self.kinds, ALL_KINDS, ALL_KINDS),
        )

    async def answer(self, using: Parts) -> Answer:
        waiting = using.find(WaitingKeys)
        told: dict[str, Any] = {} if waiting is None else dict(waiting.told())
        is_compact = using.get(ServerConfig).answers_compactly
        request = self.request(is_compact=is_compact)
        if self.project and (unknown := using.get(Catalogue).projects.missing(request.filters.project)):
            told["message"] = unknown
        if is_compact:
            return await using.get(Context).brief_whole(
                request, told, explains=self.explain, has_cursor=self.has_cursor
            )
        return briefing_row(await using.get(Context).brief(request)) | told


def briefing_row(answer: ContextAnswer) -> dict[str, Any]:
    """Return the answer row of a briefing with its parts."""
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
    """Return a warning about the reason why a briefing is degraded."""
    return {"kind": kind, "id": None, "title": None, "reason": reason, "distance": 0}


def item_row(item: Item) -> dict[str, Any]:
    """Return the row of one excerpt. Long names are shortened as in the text of the briefing."""
    row = row_of(item)
    if not item.project:
        del row["project"]
    return row | {
        "section": item.section[: 4 * SECTION_SHOWN],
        "title": one_line(item.title, TITLE_SHOWN),
        "path": item.path if len(item.path) <= 4 * PATH_SHOWN else one_line(item.path, 4 * PATH_SHOWN),
        "reason": one_line(item.reason, REASON_SHOWN),
    }


def place_row(hit: OtherHit | None) -> dict[str, Any]:
    """Return the additional keys for an excerpt from an attachment. For a note, return an empty mapping."""
    if hit is None:
        return {}
    row: dict[str, Any] = {"kind": ATTACHMENT, "place": hit.place}
    return row if hit.page is None else row | {"page": hit.page}


def left_out_row(left: LeftOut) -> dict[str, Any]:
    """Return the row of an omitted candidate. `tokens` is an estimate for the whole content."""
    return row_of(left) | {
        "title": one_line(left.title, TITLE_SHOWN),
        "reason": one_line(left.reason, REASON_SHOWN),
    }


def about_row(about: AboutNote) -> dict[str, Any]:
    """Return the row of a warning, which names the note."""
    return row_of(about.warning) | {
        "note_id": about.note_id,
        "note_title": one_line(about.note_title, TITLE_SHOWN),
    }
