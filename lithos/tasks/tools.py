"""Tools for tasks, claims and findings, and for server statistics (`lithos_stats`)."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import WORKING_IN
from lithos.kernel.values.times import format_time
from lithos.server.service_state import ServerState
from lithos.server.settings import ServerConfig
from lithos.server.tools.arguments import argument, as_command, read_time, read_title, unique
from lithos.server.tools.bounds import (
    DESCRIPTION,
    FILTER,
    FILTERS,
    IDS,
    LOOKUP,
    METADATA,
    NAME,
    OUTCOME,
    TAGS,
    TITLE,
)
from lithos.server.tools.compacting import CompactForm
from lithos.server.tools.declaring import Answer, tool
from lithos.server.tools.fitting import CuttableAnswer
from lithos.server.tools.serialization import row_of, sliced_rows
from lithos.tasks.model.task import TASK_STATUSES, TASK_TYPES, WORK
from lithos.tasks.model.task_commands import (
    CancelTask,
    ClaimAspect,
    CompleteTask,
    CreateTask,
    FailAttempt,
    NextTask,
    PostFinding,
    ReleaseClaim,
    RenewClaim,
    UpdateTask,
)
from lithos.tasks.model.task_project import asked_project, with_project
from lithos.tasks.service.coordination import Coordination, TaskFilter, WaitingTasks
from lithos.tasks.tools_rows import given_row, grant_row, view_rows

#: The compact form of answers that contain tasks.
TASKS = CompactForm(
    always=("tasks", "id", "title", "status", "claims", "blockers"), defaults={"task_type": "task"}
)
#: Decorator of tools that list tasks.
listing: Final = partial(tool, hints="RI", paged=CuttableAnswer(rows=("tasks",)), sparing=TASKS, of="tasks")


@tool(
    "lithos_stats",
    "full",
    "RI",
    place=28,
    title="Show statistics",
    sparing=CompactForm(always=("index_drift_detected",)),
)
class StatsTool:
    """Show counts of notes, chunks, links, agents and tasks, and whether an index is behind."""

    async def answer(self, using: Parts) -> Answer:
        return await using.get(ServerState).stats()


#: Parameter descriptions that several tools share.
HELP_TASK = "Task id."
HELP_AGENT = "Your agent id."
HELP_ASPECT = "Your part of the work, e.g. research."
HELP_MINUTES = "Minutes, 60 by default and at most 480."
HELP_FENCE = "Fence of your claim."
HELP_TAGS = "Only tasks with all of these tags."
HELP_MATCH = 'Only tasks with this metadata, e.g. {"priority": 1}.'
HELP_SKIP = "Number of tasks to skip."
HELP_PROJECT = "Only tasks of this project."


@tool("lithos_task_create", "core", place=16, title="Create a task", of="tasks", creates=True)
class TaskCreateTool:
    """Create a task, an epic (parent of tasks) or a gate (waits for a person, a time or an event)."""

    title: str = argument("The work to do.", bound=TITLE)
    agent: str = argument(HELP_AGENT, bound=NAME)
    description: str | None = argument("Details.", None, bound=DESCRIPTION)
    tags: tuple[str, ...] | None = argument("Tags.", None, bound=TAGS)
    metadata: dict[str, Any] | None = argument(
        "Metadata keys, e.g. project, priority; a gate needs gate_type.", None, bound=METADATA
    )
    task_type: str = argument("Kind of task.", "task", one_of=TASK_TYPES, bound=LOOKUP)
    depends_on: tuple[str, ...] = argument("Ids of the tasks to complete first.", (), bound=IDS)
    parent_task_id: str | None = argument("Id of the parent task.", None, bound=NAME)
    project: str | None = argument(
        'Project; "" for none.', None, may_be_blank=True, bound=LOOKUP, is_rare=True
    )

    async def answer(self, using: Parts) -> Answer:
        command = as_command(
            CreateTask,
            self,
            title=read_title(self.title),
            tags=unique(self.tags) or (),
            metadata=with_project(self.metadata or {}, self.project, WORKING_IN.get()),
        )
        return await made_task(using, await using.get(Coordination).run(command))


def _is_plain(using: Parts) -> bool:
    return using.get(ServerConfig).is_plain


async def made_task(using: Parts, task_id: str) -> Answer:
    """Return the answer about a created task.

    If another open task has the same title, it includes `similar`.
    """
    found = [] if _is_plain(using) else await using.get(Coordination).namesakes(task_id)
    similar = [
        {"id": each.id, "title": each.title, "created_by": each.created_by}
        | {"created_at": format_time(each.created_at)}
        for each in found
    ]
    return {"task_id": task_id, "similar": similar} if similar else {"task_id": task_id}


@tool("lithos_task_update", "full", "I", place=17, title="Update a task", of="tasks")
class TaskUpdateTool:
    """Change a task's title, description, tags or metadata."""

    task_id: str = argument(HELP_TASK, bound=LOOKUP)
    agent: str = argument(HELP_AGENT, bound=NAME)
    title: str | None = argument("New title.", None, bound=TITLE)
    description: str | None = argument(
        'New description; "" clears.', None, may_be_blank=True, bound=DESCRIPTION
    )
    tags: tuple[str, ...] | None = argument("New tags; [] clears them.", None, bound=TAGS)
    metadata: dict[str, Any] | None = argument(
        "Metadata keys to merge; null deletes a key.", None, bound=METADATA
    )

    async def answer(self, using: Parts) -> Answer:
        if self.title is not None and not self.title.strip():
            raise InvalidInput("title must not be blank. Leave it out to keep the old title.")
        if all(value is None for value in (self.title, self.description, self.tags, self.metadata)):
            raise InvalidInput("Nothing to change. Give a title, description, tags or metadata.")
        title = None if self.title is None else read_title(self.title)
        await using.get(Coordination).run(as_command(UpdateTask, self, title=title, tags=unique(self.tags)))
        return {"success": True, "message": f"Task {self.task_id} updated"}


