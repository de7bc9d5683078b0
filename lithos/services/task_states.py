"""Which tasks have ended, for those who keep something as long as a task runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lithos.actors.blocking import Blocking
from lithos.core.tasks import Task
from lithos.stores.tasks import TaskRows


class TaskStates:
    """Asks the coordination database; everything here raises `DatabaseFailed`."""

    def __init__(self, rows: TaskRows, reading: Blocking) -> None:
        self._rows = rows
        #: One thread for the one read connection of the coordination database.
        self._reading = reading

    async def completed(self, task_ids: Sequence[str]) -> list[str]:
        """Those that are completed."""
        return [task.id for task in await self._find(task_ids) if task.status == "completed"]

    async def closed(self, task_ids: Sequence[str]) -> list[str]:
        """Those that are completed or cancelled; nobody knows whether an unknown one is."""
        return [task.id for task in await self._find(task_ids) if not task.is_open]

    async def unsettled(self, task_ids: Sequence[str], since: datetime) -> list[str]:
        """Those that are open, or were closed later than `since` and so may well be reopened."""
        found = await self._find(task_ids)
        return [task.id for task in found if task.is_open or (task.resolved_at or since) > since]

    async def _find(self, task_ids: Sequence[str]) -> list[Task]:
        def read() -> list[Task]:
            with self._rows.snapshot():
                found = [self._rows.task(task_id) for task_id in task_ids]
            return [task for task in found if task is not None]

        return await self._reading.run(read)
