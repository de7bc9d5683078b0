"""`/console/receipts`: what agents retrieved, newest first; one retrieval with what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen
from quart import Blueprint, Response, request

from lithos.catalogue.catalogue import Entry
from lithos.core.events import Event
from lithos.core.learning.memory import FinalNode, Receipt
from lithos.core.learning.questions import RememberedQuestion
from lithos.core.learning.ranking import SCOUTS
from lithos.core.times import parse_time
from lithos.front.console.console import Console, Refused
from lithos.services.retrieve.questions import PRIVATE
from lithos.services.retrieve.scouts import CONTRADICTIONS, name_scouts
from lithos.stores.learning.receipts import SCANNED, ReceiptFilter

PAGE: Final = 100
#: Characters of a filter.
LONGEST_FILTER: Final = 200
#: As receipts name them.
ALL_SCOUTS: Final = name_scouts((*SCOUTS, CONTRADICTIONS))
COMPLETED: Final = "task.completed"


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the list and the page of one receipt."""
    pages = ReceiptPages(console)
    app.get("/receipts", endpoint="receipts")(pages.index)
    app.get("/receipts/<receipt_id>", endpoint="receipt")(pages.show)


@frozen
class Summary:
    """One row of the list."""

    receipt: Receipt
    is_private: bool
    #: The question is not for the person who looks.
    is_hidden: bool


@frozen(kw_only=True)
class Returned:
    """A note that a retrieval returned, and what was said of it later; `entry` is None once it is deleted."""

    place: int
    node: FinalNode
    entry: Entry | None
    #: `cited`, `misleading`, `not cited`, or empty while nobody has said anything.
    verdict: str = ""
    #: What the memory of questions holds of it for this very question.
    taught: RememberedQuestion | None = None


@frozen(kw_only=True)
class Feedback:
    """What the completion of the task said of a retrieval; `other` is the receipt it named instead."""

    agent: str
    at: Any
    cited: frozenset[str] = frozenset()
    misleading: frozenset[str] = frozenset()
    elsewhere: Sequence[str] = ()
    other: str | None = None
    is_given: bool = True


@frozen(kw_only=True)
class TaskState:
    """The task a retrieval was made for; `title` is empty when it is not there."""

    id: str
    title: str = ""
    status: str = ""
    feedback: Feedback | None = None
    row: Mapping[str, Any] = field(factory=dict)


