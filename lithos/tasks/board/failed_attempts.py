"""Failed attempts at a task (docs/spec/coordination.md §6).

Failed attempts are counted, and the task is paused or given up.

During the pause, the claim continues under a new fence, so that no agent gets the task. When this claim
expires, the task is free again. The expiry is reported like any other expiry, even after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import attrs

from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.messages import Done
from lithos.tasks.board.readiness import ReadinessChange
from lithos.tasks.board.task_events import make_event, task_event
from lithos.tasks.model.task import (
    ATTEMPTS,
    Claim,
    ClaimTimes,
    Finding,
    Task,
    check_fence,
    check_owned,
    count_attempts,
)
from lithos.tasks.model.task_commands import FailAttempt, Failed
from lithos.tasks.rows.tasks import TaskRows

#: Function that closes a task. Its arguments are the task, a status, an agent, a time and an outcome. It
#: returns the events before and after the closing event.
Close = Callable[[Task, str, str, datetime, str | None], tuple[Sequence[EventDraft], ReadinessChange]]
#: Function that posts a finding on a task. Its arguments are the task id, the agent, the time and the text.
Post = Callable[[str, str, datetime, str], Finding]


class Failing:
    """The handler of `FailAttempt` in the coordinator's transaction."""

    def __init__(self, rows: TaskRows, times: ClaimTimes, close: Close, post: Post) -> None:
        self._rows = rows
        self._times = times
        self._close = close
        self._post = post

    def fail(self, command: FailAttempt, now: datetime) -> Done[Failed]:
        """Count a failed attempt. Like a release, it raises `StaleFence` and `ClaimNotFound`."""
        task = self._rows.task(command.task_id)
        check_fence(command.fence, task, self._rows.claims_of(command.task_id, now), command.aspect)
        held = self._rows.claim(command.task_id, command.aspect)
        claim = check_owned(command.task_id, command.aspect, held, command.agent)
        assert task is not None
        attempts, most = count_attempts(task) + 1, self._times.most_attempts
        text = f"[Failed] attempt {attempts} of {most}: {command.output}"
        self._post(task.id, command.agent, now, text)
        counted = attrs.evolve(task, metadata={**task.metadata, ATTEMPTS: attempts})
        if attempts >= most:
            return self._give_up(counted, command, attempts, now)
        return self._pause(counted, claim, attempts, now)

    def _pause(self, task: Task, claim: Claim, attempts: int, now: datetime) -> Done[Failed]:
        retry_at = self._times.retry_at(attempts, now)
        self._rows.put_task(task)
        self._rows.put_claim(attrs.evolve(claim, expires_at=retry_at, fence=self._rows.take_fence()), now)
        event = make_event("task.updated", claim.agent, now, task.tags, task_id=task.id)
        return Done(Failed(attempts, task.status, retry_at), (event,))

    def _give_up(self, task: Task, command: FailAttempt, attempts: int, now: datetime) -> Done[Failed]:
        ended, after = self._close(task, "failed", command.agent, now, command.output)
        event = task_event("task.failed", task, command.agent, now, attempts=attempts, outcome=command.output)
        return Done(Failed(attempts, "failed", None), (*ended, event, *after.events))
