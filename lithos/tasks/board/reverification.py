"""Re-verification of the notes that depend on a doubtful note: one epic, and one task per direct dependent.

The metadata of these tasks has three keys: `impact_of` is the doubtful note, `reason` the reason, and
`verify` the dependent. Existing tasks are searched in the transaction that creates new tasks, so that no
dependent gets two tasks, however often agents ask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.limits import TITLE
from lithos.kernel.values.messages import Done
from lithos.tasks.model.task import Task
from lithos.tasks.model.task_commands import CreateTask, Dependent, OpenReverification, Reverification
from lithos.tasks.rows.tasks import TaskRows

#: Maximum number of open tasks for one doubtful note. When some are closed, the next call creates the missing
#: tasks.
MOST: Final = 200
IMPACT_OF: Final = "impact_of"
VERIFY: Final = "verify"
REASON: Final = "reason"

Create = Callable[[CreateTask, datetime], Done[str]]


class Reverifying:
    """The board command for re-verifications. `create` creates one task with its events."""

    def __init__(self, rows: TaskRows, create: Create) -> None:
        self._rows = rows
        self._create = create

    def open(self, command: OpenReverification, now: datetime) -> Done[Reverification]:
        """Create the missing tasks. Return all tasks in the order of the dependents.

        A closed task counts while its epic is open, unless the reason has changed.
        """
        ids = self._rows.impact.reverification(command.note.id)
        opened = [task for one in ids if (task := self._rows.task(one)) is not None]
        epic = next((task.id for task in opened if task.task_type == "epic"), None)
        known = {} if epic is None else self._closed(epic, command)
        known |= {_verified(task): task.id for task in reversed(opened)}
        room = MOST - sum(1 for task in opened if _verified(task))
        missing = [dependent for dependent in command.dependents if dependent.id not in known]
        events: list[EventDraft] = []
        for dependent in missing[: max(0, room)]:
            if epic is None:
                done = self._create(_epic(command), now)
                epic = done.reply
                events += done.events
            done = self._create(_task(command, dependent, epic), now)
            known[dependent.id] = done.reply
            events += done.events
        tasks = [known[dependent.id] for dependent in command.dependents if dependent.id in known]
        told = tasks if epic is None else [epic, *tasks]
        return Done(Reverification(tuple(told), is_complete=len(missing) <= room), tuple(events))

    def _closed(self, epic: str, command: OpenReverification) -> dict[str, str]:
        """Return the id of the newest task in the epic with the same reason, by dependent."""
        return {
            _verified(task): task.id
            for task in self._rows.children(epic)
            if task.metadata.get(IMPACT_OF) == command.note.id and task.metadata.get(REASON) == command.reason
        }


def _verified(task: Task) -> str:
    """Return the id of the dependent that a task verifies. Return "" for an epic."""
    dependent = task.metadata.get(VERIFY)
    return dependent if isinstance(dependent, str) and task.task_type != "epic" else ""


def _epic(command: OpenReverification) -> CreateTask:
    note = command.note
    return CreateTask(
        agent=command.agent,
        title=beginning(f"Re-verify notes that depend on {note.title}", TITLE),
        description=(
            f"The note {note.title!r} ({note.path}, id {note.id}) was quarantined: "
            f"{command.reason}\n\nEach task of this epic names a note that depends directly on "
            "it. When all tasks are done, complete the epic. Once the quarantined note is "
            "correct again, call lithos_impact with action=clear."
        ),
        metadata=_metadata(command),
        task_type="epic",
    )


def _task(command: OpenReverification, dependent: Dependent, epic: str) -> CreateTask:
    note = command.note
    return CreateTask(
        agent=command.agent,
        title=beginning(f"Re-verify {dependent.title}", TITLE),
        description=(
            f"The note {dependent.title!r} ({dependent.path}, id {dependent.id}) depends on "
            f"{note.title!r} ({note.path}, id {note.id}), which was quarantined: "
            f"{command.reason}\n\nRead both notes with lithos_read. Correct statements that no "
            "longer hold, or name another source in derived_from_ids. Keep statements that still "
            "hold. Then complete this task and describe your findings in the outcome."
        ),
        metadata={**_metadata(command), VERIFY: dependent.id},
        parent_task_id=epic,
    )


def _metadata(command: OpenReverification) -> Mapping[str, Any]:
    return {IMPACT_OF: command.note.id, REASON: command.reason}
