"""Feedback from completed tasks: which retrieved notes helped, which misled, and which were not used.

Feedback is validated before the task is completed, and applied after the completion (docs/spec/memory.md §6).
A lesson is one feedback that has not been applied yet. It is stored with the completion until it has been
applied. After a crash or a failed write it is retried later, and takes effect only once (`Lessons`). With
`lcma.enabled: false`, nothing is retrieved or learned. In that case there is no `Feedback`, and the lists are
only part of the completion event. `Learning` reads all learned retrieval data (statistics, receipts) and
changes it through the memory actor.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar, overload

import attrs
import cattrs
import trio
from attrs import frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.mailboxes import honest_outcome
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import LithosError, ReceiptNotFound, StorageFailed
from lithos.kernel.values.events import ENRICHMENT
from lithos.kernel.values.principals import ENRICH_AGENT
from lithos.memory.learning.actor import MemoryMailbox
from lithos.memory.model.memory import (
    ApplyFeedback,
    ForgetLessons,
    LearningCommand,
    NodeStats,
    ProjectionOutcome,
    ProjectProvenance,
    Receipt,
)
from lithos.memory.model.questions import RememberedQuestion, digest_question
from lithos.memory.rows.questions import Unembedded
from lithos.memory.rows.receipts import OldReceipt, ReceiptFilter, ReceiptPage
from lithos.memory.rows.stats import StatsStore, StatsTables
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.writing.messages import PatchNote
from lithos.search.service.retrieval_filter import RetrievalFilter
from lithos.tasks.model.task_commands import CompleteTask, DropLesson, Lesson
from lithos.tasks.rows.tasks import TaskRows

T = TypeVar("T")

log = get_logger("lithos.feedback")

LEARNING_DEADLINE = 30.0
#: Maximum number of notes per command that concerns all notes. This takes about 25 ms of the memory actor.
SLICE = 500


class Learning:
    """Queries on the read connection of `stats.db`, and commands to the memory actor.

    Raises `DatabaseFailed`.
    """

    def __init__(self, mailbox: MemoryMailbox, store: StatsStore, reading: Blocking) -> None:
        self._mailbox = mailbox
        self._store = store
        #: The thread for the only read connection to the statistics.
        self._reading = reading

    async def stats(self, node_ids: Iterable[str]) -> dict[str, NodeStats]:
        """Return the statistics of these notes.

        Notes without stored statistics are missing in the result and have the defaults of `NodeStats`.
        """
        wanted = list(node_ids)
        return await self.read(lambda tables: tables.nodes.get(wanted))

    async def receipt(self, receipt_id: str) -> Receipt | None:
        """Return the receipt with this id, or None."""
        return await self.read(lambda tables: tables.receipts.get(receipt_id))

    async def newest_receipt(self, task_id: str, agent_id: str) -> Receipt | None:
        """Return the latest receipt of an agent's retrievals for a task."""
        return await self.read(lambda tables: tables.receipts.newest(task_id, agent_id))

    async def receipt_count(self) -> int:
        """Return the number of receipts."""
        return await self.read(lambda tables: tables.receipts.count())

    async def noted(self, after: str, most: int) -> Sequence[str]:
        """Return a page of note ids after `after`. The notes have stored statistics or ledger rows."""
        return await self.read(lambda tables: tables.ledgers.noted(after, most))

    async def oldest_receipts(self, after: int, most: int) -> list[OldReceipt]:
        """Return a page of receipts after the position `after`, oldest receipt first."""
        return await self.read(lambda tables: tables.receipts.oldest(after, most))

    async def unembedded_questions(self, embedder: str, after: int) -> list[Unembedded]:
        """Return some entries after entry `after` without a vector of this embedder."""
        return await self.read(lambda tables: tables.questions.unembedded(embedder, after))

    async def receipts(self, wanted: ReceiptFilter, before: int | None, most: int) -> ReceiptPage:
        """Return a page of receipts, newest first."""
        return await self.read(lambda tables: tables.receipts.page(wanted, before, most))

    async def taught(self, receipt: Receipt) -> list[RememberedQuestion]:
        """Return what was learned about the returned notes for the question of a receipt."""
        notes = [node.id for node in receipt.final_nodes]
        digest = digest_question(receipt.query)
        return await self.read(lambda tables: tables.questions.of_question(digest, notes))

    @overload
    async def submit(self, command: ProjectProvenance) -> ProjectionOutcome: ...

    @overload
    async def submit(self, command: LearningCommand[T]) -> T: ...

    async def submit(self, command: LearningCommand[object]) -> object:
        """Run a command durably and return its reply. Raises the refusal of the command, or `StorageFailed`.

        Commands that concern all notes are split into batches, so that no retrieval waits long for its
        receipt.
        """
        if isinstance(command, ProjectProvenance) and command.complete:
            return await self._project_all(command)
        return await self._ask(command)

    async def _project_all(self, command: ProjectProvenance) -> ProjectionOutcome:
        """Reconcile the notes slice by slice, then delete the edges of all other notes."""
        total, notes = ProjectionOutcome(), list(command.desired.items())
        for begin in range(0, len(notes), SLICE):
            some = dict(notes[begin : begin + SLICE])
            total += await self._ask(attrs.evolve(command, desired=some, complete=False))
        kept = command.kept | command.desired.keys()
        rest = await self._ask(attrs.evolve(command, desired={}, kept=kept))
        return total + rest

    async def _ask(self, command: LearningCommand[T]) -> T:
        with honest_outcome("Check the statistics again before you retry."):
            return await self._mailbox.ask(command, within=LEARNING_DEADLINE)

    async def read(self, query: Callable[[StatsTables], T]) -> T:
        """Run a query on the tables. Return the result of the query."""

        def look() -> T:
            with self._store.noticing_damage():
                return query(self._store.reading)  # read the attribute here: the first write replaces it

        return await self._reading.run(look)


