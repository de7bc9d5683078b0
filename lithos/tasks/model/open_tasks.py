"""Open tasks as values, in the order in which an agent needs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import evolve, frozen

from lithos.tasks.model.task import Claim, Task

#: Ranks in the order: own claims first, then claims of other agents, then free tasks, then blocked tasks.
_OWN, _HELD, _FREE, _BLOCKED = range(4)
#: Maximum number of tasks in an answer.
MOST_TASKS: Final = 12


@frozen
class OpenTask:
    """An open task with its unexpired claims, and the title of a task that blocks it, or ""."""

    task: Task
    claims: Sequence[Claim] = ()
    blocker: str = ""

    def rank(self, agent_id: str | None) -> int:
        """Return the rank of the task for an agent."""
        if self.claims:
            return _OWN if any(claim.agent == agent_id for claim in self.claims) else _HELD
        return _BLOCKED if self.blocker else _FREE


@frozen
class OpenTasks:
    """The first open tasks for an agent, and the number of all open tasks that were asked for."""

    shown: Sequence[OpenTask] = ()
    total: int = 0
    agent_id: str | None = None

    def __bool__(self) -> bool:
        return bool(self.shown)


def in_order(tasks: Iterable[OpenTask], agent_id: str | None) -> OpenTasks:
    """Return the first tasks for an agent. Tasks of equal rank keep their order."""
    ordered = sorted(tasks, key=lambda each: each.rank(agent_id))
    return OpenTasks(ordered[:MOST_TASKS], len(ordered), agent_id)


def join_tasks(every: Sequence[OpenTasks]) -> OpenTasks:
    """Return the first open tasks of several vaults for the same agent."""
    agent_id = next((each.agent_id for each in every), None)
    joined = in_order((task for each in every for task in each.shown), agent_id)
    return evolve(joined, total=sum(each.total for each in every))
