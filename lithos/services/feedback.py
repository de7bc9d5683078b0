"""Feedback at the completion of a task: which retrieved notes helped, misled or were of no use.

It is checked before the task is completed, and its effects follow the completion (memory spec,
section 6). The completion keeps the lesson until it was learned: whatever ends the process in between, or
refuses to be written, it is learned later, and once. With `lcma.enabled: false` nothing is retrieved and
nothing is learned: then there is no `Feedback`, and the lists only stand in the event of the completion.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

import trio

from lithos.actors.catalogue import Catalogue
from lithos.actors.requests import PatchNote
from lithos.core.errors import LithosError, ReceiptNotFound, StorageFailed
from lithos.core.events import ENRICH_AGENT, ENRICHMENT
from lithos.core.memory import ApplyFeedback, Receipt
from lithos.core.retention import ForgetLessons
from lithos.core.task_commands import CompleteTask
from lithos.services.knowledge import Knowledge
from lithos.services.learning import Learning
from lithos.services.lessons import Lessons
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.feedback")

#: Seconds for which a completion waits for its effects, even when its caller has gone.
EFFECTS_DEADLINE = 30.0
QUARANTINED = "quarantined"


class Feedback:
    """Reads receipts, and teaches what a completed task says of their notes."""

    def __init__(
        self, learning: Learning, knowledge: Knowledge, catalogue: Catalogue, lessons: Lessons
    ) -> None:
        self._learning = learning
        self._knowledge = knowledge
        self._catalogue = catalogue
        self.lessons = lessons

    async def check(self, command: CompleteTask) -> ApplyFeedback | None:
        """What a completion teaches, if anything; changes nothing.

        Raises `ReceiptNotFound`, and `StorageFailed` when a receipt cannot be looked up.
        """
        if command.cited_nodes is None and command.misleading_nodes is None:
            return None
        if command.receipt_id is not None:
            return self._judge(command, await self._named_receipt(command, command.receipt_id))
        receipt = await self._newest_receipt(command)
        return None if receipt is None else self._judge(command, receipt)

    async def apply(self, feedback: ApplyFeedback) -> None:
        """Teach it, and quarantine notes that misled too often. A failure is logged: the task is done.

        A caller that goes away ends neither half way. What failed is repeated by `catch_up`.
        """
        with trio.move_on_after(EFFECTS_DEADLINE, shield=True) as scope:
            try:
                struck: tuple[str, ...] = await self._learning.submit(feedback)
            except LithosError as failure:
                log.error("feedback waits", task=feedback.task_id, reason=failure.message)
                return
            for note_id in struck:
                await self._quarantine(note_id, feedback.task_id)
            if feedback.id is not None:
                self.lessons.drop(feedback.id)
        if scope.cancelled_caught:
            log.error("feedback took too long", task=feedback.task_id, seconds=EFFECTS_DEADLINE)

    async def catch_up(self) -> None:
        """Teach what could not be taught when its task was completed.

        Raises `LithosError` and `DatabaseFailed`.
        """
        applied = await self._learning.applied_lessons()
        due = await self.lessons.due()  # after: what was applied and is not due will not be repeated
        settled = set(applied) - {feedback.id for feedback in due}
        if settled:
            await self._learning.submit(ForgetLessons(tuple(sorted(settled))))
        for feedback in due:
            log.info("feedback taken up again", task=feedback.task_id)
            await self.apply(feedback)

    async def _named_receipt(self, command: CompleteTask, receipt_id: str) -> Receipt:
        try:
            receipt = await self._learning.receipt(receipt_id)
        except DatabaseFailed as failure:
            raise StorageFailed(
                f"The receipt could not be looked up: {failure}. The task stays open; retry, or leave the "
                "feedback out."
            ) from failure
        if receipt is None or receipt.task_id != command.task_id:
            raise ReceiptNotFound(
                f"There is no receipt {receipt_id[:100]!r} for this task, which stays open. "
                "Leave receipt_id out, or give the one that a retrieve call for this task answered."
            )
        return receipt

    async def _newest_receipt(self, command: CompleteTask) -> Receipt | None:
        try:
            receipt = await self._learning.newest_receipt(command.task_id, command.agent)
        except DatabaseFailed as failure:
            log.error("feedback dropped", task=command.task_id, reason=str(failure))
            return None
        if receipt is None:
            log.warning(
                "feedback dropped",
                task=command.task_id,
                agent=command.agent,
                reason="no receipt",
            )
        return receipt

    def _judge(self, command: CompleteTask, receipt: Receipt) -> ApplyFeedback:
        """The lists, without notes that are gone or were not in the receipt."""
        retrieved = [node.id for node in receipt.final_nodes if node.id in self._catalogue]
        cited = _among(command.cited_nodes or (), retrieved)
        misleading = _among(command.misleading_nodes or (), retrieved)
        judged = {*cited, *misleading}
        entries = [entry for note_id in cited if (entry := self._catalogue.get(note_id)) is not None]
        return ApplyFeedback(
            task_id=command.task_id,
            id=uuid.uuid4().hex,
            cited=cited,
            misleading=misleading,
            ignored=tuple(dict.fromkeys(note_id for note_id in retrieved if note_id not in judged)),
            namespaces={entry.note.id: entry.namespace for entry in entries},
        )

    async def _quarantine(self, note_id: str, task_id: str) -> None:
        entry = self._catalogue.get(note_id)
        if entry is None or entry.note.status == QUARANTINED:
            return
        patch = PatchNote(id=note_id, agent=ENRICH_AGENT, status=QUARANTINED, source=ENRICHMENT)
        try:
            await self._knowledge.patch(patch)
        except LithosError as failure:
            log.error("note not quarantined", note=note_id, task=task_id, reason=failure.message)
        else:
            log.warning("note quarantined", note=note_id, path=entry.path, task=task_id)


def _among(given: Iterable[str], known: list[str]) -> tuple[str, ...]:
    """Those that are known, each once, in the given order."""
    return tuple(dict.fromkeys(note_id for note_id in given if note_id in known))
