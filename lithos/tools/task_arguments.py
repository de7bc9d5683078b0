"""Parameters of the task tools."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from lithos.core.tasks import EDGE_TYPES, TASK_STATUSES, TASK_TYPES
from lithos.tools.arguments import argument

_TASK = "Task id."
_AGENT = "Your agent id."
_ASPECT = "The part of the work you take, e.g. research."
_MINUTES = "Minutes to hold it; default 60, at most 480."
_TAGS = "Only tasks with all of these tags."
_MATCH = "Metadata that must match, per key."
_PROJECT = "Only tasks with this metadata.project."


@frozen
class CreateArguments:
    """Parameters of `lithos_task_create`."""

    title: str = argument("What is to be done.")
    agent: str = argument(_AGENT)
    description: str | None = argument("Details.", None)
    tags: tuple[str, ...] | None = argument("Tags.", None)
    metadata: dict[str, Any] | None = argument("Free keys, e.g. project, priority; gates: gate_type.", None)
    task_type: str = argument("Kind of task.", "task", one_of=TASK_TYPES)
    depends_on: tuple[str, ...] | None = argument("Tasks to be completed before.", None)
    parent_task_id: str | None = argument("Parent task.", None)


@frozen
class UpdateArguments:
    """Parameters of `lithos_task_update`."""

    task_id: str = argument(_TASK)
    agent: str = argument(_AGENT)
    title: str | None = argument("New title.", None)
    description: str | None = argument("New description.", None)
    tags: tuple[str, ...] | None = argument("New tags; [] clears.", None)
    metadata: dict[str, Any] | None = argument("Merged per key; null deletes a key.", None)


@frozen
class ClaimArguments:
    """Parameters of `lithos_task_claim` and `lithos_task_renew`."""

    task_id: str = argument(_TASK)
    aspect: str = argument(_ASPECT)
    agent: str = argument(_AGENT)
    ttl_minutes: float | None = argument(_MINUTES, None)


@frozen
class ReleaseArguments:
    """Parameters of `lithos_task_release`."""

    task_id: str = argument(_TASK)
    aspect: str = argument("The part you give up.")
    agent: str = argument(_AGENT)


@frozen
class CompleteArguments:
    """Parameters of `lithos_task_complete`."""

    task_id: str = argument(_TASK)
    agent: str = argument(_AGENT)
    outcome: str | None = argument("What came of it.", None)
    cited_nodes: tuple[str, ...] | None = argument("Retrieved notes that helped.", None)
    misleading_nodes: tuple[str, ...] | None = argument("Retrieved notes that misled.", None)
    receipt_id: str | None = argument("Receipt of the retrieve call meant.", None)


@frozen
class CancelArguments:
    """Parameters of `lithos_task_cancel`."""

    task_id: str = argument(_TASK)
    agent: str = argument(_AGENT)
    reason: str | None = argument("Why.", None)


@frozen
class ListArguments:
    """Parameters of `lithos_task_list`."""

    agent: str | None = argument("Only tasks this agent created.", None)
    status: str | None = argument("Only this status.", None, one_of=TASK_STATUSES)
    tags: tuple[str, ...] | None = argument(_TAGS, None)
    since: str | None = argument("Only tasks created at or after this time.", None)
    resolved_since: str | None = argument("Only tasks resolved at or after this time.", None)
    with_claims: bool = argument("Add running claims.", False)
    metadata_match: dict[str, Any] | None = argument(_MATCH, None)
    task_type: str | None = argument("Only this kind.", None, one_of=TASK_TYPES)


@frozen
class StatusArguments:
    """Parameters of `lithos_task_status`."""

    task_id: str | None = argument("Task id; omit for all open tasks.", None)


@frozen
class PostFindingArguments:
    """Parameters of `lithos_finding_post`."""

    task_id: str = argument(_TASK)
    agent: str = argument(_AGENT)
    summary: str = argument("What you found or did.")
    knowledge_id: str | None = argument("Note that holds the details.", None)


@frozen
class ListFindingsArguments:
    """Parameters of `lithos_finding_list`."""

    task_id: str = argument(_TASK)
    since: str | None = argument("Only findings later than this time.", None)


@frozen
class TaskArguments:
    """Parameters of `lithos_task_get`."""

    task_id: str = argument(_TASK)


@frozen
class ReopenArguments:
    """Parameters of `lithos_task_reopen`."""

    task_id: str = argument(_TASK)
    agent: str = argument(_AGENT)


@frozen
class ReadyArguments:
    """Parameters of `lithos_task_ready`."""

    project: str | None = argument(_PROJECT, None)
    tags: tuple[str, ...] | None = argument(_TAGS, None)
    metadata_match: dict[str, Any] | None = argument(_MATCH, None)
    limit: int = argument("Most tasks.", 50)
    with_claims: bool = argument("Add running claims.", True)


@frozen
class BlockedArguments:
    """Parameters of `lithos_task_blocked`."""

    project: str | None = argument(_PROJECT, None)
    tags: tuple[str, ...] | None = argument(_TAGS, None)
    metadata_match: dict[str, Any] | None = argument(_MATCH, None)
    limit: int = argument("Most tasks.", 50)


@frozen
class ChildrenArguments:
    """Parameters of `lithos_task_children`."""

    task_id: str = argument(_TASK)
    recursive: bool = argument("Also children of children.", False)
    include_closed: bool = argument("Also completed and cancelled ones.", False)


@frozen
class EdgeArguments:
    """Parameters of `lithos_task_edge_upsert`."""

    from_task_id: str = argument("Task the edge leaves: the blocker, gate, parent or source.")
    to_task_id: str = argument("Task the edge arrives at.")
    type: str = argument("Kind of relation.", one_of=EDGE_TYPES)
    agent: str = argument(_AGENT)
    metadata: dict[str, Any] | None = argument("Free keys.", None)


@frozen
class ListEdgesArguments:
    """Parameters of `lithos_task_edge_list`."""

    task_id: str = argument(_TASK)
    direction: str = argument("Which edges.", "both", one_of=("both", "incoming", "outgoing"))
    types: tuple[str, ...] | None = argument("Only these kinds.", None)


@frozen
class SpawnArguments:
    """Parameters of `lithos_task_spawn`."""

    source_task_id: str = argument("Task it comes out of.")
    title: str = argument("What is to be done.")
    agent: str = argument(_AGENT)
    description: str | None = argument("Details.", None)
    relation_type: str = argument(
        "How it relates to the source.", "discovered_from", one_of=("discovered_from", "blocks")
    )
    inherit_project: bool = argument("Take over metadata.project.", True)
    inherit_tags: bool = argument("Take over tags.", True)
    inherit_context: bool = argument("Take over priority, parallelizable, phase.", True)
    metadata: dict[str, Any] | None = argument("Free keys; win over inherited ones.", None)
