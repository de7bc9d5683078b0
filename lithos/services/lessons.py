"""The lessons of completed tasks between their completion and their effects."""

from __future__ import annotations

import json

import cattrs

from lithos.actors.blocking import Blocking
from lithos.actors.coordinator import CoordinatorMailbox, RunCommand
from lithos.core.events import ENRICH_AGENT
from lithos.core.memory import ApplyFeedback
from lithos.core.task_commands import DropLesson, Lesson
from lithos.stores.tasks import TaskRows
from lithos.telemetry import get_logger

log = get_logger("lithos.feedback")


class Lessons:
    """Reads over the second connection of `coordination.db`; they raise `DatabaseFailed`."""

    def __init__(self, mailbox: CoordinatorMailbox, rows: TaskRows, reading: Blocking) -> None:
        self._mailbox = mailbox
        self._rows = rows
        self._reading = reading

    def write_down(self, feedback: ApplyFeedback) -> Lesson:
        """The lesson as its completion keeps it."""
        return Lesson(feedback.id or "", json.dumps(cattrs.unstructure(feedback)))

    async def due(self) -> list[ApplyFeedback]:
        """What has not had its effects, or may not, oldest first; one that cannot be read is dropped."""
        found = []
        for lesson in await self._reading.run(self._rows.lessons.all):
            try:
                found.append(cattrs.structure(json.loads(lesson.text), ApplyFeedback))
            except (ValueError, TypeError, cattrs.BaseValidationError) as problem:
                log.error("feedback dropped", lesson=lesson.id, reason=str(problem))
                self.drop(lesson.id)
        return found

    def drop(self, lesson_id: str) -> None:
        """Forget one that has had its effects; nobody waits for it, as a repetition changes nothing."""
        self._mailbox.nudge(RunCommand(DropLesson(id=lesson_id, agent=ENRICH_AGENT)))
