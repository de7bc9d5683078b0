"""Tasks, claims, findings and task edges as values, and the rules for claims.

A claim is a time-limited lease of one agent on an aspect of a task (docs/spec/coordination.md §2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from attrs import field, frozen

from lithos.kernel.values.errors import ClaimFailed, ClaimNotFound, StaleFence
from lithos.kernel.values.times import format_time
from lithos.text.words.analysis import name_key

TASK_TYPES: Final = ("task", "epic", "gate")
TASK_STATUSES: Final = ("open", "completed", "cancelled", "failed")

BLOCKS: Final = "blocks"
WAITS_ON_GATE: Final = "waits_on_gate"
PARENT_CHILD: Final = "parent_child"
DISCOVERED_FROM: Final = "discovered_from"
EDGE_TYPES: Final = (BLOCKS, WAITS_ON_GATE, PARENT_CHILD, DISCOVERED_FROM)
#: Edge types that make the successor wait for the predecessor. The edges of both types together must not form
#: a cycle.
BLOCKING_TYPES: Final = (BLOCKS, WAITS_ON_GATE)

#: Metadata keys that older versions used for dependencies. The task graph has replaced these keys.
FORBIDDEN_METADATA: Final = ("depends_on", "blocked_on")


@frozen(kw_only=True)
class Task:
    """One task, epic or gate."""

    id: str
    title: str
    description: str | None = None
    status: str = "open"
    task_type: str = "task"
    created_by: str
    created_at: datetime
    resolved_at: datetime | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(factory=dict)
    outcome: str | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the task is open, which means neither completed nor cancelled nor failed."""
        return self.status == "open"


@frozen(kw_only=True)
class Claim:
    """A lease of an agent on an aspect of a task until `expires_at`.

    The token `fence` increases with each grant.
    """

    task_id: str
    agent: str
    aspect: str
    expires_at: datetime
    fence: int


@frozen
class ClaimGrant:
    """A granted or renewed claim, and its duration in minutes."""

    claim: Claim
    ttl_minutes: float


@frozen(kw_only=True)
class Finding:
    """A report of an agent on a task. `knowledge_id` is the id of a note."""

    id: str
    task_id: str
    agent: str
    summary: str
    knowledge_id: str | None
    created_at: datetime


@frozen(kw_only=True)
class TaskEdge:
    """A relation between two tasks. Its type determines its direction (docs/spec/coordination.md §3)."""

    source: str
    target: str
    type: str
    metadata: Mapping[str, Any] = field(factory=dict)
    created_by: str
    created_at: datetime


@frozen
class Citation:
    """A note that was cited when a task was completed, with the agent and the time."""

    task_id: str
    note_id: str
    agent: str
    at: datetime


#: Shortest claim duration that is granted as requested. A shorter request is granted `_LEAST_MINUTES`.
_SHORTEST_MINUTES = 0.1
_LEAST_MINUTES = 1.0
#: Default aspect of `lithos_task_next`.
WORK: Final = "work"


@frozen
class ClaimTimes:
    """Settings of `coordination` for claims and failed attempts."""

    default_minutes: float = 60
    longest_minutes: float = 480
    #: Values of `coordination.max_attempts` and `coordination.retry_minutes`.
    most_attempts: int = 3
    retry_minutes: float = 1

    def granted(self, ttl_minutes: float | None) -> float:
        """Return the granted minutes. Every request is granted.

        A request of at least 0.1 is granted up to the maximum. A shorter request is granted 1 minute.
        """
        wanted = self.default_minutes if ttl_minutes is None else ttl_minutes
        if not wanted >= _SHORTEST_MINUTES:  # The condition also covers NaN.
            wanted = _LEAST_MINUTES
        return min(wanted, self.longest_minutes)

    def expiry(self, ttl_minutes: float | None, now: datetime) -> datetime:
        """Return when a claim that is made now will expire."""
        return now + timedelta(minutes=self.granted(ttl_minutes))

    def retry_at(self, attempts: int, now: datetime) -> datetime:
        """Return the earliest time of the next attempt. The pause doubles with each failed attempt."""
        minutes = self.retry_minutes * 2 ** min(attempts - 1, 30)
        return now + timedelta(minutes=min(minutes, self.longest_minutes))

    def latest(self, now: datetime) -> datetime:
        """Return the latest end that an unexpired claim can have.

        A claim with a later end was made while the clock was ahead.
        """
        return now + timedelta(minutes=self.longest_minutes)


