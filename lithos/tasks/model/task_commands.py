"""Task commands of the coordinator. Each batch of commands is one transaction.

The retention deletes claims that ended long ago. Tasks, findings and their relations are not deleted, because
people and agents have written them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import frozen

from lithos.kernel.values.messages import BoardCommand, R_co
from lithos.tasks.model.task import WORK, Claim, ClaimGrant, Task
from lithos.tasks.model.task_project import is_of_project
from lithos.text.words.list_filters import has_tags, matches_metadata


@frozen(kw_only=True)
class TaskCommand(BoardCommand[R_co]):
    """A request of an agent to the task board."""

    agent: str


@frozen(kw_only=True)
class CreateTask(TaskCommand[str]):
    """Create a task with its edges. The reply is the id of the task."""

    title: str
    description: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    task_type: str = "task"
    depends_on: tuple[str, ...] = ()
    parent_task_id: str | None = None
    #: Id for the new task, if the call may be repeated. A repeated call then creates no second task.
    made_id: str | None = None


@frozen(kw_only=True)
class UpdateTask(TaskCommand[None]):
    """Change fields of a task.

    None leaves a field unchanged, and metadata is merged by key: null deletes a key. No reply.
    """

    task_id: str
    title: str | None = None
    description: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] | None = None


@frozen(kw_only=True)
class ClaimAspect(TaskCommand[ClaimGrant]):
    """Claim an aspect. An agent may claim its own aspect again. The reply is the `ClaimGrant`."""

    task_id: str
    aspect: str
    ttl_minutes: float | None = None


@frozen(kw_only=True)
class RenewClaim(TaskCommand[ClaimGrant]):
    """Extend a claim on an aspect. The reply is the `ClaimGrant`."""

    task_id: str
    aspect: str
    ttl_minutes: float | None = None
    fence: int | None = None


@frozen(kw_only=True)
class ReleaseClaim(TaskCommand[None]):
    """Release the agent's claim. A person may also release the claim of `held_by`. No reply."""

    task_id: str
    aspect: str
    fence: int | None = None
    held_by: str | None = None


@frozen
class Failed:
    """The state of a task after a failed attempt. After the last attempt, `retry_at` is None."""

    attempts: int
    status: str
    retry_at: datetime | None


@frozen(kw_only=True)
class FailAttempt(TaskCommand[Failed]):
    """Release an aspect because the work on it failed.

    `output` is the last output of the work. The reply is `Failed`.
    """

    task_id: str
    aspect: str
    output: str
    fence: int | None = None


@frozen
class ClaimedTask:
    """A task that was chosen and claimed, with all its active claims."""

    task: Task
    claims: Sequence[Claim]
    grant: ClaimGrant


@frozen(kw_only=True)
class NextTask(TaskCommand[ClaimedTask | None]):
    """Claim the oldest ready task with a free aspect. The reply is a `ClaimedTask` or None.

    An aspect that the agent itself holds is not free, so the agent gets another task. The task must have all
    `tags`.
    """

    aspect: str = WORK
    ttl_minutes: float | None = None
    project: str | None = None
    tags: tuple[str, ...] = ()
    metadata_match: Mapping[str, Any] | None = None
    #: Id of the task to claim. None means any task.
    task_id: str | None = None

    @property
    def is_filtered(self) -> bool:
        """Return whether the filter can exclude tasks."""
        return bool(self.project is not None or self.tags or self.metadata_match)

    @property
    def filter_text(self) -> str:
        """Return the filter as text. Equal filters give equal texts, and an empty filter gives ""."""
        if not self.is_filtered:
            return ""
        match = sorted((self.metadata_match or {}).items())
        return json.dumps([self.project, sorted(self.tags), match])

    def passes(self, tags: Collection[str], metadata: Mapping[str, Any]) -> bool:
        """Return whether a task with these tags and metadata passes the filter."""
        return (
            has_tags(tags, self.tags)
            and matches_metadata(metadata, self.metadata_match)
            and is_of_project(metadata, self.project)
        )


@frozen
class Lesson:
    """The lesson of a completed task, as text that the learning code parses.

    `id` identifies the completion.
    """

    id: str
    text: str


@frozen(kw_only=True)
class CompleteTask(TaskCommand[list[str]]):
    """Complete a task.

    The reply contains the ids of the tasks that it unblocked. All list fields are passed on unchanged.
    """

    task_id: str
    outcome: str | None = None
    cited_nodes: tuple[str, ...] | None = None
    misleading_nodes: tuple[str, ...] | None = None
    receipt_id: str | None = None
    fence: int | None = None
    #: Lesson that is stored with the completion until `DropLesson` deletes it.
    lesson: Lesson | None = None


@frozen(kw_only=True)
class CancelTask(TaskCommand[None]):
    """Close a task without a result. No reply."""

    task_id: str
    reason: str | None = None


@frozen(kw_only=True)
class ReopenTask(TaskCommand[list[str]]):
    """Reopen a closed task. The reply contains the ids of the tasks that it blocks again."""

    task_id: str


@frozen(kw_only=True)
class UpsertTaskEdge(TaskCommand[None]):
    """Add or replace an edge between two tasks. No reply."""

    source: str
    target: str
    type: str
    metadata: Mapping[str, Any] = {}


@frozen
class RemovedEdge:
    """An edge that was removed, with the titles of its tasks."""

    source: str
    source_title: str
    target: str
    target_title: str
    type: str


@frozen(kw_only=True)
class RemoveTaskEdge(TaskCommand[RemovedEdge]):
    """Remove an edge between two tasks. The reply is the `RemovedEdge`."""

    source: str
    target: str
    type: str


@frozen(kw_only=True)
class SpawnTask(TaskCommand[str]):
    """Create a follow-up task. The reply is the id of the new task."""

    source_task_id: str
    title: str
    description: str | None = None
    relation_type: str = "discovered_from"
    inherit_project: bool = True
    inherit_tags: bool = True
    inherit_context: bool = True
    metadata: Mapping[str, Any] = {}
    #: Project of the session. The task gets this project if neither its source nor its metadata names one.
    working_in: str | None = None
    made_id: str | None = None


@frozen
class Dependent:
    """A note that depends on another note."""

    id: str
    title: str
    path: str


@frozen
class Reverification:
    """The tasks of a re-verification, epic first.

    The list is incomplete if one call cannot create all tasks.
    """

    task_ids: tuple[str, ...]
    is_complete: bool = True


@frozen(kw_only=True)
class OpenReverification(TaskCommand[Reverification]):
    """Create an epic with one task for each dependent of a doubtful note. Existing open tasks are reused."""

    note: Dependent
    reason: str
    dependents: tuple[Dependent, ...]


@frozen(kw_only=True)
class PostFinding(TaskCommand[str]):
    """Post a finding on a task. The reply is the id of the finding."""

    task_id: str
    summary: str
    knowledge_id: str | None = None
    fence: int | None = None
    made_id: str | None = None


@frozen(kw_only=True)
class DropLesson(TaskCommand[None]):
    """Delete a lesson after it was applied. No reply."""

    id: str


@frozen
class DropClaims(BoardCommand[int]):
    """Delete at most `most` claims that ended before `before`."""

    before: datetime
    most: int