class Lessons:
    """The pending lessons. Reading from `coordination.db` raises `DatabaseFailed`."""

    def __init__(
        self,
        journal: CoordinationStore,
        reading: JournalThread,
        coordinator: Coordinator,
    ) -> None:
        self._mailbox = coordinator.mailbox
        self._rows = journal.rows(TaskRows)
        self._reading = reading

    def write_down(self, feedback: ApplyFeedback) -> Lesson:
        """Return the lesson in the form that is stored with the completion of the task."""
        return Lesson(feedback.id or "", json.dumps(cattrs.unstructure(feedback)))

    async def due(self) -> list[ApplyFeedback]:
        """Return the pending lessons, oldest first.

        Some of the lessons may already be applied. Unreadable lessons are dropped.
        """
        found = []
        for lesson in await self._reading.run(self._rows.lessons):
            try:
                found.append(cattrs.structure(json.loads(lesson.text), ApplyFeedback))
            except (ValueError, TypeError, cattrs.BaseValidationError) as problem:
                log.error("feedback dropped", lesson=lesson.id, reason=str(problem))
                self.drop(lesson.id)
        return found

    def drop(self, lesson_id: str) -> None:
        """Delete an applied lesson without waiting for the deletion.

        If the lesson were applied again, nothing would change.
        """
        self._mailbox.nudge(DropLesson(id=lesson_id, agent=ENRICH_AGENT))


#: Maximum seconds that a completion waits for its effects, even if its caller has disconnected.
EFFECTS_DEADLINE = 30.0
QUARANTINED = "quarantined"
#: Reason for the quarantine, as stored in the note.
MISLEADING_FEEDBACK = "misleading feedback"
#: Maximum number of notes per completion that were cited but not retrieved, and from which memory learns.
MOST_ELSEWHERE = 20


@frozen
class FeedbackEffects:
    """The effects of one completion."""

    _feedback: Feedback
    _lesson: ApplyFeedback

    @property
    def written(self) -> Lesson:
        """Return the lesson that is stored with the completion."""
        return self._feedback.lessons.write_down(self._lesson)

    async def apply(self) -> None:
        """Apply the lesson as `Feedback.apply` does."""
        await self._feedback.apply(self._lesson)