@tool(
    "lithos_task_complete",
    "core",
    "I",
    place=21,
    title="Complete a task",
    paged=CuttableAnswer(beside=("unblocked",)),
    of="both",
)
class TaskCompleteTool:
    """Complete a task and release its claims. Cite the notes that helped (cited_nodes) or misled
    (misleading_nodes) to improve later retrieval.
    """

    task_id: str = argument(HELP_TASK, bound=LOOKUP)
    agent: str = argument(HELP_AGENT, bound=NAME)
    outcome: str | None = argument("Result of the work.", None, bound=OUTCOME)
    cited_nodes: tuple[str, ...] | None = argument("Ids of the notes that helped.", None, bound=IDS)
    misleading_nodes: tuple[str, ...] | None = argument("Ids of misleading notes.", None, bound=IDS)
    receipt_id: str | None = argument(
        "receipt_id from lithos_context or lithos_retrieve.", None, bound=LOOKUP
    )
    fence: int | None = argument(HELP_FENCE, None)

    async def answer(self, using: Parts) -> Answer:
        unblocked = await using.get(Coordination).complete(as_command(CompleteTask, self))
        return {"success": True, "unblocked": unblocked}


@tool("lithos_task_cancel", "full", "I", place=22, title="Cancel a task", of="tasks")
class TaskCancelTool:
    """Cancel a task and end its claims."""

    task_id: str = argument(HELP_TASK, bound=LOOKUP)
    agent: str = argument(HELP_AGENT, bound=NAME)
    reason: str | None = argument("Reason for the cancellation.", None, bound=OUTCOME)

    async def answer(self, using: Parts) -> Answer:
        await using.get(Coordination).run(as_command(CancelTask, self))
        return {"success": True}


@listing("lithos_task_list", "core", place=23, title="List tasks")
class TaskListTool:
    """List tasks of every status, newest first; pass status=open for open ones. For work that you can start,
    use lithos_task_next.
    """

    created_by: str | None = argument(
        "Only tasks that this agent created; omit for all.", None, bound=LOOKUP, filters_agent=True
    )
    status: str | None = argument("Only tasks with this status.", None, one_of=TASK_STATUSES, bound=LOOKUP)
    tags: tuple[str, ...] = argument(HELP_TAGS, (), bound=FILTERS)
    since: str | None = argument("Only tasks created since this ISO time.", None, bound=LOOKUP, is_rare=True)
    resolved_since: str | None = argument(
        "Only tasks closed since this ISO time.", None, bound=LOOKUP, is_rare=True
    )
    with_claims: bool = argument("Also show claims and their holders.", False)
    metadata_match: dict[str, Any] | None = argument(HELP_MATCH, None, bound=FILTER)
    task_type: str | None = argument(
        "Only tasks of this kind.", None, one_of=TASK_TYPES, bound=LOOKUP, is_rare=True
    )
    project: str | None = argument(HELP_PROJECT, None, bound=LOOKUP, is_rare=True)

    async def answer(self, using: Parts) -> Answer:
        wanted = as_command(
            TaskFilter,
            self,
            since=read_time("since", self.since),
            resolved_since=read_time("resolved_since", self.resolved_since),
            project=asked_project(self.project, WORKING_IN.get()),
        )
        views = await using.get(Coordination).list_tasks(wanted, with_claims=self.with_claims)
        return {"tasks": await view_rows(views)}


