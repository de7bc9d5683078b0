"""Claims (leases with fencing tokens) on the aspects of a task: grant, renew, release (coordination spec, 2).

`Done` is the reply and the events of any task command, `make_event` their form (events-http spec, section 1).
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

import attrs

from lithos.core.commands import Done
from lithos.core.errors import InvalidInput
from lithos.core.events import EventDraft
from lithos.core.tasks.commands import ClaimAspect, ReleaseClaim, RenewClaim
from lithos.core.tasks.model import Claim, ClaimTimes, check_claimable, check_owned
from lithos.stores.coordination.tasks import TaskRows


def make_event(kind: str, by: str, now: datetime, /, **payload: Any) -> EventDraft:
    """An event of an agent; its payload in the order given."""
    return EventDraft(type=kind, agent=by, payload=payload, timestamp=now)


def as_json_text(value: object) -> str:
    """A payload value that is told as JSON text; None is `null`."""
    return json.dumps(value, ensure_ascii=False)


#: Aspects of one task that may be claimed.
ASPECTS: Final = 1_000


class TaskClaims:
    """Claim commands over rows; refusals are raised and change nothing."""

    def __init__(self, rows: TaskRows, times: ClaimTimes) -> None:
        self._rows = rows
        self._times = times

    def claim(self, command: ClaimAspect, now: datetime) -> Done[Claim]:
        """Grant an aspect under a new fence."""
        held = self._rows.claim(command.task_id, command.aspect)
        check_claimable(command.task_id, self._rows.task(command.task_id), held, command.agent, now)
        if held is None and self._rows.aspects(command.task_id) >= ASPECTS:
            raise InvalidInput(
                f"aspect would be number {ASPECTS + 1:,} of this task; at most {ASPECTS:,} may be claimed. "
                "Take one that is free, or release those that are done."
            )
        claim = Claim(
            task_id=command.task_id,
            agent=command.agent,
            aspect=command.aspect,
            expires_at=self._times.expiry(command.ttl_minutes, now),
            fence=self._rows.take_fence(),
        )
        self._rows.put_claim(claim, now)
        return Done(claim, (_claim_event("task.claimed", claim, now, fence=claim.fence),))

    def renew(self, command: RenewClaim, now: datetime) -> Done[Claim]:
        """Hold on longer (or shorter) under the same fence; nobody is told."""
        held = self._rows.claim(command.task_id, command.aspect)
        mine = check_owned(command.task_id, command.aspect, held, command.agent, now)
        claim = attrs.evolve(mine, expires_at=self._times.expiry(command.ttl_minutes, now))
        self._rows.extend_claim(claim)
        return Done(claim)

    def release(self, command: ReleaseClaim, now: datetime) -> Done[None]:
        """Give an aspect up, also after its time."""
        held = self._rows.claim(command.task_id, command.aspect)
        mine = check_owned(command.task_id, command.aspect, held, command.agent)
        self._rows.drop_claim(command.task_id, command.aspect)
        return Done(None, (_claim_event("task.released", mine, now),))


def _claim_event(kind: str, claim: Claim, now: datetime, **more: Any) -> EventDraft:
    return make_event(
        kind, claim.agent, now, task_id=claim.task_id, agent=claim.agent, aspect=claim.aspect, **more
    )
