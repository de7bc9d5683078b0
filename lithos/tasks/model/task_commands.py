"""Commands of the coordinator on tasks, one transaction each batch.

The retention deletes claims that ended long ago. Tasks, findings and their relations are what people and
agents have written: they are kept.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import frozen

from lithos.kernel.values.messages import BoardCommand, R_co
from lithos.tasks.model.task import WORK, Claim, ClaimGrant, Task
from lithos.text.words.list_filters import has_tags, matches_metadata


@frozen(kw_only=True)
class TaskCommand(BoardCommand[R_co]):
    """A request of an agent to the task board."""

    agent: str


@frozen(kw_only=True)
class CreateTask(TaskCommand[str]):
    """A new task with its edges; the reply is its id."""

    title: str
    description: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    task_type: str = "task"
    depends_on: tuple[str, ...] = ()
    parent_task_id: str | None = None
    #: Of a call that may be sent again: the id of what it makes, which is made once.
    made_id: str | None = None


@frozen(kw_only=True)
class UpdateTask(TaskCommand[None]):
    """Change fields; None keeps, metadata merges per key and null deletes one. No reply."""

    task_id: str
    title: str | None = None
    description: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] | None = None


@frozen(kw_only=True)
class ClaimAspect(TaskCommand[ClaimGrant]):
    """Take or take again an aspect; the reply is the `ClaimGrant`."""

    task_id: str
    aspect: str
    ttl_minutes: float | None = None


@frozen(kw_only=True)
class RenewClaim(TaskCommand[ClaimGrant]):
    """Hold an aspect longer; the reply is the `ClaimGrant`."""

    task_id: str
    aspect: str
    ttl_minutes: float | None = None
    fence: int | None = None


@frozen(kw_only=True)
class ReleaseClaim(TaskCommand[None]):
    """Give an aspect up, one's own or that of `held_by`, which a person takes away. No reply."""

    task_id: str
    aspect: str
    fence: int | None = None
    held_by: str | None = None


@frozen
class Failed:
    """The state of a task after a failed attempt: `retry_at` is empty (None) after the last attempt."""

    attempts: int
    status: str
    retry_at: datetime | None


@frozen(kw_only=True)
class FailAttempt(TaskCommand[Failed]):
    """Release an aspect because the work failed; `output` is its last output. The reply is `Failed`."""

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
    """Claim the oldest ready task whose aspect is free; the reply is `ClaimedTask`, or None.

    An aspect that the agent itself holds is not free: it gets another task. `tags` are all needed.
    """

    aspect: str = WORK
    ttl_minutes: float | None = None
    project: str | None = None
    tags: tuple[str, ...] = ()
    metadata_match: Mapping[str, Any] | None = None
    #: Only this task.
    task_id: str | None = None

    @property
    def is_filtered(self) -> bool:
        """Whether not every task will do."""
        return bool(self.project is not None or self.tags or self.metadata_match)

    @property
    def filter_text(self) -> str:
        """The same for equal filters, as text; empty without one."""
        if not self.is_filtered:
            return ""
        match = sorted((self.metadata_match or {}).items())
        return json.dumps([self.project, sorted(self.tags), match])

    def passes(self, tags: Collection[str], metadata: Mapping[str, Any]) -> bool:
        """Whether a task with these tags and metadata is wanted."""
        return (
            has_tags(tags, self.tags)
            and matches_metadata(metadata, self.metadata_match)
            and (self.project is None or matches_metadata(metadata, {"project": self.project}))
        )


@frozen
class Lesson:
    """The lesson of a completed task, as text that its author reads again; `id` is of this completion."""

    id: str
    text: str


@frozen(kw_only=True)
class CompleteTask(TaskCommand[list[str]]):
    """Complete a task; the reply is the ids it unblocked. The lists are passed on unchanged."""

    task_id: str
    outcome: str | None = None
    cited_nodes: tuple[str, ...] | None = None
    misleading_nodes: tuple[str, ...] | None = None
    receipt_id: str | None = None
    fence: int | None = None
    #: Kept with the completion until a `DropLesson`.
    lesson: Lesson | None = None


@frozen(kw_only=True)
class CancelTask(TaskCommand[None]):
    """End a task without result. No reply."""

    task_id: str
    reason: str | None = None


@frozen(kw_only=True)
class ReopenTask(TaskCommand[list[str]]):
    """Open a closed task again; the reply is the ids it blocks again."""

    task_id: str


@frozen(kw_only=True)
class UpsertTaskEdge(TaskCommand[None]):
    """Relate two tasks. No reply."""

    source: str
    target: str
    type: str
    metadata: Mapping[str, Any] = {}


@frozen(kw_only=True)
class SpawnTask(TaskCommand[str]):
    """A task that comes out of another; the reply is its id."""

    source_task_id: str
    title: str
    description: str | None = None
    relation_type: str = "discovered_from"
    inherit_project: bool = True
    inherit_tags: bool = True
    inherit_context: bool = True
    metadata: Mapping[str, Any] = {}
    made_id: str | None = None


@frozen
class Dependent:
    """A note that rests on another one."""

    id: str
    title: str
    path: str


@frozen
class Reverification:
    """The tasks of a re-verification, its epic first; incomplete where there are too many at a time."""

    task_ids: tuple[str, ...]
    is_complete: bool = True


@frozen(kw_only=True)
class OpenReverification(TaskCommand[Reverification]):
    """Create an epic with a task for each dependent of a note in doubt; open tasks are kept."""

    note: Dependent
    reason: str
    dependents: tuple[Dependent, ...]


@frozen(kw_only=True)
class PostFinding(TaskCommand[str]):
    """Report on a task; the reply is the finding's id."""

    task_id: str
    summary: str
    knowledge_id: str | None = None
    fence: int | None = None
    made_id: str | None = None


@frozen(kw_only=True)
class DropLesson(TaskCommand[None]):
    """Forget a lesson that has had its effects. No reply."""

    id: str


@frozen
class DropClaims(BoardCommand[int]):
    """Drop at most `most` claims that ended before `before`."""

    before: datetime
    most: int