@listing("lithos_task_status", "standard", place=24, title="Show task status")
class TaskStatusTool:
    """Show one task, or all open tasks, with the holder and end of each claim."""

    task_id: str | None = argument("Task id; omit for all open tasks.", None, bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer:
        return {"tasks": await view_rows(await using.get(Coordination).status(self.task_id))}


@tool(
    "lithos_task_next",
    "core",
    place=39,
    title="Get the next task",
    paged=CuttableAnswer(beside=("task.claims",)),
    sparing=CompactForm(always=("task", "id", "title", "status"), defaults=TASKS.defaults),
    of="tasks",
)
class TaskNextTool:
    """Claim the oldest unclaimed task that can start now, and return it. If none can, return how many are
    waiting or blocked.
    """

    agent: str = argument(HELP_AGENT, bound=NAME)
    aspect: str = argument(HELP_ASPECT, WORK, bound=NAME)
    ttl_minutes: float | None = argument(HELP_MINUTES, None)
    project: str | None = argument(HELP_PROJECT, None, bound=LOOKUP)
    tags: tuple[str, ...] = argument(HELP_TAGS, (), bound=FILTERS)
    metadata_match: dict[str, Any] | None = argument(HELP_MATCH, None, bound=FILTER, is_rare=True)
    task_id: str | None = argument("Id of a task to claim.", None, bound=LOOKUP, is_rare=True)

    async def answer(self, using: Parts) -> Answer:
        found = await using.get(Coordination).next(
            as_command(NextTask, self, project=asked_project(self.project, WORKING_IN.get()))
        )
        if isinstance(found, WaitingTasks):
            return {"task": None, "waiting": found.waiting, "blocked": found.blocked}
        return given_row(found)


@tool("lithos_task_claim", "core", place=18, title="Claim a task", of="tasks")
class TaskClaimTool:
    """Claim one aspect of a specific task so that no other agent works on it. Keep the returned fence for
    later calls. To get any free task, use lithos_task_next.
    """

    task_id: str = argument(HELP_TASK, bound=LOOKUP)
    aspect: str = argument(HELP_ASPECT, bound=NAME)
    agent: str = argument(HELP_AGENT, bound=NAME)
    ttl_minutes: float | None = argument(HELP_MINUTES, None)

    async def answer(self, using: Parts) -> Answer:
        grant = await using.get(Coordination).run(as_command(ClaimAspect, self))
        return {"success": True, "expires_at": format_time(grant.claim.expires_at), **grant_row(grant)}


@tool("lithos_task_renew", "standard", place=19, title="Renew a claim", of="tasks")
class TaskRenewTool(TaskClaimTool):
    """Extend your claim before it expires. stale_fence means that another agent has it: stop working."""

    fence: int | None = argument(HELP_FENCE, None)

    async def answer(self, using: Parts) -> Answer:
        grant = await using.get(Coordination).run(as_command(RenewClaim, self))
        return {"success": True, "new_expires_at": format_time(grant.claim.expires_at), **grant_row(grant)}


@tool("lithos_task_release", "standard", "I", place=20, title="Release a claim", of="tasks")
class TaskReleaseTool:
    """Release your claim so that another agent can take the work."""

    task_id: str = argument(HELP_TASK, bound=LOOKUP)
    aspect: str = argument("Aspect that you claimed.", bound=NAME)
    agent: str = argument(HELP_AGENT, bound=NAME)
    fence: int | None = argument(HELP_FENCE, None)
    failed: str | None = argument(
        "Last output of the work, if the work failed.",
        None,
        bound=OUTCOME,
    )

    async def answer(self, using: Parts) -> Answer:
        if self.failed is not None:
            failed = await using.get(Coordination).run(as_command(FailAttempt, self, output=self.failed))
            return {"success": True, **row_of(failed)}
        await using.get(Coordination).run(as_command(ReleaseClaim, self))
        return {"success": True}


@tool("lithos_finding_post", "core", place=26, title="Post a finding", of="tasks", creates=True)
class FindingPostTool:
    """Report progress or a result on a task."""

    task_id: str = argument(HELP_TASK, bound=LOOKUP)
    agent: str = argument(HELP_AGENT, bound=NAME)
    summary: str = argument("Your result, or a report of progress.", bound=DESCRIPTION)
    knowledge_id: str | None = argument("Id of the note with the details.", None, bound=NAME, note="there")
    fence: int | None = argument(HELP_FENCE, None)

    async def answer(self, using: Parts) -> Answer:
        command = as_command(PostFinding, self, knowledge_id=self.knowledge_id or None)
        finding_id = await using.get(Coordination).run(command)
        found = [] if _is_plain(using) else await using.get(Coordination).repeated(finding_id)
        similar = [{"id": each.id, "created_at": format_time(each.created_at)} for each in found]
        return {"finding_id": finding_id, "similar": similar} if similar else {"finding_id": finding_id}


@tool(
    "lithos_finding_list",
    "core",
    "RI",
    place=27,
    title="List findings",
    paged=CuttableAnswer(rows=("findings",)),
    sparing=CompactForm(always=("findings",), exact=("created_at",)),
    of="tasks",
)
class FindingListTool:
    """List what agents have reported on a task, oldest first."""

    task_id: str = argument(HELP_TASK, bound=LOOKUP)
    since: str | None = argument("Only findings later than this ISO time.", None, bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer:
        found = await using.get(Coordination).findings(self.task_id, read_time("since", self.since))
        return {"findings": await sliced_rows(found, row_of)}
