"""Tools of the task graph: ready and blocked tasks, blockers, children and edges."""

from __future__ import annotations

from collections.abc import Sequence

from lithos.core.tasks.commands import ReopenTask, SpawnTask, UpsertTaskEdge
from lithos.services.tasks.coordination import Coordination, Page, TaskFilter
from lithos.tools.contract.arguments import as_command, read_title
from lithos.tools.contract.registry import Answer, Tool
from lithos.tools.contract.rows import edge_row, sliced_rows, task_record, view_rows
from lithos.tools.tasks.arguments import (
    BlockedArguments,
    ChildrenArguments,
    EdgeArguments,
    ListEdgesArguments,
    ReadyArguments,
    ReopenArguments,
    SpawnArguments,
    TaskArguments,
)


class TaskGraphTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, coordination: Coordination) -> None:
        self._coordination = coordination

    def tools(self) -> Sequence[Tool]:
        """The family."""
        return (*self._of_one_task(), *self._of_views(), *self._of_relations())

    def _of_one_task(self) -> Sequence[Tool]:
        return (
            Tool("lithos_task_get", "full", "RI", "One task.", TaskArguments, self.get),
            Tool(
                "lithos_task_reopen", "full", "I", "Open a closed task again.", ReopenArguments, self.reopen
            ),
        )

    def _of_views(self) -> Sequence[Tool]:
        return (
            Tool(
                "lithos_task_ready",
                "full",
                "RI",
                "Open tasks that can start now.",
                ReadyArguments,
                self.ready,
            ),
            Tool(
                "lithos_task_blocked",
                "full",
                "RI",
                "Open tasks that wait, with the reasons.",
                BlockedArguments,
                self.blocked,
            ),
            Tool(
                "lithos_task_children",
                "full",
                "RI",
                "Children of a task or epic.",
                ChildrenArguments,
                self.children,
            ),
        )

    def _of_relations(self) -> Sequence[Tool]:
        return (
            Tool(
                "lithos_task_edge_upsert",
                "full",
                "I",
                "Relate two tasks: blocks, waits_on_gate, parent_child, discovered_from.",
                EdgeArguments,
                self.link,
            ),
            Tool("lithos_task_edge_list", "full", "RI", "Edges of a task.", ListEdgesArguments, self.edges),
            Tool(
                "lithos_task_spawn",
                "full",
                "",
                "Create a task that comes out of another and inherits from it.",
                SpawnArguments,
                self.spawn,
            ),
        )

    async def get(self, given: TaskArguments) -> Answer:
        """`lithos_task_get`."""
        return {"task": task_record(await self._coordination.get(given.task_id))}

    async def reopen(self, given: ReopenArguments) -> Answer:
        """`lithos_task_reopen`."""
        reblocked = await self._coordination.run(as_command(ReopenTask, given))
        return {"success": True, "reblocked": reblocked}

    async def ready(self, given: ReadyArguments) -> Answer:
        """`lithos_task_ready`."""
        page = Page(given.limit, given.offset)
        views, total = await self._coordination.ready(_filter(given), page, with_claims=given.with_claims)
        return {"tasks": await view_rows(views), "total": total}

    async def blocked(self, given: BlockedArguments) -> Answer:
        """`lithos_task_blocked`."""
        views, total = await self._coordination.blocked(_filter(given), Page(given.limit, given.offset))
        return {"tasks": await view_rows(views), "total": total}

    async def children(self, given: ChildrenArguments) -> Answer:
        """`lithos_task_children`."""
        found = await self._coordination.children(
            given.task_id, recursive=given.recursive, include_closed=given.include_closed
        )
        return {"tasks": await sliced_rows(found, task_record)}

    async def link(self, given: EdgeArguments) -> Answer:
        """`lithos_task_edge_upsert`."""
        await self._coordination.run(
            UpsertTaskEdge(
                source=given.from_task_id,
                target=given.to_task_id,
                type=given.type,
                agent=given.agent,
                metadata=given.metadata or {},
            )
        )
        return {"success": True}

    async def edges(self, given: ListEdgesArguments) -> Answer:
        """`lithos_task_edge_list`."""
        found = await self._coordination.edges(given.task_id, given.direction, given.types or ())
        return {"edges": await sliced_rows(found, edge_row)}

    async def spawn(self, given: SpawnArguments) -> Answer:
        """`lithos_task_spawn`."""
        title, metadata = read_title(given.title), given.metadata or {}
        command = as_command(SpawnTask, given, title=title, metadata=metadata)
        return {"task_id": await self._coordination.run(command)}


def _filter(given: ReadyArguments | BlockedArguments) -> TaskFilter:
    return TaskFilter(tags=given.tags or (), metadata_match=given.metadata_match, project=given.project)
