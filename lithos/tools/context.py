"""The tool `lithos_context`: a briefing that fits a budget (docs/spec/context.md §1)."""

from __future__ import annotations

from typing import Any

from lithos.core.context.briefing import Item
from lithos.core.context.parts import AboutNote, LeftOut
from lithos.core.context.rendering import PATH_SHOWN, SECTION_SHOWN, TITLE_SHOWN, one_line
from lithos.services.context.context import SECTIONS, ContextRequest
from lithos.stores.indexes.fulltext_query import Filters
from lithos.tools.contract.arguments import argument, as_command
from lithos.tools.contract.bounds import FILTERS, LOOKUP, NAME, NAMESPACES, QUERY
from lithos.tools.contract.declaring import Answer, Services, tool
from lithos.tools.contract.rows import row_of

#: Characters of a reason.
REASON_SHOWN = 240


@tool("lithos_context", "core", "R", place=38, is_heavy=True, fits_itself=True)
class ContextTool:
    """Start here: what is known about a question or task, as one text within a budget. Its receipt_id is
    for lithos_task_complete.
    """

    query: str | None = argument("What you want to know or do.", None, bound=QUERY)
    task_id: str | None = argument("Your task.", None, bound=NAME)
    budget: int = argument("Most tokens of text, 200..20000.", 2_000)
    agent_id: str | None = argument("Your id.", None, bound=NAME, is_caller=True)
    tags: tuple[str, ...] | None = argument("With all these tags.", None, bound=FILTERS)
    path_prefix: str | None = argument("Paths that begin so.", None, bound=LOOKUP)
    namespace_filter: tuple[str, ...] | None = argument("Only these namespaces.", None, bound=NAMESPACES)
    since: str | None = argument("Cursor: only what changed since.", None, bound=LOOKUP)
    sections: tuple[str, ...] | None = argument(
        f"Of {', '.join(SECTIONS)}; default all.", None, bound=FILTERS
    )

    async def answer(self, using: Services) -> Answer:
        answer = await using.context.brief(
            as_command(
                ContextRequest,
                self,
                query=self.query or "",
                filters=Filters(tags=self.tags or (), path_prefix=self.path_prefix or None),
                namespaces=self.namespace_filter or None,
                sections=self.sections or SECTIONS,
            )
        )
        briefing = answer.briefing
        troubles = [
            {"kind": kind, "id": None, "title": None, "reason": reason, "distance": 0}
            for kind, reason in answer.troubles
        ]
        return {
            "text": briefing.text,
            "tokens": briefing.tokens,
            "budget": answer.budget,
            "items": [item_row(item) for item in briefing.items],
            "dropped": [left_out_row(each) for each in briefing.dropped],
            "warnings": [*troubles, *(about_row(each) for each in briefing.warnings)],
            "cursor": answer.cursor,
            "receipt_id": answer.receipt_id,
            "degraded": answer.degraded,
        }


def item_row(item: Item) -> dict[str, Any]:
    """One excerpt; long names are shortened as in the text."""
    return row_of(item) | {
        "section": item.section[: 4 * SECTION_SHOWN],
        "title": one_line(item.title, TITLE_SHOWN),
        "path": item.path if len(item.path) <= 4 * PATH_SHOWN else one_line(item.path, 4 * PATH_SHOWN),
        "reason": one_line(item.reason, REASON_SHOWN),
    }


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
