"""`/console/receipts`: the list of agents' retrievals, newest first, and the page of one retrieval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from quart import Blueprint, Response, request

from lithos.events.reading.event_stream import EventStreams
from lithos.kernel.values.times import parse_time
from lithos.memory.model.memory import Receipt
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.retrieve.questions import is_private
from lithos.memory.retrieve.scouts import CONTRADICTIONS, name_scouts
from lithos.memory.rows.receipts import SCANNED, ReceiptFilter
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.search.ranking.ranking import SCOUTS
from lithos.server.console.console import Console, PageRefused, given
from lithos.server.console.formats import told, told_ids, whole
from lithos.tasks.service.board import BoardReading

PAGE: Final = 100
#: Maximum number of characters of a filter.
LONGEST_FILTER: Final = 200
#: Names of all scouts that occur in receipts.
ALL_SCOUTS: Final = name_scouts((*SCOUTS, CONTRADICTIONS))
COMPLETED: Final = "task.completed"


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the routes of the list and of the receipt page."""
    pages = ReceiptPages(console)
    app.get("/receipts", endpoint="receipts")(pages.index)
    app.get("/receipts/<receipt_id>", endpoint="receipt")(pages.show)


@frozen(kw_only=True)
class ReceiptFeedback:
    """The feedback on a retrieval, given when its task was completed.

    If the feedback names another receipt, `other` is that receipt.
    """

    agent: str
    cited: frozenset[str] = frozenset()
    misleading: frozenset[str] = frozenset()
    elsewhere: Sequence[str] = ()
    other: str | None = None
    is_given: bool = True


@frozen
class ReceiptPages:
    """The console pages about retrievals."""

    _console: Console

    async def index(self) -> Response:
        """Show the list of receipts, newest first."""
        agent, task, note = (given(name, LONGEST_FILTER) or None for name in ("agent", "task", "note"))
        task = task and await self._console.task_id(task)
        note = note and await self._console.note_id(note)
        wanted = ReceiptFilter(agent_id=agent, task_id=task, note_id=note)
        start = whole(request.args.get("before"), 18)
        learning = self._console.parts.get(Learning)
        page = await learning.receipts(wanted, start, PAGE)
        notes = self._console.parts.get(Catalogue)
        private = {one.id for one in page.receipts if is_private(one, notes)}
        return await self._console.show(
            "receipts.html",
            tasks=await self._console.parts.get(BoardReading).titles(
                [one.task_id for one in page.receipts if one.task_id]
            ),
            rows=page.receipts,
            private=private,
            hidden={one.id for one in page.receipts if not self._console.sees_all_of(one.agent_id)} & private,
            before=page.before,
            wanted=wanted,
            note_title=self._console.parts.get(Catalogue).title(wanted.note_id or ""),
            total=None if wanted != ReceiptFilter() else await learning.receipt_count(),
            scanned=SCANNED,
            is_first=start is None,
        )

    async def show(self, receipt_id: str) -> Response:
        """Show one retrieval."""
        learning, catalogue = self._console.parts.get(Learning), self._console.parts.get(Catalogue)
        receipt = await learning.receipt(receipt_id)
        if receipt is None:
            raise PageRefused(
                "Unknown receipt. Only the newest lcma.receipts_kept receipts are kept. Find it in the list.",
                404,
            )
        is_secret = is_private(receipt, catalogue)
        if is_secret and not self._console.sees_all_of(receipt.agent_id):
            raise PageRefused(f"This retrieval returned private notes. {self._console.lacks('admin')}", 403)
        task = await self._task(receipt.task_id) if receipt.task_id else None
        feedback = await self._feedback(receipt, task) if task else None
        taught = {each.note_id: each for each in await learning.taught(receipt)}
        elsewhere = feedback.elsewhere if feedback else ()
        ends = [end for edge in receipt.conflicts_surfaced for end in (edge.from_id, edge.to_id)]
        return await self._console.show(
            "receipt.html",
            receipt=receipt,
            entries={node.id: catalogue.get(node.id) for node in receipt.final_nodes},
            verdicts=[_verdict(node.id, feedback) for node in receipt.final_nodes],
            taught=taught,
            task=task,
            feedback=feedback,
            titles={one: self._console.parts.get(Catalogue).title(one) or "" for one in (*elsewhere, *ends)},
            is_private=is_secret,
            has_failed=receipt.terrace_reached == 0,
            silent=[name for name in ALL_SCOUTS if name not in receipt.scouts_fired],
        )

    async def _task(self, task_id: str) -> Mapping[str, Any]:
        """Return the task of a retrieval. If the task does not exist any more, return only its id."""
        try:
            answer = await self._console.call("lithos_task_get", task_id=task_id)
        except PageRefused:
            return {"id": task_id}
        return dict(answer["task"])

    async def _feedback(self, receipt: Receipt, task: Mapping[str, Any]) -> ReceiptFeedback | None:
        """Return the feedback in the completion event of the task, if the journal still has the event."""
        ended = task.get("resolved_at")
        if task.get("status") != "completed" or not ended:
            return None
        event = await self._console.parts.get(EventStreams).find(
            COMPLETED, parse_time(ended), lambda one: one.draft.payload.get("task_id") == receipt.task_id
        )
        if event is None:
            return None
        payload = event.draft.payload
        cited, misleading = told_ids(payload.get("cited_nodes")), told_ids(payload.get("misleading_nodes"))
        agent = str(payload.get("agent") or "")
        if cited is None and misleading is None:
            return ReceiptFeedback(agent=agent, is_given=False)
        meant = told(payload.get("receipt_id"))
        if not isinstance(meant, str):
            newest = await self._console.parts.get(Learning).newest_receipt(receipt.task_id or "", agent)
            meant = newest.id if newest is not None else ""
        if meant != receipt.id:
            return ReceiptFeedback(agent=agent, other=meant or None, is_given=bool(meant))
        returned = {node.id for node in receipt.final_nodes}
        return ReceiptFeedback(
            agent=agent,
            cited=frozenset(cited or ()),
            misleading=frozenset(misleading or ()),
            elsewhere=[one for one in dict.fromkeys(cited or ()) if one not in returned][:PAGE],
        )


def _verdict(note_id: str, feedback: ReceiptFeedback | None) -> str:
    if feedback is None or not feedback.is_given or feedback.other is not None:
        return ""
    if note_id in feedback.misleading:
        return "misleading"
    return "cited" if note_id in feedback.cited else "not cited"
