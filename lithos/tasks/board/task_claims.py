"""Claims (leases with fencing tokens) on the aspects of a task: granting, renewal and release.

Specified in docs/spec/coordination.md §2.

`lithos_task_next` grants a claim on the task that `TaskChoice` selects, in the same transaction.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import attrs

from lithos.kernel.values.errors import ClaimFailed, InvalidInput
from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.messages import Done
from lithos.tasks.board.task_choice import TaskChoice
from lithos.tasks.board.task_events import expired_event, make_event
from lithos.tasks.model.task import (
    Claim,
    ClaimGrant,
    ClaimTimes,
    Task,
    aspect_key,
    check_claimable,
    check_fence,
    check_owned,
)
from lithos.tasks.model.task_commands import ClaimAspect, ClaimedTask, NextTask, ReleaseClaim, RenewClaim
from lithos.tasks.rows.tasks import TaskRows

#: Maximum number of aspects of one task that can be claimed.
ASPECTS: Final = 1_000
#: Maximum number of blockers in the message of a refusal.
BLOCKERS_TOLD: Final = 50


class TaskClaims:
    """The handler of claim commands on rows. A refused command changes nothing."""

    def __init__(self, rows: TaskRows, times: ClaimTimes, choice: TaskChoice, *, strict: bool) -> None:
        self._rows = rows
        self._times = times
        self._choice = choice
        #: If True, a blocked task cannot be claimed.
        self._strict = strict

    def next(self, command: NextTask, now: datetime) -> Done[ClaimedTask | None]:
        """Claim an aspect of the oldest ready task that has no unexpired claim on this aspect."""
        task = self._choice.choose(command, now)
        if task is None:
            return Done(None)
        done = self._grant(task, command, now)
        return Done(ClaimedTask(task, self._rows.claims_of(task.id, now), done.reply), done.events)

    def claim(self, command: ClaimAspect, now: datetime) -> Done[ClaimGrant]:
        """Claim an aspect under a new fence."""
        held = self._rows.claim(command.task_id, command.aspect)
        task = check_claimable(command.task_id, self._rows.task(command.task_id), held, command.agent, now)
        if self._strict:
            self._check_unblocked(task, now)
        if held is None and self._rows.aspects(task.id) >= ASPECTS:
            raise InvalidInput(
                f"This aspect would be number {ASPECTS + 1:,} of this task, and at most "
                f"{ASPECTS:,} can be claimed. Claim a free aspect, or release finished ones."
            )
        return self._grant(task, command, now)

    def renew(self, command: RenewClaim, now: datetime) -> Done[ClaimGrant]:
        """Extend or shorten a claim under the same fence. A renewal causes no event."""
        self._check_fence(command, now)
        held = self._rows.claim(command.task_id, command.aspect)
        mine = check_owned(command.task_id, command.aspect, held, command.agent, now)
        minutes = self._times.granted(command.ttl_minutes)
        claim = attrs.evolve(mine, expires_at=self._times.expiry(minutes, now))
        self._rows.extend_claim(claim)
        return Done(ClaimGrant(claim, minutes))

    def release(self, command: ReleaseClaim, now: datetime) -> Done[None]:
        """Release an aspect, even if its claim has expired.

        The event names the acting agent and the holder.
        """
        self._check_fence(command, now)
        held = self._rows.claim(command.task_id, command.aspect)
        holder = command.held_by or command.agent
        mine = check_owned(command.task_id, command.aspect, held, holder)
        self._rows.drop_claim(command.task_id, command.aspect)
        self._choice.marks.lower(self._rows.ready.place(command.task_id))
        event = _claim_event("task.released", mine, self._rows.task(mine.task_id), now)
        return Done(None, (attrs.evolve(event, agent=command.agent),))

    def _grant(self, task: Task, command: ClaimAspect | NextTask, now: datetime) -> Done[ClaimGrant]:
        minutes = self._times.granted(command.ttl_minutes)
        # The expiry of the previous claim is still unannounced only if there is a backlog of expired claims.
        over = self._rows.ready.untold(task.id, aspect_key(command.aspect), now)
        claim = Claim(
            task_id=task.id,
            agent=command.agent,
            aspect=command.aspect.strip(),
            expires_at=self._times.expiry(minutes, now),
            fence=self._rows.take_fence(),
        )
        self._rows.put_claim(claim, now)
        ended = [expired_event(one, task.tags, now) for one in over]
        claimed = _claim_event("task.claimed", claim, task, now, fence=claim.fence)
        return Done(ClaimGrant(claim, minutes), (*ended, claimed))

    def _check_fence(self, command: RenewClaim | ReleaseClaim, now: datetime) -> None:
        if command.fence is not None:
            task, active = self._rows.task(command.task_id), self._rows.claims_of(command.task_id, now)
            check_fence(command.fence, task, active, command.aspect)

    def _check_unblocked(self, task: Task, now: datetime) -> None:
        if task.task_type != "task" or not self._rows.graph_before([task.id]).holders(task.id, now):
            return
        graph = self._rows.graph_before([task.id], transitively=True)
        blockers = graph.blockers(task.id, now)
        raise ClaimFailed(
            f"The task {task.title!r} is blocked: {blockers[0].message} Claim another task with "
            "lithos_task_next, or wait for task.ready.",
            reason="blocked",
            blockers=[attrs.asdict(blocker) for blocker in blockers[:BLOCKERS_TOLD]],
        )


def _claim_event(kind: str, claim: Claim, task: Task | None, now: datetime, **more: Any) -> EventDraft:
    tags = () if task is None else task.tags
    return make_event(
        kind, claim.agent, now, tags, task_id=claim.task_id, agent=claim.agent, aspect=claim.aspect, **more
    )
