"""Announces readiness of tasks: `task.ready` whenever a task becomes ready, and `task.claim_expired`.

Events are written in the same transaction, so each is announced once over restarts. Some depend on the clock:
claims that end and timer gates that open. The coordinator carries out a sweep when the next is due, in its
own transaction or with the commands that wait; thousands at once are announced in many small ones.
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

#: Events of one sweep, as far as one timer gate does not open more tasks: half of a subscriber's queue.
AT_ONCE: Final = 50
#: Waiting tasks that are looked at in one sweep after a start.
CHECKED_AT_ONCE: Final = 200
#: Seconds by which a clock may go back when it is adjusted, without having been wrong.
_SLIP: Final = timedelta(minutes=1)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


@frozen
class ReadinessChange:
    """Those of some tasks that are ready, and the events of those that became so."""

    ready: Sequence[str]
    events: Sequence[EventDraft]


class Readiness:
    """Keeps announced events in step with the task graph."""

    def __init__(self, rows: TaskRows, marks: Marks, times: ClaimTimes) -> None:
        self._rows = rows
        self._marks = marks
        self._times = times
        #: When the last transaction began; `_NEVER` before the first one and after one that failed.
        self._began = _NEVER
        #: Whether a transaction has begun since the start, or since the last one that failed.
        self._is_known = False
        #: The last of the waiting tasks that a start looks at; None when it is through.
        self._checked: str | None = ""

    def refresh(self, task_ids: Iterable[str], by: str, now: datetime) -> ReadinessChange:
        """Look at tasks that may have become ready or blocked, through what the agent did."""
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
        """Look at the tasks that this one holds back."""
        return self.refresh(self._rows.dependents(task_id), by, now)

    def refresh_below(self, task_id: str, by: str, now: datetime) -> ReadinessChange:
        """Look at a task that waits for more or for less than before, and at all tasks below it."""
        return self.refresh([task_id, *self._rows.below([task_id])], by, now)

    def end_claims(self, task: Task, now: datetime) -> list[EventDraft]:
        """Delete the claims of the task;

        return events for those that have expired and are not announced yet.
        """
        untold = self._rows.ready.untold(task.id, None, now)
        return [expired_event(claim, task.tags, now) for claim in untold]

    # -- by the clock --------------------------------------------------------------------------

    def begin(self, now: datetime, *, is_due: bool) -> list[EventDraft]:
        """Begin a transaction:

        handle the events that are due by the clock, a part of them if there are many.
        """
        if not self._is_known and (last := self._rows.ready.last_told()) is not None:
            self._marks.see(last, has_backlog=False)
        if now < self._began and self._was_ahead(now):
            # The clock was put back: no claim holds for longer than one can be had.
            self._rows.ready.shorten(self._times.latest(now))
        self._is_known, self._began = True, now
        if is_due:
            return self._sweep(now)
        self._marks.see(now, has_backlog=False)
        return []

    def _was_ahead(self, now: datetime) -> bool:
        """Whether the clock was far ahead of what it is: before this start an agent was seen then."""
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
        """A commit has failed: its events count as not announced."""
        self._marks.forget()
        self._is_known, self._checked = False, ""
        self._began = _NEVER

    def next_due(self, now: datetime) -> datetime | None:
        """When the next sweep is due; None when nothing will come by the clock."""
        if now < self._began and self._rows.ready.ends_after(self._times.latest(now)):
            return now
        if self._checked is not None:
            if self._rows.ready.unready_after(self._checked, 1):
                return now
            self._checked = None
        return self._rows.ready.next_due()

    @property
    def is_through(self) -> bool:
        """Whether no task is to be looked at after a start: then `next_due` changes with tasks only."""
        return self._checked is None

    def _check_waiting(self, now: datetime) -> list[EventDraft]:
        """After a start: tasks that became ready while no server ran, or through an older version."""
        if self._checked is None:
            return []
        waiting = self._rows.ready.unready_after(self._checked, CHECKED_AT_ONCE)
        self._checked = waiting[-1] if waiting else None
        return list(self.refresh(waiting, TIMER_AGENT, now).events)
