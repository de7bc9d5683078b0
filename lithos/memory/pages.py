"""Memory panels on console pages of other capabilities: trust in a note, questions and receipts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen
from quart import Blueprint

from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.memory.model.memory import Receipt
from lithos.memory.model.salience import PATIENCE, STRIKES
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.retrieve.questions import is_private
from lithos.memory.rows.receipts import ReceiptFilter
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.console.note import Reason
from lithos.notes.model.edges import RESOLUTIONS
from lithos.notes.service.knowledge import ReadNote
from lithos.server.console.console import Console

#: Maximum number of questions to show before a search, and number of receipts in which they are searched.
RECENT: Final = 8
LOOKED_AT: Final = 40
#: Maximum number of listed receipts of a task.
MOST_RECEIPTS: Final = 50


def add_routes(console: Console, _: Blueprint) -> None:
    """Add the panels to the console."""
    panels = MemoryPanels(console)
    console.add_panel("note", panels.standing)
    console.add_panel("search", panels.recent)
    console.add_panel("task", panels.receipts)


@frozen
class MemoryPanels:
    """Memory data about the subject of a console page."""

    _console: Console

    async def standing(self, read: ReadNote) -> Mapping[str, Any]:
        """Return the statistics of an existing note, and its salience as learned from feedback."""
        note_id = read.document.note.id
        if note_id not in self._console.parts.get(Catalogue):
            return {"resolutions": RESOLUTIONS}
        stats = await self._console.call("lithos_node_stats", node_id=note_id)
        return {"stats": stats, "learned": _of_feedback(stats), "resolutions": RESOLUTIONS}

    async def recent(self, _: None) -> Mapping[str, Any]:
        """Return the latest questions of retrievals without duplicates. Private questions are left out."""
        parts = self._console.parts
        try:
            page = await parts.get(Learning).receipts(ReceiptFilter(), None, LOOKED_AT)
        except DatabaseFailed:
            return {}
        kept: dict[str, Receipt] = {}
        for receipt in page.receipts:
            question = " ".join(receipt.query.split())
            if question and question not in kept and not is_private(receipt, parts.get(Catalogue)):
                kept[question] = receipt
        return {"recent": list(kept.items())[:RECENT]}

    async def receipts(self, task_id: str) -> Mapping[str, Any]:
        """Return the newest receipts of a task."""
        learning = self._console.parts.get(Learning)
        found = await learning.read(lambda tables: tables.receipts.of_task(task_id, MOST_RECEIPTS))
        return {"receipts": found}


def _of_feedback(stats: Mapping[str, Any]) -> list[Reason]:
    found: list[Reason] = []
    misleading, ignored, cited = stats["misleading_count"], stats["ignored_count"], stats["cited_count"]
    if misleading:
        found.append(
            Reason(
                f"Agents reported {_times(misleading)} that the note misled them. Each report "
                f"lowers its salience, and {STRIKES} reports quarantine it."
            )
        )
    if ignored > PATIENCE and ignored > cited:
        found.append(
            Reason(f"The note was returned and not used {_times(ignored)}, more often than it was cited.")
        )
    if cited:
        found.append(Reason(f"Tasks cited the note {_times(cited)}.", "up", at=stats["last_used_at"] or ""))
    return found


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
