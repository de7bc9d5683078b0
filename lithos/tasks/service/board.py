"""The task board for the console: open tasks by readiness, gates, epics, closed tasks, and single tasks.

The columns follow the rules of `lithos_task_ready` and `lithos_task_blocked`. Only displayed tasks are read
in full. A single task is returned with related data and with the effects of closing it. Task trees are
limited in depth and size, and a repeated task is not expanded again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, TypeVar

from attrs import field, frozen

from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import TaskNotFound
from lithos.tasks.model.graph import Blocker, is_satisfied
from lithos.tasks.model.task import (
    BLOCKING_TYPES,
    BLOCKS,
    DISCOVERED_FROM,
    PARENT_CHILD,
    WAITS_ON_GATE,
    Finding,
    Task,
)
from lithos.tasks.rows.board_rows import BoardRows, HeldClaim, JournalledEvent, LightTask
from lithos.tasks.rows.tasks import TaskRows

T = TypeVar("T")

READY: Final = "ready"
BLOCKED: Final = "blocked"
CLAIMED: Final = "claimed"
DONE: Final = "done"
GATES: Final = "gates"
EPICS: Final = "epics"
COLUMNS: Final = (READY, BLOCKED, CLAIMED, DONE, GATES, EPICS)


@frozen(kw_only=True)
class BoardFilter:
    """A filter of the board. `agent` matches the creator of a task and the holders of its claims."""

    project: str | None = None
    tag: str | None = None
    agent: str | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether the filter accepts every task."""
        return not (self.project or self.tag or self.agent)

    def passes(self, task: LightTask, claims: Sequence[HeldClaim]) -> bool:
        """Return whether a task passes the filter."""
        return (
            (not self.project or task.is_of(self.project))
            and (not self.tag or task.has_tag(self.tag))
            and (
                not self.agent
                or task.created_by == self.agent
                or any(held.claim.agent == self.agent for held in claims)
            )
        )


@frozen(kw_only=True)
class TaskCard:
    """A task card in a column.

    `children` counts child tasks by status, and `waiting` counts open dependents.
    """

    task: Task
    claims: Sequence[HeldClaim] = ()
    #: Blockers, with the title of each blocking task or gate.
    blockers: Sequence[tuple[Blocker, str]] = ()
    children: dict[str, int]
    waiting: int = 0


@frozen
class BoardColumn:
    """The cards of a board column, and the total number of tasks in the column."""

    name: str
    cards: Sequence[TaskCard]
    total: int


#: Maximum depth of a task tree, and maximum number of tasks in it.
DEEPEST: Final = 5
MOST_BRANCHES: Final = 80
#: Maximum number of related tasks to read for each kind, and of tasks among the effects of closing.
MOST_RELATED: Final = 200
MOST_EVENTS: Final = 200
#: Maximum number of findings to read, newest first.
MOST_FINDINGS: Final = 5_000


@frozen
class Branch:
    """A task in a tree. It waits for the task above it, or the task above waits for it.

    `is_open_edge`: the edge to this task still blocks. `is_again`: the task already occurs in the tree.
    `is_cut`: the tasks below it are left out.
    """

    task: Task
    edge_type: str
    is_open_edge: bool
    branches: tuple[Branch, ...] = ()
    is_again: bool = False
    is_cut: bool = False


@frozen(kw_only=True)
class Dossier:
    """A single task with its related data."""

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
    events: Sequence[JournalledEvent]


@frozen(kw_only=True)
class Effects:
    """The effects of closing a task.

    `direct` lists tasks that wait for the closed task, with their other predecessors. `behind` lists tasks
    that wait for `direct` tasks.
    """

    task: Task
    claims: Sequence[HeldClaim]
    direct: Sequence[tuple[Task, Sequence[Task]]]
    behind: Sequence[Task]
    children: Sequence[Task] = field(factory=tuple)


