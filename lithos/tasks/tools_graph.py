"""Tools for the task graph: ready and blocked tasks, blockers, children and edges."""

from __future__ import annotations

from typing import Any

from lithos.kernel.parts import Parts
from lithos.kernel.values.projects import WORKING_IN
from lithos.server.tools.arguments import argument, as_command, read_title
from lithos.server.tools.bounds import DESCRIPTION, FILTER, FILTERS, LOOKUP, METADATA, NAME, TITLE
from lithos.server.tools.compacting import CompactForm
from lithos.server.tools.declaring import Answer, tool
from lithos.server.tools.fitting import CuttableAnswer
from lithos.server.tools.serialization import row_of, sliced_rows
from lithos.tasks.model.task import EDGE_TYPES
from lithos.tasks.model.task_commands import RemoveTaskEdge, ReopenTask, SpawnTask, UpsertTaskEdge
from lithos.tasks.model.task_project import asked_project
from lithos.tasks.service.coordination import Coordination, PageBounds, TaskFilter
from lithos.tasks.tools import (
    HELP_AGENT,
    HELP_MATCH,
    HELP_PROJECT,
    HELP_SKIP,
    HELP_TAGS,
    HELP_TASK,
    TASKS,
    listing,
    made_task,
)
from lithos.tasks.tools_rows import edge_row, view_rows


