"""The task service. It sends commands to the coordinator actor and runs queries on the read connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol, TypeVar, cast

import attrs
import trio
from attrs import frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import Flush
from lithos.events.journal.reading import JournalThread
from lithos.events.reading.requests import id_to_make
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown, honest_outcome
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import InvalidInput, TaskNotFound
from lithos.kernel.values.ids import prefix_of
from lithos.tasks.model.graph import Blocker, TaskGraph
from lithos.tasks.model.task import EDGE_TYPES, TASK_STATUSES, TASK_TYPES, Claim, Finding, Task, TaskEdge
from lithos.tasks.model.task_commands import (
    ClaimedTask,
    CompleteTask,
    CreateTask,
    Lesson,
    NextTask,
    PostFinding,
    SpawnTask,
    TaskCommand,
)
from lithos.tasks.model.task_project import is_of_project
from lithos.tasks.rows.board_rows import Reader, RestingTask
from lithos.tasks.rows.tasks import TaskRows
from lithos.text.words.list_filters import check_metadata_match, has_tags, matches_metadata

T = TypeVar("T")

COMMAND_DEADLINE = 30.0
#: Maximum number of similar tasks or findings to report after one is created.
MOST_SIMILAR = 3
#: Maximum seconds to wait until buffered reads are stored, before the access log is queried.
FLUSH_PATIENCE = 2.0


@frozen(kw_only=True)
class TaskFilter:
    """Filters of task lists. `since` and `resolved_since` are inclusive."""

    created_by: str | None = None
    status: str | None = None
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    resolved_since: datetime | None = None
    metadata_match: Mapping[str, Any] | None = None
    task_type: str | None = None
    project: str | None = None

    def passes(self, task: Task) -> bool:
        """Return whether a task passes all filters."""
        return (
            (self.created_by is None or task.created_by == self.created_by)
            and (self.status is None or task.status == self.status)
            and (self.task_type is None or task.task_type == self.task_type)
            and has_tags(task.tags, self.tags)
            and (self.since is None or task.created_at >= self.since)
            and (
                self.resolved_since is None
                or (task.resolved_at is not None and task.resolved_at >= self.resolved_since)
            )
            and matches_metadata(task.metadata, self.metadata_match)
            and is_of_project(task.metadata, self.project)
        )


@frozen
class TaskView:
    """A task with its claims and blockers, as far as they were requested."""

    task: Task
    claims: Sequence[Claim] | None = None
    blockers: Sequence[Blocker] | None = None


@frozen
class TaskSheet:
    """A consistent snapshot of one task with its related data. Only open tasks have blockers."""

    task: Task
    claims: Sequence[Claim]
    findings: Sequence[Finding]
    blockers: Sequence[Blocker]


@frozen
class WaitingTasks:
    """The numbers of matching tasks that cannot be claimed now: claimed ready tasks, and blocked tasks."""

    waiting: int
    blocked: int


@frozen
class DirectedEdge:
    """A task edge as seen from one of its two tasks: `outgoing` or `incoming`."""

    edge: TaskEdge
    direction: str


@frozen
class PageBounds:
    """The bounds of a page: at most `limit` items after the first `offset` items."""

    limit: int
    offset: int = 0

    def of(self, items: Sequence[T]) -> Sequence[T]:
        """Return the items on this page."""
        return items[self.offset : self.offset + self.limit]


class CompletionEffects(Protocol):
    """The effects of a completion on the notes that it cites."""

    @property
    def written(self) -> Lesson:
        """Return the lesson to store with the completion."""

    async def apply(self) -> None:
        """Apply the effects. A failure is only logged, because the task is already completed."""


class CompletionLearning(Protocol):
    """The protocol of the service that learns from completions."""

    async def begin(self, command: CompleteTask) -> CompletionEffects | None:
        """Validate the feedback of a completion. Nothing is changed.

        Return None if there is nothing to learn from.
        """


class Coordination:
    """The use cases of tasks."""

    def __init__(
        self,
        journal: CoordinationStore,
        reading: JournalThread,
        coordinator: Coordinator,
        clock: Clock,
        teaching: CompletionLearning | None,
    ) -> None:
        rows = journal.rows(TaskRows)
        self._coordinator = coordinator
        self._rows = rows
        self._reading = reading
        self._clock = clock
        #: None if learning is switched off.
        self._teaching = teaching

    async def run(self, command: TaskCommand[T]) -> T:
        """Run a command durably and return its reply.

        Raises the refusal of the command, or `StorageFailed`.
        """
        self._coordinator.touch(command.agent)
        if isinstance(command, CreateTask | SpawnTask | PostFinding):
            made = attrs.evolve(command, made_id=id_to_make())
            return cast(T, await self._submit(made))
        return await self._submit(command)

    async def complete(self, command: CompleteTask) -> list[str]:
        """Complete a task. Return the ids of the tasks that it unblocked.

        The feedback is validated first. Its effects are applied before this call returns (docs/spec/memory.md
        §6).
        """
        self._coordinator.touch(command.agent)
        lesson = None if self._teaching is None else await self._teaching.begin(command)
        if lesson is None:
            return await self._submit(command)
        unblocked = await self._submit(attrs.evolve(command, lesson=lesson.written))
        await lesson.apply()
        return unblocked

    async def next(self, command: NextTask) -> ClaimedTask | WaitingTasks:
        """Claim the next task. If no task can be claimed, return how many tasks are held or blocked.

        The waiting tasks are counted after the coordinator has found no task. Tasks that become free in
        between count as waiting. If an agent gets a count of zero, there is therefore really no task. Raises
        `InvalidInput`.
        """
        check_metadata_match(command.metadata_match)
        given = await self.run(command)
        if given is not None:
            return given
        return WaitingTasks(*await self._read(lambda: self._rows.ready.counts(command)))

    async def namesakes(self, task_id: str) -> list[Task]:
        """Return other open tasks with the title of a new task."""

        def read() -> list[Task]:
            task = self._rows.task(task_id)
            return [] if task is None else self._rows.namesakes(task, MOST_SIMILAR)

        return await self._read(read)

    async def repeated(self, finding_id: str) -> list[Finding]:
        """Return other findings by the same agent with the same text on the same task."""
        return await self._read(lambda: self._rows.repeated(finding_id, MOST_SIMILAR))

    async def list_tasks(self, wanted: TaskFilter, *, with_claims: bool) -> list[TaskView]:
        """Return tasks, newest first. Raises `InvalidInput`."""
        _check_filter(wanted)
        now = self._clock()

        def read() -> list[TaskView]:
            claims = self._rows.active_claims(now) if with_claims else {}
            found = self._rows.tasks(status=wanted.status, created_by=wanted.created_by)
            return [
                TaskView(task, claims.get(task.id, ()) if with_claims else None)
                for task in found
                if wanted.passes(task)
            ]

        return await self._read(read)

    async def status(self, task_id: str | None) -> list[TaskView]:
        """Return one task with its claims, or all open tasks. For an unknown id, return an empty list."""
        if task_id is None:
            return await self.list_tasks(TaskFilter(status="open"), with_claims=True)
        now = self._clock()

        def read() -> list[TaskView]:
            task = self._rows.task(task_id)
            claims = self._rows.active_claims(now, task_id)
            return [] if task is None else [TaskView(task, claims.get(task_id, ()))]

        return await self._read(read)

    async def sheet(self, task_id: str) -> TaskSheet:
        """Return a task with its related data. Raises `TaskNotFound` and `AmbiguousIdPrefix`."""
        now = self._clock()

        def read() -> TaskSheet | None:
            task = self._rows.task(self._rows.identify(task_id))
            if task is None:
                return None
            graph = self._rows.graph_before([task.id], transitively=True)
            return TaskSheet(
                task,
                self._rows.active_claims(now, task.id).get(task.id, ()),
                self._rows.findings(task.id),
                graph.blockers(task.id, now) if task.is_open else (),
            )

        sheet = await self._read(read)
        if sheet is None:
            raise _no_such_task(task_id)
        return sheet

    async def identify(self, text: str) -> str:
        """Return the id of the task that this text names: its id, or the beginning of its id.

        If there is no such task, return the text. Raises `AmbiguousIdPrefix`.
        """
        return text if prefix_of(text) is None else await self._read(lambda: self._rows.identify(text))

    async def get(self, task_id: str) -> Task:
        """Return a task. Raises `TaskNotFound` and `AmbiguousIdPrefix`."""
        task = await self._read(lambda: self._rows.task(self._rows.identify(task_id)))
        if task is None:
            raise _no_such_task(task_id)
        return task

    async def findings(self, task_id: str, since: datetime | None) -> list[Finding]:
        """Return the findings on a task that are later than `since`, oldest first."""
        found = await self._read(lambda: self._rows.findings(task_id))
        return [finding for finding in found if since is None or finding.created_at > since]

    async def ready(
        self, wanted: TaskFilter, page: PageBounds, *, with_claims: bool
    ) -> tuple[list[TaskView], int]:
        """Return a page of ready tasks (open and without blockers), newest first, and their total number."""
        now = self._clock()

        def show(ready: Sequence[Task]) -> list[TaskView]:
            claims = self._rows.active_claims(now) if with_claims else {}
            return [TaskView(task, claims.get(task.id, ()) if with_claims else None) for task in ready]

        return await self._page(wanted, page, lambda graph, task: graph.is_ready(task, now), show)

    async def blocked(self, wanted: TaskFilter, page: PageBounds) -> tuple[list[TaskView], int]:
        """Return a page of blocked tasks with their blockers, newest first, and their total number."""
        now = self._clock()

        def show(held: Sequence[Task]) -> list[TaskView]:
            graph = self._rows.graph_before((task.id for task in held), transitively=True)
            return [TaskView(task, blockers=graph.blockers(task.id, now)) for task in held]

        return await self._page(wanted, page, lambda graph, task: bool(graph.holders(task.id, now)), show)

    async def _page(
        self,
        wanted: TaskFilter,
        page: PageBounds,
        passes: Callable[[TaskGraph, Task], bool],
        show: Callable[[Sequence[Task]], list[TaskView]],
    ) -> tuple[list[TaskView], int]:
        """Return a page of the open tasks of type `task` that pass, and the number of all passing tasks."""
        _check_filter(wanted)
        if page.limit < 1:
            raise InvalidInput(f"limit must be at least 1, not {page.limit}.")

        def read() -> tuple[list[TaskView], int]:
            found = self._rows.tasks(status="open")
            candidates = [task for task in found if task.task_type == "task" and wanted.passes(task)]
            graph = self._rows.graph_before(task.id for task in candidates)
            passing = [task for task in candidates if passes(graph, task)]
            return show(page.of(passing)), len(passing)

        return await self._read(read)

    async def children(self, task_id: str, *, recursive: bool, include_closed: bool) -> list[Task]:
        """Return child tasks breadth-first, the oldest child of each parent first.

        The children of excluded closed tasks are still included.
        """

        def read() -> list[Task]:
            seen, level, found = {task_id}, [task_id], list[Task]()
            while level:
                reached = [child for parent in level for child in self._rows.children(parent)]
                fresh = [task for task in {task.id: task for task in reached}.values() if task.id not in seen]
                seen.update(task.id for task in fresh)
                found += fresh
                level = [task.id for task in fresh] if recursive else []
            return [task for task in found if include_closed or task.is_open]

        return await self._read(read)

    async def edges(self, task_id: str, direction: str, types: tuple[str, ...]) -> list[DirectedEdge]:
        """Return the edges of a task, outgoing edges first. Raises `InvalidInput`."""
        if direction not in ("both", "incoming", "outgoing"):
            raise InvalidInput(f"direction must be both, incoming or outgoing, not {direction!r}.")
        for kind in types:
            if kind not in EDGE_TYPES:
                raise InvalidInput(f"types may contain {', '.join(EDGE_TYPES)}, not {kind!r}.")

        def read() -> list[DirectedEdge]:
            outgoing = self._rows.edges_from(task_id, types) if direction != "incoming" else []
            incoming = self._rows.edges_to(task_id, types) if direction != "outgoing" else []
            return [DirectedEdge(edge, "outgoing") for edge in outgoing] + [
                DirectedEdge(edge, "incoming") for edge in incoming
            ]

        return await self._read(read)

    async def impact(self, note_id: str, most: int) -> tuple[list[RestingTask], list[Reader]]:
        """Return the tasks that depend on a note, newest first, and the readers of the note.

        Each list contains at most `most` entries.
        """
        with suppress(ActorDown, ShuttingDown, trio.TooSlowError):
            await self._coordinator.mailbox.ask(Flush(), within=FLUSH_PATIENCE)
        rows = self._rows.impact
        return await self._read(lambda: (rows.tasks(note_id, most), rows.readers(note_id, most)))

    async def _submit(self, command: TaskCommand[T]) -> T:
        with honest_outcome("Check the task again before you retry."):
            return await self._coordinator.mailbox.ask(command, within=COMMAND_DEADLINE)

    async def _read(self, query: Callable[[], T]) -> T:
        def look() -> T:
            with self._rows.snapshot():
                return query()

        return await self._reading.run(look)


def _no_such_task(task_id: str) -> TaskNotFound:
    return TaskNotFound(f"Task '{task_id}' not found.")


def _check_filter(wanted: TaskFilter) -> None:
    check_metadata_match(wanted.metadata_match)
    for name, value, known in (
        ("status", wanted.status, TASK_STATUSES),
        ("task_type", wanted.task_type, TASK_TYPES),
    ):
        if value is not None and value not in known:
            raise InvalidInput(f"{name} must be one of {', '.join(known)}, not {value!r}.")
