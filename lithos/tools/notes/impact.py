"""The tool that shows what rests on a note, and quarantines it."""

from __future__ import annotations

from typing import Any, Final

from lithos.core.errors import InvalidInput
from lithos.services.tasks.impact import Affected
from lithos.tools.contract.arguments import argument, check_choice
from lithos.tools.contract.bounds import LOOKUP, NAME, TITLE
from lithos.tools.contract.declaring import Answer, Services, tool
from lithos.tools.contract.fitting import Paged
from lithos.tools.contract.rows import linked_row, row_of

PREVIEW, QUARANTINE, CLEAR = "preview", "quarantine", "clear"
ACTIONS: Final = (PREVIEW, QUARANTINE, CLEAR)


@tool(
    "lithos_impact",
    "standard",
    place=43,
    paged=Paged(rows=("dependents", "tasks", "readers"), totals="none", beside=("linked_from",)),
    preview=("action", PREVIEW),
)
class ImpactTool:
    """What rests on a note: notes, tasks, readers; quarantine it if it is wrong."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    action: str = argument("preview changes nothing.", PREVIEW, one_of=ACTIONS, bound=LOOKUP)
    agent: str | None = argument("Your id, unless preview.", None, bound=NAME)
    reason: str | None = argument("Why quarantine.", None, bound=TITLE)
    open_tasks: bool = argument("quarantine: open tasks to verify its dependents.", False)

    async def answer(self, using: Services) -> Answer:
        check_choice("action", self.action, ACTIONS)
        if self.open_tasks and self.action != QUARANTINE:
            raise InvalidInput(
                f"open_tasks goes with action=quarantine only: {self.action} opens no tasks. Leave it out."
            )
        if self.action == PREVIEW:
            return _answer(await using.impact.preview(self.id))
        if self.agent is None:
            raise InvalidInput(f"action={self.action} needs agent: give your agent id.")
        if self.action == CLEAR:
            return _answer(await using.impact.clear(self.id, self.agent))
        if self.reason is None:
            raise InvalidInput("action=quarantine needs reason: say what is wrong with the note.")
        return _answer(
            await using.impact.quarantine(self.id, self.agent, self.reason, open_tasks=self.open_tasks)
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
        "tasks": [row_of(task) for task in found.tasks],
        "readers": [row_of(each) for each in found.readers],
        "task_ids": list(found.task_ids),
        "truncated": not found.is_whole,
        **linked_row(found.linked),
    }