@tool("lithos_task_get", "full", "RI", place=30, title="Show a task", sparing=TASKS, of="tasks")
class TaskGetTool:
    """Get one task without its claims. With claims: lithos_task_status."""

    task_id: str = argument(HELP_TASK, bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer:
        return {"task": row_of(await using.get(Coordination).get(self.task_id))}


@tool(
    "lithos_task_reopen",
    "full",
    "I",
    place=31,
    title="Reopen a task",
    paged=CuttableAnswer(beside=("reblocked",)),
    of="tasks",
)
class TaskReopenTool:
    """Reopen a completed, cancelled or failed task."""

    task_id: str = argument(HELP_TASK, bound=LOOKUP)
    agent: str = argument(HELP_AGENT, bound=NAME)

    async def answer(self, using: Parts) -> Answer:
        reblocked = await using.get(Coordination).run(as_command(ReopenTask, self))
        return {"success": True, "reblocked": reblocked}


@listing("lithos_task_ready", "full", place=32, title="List ready tasks")
class TaskReadyTool:
    """List open tasks that can start now. It claims none: to claim one, use lithos_task_next."""

    project: str | None = argument(HELP_PROJECT, None, bound=LOOKUP)
    tags: tuple[str, ...] = argument(HELP_TAGS, (), bound=FILTERS)
    metadata_match: dict[str, Any] | None = argument(HELP_MATCH, None, bound=FILTER)
    limit: int = argument("Maximum number of tasks.", 50)
    with_claims: bool = argument("Also show claims and their holders.", True)
    offset: int = argument(HELP_SKIP, 0, is_listed=False)

    async def answer(self, using: Parts) -> Answer:
        wanted, page = (
            as_command(TaskFilter, self, project=asked_project(self.project, WORKING_IN.get())),
            PageBounds(self.limit, self.offset),
        )
        views, total = await using.get(Coordination).ready(wanted, page, with_claims=self.with_claims)
        return {"tasks": await view_rows(views), "total": total}


@listing("lithos_task_blocked", "full", place=33, title="List blocked tasks")
class TaskBlockedTool:
    """List open tasks that are blocked, and why."""

    project: str | None = argument(HELP_PROJECT, None, bound=LOOKUP)
    tags: tuple[str, ...] = argument(HELP_TAGS, (), bound=FILTERS)
    metadata_match: dict[str, Any] | None = argument(HELP_MATCH, None, bound=FILTER)
    limit: int = argument("Maximum number of tasks.", 50)
    offset: int = argument(HELP_SKIP, 0, is_listed=False)

    async def answer(self, using: Parts) -> Answer:
        wanted = as_command(TaskFilter, self, project=asked_project(self.project, WORKING_IN.get()))
        views, total = await using.get(Coordination).blocked(wanted, PageBounds(self.limit, self.offset))
        return {"tasks": await view_rows(views), "total": total}


@listing("lithos_task_children", "full", place=34, title="List subtasks")
class TaskChildrenTool:
    """List the child tasks of a task or epic."""

    task_id: str = argument(HELP_TASK, bound=LOOKUP)
    recursive: bool = argument("Also list the children of children.", False)
    include_closed: bool = argument("Also list closed tasks.", False)

    async def answer(self, using: Parts) -> Answer:
        found = await using.get(Coordination).children(
            self.task_id, recursive=self.recursive, include_closed=self.include_closed
        )
        return {"tasks": await sliced_rows(found, row_of)}


@tool("lithos_task_edge_upsert", "full", "I", place=35, title="Link two tasks", of="tasks")
class TaskEdgeUpsertTool:
    """Link two tasks: blocks, waits_on_gate, parent_child or discovered_from."""

    from_task_id: str = argument("Id of the blocker, gate, parent or source.", bound=LOOKUP)
    to_task_id: str = argument("Id of the other task.", bound=LOOKUP)
    type: str = argument("Kind of link.", one_of=EDGE_TYPES, bound=LOOKUP)
    agent: str = argument(HELP_AGENT, bound=NAME)
    metadata: dict[str, Any] | None = argument("Metadata of the link.", None, bound=METADATA)

    async def answer(self, using: Parts) -> Answer:
        source, target = self.from_task_id, self.to_task_id
        await using.get(Coordination).run(
            as_command(UpsertTaskEdge, self, source=source, target=target, metadata=self.metadata or {})
        )
        return {"success": True}


@tool("lithos_task_edge_delete", "full", "DI", place=56, title="Unlink two tasks", of="tasks")
class TaskEdgeDeleteTool:
    """Remove exactly one link between two tasks. A task that only this link blocked can then start."""

    from_task_id: str = argument("Id of the blocker, gate, parent or source.", bound=LOOKUP)
    to_task_id: str = argument("Id of the other task.", bound=LOOKUP)
    type: str = argument("Kind of link.", one_of=EDGE_TYPES, bound=LOOKUP)
    agent: str = argument(HELP_AGENT, bound=NAME)

    async def answer(self, using: Parts) -> Answer:
        source, target = self.from_task_id, self.to_task_id
        command = as_command(RemoveTaskEdge, self, source=source, target=target)
        removed = await using.get(Coordination).run(command)
        return {
            "success": True,
            "from_task_id": removed.source,
            "from_title": removed.source_title,
            "to_task_id": removed.target,
            "to_title": removed.target_title,
            "type": removed.type,
        }


@tool(
    "lithos_task_edge_list",
    "full",
    "RI",
    place=36,
    title="List links of a task",
    paged=CuttableAnswer(rows=("edges",)),
    sparing=CompactForm(always=("edges",)),
    of="tasks",
)
class TaskEdgeListTool:
    """List a task's links to other tasks."""

    task_id: str = argument(HELP_TASK, bound=LOOKUP)
    direction: str = argument(
        "Direction of the listed links.", "both", one_of=("both", "incoming", "outgoing"), bound=LOOKUP
    )
    types: tuple[str, ...] = argument("Only links of these kinds.", (), bound=FILTERS)

    async def answer(self, using: Parts) -> Answer:
        found = await using.get(Coordination).edges(self.task_id, self.direction, self.types)
        return {"edges": await sliced_rows(found, edge_row)}


@tool("lithos_task_spawn", "full", place=37, title="Create a follow-up task", of="tasks", creates=True)
class TaskSpawnTool:
    """Create a follow-up task that inherits project, tags and priority from its source."""

    source_task_id: str = argument("Id of the source task.", bound=LOOKUP)
    title: str = argument("The work to do.", bound=TITLE)
    agent: str = argument(HELP_AGENT, bound=NAME)
    description: str | None = argument("Details.", None, bound=DESCRIPTION)
    relation_type: str = argument(
        "Type of link to the source.",
        "discovered_from",
        one_of=("discovered_from", "blocks"),
        bound=LOOKUP,
    )
    inherit_project: bool = argument("Inherit metadata.project.", True)
    inherit_tags: bool = argument("Inherit the tags.", True)
    inherit_context: bool = argument("Inherit priority, parallelizable and phase.", True)
    metadata: dict[str, Any] | None = argument(
        "Additional keys. They override inherited keys.", None, bound=METADATA
    )

    async def answer(self, using: Parts) -> Answer:
        title, metadata = read_title(self.title), self.metadata or {}
        command = as_command(SpawnTask, self, title=title, metadata=metadata, working_in=WORKING_IN.get())
        return await made_task(using, await using.get(Coordination).run(command))
