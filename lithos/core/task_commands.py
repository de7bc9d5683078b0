"""What can be asked of tasks: the commands the coordinator carries out, one transaction each batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen


@frozen(kw_only=True)
class CreateTask:
    """A new task with its edges; the reply is its id."""

    title: str
    agent: str
    description: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    task_type: str = "task"
    depends_on: tuple[str, ...] = ()
    parent_task_id: str | None = None


@frozen(kw_only=True)
class UpdateTask:
    """Change fields; None keeps, metadata merges per key and null deletes one. No reply."""

    task_id: str
    agent: str
    title: str | None = None
    description: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] | None = None


@frozen(kw_only=True)
class ClaimAspect:
    """Take or take again an aspect; the reply is the `Claim`."""

    task_id: str
    aspect: str
    agent: str
    ttl_minutes: float | None = None


@frozen(kw_only=True)
class RenewClaim:
    """Hold an aspect longer; the reply is the `Claim`."""

    task_id: str
    aspect: str
    agent: str
    ttl_minutes: float | None = None


@frozen(kw_only=True)
class ReleaseClaim:
    """Give an aspect up. No reply."""

    task_id: str
    aspect: str
    agent: str


@frozen
class Lesson:
    """What a completed task teaches, as text that its author reads again; `id` is of this completion."""

    id: str
    text: str


@frozen(kw_only=True)
class CompleteTask:
    """End a task well; the reply is the ids it unblocked. The lists are told on as they came."""

    task_id: str
    agent: str
    outcome: str | None = None
    cited_nodes: tuple[str, ...] | None = None
    misleading_nodes: tuple[str, ...] | None = None
    receipt_id: str | None = None
    #: Kept with the completion until a `DropLesson`.
    lesson: Lesson | None = None


@frozen(kw_only=True)
class CancelTask:
    """End a task without result. No reply."""

    task_id: str
    agent: str
    reason: str | None = None


@frozen(kw_only=True)
class ReopenTask:
    """Open a closed task again; the reply is the ids it blocks again."""

    task_id: str
    agent: str


@frozen(kw_only=True)
class UpsertTaskEdge:
    """Relate two tasks. No reply."""

    source: str
    target: str
    type: str
    agent: str
    metadata: Mapping[str, Any] = {}


@frozen(kw_only=True)
class SpawnTask:
    """A task that comes out of another; the reply is its id."""

    source_task_id: str
    title: str
    agent: str
    description: str | None = None
    relation_type: str = "discovered_from"
    inherit_project: bool = True
    inherit_tags: bool = True
    inherit_context: bool = True
    metadata: Mapping[str, Any] = {}


@frozen(kw_only=True)
class PostFinding:
    """Report on a task; the reply is the finding's id."""

    task_id: str
    agent: str
    summary: str
    knowledge_id: str | None = None


@frozen(kw_only=True)
class DropLesson:
    """Forget a lesson that has had its effects. No reply."""

    id: str
    agent: str


TaskCommand = (
    CreateTask
    | UpdateTask
    | ClaimAspect
    | RenewClaim
    | ReleaseClaim
    | CompleteTask
    | CancelTask
    | ReopenTask
    | UpsertTaskEdge
    | SpawnTask
    | PostFinding
    | DropLesson
)
