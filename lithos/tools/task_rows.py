"""How tasks, claims, findings and task edges look on the wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lithos.core.task_graph import Blocker
from lithos.core.tasks import Claim, Finding, Task
from lithos.core.times import format_optional, format_time
from lithos.services.coordination import DirectedEdge, TaskView
from lithos.services.slices import slices

T = TypeVar("T")


def task_record(task: Task) -> dict[str, Any]:
    """The record of one task."""
    return {
        "id": task.id,
        "title": task.title,
        "description": task.description,
        "status": task.status,
        "task_type": task.task_type,
        "created_by": task.created_by,
        "created_at": format_time(task.created_at),
        "resolved_at": format_optional(task.resolved_at),
        "tags": list(task.tags),
        "metadata": dict(task.metadata),
        "outcome": task.outcome,
    }


def claim_row(claim: Claim) -> dict[str, Any]:
    """One running claim."""
    return {
        "agent": claim.agent,
        "aspect": claim.aspect,
        "expires_at": format_time(claim.expires_at),
        "fence": claim.fence,
    }


def _view_row(view: TaskView) -> dict[str, Any]:
    """A record with the claims and blockers that were asked for."""
    row = task_record(view.task)
    if view.claims is not None:
        row["claims"] = [claim_row(claim) for claim in view.claims]
    if view.blockers is not None:
        row["blockers"] = [blocker_row(blocker) for blocker in view.blockers]
    return row


def blocker_row(blocker: Blocker) -> dict[str, Any]:
    """One thing a task waits for."""
    return {
        "kind": blocker.kind,
        "task_id": blocker.task_id,
        "type": blocker.type,
        "status": blocker.status,
        "message": blocker.message,
    }


def finding_row(finding: Finding) -> dict[str, Any]:
    """One finding."""
    return {
        "id": finding.id,
        "agent": finding.agent,
        "summary": finding.summary,
        "knowledge_id": finding.knowledge_id,
        "created_at": format_time(finding.created_at),
    }


def edge_row(directed: DirectedEdge) -> dict[str, Any]:
    """One task edge as seen from the task asked about."""
    edge = directed.edge
    return {
        "from_task_id": edge.source,
        "to_task_id": edge.target,
        "type": edge.type,
        "direction": directed.direction,
        "metadata": dict(edge.metadata),
        "created_by": edge.created_by,
        "created_at": format_time(edge.created_at),
    }


async def view_rows(views: Sequence[TaskView]) -> list[dict[str, Any]]:
    """Records with what was asked for beside them; others may run in between."""
    return await sliced_rows(views, _view_row)


async def sliced_rows(items: Sequence[T], row: Callable[[T], dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each item; others may run in between."""
    rows: list[dict[str, Any]] = []
    async for some in slices(items):
        rows += map(row, some)
    return rows
