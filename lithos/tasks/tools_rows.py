"""Answer rows for tasks, claims and task edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lithos.kernel.values.times import format_time
from lithos.server.tools.serialization import LEFT_OUT, register_row, row_of, sliced_rows
from lithos.tasks.model.task import Claim, ClaimGrant, Finding
from lithos.tasks.model.task_commands import ClaimedTask
from lithos.tasks.rows.board_rows import RestingTask
from lithos.tasks.service.coordination import DirectedEdge, TaskView

register_row(Claim, task_id=LEFT_OUT)
register_row(Finding, task_id=LEFT_OUT)
register_row(RestingTask, at=LEFT_OUT)


def grant_row(grant: ClaimGrant) -> dict[str, Any]:
    """Return the fence of a granted claim, and the duration of the claim in minutes."""
    minutes = grant.ttl_minutes
    return {
        "fence": grant.claim.fence,
        "ttl_minutes": int(minutes) if float(minutes).is_integer() else minutes,
    }


def given_row(given: ClaimedTask) -> dict[str, Any]:
    """Return the answer of `lithos_task_next` for a claimed task."""
    expires_at = format_time(given.grant.claim.expires_at)
    granted = grant_row(given.grant)
    return {
        "task": _view_row(TaskView(given.task, given.claims)),
        "fence": granted["fence"],
        "expires_at": expires_at,
        "ttl_minutes": granted["ttl_minutes"],
    }


def _view_row(view: TaskView) -> dict[str, Any]:
    """Return a task row with claims and blockers, as far as they were requested."""
    row = row_of(view.task)
    if view.claims is not None:
        row["claims"] = [row_of(claim) for claim in view.claims]
    if view.blockers is not None:
        row["blockers"] = [row_of(blocker) for blocker in view.blockers]
    return row


def edge_row(directed: DirectedEdge) -> dict[str, Any]:
    """Return the row of an edge as seen from the queried task."""
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
    """Return task rows with the requested extras. Other tasks of the event loop may run between two rows."""
    return await sliced_rows(views, _view_row)
