"""Tools of tasks, claims and findings."""

from __future__ import annotations

from collections.abc import Sequence

from lithos.core.errors import InvalidInput
from lithos.core.tasks.commands import (
    CancelTask,
    ClaimAspect,
    CompleteTask,
    CreateTask,
    NextTask,
    PostFinding,
    ReleaseClaim,
    RenewClaim,
    UpdateTask,
)
from lithos.core.times import format_time
from lithos.services.tasks.coordination import Coordination, TaskFilter, Waiting
from lithos.tools.contract.arguments import as_command, read_time, read_title, unique
from lithos.tools.contract.registry import Answer, Tool
from lithos.tools.contract.rows import finding_row, given_row, grant_row, sliced_rows, view_rows
from lithos.tools.tasks.arguments import (
    CancelArguments,
    ClaimArguments,
    CompleteArguments,
    CreateArguments,
    ListArguments,
    ListFindingsArguments,
    NextArguments,
    PostFindingArguments,
    ReleaseArguments,
    RenewArguments,
    StatusArguments,
    UpdateArguments,
)


class TaskTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, coordination: Coordination) -> None:
        self._coordination = coordination

    def tools(self) -> Sequence[Tool]:
        """The family."""
        return (*self._of_tasks(), *self._of_claims(), *self._of_findings())

    def _of_tasks(self) -> Sequence[Tool]:
        return (
            Tool(
                "lithos_task_create", "core", "", "Create a task, epic or gate.", CreateArguments, self.create
            ),
            Tool("lithos_task_update", "standard", "I", "Change a task.", UpdateArguments, self.update),
            Tool(
                "lithos_task_complete",
                "core",
                "I",
                "Complete a task, releasing its claims; say which notes helped or misled.",
                CompleteArguments,
                self.complete,
            ),
            Tool("lithos_task_cancel", "standard", "I", "Cancel a task.", CancelArguments, self.cancel),
            Tool("lithos_task_list", "core", "RI", "List tasks, newest first.", ListArguments, self.list_all),
            Tool(
                "lithos_task_status",
                "standard",
                "RI",
                "Tasks with their claims.",
                StatusArguments,
                self.status,
            ),
        )

    def _of_claims(self) -> Sequence[Tool]:
        return (
            Tool(
                "lithos_task_next",
                "core",
                "",
                "Get work: claims the oldest free task that can start, or tells how many wait.",
                NextArguments,
                self.next,
            ),
            Tool(
                "lithos_task_claim",
                "core",
                "",
                "Claim one aspect of a task so that nobody else works on it; note the fence.",
                ClaimArguments,
                self.claim,
            ),
            Tool("lithos_task_renew", "standard", "", "Hold your claim longer.", RenewArguments, self.renew),
            Tool("lithos_task_release", "standard", "I", "Give a claim up.", ReleaseArguments, self.release),
        )

    def _of_findings(self) -> Sequence[Tool]:
        return (
            Tool(
                "lithos_finding_post",
                "core",
                "",
                "Report progress or a result on a task.",
                PostFindingArguments,
                self.post_finding,
            ),
            Tool(
                "lithos_finding_list",
                "core",
                "RI",
                "Findings of a task, oldest first.",
                ListFindingsArguments,
                self.list_findings,
            ),
        )

    async def create(self, given: CreateArguments) -> Answer:
        """`lithos_task_create`."""
        command = as_command(
            CreateTask,
            given,
            title=read_title(given.title),
            tags=unique(given.tags) or (),
            metadata=given.metadata or {},
            depends_on=given.depends_on or (),
        )
        return {"task_id": await self._coordination.run(command)}

    async def update(self, given: UpdateArguments) -> Answer:
        """`lithos_task_update`."""
        if given.title is not None and not given.title.strip():
            raise InvalidInput("title must not be blank; leave it out to keep the old one.")
        if all(value is None for value in (given.title, given.description, given.tags, given.metadata)):
            raise InvalidInput("Nothing to change: give title, description, tags or metadata.")
        title = None if given.title is None else read_title(given.title)
        await self._coordination.run(as_command(UpdateTask, given, title=title, tags=unique(given.tags)))
        return {"success": True, "message": f"Task {given.task_id} updated"}

    async def next(self, given: NextArguments) -> Answer:
        """`lithos_task_next`."""
        found = await self._coordination.next(as_command(NextTask, given, tags=given.tags or ()))
        if isinstance(found, Waiting):
            return {"task": None, "waiting": found.waiting, "blocked": found.blocked}
        return given_row(found)

    async def claim(self, given: ClaimArguments) -> Answer:
        """`lithos_task_claim`."""
        grant = await self._coordination.run(as_command(ClaimAspect, given))
        return {"success": True, "expires_at": format_time(grant.claim.expires_at), **grant_row(grant)}

    async def renew(self, given: RenewArguments) -> Answer:
        """`lithos_task_renew`."""
        grant = await self._coordination.run(as_command(RenewClaim, given))
        return {"success": True, "new_expires_at": format_time(grant.claim.expires_at), **grant_row(grant)}

    async def release(self, given: ReleaseArguments) -> Answer:
        """`lithos_task_release`."""
        await self._coordination.run(as_command(ReleaseClaim, given))
        return {"success": True}

    async def complete(self, given: CompleteArguments) -> Answer:
        """`lithos_task_complete`."""
        unblocked = await self._coordination.complete(as_command(CompleteTask, given))
        return {"success": True, "unblocked": unblocked}

    async def cancel(self, given: CancelArguments) -> Answer:
        """`lithos_task_cancel`."""
        await self._coordination.run(as_command(CancelTask, given))
        return {"success": True}

    async def list_all(self, given: ListArguments) -> Answer:
        """`lithos_task_list`."""
        wanted = TaskFilter(
            agent=given.agent,
            status=given.status,
            tags=given.tags or (),
            since=read_time("since", given.since),
            resolved_since=read_time("resolved_since", given.resolved_since),
            metadata_match=given.metadata_match,
            task_type=given.task_type,
        )
        views = await self._coordination.list_tasks(wanted, with_claims=given.with_claims)
        return {"tasks": await view_rows(views)}

    async def status(self, given: StatusArguments) -> Answer:
        """`lithos_task_status`."""
        return {"tasks": await view_rows(await self._coordination.status(given.task_id))}

    async def post_finding(self, given: PostFindingArguments) -> Answer:
        """`lithos_finding_post`."""
        command = as_command(PostFinding, given, knowledge_id=given.knowledge_id or None)
        return {"finding_id": await self._coordination.run(command)}

    async def list_findings(self, given: ListFindingsArguments) -> Answer:
        """`lithos_finding_list`."""
        found = await self._coordination.findings(given.task_id, read_time("since", given.since))
        return {"findings": await sliced_rows(found, finding_row)}