class BoardReading:
    """A reader of board columns and single tasks. Each read uses one snapshot."""

    def __init__(
        self,
        journal: CoordinationStore,
        reading: JournalThread,
        clock: Clock,
    ) -> None:
        self._tasks = journal.rows(TaskRows)
        self._rows = journal.rows(BoardRows)
        self._reading = reading
        self._clock = clock

    async def _look(self, read: Callable[[], T]) -> T:
        def look() -> T:
            with self._tasks.snapshot():
                return read()

        return await self._reading.run(look)

    async def columns(
        self, wanted: BoardFilter, limit: int, *, only: str | None = None, offset: int = 0
    ) -> dict[str, BoardColumn]:
        """Return all columns with at most `limit` cards each, or one column starting at an offset."""
        return await self._look(lambda: self._columns(wanted, limit, only, offset))

    def _columns(
        self, wanted: BoardFilter, limit: int, only: str | None, offset: int
    ) -> dict[str, BoardColumn]:
        now = self._clock()
        claims = self._rows.claims(now)
        names = COLUMNS if only is None else (only,)
        ids = self._sort(wanted, claims, now)
        found: dict[str, BoardColumn] = {}
        for name in names:
            if name == DONE:
                found[name] = self._done(wanted, limit, offset)
            else:
                shown = ids[name][offset : offset + limit]
                found[name] = BoardColumn(name, self._cards(shown, claims, now), len(ids[name]))
        return found

    def _sort(
        self, wanted: BoardFilter, claims: dict[str, list[HeldClaim]], now: datetime
    ) -> dict[str, list[str]]:
        """Return the ids of the open tasks in each column, newest first."""
        open_ones = list(self._open(wanted, claims))
        held_back = self._held_back(open_ones, now)
        found: dict[str, list[str]] = {name: [] for name in COLUMNS}
        for task_id, kind in open_ones:
            if kind in ("gate", "epic"):
                found[GATES if kind == "gate" else EPICS].append(task_id)
            if task_id in claims:
                found[CLAIMED].append(task_id)
            elif kind == "task":
                found[BLOCKED if task_id in held_back else READY].append(task_id)
        return found

    def _open(self, wanted: BoardFilter, claims: dict[str, list[HeldClaim]]) -> Iterable[tuple[str, str]]:
        """Return the id and type of open tasks that pass the filter, newest first."""
        if wanted.is_empty:
            return self._rows.open_kinds()
        found = self._rows.tasks_like(wanted.project, wanted.tag, wanted.agent, is_open=True)
        return [(one.id, one.task_type) for one in found if wanted.passes(one, claims.get(one.id, ()))]

    def _held_back(self, tasks: Iterable[tuple[str, str]], now: datetime) -> set[str]:
        """Return the ids of tasks with an unsatisfied predecessor. Only gates are read completely."""
        edges = list(self._tasks.blocking_edges([task_id for task_id, kind in tasks if kind == "task"]))
        gates = self._tasks.tasks_by_id(list({each.source for each in edges if each.type == WAITS_ON_GATE}))
        passed = {one for one, gate in gates.items() if is_satisfied(gate, WAITS_ON_GATE, now)}
        return {
            each.target
            for each in edges
            if not (each.source in passed if each.type == WAITS_ON_GATE else each.status == "completed")
        }

    def _done(self, wanted: BoardFilter, limit: int, offset: int) -> BoardColumn:
        if wanted.is_empty:
            ids, total = self._rows.closed_ids(limit, offset)
            return BoardColumn(DONE, self._plain(ids), total)
        rows = self._rows.tasks_like(wanted.project, wanted.tag, wanted.agent, is_open=False)
        passing = [row.id for row in rows if wanted.passes(row, ())]
        return BoardColumn(DONE, self._plain(passing[offset : offset + limit]), len(passing))

    def _plain(self, ids: Sequence[str]) -> list[TaskCard]:
        tasks = self._tasks.tasks_by_id(ids)
        return [TaskCard(task=tasks[one], children={}) for one in ids if one in tasks]

    def _cards(self, ids: Sequence[str], claims: dict[str, list[HeldClaim]], now: datetime) -> list[TaskCard]:
        tasks = self._tasks.tasks_by_id(ids)
        graph = self._tasks.graph_before(ids, transitively=True)
        children, behind = self._rows.children(ids), self._rows.dependents(ids)
        return [
            TaskCard(
                task=tasks[one],
                claims=claims.get(one, ()),
                blockers=[(each, graph.tasks[each.task_id].title) for each in graph.blockers(one, now)],
                children=children.get(one, {}),
                waiting=behind.get(one, 0),
            )
            for one in ids
            if one in tasks
        ]

    async def read(self, task_id: str) -> Dossier:
        """Return a task with its related data. Raises `TaskNotFound`."""
        return await self._look(lambda: self._read(self._task(task_id)))

    async def effects(self, task_id: str) -> Effects:
        """Return the effects of closing a task. Raises `TaskNotFound`."""
        return await self._look(lambda: self._effects(self._task(task_id)))

    async def claims(self) -> list[HeldClaim]:
        """Return all unexpired claims, oldest first."""
        now = self._clock()
        found = await self._reading.run(lambda: self._rows.claims(now))
        return [held for some in found.values() for held in some]

    async def titles(self, task_ids: Sequence[str]) -> dict[str, str]:
        """Return the titles of existing tasks by id."""
        found = await self._reading.run(lambda: self._tasks.tasks_by_id(list(dict.fromkeys(task_ids))))
        return {one: task.title for one, task in found.items()}

    def _task(self, task_id: str) -> Task:
        task = self._tasks.task(task_id)
        if task is None:
            raise TaskNotFound(
                f"Unknown task id {task_id[:100]!r}. Find the task on the board or in the list of "
                "finished tasks."
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
        ids = dict.fromkeys(other for one in task_ids for other in self._tasks.dependents(one))
        found = self._tasks.tasks_by_id(list(ids)[:MOST_RELATED])
        return [found[one] for one in ids if one in found and found[one].is_open]


class _Tree:
    """A traversal of blocking edges from one task, with limits on depth and size."""

    def __init__(self, rows: TaskRows, now: datetime, *, is_forward: bool) -> None:
        self._rows = rows
        self._now = now
        self._is_forward = is_forward
        self._left = MOST_BRANCHES
        self._seen = set[str]()

    def below(self, task: Task, depth: int = 0) -> tuple[Branch, ...]:
        """Return the branches below a task."""
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
