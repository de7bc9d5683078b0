"""Parameters of the task tools."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from lithos.core.tasks.model import EDGE_TYPES, TASK_STATUSES, TASK_TYPES, WORK
from lithos.tools.contract.arguments import argument
from lithos.tools.contract.bounds import (
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

_TASK = "Task id."
_AGENT = "Your id."
_ASPECT = "Your part, e.g. research."
_MINUTES = "Minutes; default 60, at most 480."
_FENCE = "Fence of your claim."
_TAGS = "With all these tags."
_MATCH = "Metadata to match, per key."
_SKIP = "Tasks to skip."
_PROJECT = "With this metadata.project."


@frozen
class CreateArguments:
    """Parameters of `lithos_task_create`."""

    title: str = argument("What is to be done.", bound=TITLE)
    agent: str = argument(_AGENT, bound=NAME)
    description: str | None = argument("Details.", None, bound=DESCRIPTION)
    tags: tuple[str, ...] | None = argument("Tags.", None, bound=TAGS)
    metadata: dict[str, Any] | None = argument(
        "Free keys, e.g. project, priority; gates: gate_type.", None, bound=METADATA
    )
    task_type: str = argument("Kind of task.", "task", one_of=TASK_TYPES, bound=LOOKUP)
    depends_on: tuple[str, ...] | None = argument("Tasks to complete before.", None, bound=IDS)
    parent_task_id: str | None = argument("Parent task.", None, bound=NAME)


@frozen
class UpdateArguments:
    """Parameters of `lithos_task_update`."""

    task_id: str = argument(_TASK, bound=LOOKUP)
    agent: str = argument(_AGENT, bound=NAME)
    title: str | None = argument("New title.", None, bound=TITLE)
    description: str | None = argument(
        'New description; "" clears.', None, may_be_blank=True, bound=DESCRIPTION
    )
    tags: tuple[str, ...] | None = argument("New tags; [] clears.", None, bound=TAGS)
    metadata: dict[str, Any] | None = argument("Merged; null deletes a key.", None, bound=METADATA)


@frozen
class ClaimArguments:
    """Parameters of `lithos_task_claim`."""

    task_id: str = argument(_TASK, bound=LOOKUP)
    aspect: str = argument(_ASPECT, bound=NAME)
    agent: str = argument(_AGENT, bound=NAME)
    ttl_minutes: float | None = argument(_MINUTES, None)


@frozen
class RenewArguments(ClaimArguments):
    """Parameters of `lithos_task_renew`."""

    fence: int | None = argument(_FENCE, None)


@frozen
class NextArguments:
    """Parameters of `lithos_task_next`."""

    agent: str = argument(_AGENT, bound=NAME)
    aspect: str = argument(_ASPECT, WORK, bound=NAME)
    ttl_minutes: float | None = argument(_MINUTES, None)
    project: str | None = argument(_PROJECT, None, bound=LOOKUP)
    tags: tuple[str, ...] | None = argument(_TAGS, None, bound=FILTERS)
    metadata_match: dict[str, Any] | None = argument(_MATCH, None, bound=FILTER)
    task_id: str | None = argument("Only this task.", None, bound=LOOKUP)


@frozen
class ReleaseArguments:
    """Parameters of `lithos_task_release`."""

    task_id: str = argument(_TASK, bound=LOOKUP)
    aspect: str = argument("The part you give up.", bound=NAME)
    agent: str = argument(_AGENT, bound=NAME)
    fence: int | None = argument(_FENCE, None)


@frozen
class CompleteArguments:
    """Parameters of `lithos_task_complete`."""

    task_id: str = argument(_TASK, bound=LOOKUP)
    agent: str = argument(_AGENT, bound=NAME)
    outcome: str | None = argument("What came of it.", None, bound=OUTCOME)
    cited_nodes: tuple[str, ...] | None = argument("Notes that helped.", None, bound=IDS)
    misleading_nodes: tuple[str, ...] | None = argument("Retrieved notes that misled.", None, bound=IDS)
    receipt_id: str | None = argument("Receipt of the retrieval.", None, bound=LOOKUP)
    fence: int | None = argument(_FENCE, None)


@frozen
class CancelArguments:
    """Parameters of `lithos_task_cancel`."""

    task_id: str = argument(_TASK, bound=LOOKUP)
    agent: str = argument(_AGENT, bound=NAME)
    reason: str | None = argument("Why.", None, bound=OUTCOME)


@frozen
class ListArguments:
    """Parameters of `lithos_task_list`."""

    agent: str | None = argument("Created by this agent.", None, bound=LOOKUP)
    status: str | None = argument("Only this status.", None, one_of=TASK_STATUSES, bound=LOOKUP)
    tags: tuple[str, ...] | None = argument(_TAGS, None, bound=FILTERS)
    since: str | None = argument("Created since then.", None, bound=LOOKUP)
    resolved_since: str | None = argument("Resolved since then.", None, bound=LOOKUP)
    with_claims: bool = argument("Add running claims.", False)
    metadata_match: dict[str, Any] | None = argument(_MATCH, None, bound=FILTER)
    task_type: str | None = argument("Only this kind.", None, one_of=TASK_TYPES, bound=LOOKUP)


@frozen
class StatusArguments:
    """Parameters of `lithos_task_status`."""

    task_id: str | None = argument("Omit for all open tasks.", None, bound=LOOKUP)


@frozen
class PostFindingArguments:
    """Parameters of `lithos_finding_post`."""

    task_id: str = argument(_TASK, bound=LOOKUP)
    agent: str = argument(_AGENT, bound=NAME)
    summary: str = argument("What you found or did.", bound=DESCRIPTION)
    knowledge_id: str | None = argument("Note that holds the details.", None, bound=NAME, note="there")
    fence: int | None = argument(_FENCE, None)


@frozen
class ListFindingsArguments:
    """Parameters of `lithos_finding_list`."""

    task_id: str = argument(_TASK, bound=LOOKUP)
    since: str | None = argument("Later than this time.", None, bound=LOOKUP)


@frozen
class TaskArguments:
    """Parameters of `lithos_task_get`."""

    task_id: str = argument(_TASK, bound=LOOKUP)


@frozen
class ReopenArguments:
    """Parameters of `lithos_task_reopen`."""

    task_id: str = argument(_TASK, bound=LOOKUP)
    agent: str = argument(_AGENT, bound=NAME)


@frozen
class ReadyArguments:
    """Parameters of `lithos_task_ready`."""

    project: str | None = argument(_PROJECT, None, bound=LOOKUP)
    tags: tuple[str, ...] | None = argument(_TAGS, None, bound=FILTERS)
    metadata_match: dict[str, Any] | None = argument(_MATCH, None, bound=FILTER)
    limit: int = argument("Most tasks.", 50)
    with_claims: bool = argument("Add running claims.", True)
    offset: int = argument(_SKIP, 0, is_listed=False)


@frozen
class BlockedArguments:
    """Parameters of `lithos_task_blocked`."""

    project: str | None = argument(_PROJECT, None, bound=LOOKUP)
    tags: tuple[str, ...] | None = argument(_TAGS, None, bound=FILTERS)
    metadata_match: dict[str, Any] | None = argument(_MATCH, None, bound=FILTER)
    limit: int = argument("Most tasks.", 50)
    offset: int = argument(_SKIP, 0, is_listed=False)


@frozen
class ChildrenArguments:
    """Parameters of `lithos_task_children`."""

    task_id: str = argument(_TASK, bound=LOOKUP)
    recursive: bool = argument("Also children of children.", False)
    include_closed: bool = argument("Also completed and cancelled ones.", False)


@frozen
class EdgeArguments:
    """Parameters of `lithos_task_edge_upsert`."""

    from_task_id: str = argument("Task the edge leaves: the blocker, gate, parent or source.", bound=LOOKUP)
    to_task_id: str = argument("Task the edge arrives at.", bound=LOOKUP)
    type: str = argument("Kind of relation.", one_of=EDGE_TYPES, bound=LOOKUP)
    agent: str = argument(_AGENT, bound=NAME)
    metadata: dict[str, Any] | None = argument("Free keys.", None, bound=METADATA)


@frozen
class ListEdgesArguments:
    """Parameters of `lithos_task_edge_list`."""

    task_id: str = argument(_TASK, bound=LOOKUP)
    direction: str = argument("Which edges.", "both", one_of=("both", "incoming", "outgoing"), bound=LOOKUP)
    types: tuple[str, ...] | None = argument("Only these kinds.", None, bound=FILTERS)


@frozen
class SpawnArguments:
    """Parameters of `lithos_task_spawn`."""

    source_task_id: str = argument("Task it comes out of.", bound=LOOKUP)
    title: str = argument("What is to be done.", bound=TITLE)
    agent: str = argument(_AGENT, bound=NAME)
    description: str | None = argument("Details.", None, bound=DESCRIPTION)
    relation_type: str = argument(
        "How it relates to the source.", "discovered_from", one_of=("discovered_from", "blocks"), bound=LOOKUP
    )
    inherit_project: bool = argument("Take over metadata.project.", True)
    inherit_tags: bool = argument("Take over tags.", True)
    inherit_context: bool = argument("Take over priority, parallelizable, phase.", True)
    metadata: dict[str, Any] | None = argument("Free keys; win over inherited ones.", None, bound=METADATA)
