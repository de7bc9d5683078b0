"""Tasks as MCP resources (docs/spec/mcp.md §4)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from attrs import define

from lithos.kernel.values.errors import AmbiguousIdPrefix, TaskNotFound
from lithos.server.mcp.resource_pages import (
    JSON,
    Content,
    ListedResource,
    ListPosition,
    UnknownResource,
    find_newest,
)
from lithos.server.tools.resource_uris import TASK_PREFIX, ResourceAddress
from lithos.server.tools.serialization import row_of, sliced_rows
from lithos.tasks import tools_rows as _rows  # noqa: F401 - it registers rows
from lithos.tasks.model.task import Task
from lithos.tasks.service.coordination import Coordination, TaskFilter


@define(eq=False)
class TaskResources:
    """Task resources with claims, findings and blockers. The list contains only open tasks."""

    kind: ClassVar[str] = "task"
    template: ClassVar[dict[str, str]] = {
        "uriTemplate": f"{TASK_PREFIX}{{id}}",
        "name": "task",
        "title": "Task",
        "description": "A task with its claims, findings and predecessors.",
        "mimeType": JSON,
    }
    _coordination: Coordination

    async def find(self, id: str) -> None:
        """Raise `UnknownResource` if the task does not exist."""
        with _known_task():
            await self._coordination.get(id)

    async def read(self, id: str, agent: str) -> Content:
        """Return a task with its claims, findings and blockers. Raises `UnknownResource`."""
        with _known_task():
            sheet = await self._coordination.sheet(id)
        body = {
            "task": row_of(sheet.task),
            "claims": [row_of(claim) for claim in sheet.claims],
            "findings": await sliced_rows(sheet.findings, row_of),
            "blockers": [row_of(blocker) for blocker in sheet.blockers],
        }
        return Content(JSON, body)

    async def newest(self, after: ListPosition | None, count: int) -> list[ListedResource]:
        """Return open tasks older than `after`, newest first."""
        views = await self._coordination.list_tasks(TaskFilter(status="open"), with_claims=False)
        tasks = [view.task for view in views]
        return [_listed(task) for task in await find_newest(tasks, _place_of, after, count)]


@contextmanager
def _known_task() -> Iterator[None]:
    try:
        yield
    except (TaskNotFound, AmbiguousIdPrefix) as missing:
        raise UnknownResource(f"{missing.message} Find it with lithos_task_list.") from missing


def _place_of(task: Task) -> ListPosition:
    return task.created_at, task.id


def _listed(task: Task) -> ListedResource:
    told = {"name": task.title, "title": task.title, "mimeType": JSON}
    return ListedResource(ResourceAddress("task", task.id), told, _place_of(task))
