"""Claims on the board: granting, renewing and giving up (coordination spec, section 2)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs

from lithos.actors.task_events import Done, make_event
from lithos.core.claims import ClaimTimes, check_claimable, check_owned
from lithos.core.events import EventDraft
from lithos.core.task_commands import ClaimAspect, ReleaseClaim, RenewClaim
from lithos.core.tasks import Claim
from lithos.stores.tasks import TaskRows


class TaskClaims:
    """Claim commands over rows; refusals are raised and change nothing."""

    def __init__(self, rows: TaskRows, times: ClaimTimes) -> None:
        self._rows = rows
        self._times = times

    def claim(self, command: ClaimAspect, now: datetime) -> Done:
        """Grant an aspect under a new fence."""
        held = self._rows.claim(command.task_id, command.aspect)
        check_claimable(command.task_id, self._rows.task(command.task_id), held, command.agent, now)
        claim = Claim(
            task_id=command.task_id,
            agent=command.agent,
            aspect=command.aspect,
            expires_at=self._times.expiry(command.ttl_minutes, now),
            fence=self._rows.take_fence(),
        )
        self._rows.put_claim(claim, now)
        return Done(claim, (_claim_event("task.claimed", claim, now, fence=claim.fence),))

    def renew(self, command: RenewClaim, now: datetime) -> Done:
        """Hold on longer (or shorter) under the same fence; nobody is told."""
        held = self._rows.claim(command.task_id, command.aspect)
        mine = check_owned(command.task_id, command.aspect, held, command.agent, now)
        claim = attrs.evolve(mine, expires_at=self._times.expiry(command.ttl_minutes, now))
        self._rows.extend_claim(claim)
        return Done(claim)

    def release(self, command: ReleaseClaim, now: datetime) -> Done:
        """Give an aspect up, also after its time."""
        held = self._rows.claim(command.task_id, command.aspect)
        mine = check_owned(command.task_id, command.aspect, held, command.agent)
        self._rows.drop_claim(command.task_id, command.aspect)
        return Done(None, (_claim_event("task.released", mine, now),))


def _claim_event(kind: str, claim: Claim, now: datetime, **more: Any) -> EventDraft:
    return make_event(
        kind, claim.agent, now, task_id=claim.task_id, agent=claim.agent, aspect=claim.aspect, **more
    )
