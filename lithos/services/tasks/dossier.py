"""Everything about one task as of one moment, and what closing it would do to others.

Trees of tasks are bounded in depth and in size; a task that stands in one already is not opened again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from attrs import field, frozen

from lithos.actors.actors import Actors
from lithos.core.errors import TaskNotFound
from lithos.core.tasks.graph import Blocker, is_satisfied
from lithos.core.tasks.model import (
    BLOCKING_TYPES,
    BLOCKS,
    DISCOVERED_FROM,
    PARENT_CHILD,
    Finding,
    Task,
)
from lithos.stores.coordination.board_rows import HeldClaim, Told
from lithos.stores.coordination.tasks import TaskRows

#: Levels of a tree of tasks, and tasks in it.
DEEPEST: Final = 5
MOST_BRANCHES: Final = 80
#: Related tasks of one kind that are read, and tasks that a consequence reaches.
MOST_RELATED: Final = 200
MOST_EVENTS: Final = 200
#: Findings that are read; the newest.
MOST_FINDINGS: Final = 5_000


@frozen
class Branch:
    """A task in a tree: what it is waited for by, or what it waits for.

    `is_open_edge`: the edge that leads here still holds the later task back. `is_again`: it stands in the
    tree already. `is_cut`: what comes behind it is not looked at.
    """

    task: Task
    edge_type: str
    is_open_edge: bool
    branches: tuple[Branch, ...] = ()
    is_again: bool = False
    is_cut: bool = False


@frozen(kw_only=True)
class Dossier:
    """One task with what belongs to it."""

    task: Task
    claims: Sequence[HeldClaim]
    blockers: Sequence[Blocker]
    waits_for: Sequence[Branch]
    waited_for_by: Sequence[Branch]
    parent: Task | None
    children: Sequence[Task]
    discovered_from: Sequence[Task]
    discovered: Sequence[Task]
    findings: Sequence[Finding]
    events: Sequence[Told]


@frozen(kw_only=True)
class Effects:
    """What closing does: `direct` wait for the task, each with what else it waits for, `behind` for those."""

    task: Task
    claims: Sequence[HeldClaim]
    direct: Sequence[tuple[Task, Sequence[Task]]]
    behind: Sequence[Task]
    children: Sequence[Task] = field(factory=tuple)


class Dossiers:
    """Reads single tasks."""

    def __init__(self, actors: Actors) -> None:
        self._tasks = actors.stores.coordination.readable_task_rows()
        self._rows = actors.stores.coordination.board_rows()
        self._reading = actors.coordination_reading
        self._clock = actors.clock

    async def read(self, task_id: str) -> Dossier:
        """A task with all that belongs to it. Raises `TaskNotFound`."""

        def look() -> Dossier:
            with self._tasks.snapshot():
                return self._read(self._task(task_id))

        return await self._reading.run(look)

    async def effects(self, task_id: str) -> Effects:
        """What closing a task would do. Raises `TaskNotFound`."""

        def look() -> Effects:
            with self._tasks.snapshot():
                return self._effects(self._task(task_id))

        return await self._reading.run(look)

    async def claims(self) -> list[HeldClaim]:
        """All running claims, the oldest first."""
        now = self._clock()
        found = await self._reading.run(lambda: self._rows.claims(now))
        return [held for some in found.values() for held in some]

    async def titles(self, task_ids: Sequence[str]) -> dict[str, str]:
        """The titles of those of these tasks that there are."""
        found = await self._reading.run(lambda: self._tasks.tasks_by_id(list(dict.fromkeys(task_ids))))
        return {one: task.title for one, task in found.items()}

    def _task(self, task_id: str) -> Task:
        task = self._tasks.task(task_id)
        if task is None:
            raise TaskNotFound(
                f"There is no task {task_id[:100]!r}. Find it on the board, or among those that are done."
            )
        return task

    def _read(self, task: Task) -> Dossier:
        now = self._clock()
        graph = self._tasks.graph_before([task.id], transitively=True)
        related = [
            *((edge.type, "out", edge.target) for edge in self._tasks.edges_from(task.id)),
            *((edge.type, "in", edge.source) for edge in self._tasks.edges_to(task.id)),
        ]
        wanted = [one for one in related if one[0] in (PARENT_CHILD, DISCOVERED_FROM)][:MOST_RELATED]
        known = self._tasks.tasks_by_id([other for _, _, other in wanted])

        def among(kind: str, way: str) -> list[Task]:
            return [known[one[2]] for one in wanted if one[:2] == (kind, way) and one[2] in known]

        return Dossier(
            task=task,
            claims=self._rows.claims(now, task.id).get(task.id, ()),
            blockers=graph.blockers(task.id, now) if task.is_open else (),
            waits_for=_Tree(self._tasks, now, is_forward=False).below(task),
            waited_for_by=_Tree(self._tasks, now, is_forward=True).below(task),
            parent=next(iter(among(PARENT_CHILD, "in")), None),
            children=among(PARENT_CHILD, "out"),
            discovered_from=among(DISCOVERED_FROM, "in"),
            discovered=among(DISCOVERED_FROM, "out"),
            findings=self._tasks.findings(task.id)[-MOST_FINDINGS:],
            events=self._rows.events_of_task(task.id, task.created_at, MOST_EVENTS),
        )

    def _effects(self, task: Task) -> Effects:
        now = self._clock()
        direct = self._open_successors([task.id])
        graph = self._tasks.graph_before([one.id for one in direct])
        seen, level, behind = {task.id, *(one.id for one in direct)}, direct, list[Task]()
        while level and len(behind) < MOST_RELATED:
            level = [one for one in self._open_successors([task.id for task in level]) if one.id not in seen]
            seen.update(one.id for one in level)
            behind += level
        return Effects(
            task=task,
            claims=self._rows.claims(now, task.id).get(task.id, ()),
            direct=[
                (one, [graph.tasks[each] for each in sorted(graph.holders(one.id, now) - {task.id})])
                for one in direct
            ],
            behind=behind[:MOST_RELATED],
            children=[child for child in self._tasks.children(task.id) if child.is_open],
        )

    def _open_successors(self, task_ids: Sequence[str]) -> list[Task]:
        ids = dict.fromkeys(
            other for one in task_ids for other in self._tasks.successors(one, BLOCKING_TYPES)
        )
        found = self._tasks.tasks_by_id(list(ids)[:MOST_RELATED])
        return [found[one] for one in ids if one in found and found[one].is_open]


class _Tree:
    """Walks blocking edges from one task, breadth before size."""

    def __init__(self, rows: TaskRows, now: datetime, *, is_forward: bool) -> None:
        self._rows = rows
        self._now = now
        self._is_forward = is_forward
        self._left = MOST_BRANCHES
        self._seen = set[str]()

    def below(self, task: Task, depth: int = 0) -> tuple[Branch, ...]:
        """The branches of a task."""
        self._seen.add(task.id)
        edges = (
            self._rows.edges_from(task.id, BLOCKING_TYPES)
            if self._is_forward
            else self._rows.edges_to(task.id, BLOCKING_TYPES)
        )
        pairs = [(edge.target if self._is_forward else edge.source, edge.type) for edge in edges]
        pairs = pairs[: max(self._left, 0)]
        self._left -= len(pairs)
        known = self._rows.tasks_by_id([other for other, _ in pairs])
        return tuple(self._branch(task, known[other], kind, depth) for other, kind in pairs if other in known)

    def _branch(self, task: Task, other: Task, kind: str, depth: int) -> Branch:
        before, after = (task, other) if self._is_forward else (other, task)
        is_held = after.is_open and not is_satisfied(before, kind or BLOCKS, self._now)
        if other.id in self._seen:
            return Branch(other, kind, is_held, is_again=True)
        if depth + 1 >= DEEPEST or self._left <= 0:
            return Branch(other, kind, is_held, is_cut=True)
        return Branch(other, kind, is_held, self.below(other, depth + 1))
