"""Events for tasks that become ready (`task.ready`) and claims that expire (`task.claim_expired`).

An event is written in the same transaction as its cause, so it is announced once, even across restarts. Some
events depend on the clock: claims expire and timer gates open. When the next such event is due, the
coordinator runs a sweep, either alone or together with waiting commands. If thousands of events are due, they
are spread over many small sweeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from attrs import frozen

from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.principals import TIMER_AGENT
from lithos.tasks.board.task_choice import Marks, arm_timers
from lithos.tasks.board.task_events import expired_event, ready_event
from lithos.tasks.model.task import ClaimTimes, Task
from lithos.tasks.rows.tasks import TaskRows

#: Maximum number of events per sweep, which is half of a subscriber's queue. A single timer gate that opens
#: many tasks may exceed it.
AT_ONCE: Final = 50
#: Maximum number of waiting tasks that one sweep checks after a start.
CHECKED_AT_ONCE: Final = 200
#: Tolerated backward adjustment of the clock. A larger step means that the clock was wrong before.
_SLIP: Final = timedelta(minutes=1)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


@frozen
class ReadinessChange:
    """The checked tasks that are ready, and events for the tasks that became ready."""

    ready: Sequence[str]
    events: Sequence[EventDraft]


class Readiness:
    """The state of announced readiness. It is updated together with the task graph."""

    def __init__(self, rows: TaskRows, marks: Marks, times: ClaimTimes) -> None:
        self._rows = rows
        self._marks = marks
        self._times = times
        #: Start time of the last transaction. It is `_NEVER` before the first transaction and after a failed
        #: commit.
        self._began = _NEVER
        #: True if a transaction has begun since the start or since the last failed commit.
        self._is_known = False
        #: Id of the last waiting task that was checked after the start. None when all are checked.
        self._checked: str | None = ""

    def refresh(self, task_ids: Iterable[str], by: str, now: datetime) -> ReadinessChange:
        """Update the readiness of tasks that an action of an agent may have unblocked or blocked."""
        wanted = list(dict.fromkeys(task_ids))
        graph = self._rows.graph_before(wanted)
        told = self._rows.ready.are_ready(wanted)
        ready = [one for one in wanted if one in graph.tasks and graph.is_ready(graph.tasks[one], now)]
        new = [one for one in ready if one not in told]
        for task_id in told.difference(ready):
            self._rows.ready.remove(task_id)
            arm_timers(self._rows, graph, task_id)
        for task_id in new:
            self._rows.ready.add(task_id)
            self._marks.lower(self._rows.ready.place(task_id))
        return ReadinessChange(ready, [ready_event(graph.tasks[one], by, now) for one in new])

    def refresh_after(self, task_id: str, by: str, now: datetime) -> ReadinessChange:
        """Update the readiness of the tasks that this task blocks."""
        return self.refresh(self._rows.dependents(task_id), by, now)

    def refresh_below(self, task_id: str, by: str, now: datetime) -> ReadinessChange:
        """Update the readiness of all child tasks and of the task itself after its predecessors changed."""
        return self.refresh([task_id, *self._rows.below([task_id])], by, now)

    def end_claims(self, task: Task, now: datetime) -> list[EventDraft]:
        """Return the missing expiry events for the claims of a task that is being closed.

        Only claims with an unannounced expiry get an event.
        """
        untold = self._rows.ready.untold(task.id, None, now)
        return [expired_event(claim, task.tags, now) for claim in untold]

    # -- clock-driven events -------------------------------------------------------------------

    def begin(self, now: datetime, *, is_due: bool) -> list[EventDraft]:
        """Begin a transaction and return its clock-driven events.

        If many events are due, only some of them are handled now.
        """
        if not self._is_known and (last := self._rows.ready.last_told()) is not None:
            self._marks.see(last, has_backlog=False)
        if now < self._began and self._was_ahead(now):
            # The clock was set back. Each claim is shortened so that it ends within the maximum claim
            # duration from now.
            self._rows.ready.shorten(self._times.latest(now))
        self._is_known, self._began = True, now
        if is_due:
            return self._sweep(now)
        self._marks.see(now, has_backlog=False)
        return []

    def _was_ahead(self, now: datetime) -> bool:
        """Return whether the clock was far ahead at an earlier time.

        After a start, the last activity times of agents are the evidence.
        """
        if self._began == _NEVER:
            return self._rows.ready.was_seen_after(now + _SLIP)
        return self._began - now > _SLIP

    def _sweep(self, now: datetime) -> list[EventDraft]:
        ended = self._rows.ready.take_ended(now, AT_ONCE)
        for claim, _ in ended:
            self._marks.lower(self._rows.ready.place(claim.task_id))
        self._marks.see(now, has_backlog=len(ended) >= AT_ONCE)
        events = [expired_event(claim, tags, now) for claim, tags in ended]
        for gate_id in self._rows.ready.opened(now, AT_ONCE):
            if len(events) >= AT_ONCE:
                break
            self._rows.ready.disarm(gate_id)
            events += self.refresh_after(gate_id, TIMER_AGENT, now).events
        return events + self._check_waiting(now)

    def forget(self) -> None:
        """Discard the state of a failed commit. Its events then count as not announced."""
        self._marks.forget()
        self._is_known, self._checked = False, ""
        self._began = _NEVER

    def next_due(self, now: datetime) -> datetime | None:
        """Return the time of the next sweep, or None if no clock-driven event is pending."""
        if now < self._began and self._rows.ready.ends_after(self._times.latest(now)):
            return now
        if self._checked is not None:
            if self._rows.ready.unready_after(self._checked, 1):
                return now
            self._checked = None
        return self._rows.ready.next_due()

    @property
    def is_through(self) -> bool:
        """Return whether all tasks were checked since the start.

        If all tasks were checked, only task changes affect `next_due`.
        """
        return self._checked is None

    def _check_waiting(self, now: datetime) -> list[EventDraft]:
        """Check waiting tasks after a server start.

        Tasks may have become ready while no server was running, or while an older version was running.
        """
        if self._checked is None:
            return []
        waiting = self._rows.ready.unready_after(self._checked, CHECKED_AT_ONCE)
        self._checked = waiting[-1] if waiting else None
        return list(self.refresh(waiting, TIMER_AGENT, now).events)
