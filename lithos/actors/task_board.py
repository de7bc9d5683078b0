"""The task board: carries out task commands against the rows, inside the coordinator's transaction.

Each command either changes rows and yields its events, or raises a refusal and changes nothing (the
caller rolls its savepoint back).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
from attrs import frozen

from lithos.actors.task_relations import link_tasks
from lithos.core.claims import ClaimTimes, check_claimable, check_owned
from lithos.core.errors import (
    InvalidInput,
    InvalidMetadataKey,
    InvalidRelationType,
    InvalidTaskType,
    TaskNotFound,
    TaskNotResolved,
)
from lithos.core.events import EventDraft
from lithos.core.gates import normalise_gate_metadata
from lithos.core.task_commands import (
    CancelTask,
    ClaimAspect,
    CompleteTask,
    CreateTask,
    PostFinding,
    ReleaseClaim,
    RenewClaim,
    ReopenTask,
    SpawnTask,
    TaskCommand,
    UpdateTask,
    UpsertTaskEdge,
)
from lithos.core.tasks import (
    BLOCKING_TYPES,
    BLOCKS,
    DISCOVERED_FROM,
    FORBIDDEN_METADATA,
    PARENT_CHILD,
    TASK_TYPES,
    Claim,
    Finding,
    Task,
    TaskEdge,
)
from lithos.stores.tasks import TaskRows

_INHERITED_CONTEXT = ("priority", "parallelizable", "phase")


@frozen
class Done:
    """What a command answers and announces."""

    reply: Any
    events: tuple[EventDraft, ...] = ()


class TaskBoard:
    """Commands over rows; `now` and new ids come from outside."""

    def __init__(self, rows: TaskRows, times: ClaimTimes, new_id: Callable[[], str]) -> None:
        self._rows = rows
        self._times = times
        self._new_id = new_id
        self._handlers: Mapping[type, Callable[[Any, datetime], Done]] = {
            CreateTask: self._create,
            UpdateTask: self._update,
            ClaimAspect: self._claim,
            RenewClaim: self._renew,
            ReleaseClaim: self._release,
            CompleteTask: self._complete,
            CancelTask: self._cancel,
            ReopenTask: self._reopen,
            UpsertTaskEdge: self._link,
            SpawnTask: self._spawn,
            PostFinding: self._post,
        }

    def execute(self, command: TaskCommand, now: datetime) -> Done:
        """Carry a command out; raises a `LithosError` when it is refused."""
        return self._handlers[type(command)](command, now)

    def _create(self, command: CreateTask, now: datetime) -> Done:
        if command.task_type not in TASK_TYPES:
            raise InvalidTaskType(
                f"task_type must be one of {', '.join(TASK_TYPES)}; not {command.task_type!r}."
            )
        task = Task(
            id=self._new_id(),
            title=command.title,
            description=command.description,
            task_type=command.task_type,
            created_by=command.agent,
            created_at=now,
            tags=command.tags,
            metadata=_checked_metadata(command.task_type, {}, command.metadata),
        )
        self._rows.put_task(task)
        for before in dict.fromkeys(command.depends_on):
            self._relate(before, task.id, BLOCKS, command.agent, now)
        if command.parent_task_id is not None:
            self._relate(command.parent_task_id, task.id, PARENT_CHILD, command.agent, now)
        return Done(task.id, (_event("task.created", command.agent, now, task_id=task.id, title=task.title),))

    def _update(self, command: UpdateTask, now: datetime) -> Done:
        fields = {
            name: value
            for name in ("title", "description", "tags")
            if (value := getattr(command, name)) is not None
        }
        if not fields and command.metadata is None:
            raise InvalidInput("Nothing to change: give title, description, tags or metadata.")
        task = self._task(command.task_id)
        if fields and not task.is_open:
            raise TaskNotFound(
                f"The task {task.title!r} is {task.status}; only its metadata can still change. "
                "Reopen it with lithos_task_reopen to change more."
            )
        patch = command.metadata or {}
        if not fields and not patch:
            return Done(None)
        metadata = _checked_metadata(task.task_type, task.metadata, patch)
        self._rows.put_task(attrs.evolve(task, metadata=metadata, **fields))
        return Done(None, (_event("task.updated", command.agent, now, task_id=task.id),))

    def _claim(self, command: ClaimAspect, now: datetime) -> Done:
        held = self._rows.claim(command.task_id, command.aspect)
        check_claimable(command.task_id, self._rows.task(command.task_id), held, command.agent, now)
        claim = Claim(
            task_id=command.task_id,
            agent=command.agent,
            aspect=command.aspect,
            expires_at=self._times.expiry(command.ttl_minutes, now),
            fence=self._rows.take_fence(),
        )
        self._rows.put_claim(claim, now)
        return Done(claim, (_claim_event("task.claimed", claim, now, fence=claim.fence),))

    def _renew(self, command: RenewClaim, now: datetime) -> Done:
        held = self._rows.claim(command.task_id, command.aspect)
        mine = check_owned(command.task_id, command.aspect, held, command.agent, now)
        claim = attrs.evolve(mine, expires_at=self._times.expiry(command.ttl_minutes, now))
        self._rows.put_claim(claim, now)
        return Done(claim)

    def _release(self, command: ReleaseClaim, now: datetime) -> Done:
        held = self._rows.claim(command.task_id, command.aspect)
        mine = check_owned(command.task_id, command.aspect, held, command.agent)
        self._rows.drop_claim(command.task_id, command.aspect)
        return Done(None, (_claim_event("task.released", mine, now),))

    def _complete(self, command: CompleteTask, now: datetime) -> Done:
        task = self._open_task(command.task_id)
        self._close(task, "completed", now, command.outcome)
        event = _event(
            "task.completed",
            command.agent,
            now,
            task_id=task.id,
            agent=command.agent,
            outcome=command.outcome,
            cited_nodes=_as_json(command.cited_nodes),
            misleading_nodes=_as_json(command.misleading_nodes),
            receipt_id=json.dumps(command.receipt_id),
        )
        dependents = self._dependents(task.id)
        graph = self._rows.graph_before(dependents)
        unblocked = [one for one in dependents if graph.is_ready(graph.tasks[one], now)]
        return Done(unblocked, (event,))

    def _cancel(self, command: CancelTask, now: datetime) -> Done:
        task = self._open_task(command.task_id)
        self._close(task, "cancelled", now, None)
        by = command.agent
        event = _event("task.cancelled", by, now, task_id=task.id, agent=by, reason=command.reason)
        return Done(None, (event,))

    def _reopen(self, command: ReopenTask, now: datetime) -> Done:
        task = self._task(command.task_id)
        if task.is_open:
            raise TaskNotResolved(f"The task {task.title!r} is open already.")
        self._rows.put_task(attrs.evolve(task, status="open", resolved_at=None, outcome=None))
        reblocked = self._held_by_alone(task.id, now) if task.status == "completed" else []
        summary = f"[Reopened] task reopened (was {task.status})"
        if task.outcome:
            summary += f"; prior outcome: {task.outcome}"
        self._rows.add_finding(
            Finding(
                id=self._new_id(),
                task_id=task.id,
                agent=command.agent,
                summary=summary,
                knowledge_id=None,
                created_at=now,
            )
        )
        event = _event(
            "task.reopened",
            command.agent,
            now,
            task_id=task.id,
            agent=command.agent,
            prior_status=task.status,
            prior_outcome=task.outcome,
        )
        return Done(reblocked, (event,))

    def _link(self, command: UpsertTaskEdge, now: datetime) -> Done:
        edge = TaskEdge(
            source=command.source,
            target=command.target,
            type=command.type,
            metadata=command.metadata,
            created_by=command.agent,
            created_at=now,
        )
        link_tasks(self._rows, edge)
        return Done(None)

    def _spawn(self, command: SpawnTask, now: datetime) -> Done:
        if command.relation_type not in (DISCOVERED_FROM, BLOCKS):
            raise InvalidRelationType(
                f"relation_type must be {DISCOVERED_FROM} or {BLOCKS}, not {command.relation_type!r}."
            )
        source = self._task(command.source_task_id)
        keys = (("project",) if command.inherit_project else ()) + (
            _INHERITED_CONTEXT if command.inherit_context else ()
        )
        inherited = {key: source.metadata[key] for key in keys if key in source.metadata}
        task = Task(
            id=self._new_id(),
            title=command.title,
            description=command.description,
            created_by=command.agent,
            created_at=now,
            tags=source.tags if command.inherit_tags else (),
            metadata=_checked_metadata("task", inherited, command.metadata),
        )
        self._rows.put_task(task)
        self._relate(source.id, task.id, command.relation_type, command.agent, now)
        return Done(task.id, (_event("task.created", command.agent, now, task_id=task.id, title=task.title),))

    def _post(self, command: PostFinding, now: datetime) -> Done:
        task = self._task(command.task_id)
        finding = Finding(
            id=self._new_id(),
            task_id=task.id,
            agent=command.agent,
            summary=command.summary,
            knowledge_id=command.knowledge_id,
            created_at=now,
        )
        self._rows.add_finding(finding)
        named = {} if finding.knowledge_id is None else {"knowledge_id": finding.knowledge_id}
        event = _event(
            "finding.posted",
            command.agent,
            now,
            finding_id=finding.id,
            task_id=task.id,
            agent=command.agent,
            **named,
        )
        return Done(finding.id, (event,))

    def _task(self, task_id: str) -> Task:
        task = self._rows.task(task_id)
        if task is None:
            raise TaskNotFound(f"There is no task {task_id!r}. Find tasks with lithos_task_list.")
        return task

    def _open_task(self, task_id: str) -> Task:
        task = self._task(task_id)
        if not task.is_open:
            raise TaskNotFound(f"The task {task.title!r} is {task.status} already.")
        return task

    def _close(self, task: Task, status: str, now: datetime, outcome: str | None) -> None:
        self._rows.put_task(attrs.evolve(task, status=status, resolved_at=now, outcome=outcome))
        self._rows.drop_claims(task.id)

    def _relate(self, source: str, target: str, kind: str, agent: str, now: datetime) -> None:
        edge = TaskEdge(source=source, target=target, type=kind, created_by=agent, created_at=now)
        link_tasks(self._rows, edge)

    def _dependents(self, task_id: str) -> list[str]:
        return list(dict.fromkeys(self._rows.successors(task_id, BLOCKING_TYPES)))

    def _held_by_alone(self, task_id: str, now: datetime) -> list[str]:
        """Open dependents that nothing but this task holds back."""
        dependents = self._dependents(task_id)
        graph = self._rows.graph_before(dependents)
        return [
            one for one in dependents if graph.tasks[one].is_open and graph.holders(one, now) == {task_id}
        ]


def _checked_metadata(task_type: str, old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Merged metadata; a null deletes a key. Raises `InvalidMetadataKey`, `InvalidInput`."""
    for key in FORBIDDEN_METADATA:
        if key in patch:
            raise InvalidMetadataKey(
                f"metadata.{key} is not used. Relate tasks with depends_on at creation or "
                "lithos_task_edge_upsert."
            )
    merged = {**old, **patch}
    kept = {key: value for key, value in merged.items() if value is not None or key not in patch}
    return normalise_gate_metadata(kept) if task_type == "gate" else kept


def _event(kind: str, by: str, now: datetime, /, **payload: Any) -> EventDraft:
    return EventDraft(type=kind, agent=by, payload=payload, timestamp=now)


def _claim_event(kind: str, claim: Claim, now: datetime, **more: Any) -> EventDraft:
    return _event(
        kind, claim.agent, now, task_id=claim.task_id, agent=claim.agent, aspect=claim.aspect, **more
    )


def _as_json(values: Sequence[str] | None) -> str:
    return json.dumps(None if values is None else list(values), ensure_ascii=False)