#: Metadata key for the number of failed attempts at a task.
ATTEMPTS: Final = "failed_attempts"


def count_attempts(task: Task) -> int:
    """Return the number of failed attempts at a task. An invalid value counts as 0."""
    found = task.metadata.get(ATTEMPTS)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def aspect_key(aspect: str) -> str:
    """Return the form in which aspects are compared: trimmed, case-folded and Unicode-normalised."""
    return name_key(aspect.strip())


def check_fence(fence: int | None, task: Task | None, active: Sequence[Claim], aspect: str | None) -> None:
    """Raise `StaleFence` unless an active claim on the open task has this fence.

    If the fence is None, check nothing.

    The refusal names the holder of the aspect. If no aspect is given, it names the latest holder of the task.
    """
    if fence is None or task is None or not task.is_open or any(claim.fence == fence for claim in active):
        return
    wanted = None if aspect is None else aspect_key(aspect)
    rivals = [claim for claim in active if wanted in (None, aspect_key(claim.aspect))]
    holder = max(rivals, key=lambda claim: claim.fence, default=None)
    what = f"task {task.title!r}" if aspect is None else f"aspect {aspect!r} of task {task.title!r}"
    until = None if holder is None else format_time(holder.expires_at)
    now_is = "no agent holds it now" if holder is None else f"{holder.agent} holds it until {until}"
    raise StaleFence(
        f"Fence {fence} is no longer current on {what}: {now_is}. Stop working on it, or claim it "
        "again and continue under the new fence.",
        held_by=None if holder is None else holder.agent,
        expires_at=until,
    )


def check_completable(task: Task, active: Sequence[Claim], agent: str) -> None:
    """Check the rule of `coordination.strict`: the agent has a claim, or no other agent has one.

    Raises `ClaimFailed`.
    """
    if not active or any(claim.agent == agent for claim in active):
        return
    holder = max(active, key=lambda claim: claim.fence)
    until = format_time(holder.expires_at)
    raise ClaimFailed(
        f"{holder.agent} holds aspect {holder.aspect!r} of the task {task.title!r} until {until}, "
        f"and {agent} has no claim on the task. Claim an aspect of it first, or wait.",
        reason="held",
        held_by=holder.agent,
        expires_at=until,
    )


def check_claimable(task_id: str, task: Task | None, held: Claim | None, agent: str, now: datetime) -> Task:
    """Return the task if the agent can claim this aspect.

    Raises `ClaimFailed` unless the aspect is free, its claim has expired, or the agent itself holds it.
    """
    if task is None:
        raise ClaimFailed(
            f"Unknown task id {task_id!r}. Find open tasks with lithos_task_list.", reason="task_not_found"
        )
    if not task.is_open:
        raise ClaimFailed(
            f"The task {task.title!r} is {task.status} and cannot be claimed.", reason="task_closed"
        )
    if held is not None and held.agent != agent and held.expires_at > now:
        until = format_time(held.expires_at)
        raise ClaimFailed(
            f"{held.agent} holds this aspect until {until}. Claim another aspect or task, or wait.",
            reason="held",
            held_by=held.agent,
            expires_at=until,
        )
    return task


def check_owned(
    task_id: str, aspect: str, held: Claim | None, agent: str, now: datetime | None = None
) -> Claim:
    """Return the agent's claim. With `now`, the claim must not have expired. Raises `ClaimNotFound`."""
    if held is None or held.agent != agent:
        raise ClaimNotFound(
            f"{agent} has no claim on aspect {aspect!r} of task {task_id}. Claim it with lithos_task_claim."
        )
    if now is not None and held.expires_at <= now:
        raise ClaimNotFound(
            f"The claim of {agent} on aspect {aspect!r} of task {task_id} has expired. "
            "Claim it again with lithos_task_claim."
        )
    return held
