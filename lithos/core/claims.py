"""Claims: who may hold an aspect of a task, and for how long (coordination spec, section 2)."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from attrs import frozen

from lithos.core.errors import ClaimFailed, ClaimNotFound
from lithos.core.tasks import Claim, Task
from lithos.core.times import format_time

_SHORTEST_MINUTES = 1.0


@frozen
class ClaimTimes:
    """`coordination.claim_default_ttl_minutes` and `coordination.claim_max_ttl_minutes`."""

    default_minutes: float = 60
    longest_minutes: float = 480

    def expiry(self, ttl_minutes: float | None, now: datetime) -> datetime:
        """When a claim made now ends; any wish is cut to 1..longest, never refused."""
        wanted = self.default_minutes if ttl_minutes is None else ttl_minutes
        if math.isnan(wanted):
            wanted = _SHORTEST_MINUTES
        return now + timedelta(minutes=max(_SHORTEST_MINUTES, min(wanted, self.longest_minutes)))


def check_claimable(task_id: str, task: Task | None, held: Claim | None, agent: str, now: datetime) -> None:
    """Raises `ClaimFailed` unless the aspect is free, expired, or the agent's own."""
    if task is None:
        raise ClaimFailed(
            f"There is no task {task_id!r}. Find open tasks with lithos_task_list.", reason="task_not_found"
        )
    if not task.is_open:
        raise ClaimFailed(
            f"The task {task.title!r} is {task.status} and cannot be claimed.", reason="task_closed"
        )
    if held is not None and held.agent != agent and held.expires_at > now:
        until = format_time(held.expires_at)
        raise ClaimFailed(
            f"{held.agent} holds this aspect until {until}. Take another aspect or task, or wait.",
            reason="held",
            held_by=held.agent,
            expires_at=until,
        )


def check_owned(
    task_id: str, aspect: str, held: Claim | None, agent: str, now: datetime | None = None
) -> Claim:
    """The agent's own claim; with `now` it must still run. Raises `ClaimNotFound`."""
    if held is None or held.agent != agent:
        raise ClaimNotFound(
            f"{agent} holds no claim on aspect {aspect!r} of task {task_id}. Claim it with lithos_task_claim."
        )
    if now is not None and held.expires_at <= now:
        raise ClaimNotFound(
            f"The claim of {agent} on aspect {aspect!r} of task {task_id} has expired. "
            "Claim it again with lithos_task_claim."
        )
    return held
