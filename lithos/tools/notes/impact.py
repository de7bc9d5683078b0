"""The tool that shows what rests on a note, and quarantines it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import frozen

from lithos.core.errors import InvalidInput
from lithos.core.times import format_time
from lithos.services.tasks.impact import Affected, Impact
from lithos.tools.contract.arguments import argument, check_choice
from lithos.tools.contract.bounds import LOOKUP, NAME, TITLE
from lithos.tools.contract.registry import Answer, Tool
from lithos.tools.contract.rows import linked_row

PREVIEW, QUARANTINE, CLEAR = "preview", "quarantine", "clear"
ACTIONS: Final = (PREVIEW, QUARANTINE, CLEAR)


@frozen
class ImpactArguments:
    """Parameters of `lithos_impact`."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    action: str = argument("preview changes nothing.", PREVIEW, one_of=ACTIONS, bound=LOOKUP)
    agent: str | None = argument("Your id, unless preview.", None, bound=NAME)
    reason: str | None = argument("Why quarantine.", None, bound=TITLE)
    open_tasks: bool = argument("quarantine: open tasks to verify its dependents.", False)


class ImpactTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, impact: Impact) -> None:
        self._impact = impact

    def tools(self) -> Sequence[Tool]:
        """The family."""
        return (
            Tool(
                "lithos_impact",
                "standard",
                "",
                "What rests on a note: notes, tasks, readers; quarantine it if it is wrong.",
                ImpactArguments,
                self.impact,
            ),
        )

    async def impact(self, given: ImpactArguments) -> Answer:
        """`lithos_impact`."""
        check_choice("action", given.action, ACTIONS)
        if given.open_tasks and given.action != QUARANTINE:
            raise InvalidInput(
                f"open_tasks goes with action=quarantine only: {given.action} opens no tasks. Leave it out."
            )
        if given.action == PREVIEW:
            return _answer(await self._impact.preview(given.id))
        if given.agent is None:
            raise InvalidInput(f"action={given.action} needs agent: give your agent id.")
        if given.action == CLEAR:
            return _answer(await self._impact.clear(given.id, given.agent))
        if given.reason is None:
            raise InvalidInput("action=quarantine needs reason: say what is wrong with the note.")
        return _answer(
            await self._impact.quarantine(given.id, given.agent, given.reason, open_tasks=given.open_tasks)
        )


def _answer(found: Affected) -> dict[str, Any]:
    return {
        "id": found.entry.note.id,
        "status": found.entry.note.status,
        "dependents": [
            {
                "id": each.entry.note.id,
                "title": each.entry.note.title,
                "path": each.entry.path,
                "distance": each.distance,
                "via": each.via,
            }
            for each in found.dependents
        ],
        "tasks": [
            {"task_id": task.task_id, "title": task.title, "status": task.status, "how": task.how}
            for task in found.tasks
        ],
        "readers": [
            {"agent": each.agent, "last_read_at": format_time(each.last_read_at), "reads": each.reads}
            for each in found.readers
        ],
        "task_ids": list(found.task_ids),
        "truncated": not found.is_whole,
        **linked_row(found.linked),
    }
