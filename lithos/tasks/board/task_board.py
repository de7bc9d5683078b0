"""The task board, which applies task commands to rows in the coordinator's transaction.

A command either changes rows and returns events, or raises a refusal and changes nothing (the caller then
rolls back its savepoint). Task edges are validated in the order of docs/spec/coordination.md §3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from lithos.events.journal.boards import Board
from lithos.kernel.values.errors import (
    Cycle,
    InvalidEdgeType,
    InvalidRelationType,
    InvalidTaskType,
    NotAGate,
    ParentExists,
    SelfEdge,
    TaskNotFound,
    TaskNotResolved,
)
from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.messages import Done
from lithos.tasks.board.failed_attempts import Failing
from lithos.tasks.board.imported_tasks import Carrying
from lithos.tasks.board.readiness import Readiness, ReadinessChange
from lithos.tasks.board.reverification import Reverifying
from lithos.tasks.board.task_choice import TaskChoice
from lithos.tasks.board.task_claims import ASPECTS, TaskClaims
from lithos.tasks.board.task_events import as_json_text, created_event, make_event, task_event
from lithos.tasks.board.unlinking import Unlinking
from lithos.tasks.model.graph import check_keys, find_path, merge_metadata
from lithos.tasks.model.imported_tables import SettleTasks
from lithos.tasks.model.task import (
    ATTEMPTS,
    BLOCKING_TYPES,
    BLOCKS,
    DISCOVERED_FROM,
    EDGE_TYPES,
    PARENT_CHILD,
    TASK_TYPES,
    WAITS_ON_GATE,
    ClaimTimes,
    Finding,
    Task,
    TaskEdge,
    check_completable,
    check_fence,
)
from lithos.tasks.model.task_commands import (
    CancelTask,
    ClaimAspect,
    CompleteTask,
    CreateTask,
    DropClaims,
    DropLesson,
    FailAttempt,
    NextTask,
    OpenReverification,
    PostFinding,
    ReleaseClaim,
    RemoveTaskEdge,
    RenewClaim,
    ReopenTask,
    SpawnTask,
    UpdateTask,
    UpsertTaskEdge,
)
from lithos.tasks.model.task_project import PROJECT
from lithos.tasks.rows.tasks import TaskRows


def link_tasks(rows: TaskRows, edge: TaskEdge) -> None:
    """Add an edge. If the edge exists, replace its metadata. Raises the first refusal that applies."""
    if edge.type not in EDGE_TYPES:
        raise InvalidEdgeType(f"type must be one of {', '.join(EDGE_TYPES)}, not {edge.type!r}.")
    if edge.source == edge.target:
        raise SelfEdge("A task cannot be linked to itself. Name two different tasks.")
    for task_id in (edge.source, edge.target):
        if rows.task(task_id) is None:
            raise TaskNotFound(f"Unknown task id {task_id!r}. Find tasks with lithos_task_list.")
    _check_gate(rows, edge)
    _check_parent(rows, edge)
    _check_cycle(rows, edge)
    rows.put_edge(edge)
    if edge.type != DISCOVERED_FROM:
        _check_inherited_cycle(rows, edge)


def _check_gate(rows: TaskRows, edge: TaskEdge) -> None:
    source = rows.task(edge.source)
    if edge.type == WAITS_ON_GATE and source is not None and source.task_type != "gate":
        raise NotAGate(
            f"The task {source.title!r} is not a gate. Use type blocks, or create a task of type gate."
        )


def _check_parent(rows: TaskRows, edge: TaskEdge) -> None:
    if edge.type != PARENT_CHILD:
        return
    for known in rows.edges_to(edge.target, (PARENT_CHILD,)):
        if known.source != edge.source:
            raise ParentExists(f"The task {edge.target} already has the parent {known.source}.")


def _check_cycle(rows: TaskRows, edge: TaskEdge) -> None:
    """Refuse an edge that would close a cycle.

    Edges of both blocking types form one graph. Parent edges form another graph.
    """
    if edge.type in BLOCKING_TYPES:
        types: tuple[str, ...] = BLOCKING_TYPES
    elif edge.type == PARENT_CHILD:
        types = (PARENT_CHILD,)
    else:
        return
    path = find_path(edge.target, edge.source, lambda task_id: rows.successors(task_id, types))
    if path is not None:
        raise Cycle(f"The edge would close a cycle: {' -> '.join([*path, edge.target])}.")


def _check_inherited_cycle(rows: TaskRows, edge: TaskEdge) -> None:
    """Refuse an edge that makes a task wait for itself through a parent. The edge must already be stored."""
    waiting = {edge.target, *rows.below([edge.target])}
    sources = [edge.source] if edge.type in BLOCKING_TYPES else rows.predecessors_above(edge.target)
    for source in sources:
        begin = [one for one in rows.dependents(source) if one in waiting]

        def after(task_id: str, begin: Sequence[str] = begin) -> Sequence[str]:
            return rows.dependents(task_id) if task_id else begin

        path = find_path("", source, after)
        if path is not None:
            raise Cycle(
                f"The edge would make tasks wait for each other: {' -> '.join([source, *path[1:]])}. "
                "A task also waits for the predecessors of its parent."
            )


#: Maximum number of characters of a finding's summary in its event.
SUMMARY_TOLD: Final = 300
#: Feedback fields that the completion event contains as JSON text.
_FEEDBACK = ("cited_nodes", "misleading_nodes", "receipt_id")
_INHERITED_CONTEXT = ("priority", "parallelizable", "phase")


class TaskBoard(Board):
    """The handler of task commands on rows. The caller supplies `now` and new ids."""

    def __init__(
        self, rows: TaskRows, times: ClaimTimes, new_id: Callable[[], str], *, strict: bool = False
    ) -> None:
        """`strict`:

        Blocked tasks cannot be claimed. A task cannot be completed if only other agents hold claims on it.
        """
        self._rows = rows
        self._new_id = new_id
        self._strict = strict
        choice = TaskChoice(rows, self._can_take)
        self.readiness = Readiness(rows, choice.marks, times)
        self._marks = choice.marks
        claims = TaskClaims(rows, times, choice, strict=strict)
        carrying = Carrying(rows, self.readiness)
        self.handlers = {
            CreateTask: self._create,
            UpdateTask: self._update,
            ClaimAspect: claims.claim,
            NextTask: claims.next,
            RenewClaim: claims.renew,
            ReleaseClaim: claims.release,
            FailAttempt: Failing(rows, times, self._close, self._add_finding).fail,
            CompleteTask: self._complete,
            CancelTask: self._cancel,
            ReopenTask: self._reopen,
            UpsertTaskEdge: self._link,
            RemoveTaskEdge: Unlinking(rows, self.readiness).remove,
            SpawnTask: self._spawn,
            OpenReverification: Reverifying(rows, self._create).open,
            PostFinding: self._post,
            DropLesson: self._drop_lesson,
            DropClaims: self._drop_claims,
            SettleTasks: carrying.settle,
        }
        self.carriers = carrying.carriers

    def begin(self, now: datetime, *, is_due: bool) -> Sequence[EventDraft]:
        return self.readiness.begin(now, is_due=is_due)

    def next_due(self, now: datetime) -> datetime | None:
        return self.readiness.next_due(now)

    def is_through(self) -> bool:
        return self.readiness.is_through

    def forget(self) -> None:
        self.readiness.forget()

    def _create(self, command: CreateTask, now: datetime) -> Done[str]:
        if command.task_type not in TASK_TYPES:
            raise InvalidTaskType(
                f"task_type must be one of {', '.join(TASK_TYPES)}, not {command.task_type!r}."
            )
        check_keys(command.metadata)
        if command.made_id is not None and self._rows.task(command.made_id) is not None:
            return Done(command.made_id)
        task = Task(
            id=command.made_id or self._new_id(),
            title=command.title,
            description=command.description,
            task_type=command.task_type,
            created_by=command.agent,
            created_at=now,
            tags=command.tags,
            metadata=merge_metadata(command.task_type, {}, command.metadata),
        )
        self._rows.put_task(task)
        for before in dict.fromkeys(command.depends_on):
            self._relate(before, task.id, BLOCKS, command.agent, now)
        if command.parent_task_id is not None:
            self._relate(command.parent_task_id, task.id, PARENT_CHILD, command.agent, now)
        return self._created(task)

    def _update(self, command: UpdateTask, now: datetime) -> Done[None]:
        check_keys(command.metadata)
        task = self._task(command.task_id)
        given = {name: getattr(command, name) for name in ("title", "description", "tags")}
        changes = {name: value for name, value in given.items() if value is not None}
        if changes and not task.is_open:
            raise TaskNotFound(
                f"The task {task.title!r} is {task.status}. Only its metadata can still change. "
                "To change more, reopen it with lithos_task_reopen."
            )
        if command.metadata:
            changes["metadata"] = merge_metadata(task.task_type, task.metadata, command.metadata)
        if not changes:
            return Done(None)
        changed = attrs.evolve(task, **changes)
        self._rows.put_task(changed)
        # After this change, a filter may match the task, and a gate may open or close.
        self._marks.lower(self._rows.ready.place(task.id))
        is_gate = task.task_type == "gate" and "metadata" in changes
        ready = self.readiness.refresh_after(task.id, command.agent, now).events if is_gate else ()
        event = make_event("task.updated", command.agent, now, changed.tags, task_id=task.id)
        return Done(None, (event, *ready))

    def _complete(self, command: CompleteTask, now: datetime) -> Done[list[str]]:
        task = self._open_task(command.task_id)
        active = self._rows.claims_of(task.id, now)
        check_fence(command.fence, task, active, None)
        if self._strict:
            check_completable(task, active, command.agent)
        ended, after = self._close(task, "completed", command.agent, now, command.outcome)
        if command.lesson is not None:
            self._rows.add_lesson(command.lesson)
        self._rows.impact.cite(task.id, command.agent, command.cited_nodes or (), now)
        told = {name: as_json_text(getattr(command, name)) for name in _FEEDBACK}
        event = task_event("task.completed", task, command.agent, now, outcome=command.outcome, **told)
        return Done(list(after.ready), (*ended, event, *after.events))

    def _drop_lesson(self, command: DropLesson, now: datetime) -> Done[None]:
        self._rows.drop_lesson(command.id)
        return Done(None)

    def _drop_claims(self, command: DropClaims, now: datetime) -> Done[int]:
        del now
        return Done(self._rows.drop_ended_claims(command.before, command.most))

    def _cancel(self, command: CancelTask, now: datetime) -> Done[None]:
        task = self._open_task(command.task_id)
        by = command.agent
        ended, after = self._close(task, "cancelled", by, now, None)
        event = task_event("task.cancelled", task, by, now, reason=command.reason)
        return Done(None, (*ended, event, *after.events))

    def _reopen(self, command: ReopenTask, now: datetime) -> Done[list[str]]:
        task = self._task(command.task_id)
        if task.is_open:
            raise TaskNotResolved(f"The task {task.title!r} is already open.")
        metadata = {key: value for key, value in task.metadata.items() if key != ATTEMPTS}
        self._rows.put_task(
            attrs.evolve(task, status="open", resolved_at=None, outcome=None, metadata=metadata)
        )
        reblocked = self._held_by_alone(task.id, now) if task.status == "completed" else []
        summary = f"[Reopened] task reopened (was {task.status})"
        if task.outcome:
            summary += f"; prior outcome: {task.outcome}"
        self._add_finding(task.id, command.agent, now, summary)
        prior = {"prior_status": task.status, "prior_outcome": task.outcome}
        event = task_event("task.reopened", task, command.agent, now, **prior)
        # The reopening event already shows that the task is open again.
        self.readiness.refresh_below(task.id, command.agent, now)
        ready = self.readiness.refresh_after(task.id, command.agent, now).events
        return Done(reblocked, (event, *ready))

    def _link(self, command: UpsertTaskEdge, now: datetime) -> Done[None]:
        edge = TaskEdge(
            source=command.source,
            target=command.target,
            type=command.type,
            metadata=command.metadata,
            created_by=command.agent,
            created_at=now,
        )
        # The tasks in `former` may lose an inherited blocker. The blocker now waits for these tasks or
        # belongs to their parent.
        part_of = [edge.target, *self._rows.below([edge.target])] if edge.type == PARENT_CHILD else []
        former = [one for each in part_of for one in self._rows.dependents(each)]
        link_tasks(self._rows, edge)
        looked = self.readiness.refresh_below(edge.target, command.agent, now)
        before = self._rows.before(edge.source) if edge.type in BLOCKING_TYPES else former
        freed = self.readiness.refresh(before, command.agent, now)
        return Done(None, (*looked.events, *freed.events))

    def _spawn(self, command: SpawnTask, now: datetime) -> Done[str]:
        if command.relation_type not in (DISCOVERED_FROM, BLOCKS):
            raise InvalidRelationType(
                f"relation_type must be {DISCOVERED_FROM} or {BLOCKS}, not {command.relation_type!r}."
            )
        source = self._task(command.source_task_id)
        check_keys(command.metadata)
        if command.made_id is not None and self._rows.task(command.made_id) is not None:
            return Done(command.made_id)
        task = Task(
            id=command.made_id or self._new_id(),
            title=command.title,
            description=command.description,
            created_by=command.agent,
            created_at=now,
            tags=source.tags if command.inherit_tags else (),
            metadata=merge_metadata("task", _inherited(command, source), command.metadata),
        )
        self._rows.put_task(task)
        self._relate(source.id, task.id, command.relation_type, command.agent, now)
        return self._created(task)

    def _post(self, command: PostFinding, now: datetime) -> Done[str]:
        if command.made_id is not None and self._rows.has_finding(command.made_id):
            return Done(command.made_id)
        task = self._task(command.task_id)
        if command.fence is not None:
            check_fence(command.fence, task, self._rows.claims_of(task.id, now), None)
        finding = self._add_finding(
            task.id, command.agent, now, command.summary, command.knowledge_id, command.made_id
        )
        named = {} if finding.knowledge_id is None else {"knowledge_id": finding.knowledge_id}
        event = make_event(
            "finding.posted",
            command.agent,
            now,
            task.tags,
            finding_id=finding.id,
            task_id=task.id,
            agent=command.agent,
            summary=beginning(finding.summary, SUMMARY_TOLD),
            **named,
        )
        return Done(finding.id, (event,))

    def _task(self, task_id: str) -> Task:
        task = self._rows.task(task_id)
        if task is None:
            raise TaskNotFound(f"Unknown task id {task_id!r}. Find tasks with lithos_task_list.")
        return task

    def _open_task(self, task_id: str) -> Task:
        task = self._task(task_id)
        if not task.is_open:
            raise TaskNotFound(f"The task {task.title!r} is already {task.status}.")
        return task

    def _close(
        self, task: Task, status: str, by: str, now: datetime, outcome: str | None
    ) -> tuple[Sequence[EventDraft], ReadinessChange]:
        """Close a task.

        Return the events that come before the closing event, and the resulting readiness change.
        """
        self._rows.put_task(
            attrs.evolve(task, status=status, resolved_at=max(now, task.created_at), outcome=outcome)
        )
        ended = self.readiness.end_claims(task, now)
        self._rows.drop_claims(task.id)
        after = self.readiness.refresh_after(task.id, by, now)
        # A closed parent no longer passes its blockers on to its children.
        below = self.readiness.refresh(self._rows.below([task.id]), by, now)
        return ended, ReadinessChange(after.ready, (*after.events, *below.events))

    def _created(self, task: Task) -> Done[str]:
        ready = self.readiness.refresh([task.id], task.created_by, task.created_at).events
        return Done(task.id, (created_event(task), *ready))

    def _can_take(self, task_id: str, aspect: str) -> bool:
        return self._rows.aspects(task_id) < ASPECTS or self._rows.claim(task_id, aspect) is not None

    def _add_finding(
        self,
        task_id: str,
        agent: str,
        now: datetime,
        summary: str,
        knowledge_id: str | None = None,
        made_id: str | None = None,
    ) -> Finding:
        finding = Finding(
            id=made_id or self._new_id(),
            task_id=task_id,
            agent=agent,
            summary=summary,
            knowledge_id=knowledge_id,
            created_at=now,
        )
        self._rows.add_finding(finding)
        return finding

    def _relate(self, source: str, target: str, kind: str, agent: str, now: datetime) -> None:
        edge = TaskEdge(source=source, target=target, type=kind, created_by=agent, created_at=now)
        link_tasks(self._rows, edge)

    def _held_by_alone(self, task_id: str, now: datetime) -> list[str]:
        """Return the open dependents that only this task blocks."""
        dependents = self._rows.dependents(task_id)
        graph = self._rows.graph_before(dependents)
        return [
            one for one in dependents if graph.tasks[one].is_open and graph.holders(one, now) == {task_id}
        ]


def _inherited(command: SpawnTask, source: Task) -> dict[str, Any]:
    """Return the metadata that a spawned task inherits from its source task."""
    keys = ((PROJECT,) if command.inherit_project else ()) + (
        _INHERITED_CONTEXT if command.inherit_context else ()
    )
    session = {PROJECT: command.working_in} if command.working_in else {}
    return session | {key: source.metadata[key] for key in keys if key in source.metadata}