@frozen
class ReceiptPages:
    """The pages about retrievals."""

    _console: Console

    async def index(self) -> Response:
        """Receipts, newest first."""
        wanted = ReceiptFilter(agent_id=_filter("agent"), task_id=_filter("task"), note_id=_filter("note"))
        before = request.args.get("before", "")
        start = int(before) if before.isascii() and before.isdecimal() and len(before) < 19 else None
        learning = self._console.parts.learning
        page = await learning.receipts(wanted, start, PAGE)
        note = self._console.parts.catalogue.get(wanted.note_id) if wanted.note_id else None
        return await self._console.show(
            "receipts.html",
            rows=[self._summarise(receipt) for receipt in page.receipts],
            before=page.before,
            wanted=wanted,
            note_title=note.note.title if note else "",
            total=None if wanted != ReceiptFilter() else await learning.receipt_count(),
            scanned=SCANNED,
            is_first=start is None,
        )

    async def show(self, receipt_id: str) -> Response:
        """One retrieval."""
        learning = self._console.parts.learning
        receipt = await learning.receipt(receipt_id)
        if receipt is None:
            raise Refused(
                "There is no such receipt. The newest lcma.receipts_kept are kept: look for it in the list.",
                404,
            )
        is_private = self._is_private(receipt)
        if is_private and not self._console.sees_all_of(receipt.agent_id):
            raise Refused(f"This retrieval returned private notes. {self._console.lacks('admin')}", 403)
        task = await self._task(receipt) if receipt.task_id else None
        taught = {each.note_id: each for each in await learning.taught(receipt)}
        feedback = task.feedback if task is not None else None
        catalogue = self._console.parts.catalogue
        returned = [
            Returned(
                place=place,
                node=node,
                entry=catalogue.get(node.id),
                verdict=_verdict(node.id, feedback),
                taught=taught.get(node.id),
            )
            for place, node in enumerate(receipt.final_nodes, start=1)
        ]
        titles = {
            note_id: entry.note.title
            for edge in receipt.conflicts_surfaced
            for note_id in (edge.from_id, edge.to_id)
            if (entry := catalogue.get(note_id)) is not None
        }
        elsewhere = [(one, catalogue.get(one)) for one in feedback.elsewhere] if feedback else []
        return await self._console.show(
            "receipt.html",
            receipt=receipt,
            returned=returned,
            task=task,
            feedback=feedback,
            elsewhere=elsewhere,
            titles=titles,
            is_private=is_private,
            has_failed=receipt.terrace_reached == 0,
            silent=[name for name in ALL_SCOUTS if name not in receipt.scouts_fired],
        )

    def _summarise(self, receipt: Receipt) -> Summary:
        is_private = self._is_private(receipt)
        return Summary(receipt, is_private, is_private and not self._console.sees_all_of(receipt.agent_id))

    def _is_private(self, receipt: Receipt) -> bool:
        """Whether the question is shown only to who asked it, and to `admin` (docs/spec/memory.md §8)."""
        entries = (self._console.parts.catalogue.get(node.id) for node in receipt.final_nodes)
        return any(entry is not None and entry.note.access_scope == PRIVATE for entry in entries)

    async def _task(self, receipt: Receipt) -> TaskState:
        """The task of a retrieval, and what its completion said."""
        task_id = receipt.task_id or ""
        try:
            row = (await self._console.call("lithos_task_get", task_id=task_id))["task"]
        except Refused:
            return TaskState(id=task_id)
        state = TaskState(id=task_id, title=str(row["title"]), status=str(row["status"]), row=row)
        ended = row.get("resolved_at")
        if state.status != "completed" or not ended:
            return state
        event = await self._console.parts.streams.find(
            COMPLETED, parse_time(ended), lambda one: one.draft.payload.get("task_id") == task_id
        )
        feedback = None if event is None else await self._feedback(receipt, event)
        return TaskState(id=task_id, title=state.title, status=state.status, feedback=feedback, row=row)

    async def _feedback(self, receipt: Receipt, event: Event) -> Feedback:
        payload = event.draft.payload
        cited, misleading = _ids(payload.get("cited_nodes")), _ids(payload.get("misleading_nodes"))
        agent = str(payload.get("agent") or "")
        at = event.draft.timestamp
        if cited is None and misleading is None:
            return Feedback(agent=agent, at=at, is_given=False)
        meant = _told(payload.get("receipt_id"))
        if not isinstance(meant, str):
            newest = await self._console.parts.learning.newest_receipt(receipt.task_id or "", agent)
            meant = newest.id if newest is not None else ""
        if meant != receipt.id:
            return Feedback(agent=agent, at=at, other=meant or None, is_given=bool(meant))
        returned = {node.id for node in receipt.final_nodes}
        return Feedback(
            agent=agent,
            at=at,
            cited=frozenset(cited or ()),
            misleading=frozenset(misleading or ()),
            elsewhere=[one for one in dict.fromkeys(cited or ()) if one not in returned][:PAGE],
        )


def _filter(name: str) -> str | None:
    """A filter of the query string; None when it is blank."""
    return request.args.get(name, "").strip()[:LONGEST_FILTER] or None


def _told(value: object) -> object:
    """What a payload tells as JSON text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None


def _ids(told: object) -> list[str] | None:
    """The ids of a list that a payload tells."""
    value = _told(told)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list | tuple) else None


def _verdict(note_id: str, feedback: Feedback | None) -> str:
    if feedback is None or not feedback.is_given or feedback.other is not None:
        return ""
    if note_id in feedback.misleading:
        return "misleading"
    return "cited" if note_id in feedback.cited else "not cited"
