"""Tasks as a capability."""

from __future__ import annotations

from lithos.kernel.capability import Capability, Link, Pages
from lithos.kernel.parts import Parts
from lithos.services.tasks.board import Board
from lithos.services.tasks.coordination import Coordination
from lithos.services.tasks.impact import Impact
from lithos.tools.resources.tasks import TaskResources


async def has_task(server: Parts, thing: str) -> bool:
    """Whether there is a task with this id."""
    return bool(await server.get(Coordination).status(thing))


TASKS = Capability(
    name="tasks",
    makers=(Coordination, Impact, Board, TaskResources),
    pages=Pages(
        modules=("lithos.front.console.pages.tasks",), links=(Link(6, "Tasks", "/console/tasks", "t"),)
    ),
    resources=(TaskResources,),
    tools=("lithos.tools.rows.tasks", "lithos.tools.tasks", "lithos.tools.task_graph"),
    holds=has_task,
)