class Feedback:
    """The validation of completion feedback against its receipt, and its application to note statistics."""

    def __init__(
        self,
        catalogue: Catalogue,
        learning: Learning,
        knowledge: Knowledge,
        lessons: Lessons,
        prepare: Callable[[ApplyFeedback], Awaitable[ApplyFeedback]],
    ) -> None:
        self._learning = learning
        self._knowledge = knowledge
        self._catalogue = catalogue
        self.lessons = lessons
        #: Function that adds the question to the feedback. It raises `LithosError` and `DatabaseFailed`.
        self._prepare = prepare

    async def begin(self, command: CompleteTask) -> FeedbackEffects | None:
        """Return the effects of a completion, or None if there is nothing to learn.

        Raises the same errors as `check`.
        """
        lesson = await self.check(command)
        return None if lesson is None else FeedbackEffects(self, lesson)

    async def check(self, command: CompleteTask) -> ApplyFeedback | None:
        """Validate the feedback of a completion.

        Return its lesson, or None without feedback. Changes nothing.

        Raises `ReceiptNotFound`, and `StorageFailed` if a receipt cannot be read.
        """
        if command.cited_nodes is None and command.misleading_nodes is None:
            return None
        if command.receipt_id is not None:
            return self._judge(command, await self._named_receipt(command, command.receipt_id))
        receipt = await self._newest_receipt(command)
        return None if receipt is None else self._judge(command, receipt)

    async def apply(self, feedback: ApplyFeedback) -> None:
        """Apply a lesson, and quarantine the notes that misled too often. Failures are only logged.

        The feedback is applied even if the caller disconnects. `catch_up` retries lessons that failed.
        """
        with trio.move_on_after(EFFECTS_DEADLINE, shield=True) as scope:
            try:
                struck = await self._learning.submit(await self._prepare(self._still_there(feedback)))
            except (LithosError, DatabaseFailed) as failure:
                log.error("feedback waits", task=feedback.task_id, reason=str(failure))
                return
            for note_id in struck:
                await self._quarantine(note_id, feedback.task_id)
            if feedback.id is not None:
                self.lessons.drop(feedback.id)
        if scope.cancelled_caught:
            log.error("feedback deadline exceeded", task=feedback.task_id, seconds=EFFECTS_DEADLINE)

    def _still_there(self, feedback: ApplyFeedback) -> ApplyFeedback:
        """Return the lesson without the notes that were deleted after it was stored."""
        known = self._catalogue

        lists = ("cited", "misleading", "ignored", "elsewhere")
        there: dict[str, Any] = {
            name: tuple(filter(known.__contains__, getattr(feedback, name))) for name in lists
        }
        return attrs.evolve(feedback, **there)

    async def catch_up(self) -> None:
        """Apply the pending lessons that failed at the completion of their tasks.

        Raises `LithosError` and `DatabaseFailed`.
        """
        applied = await self._learning.read(lambda tables: tables.ledgers.lessons())
        due = await self.lessons.due()  # must be read last, so that no pending lesson is forgotten
        settled = set(applied) - {feedback.id for feedback in due}
        if settled:
            await self._learning.submit(ForgetLessons(tuple(sorted(settled))))
        for feedback in due:
            log.info("pending feedback retried", task=feedback.task_id)
            await self.apply(feedback)

    async def _named_receipt(self, command: CompleteTask, receipt_id: str) -> Receipt:
        try:
            receipt = await self._learning.receipt(receipt_id)
        except DatabaseFailed as failure:
            raise StorageFailed(
                f"The receipt could not be read: {failure}. The task stays open. Retry, or leave "
                "the feedback out."
            ) from failure
        if receipt is None or receipt.task_id != command.task_id:
            raise ReceiptNotFound(
                f"Unknown receipt {receipt_id[:100]!r} for this task. The task stays open. Leave "
                "receipt_id out, or pass the receipt id from a retrieve call for this task."
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
        """Return the feedback without deleted notes.

        Notes that are not in the receipt are listed separately.
        """
        retrieved = [node.id for node in receipt.final_nodes if node.id in self._catalogue]
        cited = _among(command.cited_nodes or (), retrieved)
        misleading = _among(command.misleading_nodes or (), retrieved)
        judged = {*cited, *misleading}
        elsewhere = self._elsewhere(command, receipt, judged)
        entries = [
            entry for note_id in (*cited, *elsewhere) if (entry := self._catalogue.get(note_id)) is not None
        ]
        return ApplyFeedback(
            task_id=command.task_id,
            id=uuid.uuid4().hex,
            cited=cited,
            misleading=misleading,
            ignored=tuple(dict.fromkeys(note_id for note_id in retrieved if note_id not in judged)),
            elsewhere=elsewhere,
            namespaces={entry.note.id: entry.namespace for entry in entries},
            receipt_id=receipt.id,
        )

    def _elsewhere(self, command: CompleteTask, receipt: Receipt, judged: set[str]) -> tuple[str, ...]:
        """Return the first cited notes that are not in the receipt and that its agent may see."""
        spaces = receipt.namespace_filter
        gate = RetrievalFilter(
            namespaces=None if spaces is None else frozenset(spaces),
            task_id=command.task_id,
            agent_id=command.agent,
        )
        retrieved = {*judged, *(node.id for node in receipt.final_nodes)}
        found = [
            note_id
            for note_id in dict.fromkeys(command.cited_nodes or ())
            if note_id not in retrieved and (entry := self._catalogue.get(note_id)) and gate.shows(entry)
        ]
        return tuple(found[:MOST_ELSEWHERE])

    async def _quarantine(self, note_id: str, task_id: str) -> None:
        entry = self._catalogue.get(note_id)
        if entry is None or entry.note.status == QUARANTINED:
            return
        patch = PatchNote(
            id=note_id,
            agent=ENRICH_AGENT,
            status=QUARANTINED,
            quarantine_reason=MISLEADING_FEEDBACK,
            source=ENRICHMENT,
        )
        try:
            await self._knowledge.write(patch)
        except LithosError as failure:
            log.error("note not quarantined", note=note_id, task=task_id, reason=failure.message)
        else:
            log.warning("note quarantined", note=note_id, path=entry.path, task=task_id)


def _among(given: Iterable[str], known: list[str]) -> tuple[str, ...]:
    """Return the known ids in the given order, without duplicates."""
    return tuple(dict.fromkeys(note_id for note_id in given if note_id in known))
