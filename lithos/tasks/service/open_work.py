"""The open tasks of a project for briefings, and the tasks that events are about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.parts import Clock
from lithos.tasks.model.open_tasks import OpenTask, OpenTasks, in_order
from lithos.tasks.model.task import Task
from lithos.tasks.rows.tasks import TaskRows


class OpenWork:
    """A read-only service for open tasks. Raises `DatabaseFailed`."""

    def __init__(self, journal: CoordinationStore, reading: JournalThread, clock: Clock) -> None:
        self._rows = journal.rows(TaskRows)
        self._reading = reading
        self._clock = clock

    async def open(self, passes: Callable[[Task], bool], agent_id: str | None) -> OpenTasks:
        """Return the first open tasks of type `task` that pass.

        The tasks that the agent holds come first, and blocked tasks come last. Tasks of equal rank are sorted
        by age, oldest first, as `lithos_task_next` gives them out.
        """
        now = self._clock()

        def read() -> OpenTasks:
            with self._rows.snapshot():
                every = self._rows.tasks(status="open")
                wanted = [task for task in reversed(every) if task.task_type == "task" and passes(task)]
                claims = self._rows.active_claims(now)
                graph = self._rows.graph_before(task.id for task in wanted)
            found: list[OpenTask] = []
            for task in wanted:
                blockers = sorted(graph.holders(task.id, now))
                blocker = graph.tasks[blockers[0]].title if blockers else ""
                found.append(OpenTask(task, claims.get(task.id, ()), blocker))
            return in_order(found, agent_id)

        return await self._reading.run(read)

    async def tasks(self, task_ids: Collection[str]) -> Mapping[str, Task]:
        """Return the existing tasks with these ids."""
        if not task_ids:
            return {}
        ids = sorted(task_ids)
        return {task.id: task for task in await self._reading.run(lambda: self._rows.some(ids))}
