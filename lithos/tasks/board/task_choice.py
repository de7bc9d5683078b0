"""Choice of the next task: the oldest ready task that matches and has a free aspect (docs/spec/vault.md §5).

A choice scans the index of ready tasks from the oldest task. Tasks that other agents hold or the filter
excludes are skipped. A mark stores the position after the skipped tasks, and the next choice of the same kind
starts there. Thousands of held tasks therefore cost it nothing. Any change that frees a task before a mark
lowers the mark.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from lithos.tasks.model.graph import TaskGraph
from lithos.tasks.model.task import Task, aspect_key
from lithos.tasks.model.task_commands import NextTask
from lithos.tasks.rows.ready_rows import FIRST, LAST, QueuePosition, ReadyTask
from lithos.tasks.rows.tasks import TaskRows

#: Maximum number of remembered kinds of choices. A kind consists of an aspect and a filter.
KINDS: Final = 256
#: Number of ready tasks to read at once. With a filter, the first read has `FEW` tasks. If no task matches,
#: the next reads have `PAGE` tasks.
FEW, PAGE = 3, 50

#: Key of a kind of choice: the key of its aspect, and its filter as text.
Kind = tuple[str, str]


class Marks:
    """One mark for each kind of choice. No task before the position of the mark can be chosen.

    A mark may be too low, but never too high. Marks belong to the thread that commits. After a failed commit
    they are discarded, because the changes on which they were based were rolled back.
    """

    def __init__(self) -> None:
        self._places: dict[Kind, QueuePosition] = {}
        self._latest = datetime.min.replace(tzinfo=UTC)
        self._unsure_until = self._latest
        self._is_sure = True

    def see(self, now: datetime, *, has_backlog: bool) -> None:
        """Begin a transaction. With `has_backlog`, some expired claims are not yet announced.

        If the clock was set back, a claim that was announced as expired may be active again, and its second
        expiry is not announced. Until the clock has caught up, every choice therefore checks all tasks.
        """
        if now < self._latest:
            self._unsure_until = self._latest
        self._latest = max(now, self._latest)
        self._is_sure = now >= self._unsure_until and not has_backlog
        if not self._is_sure:
            self._places.clear()

    def since(self, kind: Kind) -> QueuePosition:
        """Return the position at which a choice of this kind begins."""
        return self._places.get(kind, FIRST)

    def reached(self, kind: Kind, place: QueuePosition) -> None:
        """Set the mark of a kind to a position. No task before this position can be chosen."""
        if self._is_sure:
            if len(self._places) >= KINDS and kind not in self._places:
                self._places.clear()
            self._places[kind] = place

    def lower(self, place: QueuePosition | None) -> None:
        """Lower the marks to the position of a task that can be chosen again.

        If `place` is None, the task is not ready, and no mark changes.
        """
        if place is not None:
            self._places |= {kind: place for kind, mark in self._places.items() if mark > place}

    def forget(self) -> None:
        """Discard all marks, so that choices start again at the oldest task."""
        self._places.clear()


class TaskChoice:
    """The choice of the next task, in the transaction that claims the task."""

    def __init__(self, rows: TaskRows, can_take: Callable[[str, str], bool]) -> None:
        """Create a chooser. `can_take` returns whether another aspect of a task may be claimed."""
        self._rows = rows
        self._can_take = can_take
        self.marks = Marks()

    def choose(self, wanted: NextTask, now: datetime) -> Task | None:
        """Return the oldest ready task that matches and has no unexpired claim on the aspect.

        Claims of the calling agent count too.
        """
        key = aspect_key(wanted.aspect)
        if wanted.task_id is not None:
            return self._only(wanted, wanted.task_id, now)
        kind = (key, wanted.filter_text)
        since, most = self.marks.since(kind), FEW if wanted.is_filtered else 1
        while found := self._rows.ready.free(wanted, key, since, now, most):
            for candidate in found:
                task = self._taken(wanted, candidate, now)
                if task is not None:
                    self.marks.reached(kind, candidate.place)
                    return task
            created_at, number = found[-1].place
            since, most = (created_at, number + 1), PAGE
        self.marks.reached(kind, LAST)
        return None

    def _taken(self, wanted: NextTask, candidate: ReadyTask, now: datetime) -> Task | None:
        if not wanted.passes(candidate.tags, candidate.metadata):
            return None
        if not self._can_take(candidate.id, wanted.aspect):
            return None
        return self._startable(candidate.id, now)

    def _only(self, wanted: NextTask, task_id: str, now: datetime) -> Task | None:
        task = self._startable(task_id, now)
        if task is None or not wanted.passes(task.tags, task.metadata):
            return None
        held = self._rows.claim(task_id, wanted.aspect)
        if held is not None and held.expires_at > now:
            return None
        return task if self._can_take(task_id, wanted.aspect) else None

    def _startable(self, task_id: str, now: datetime) -> Task | None:
        """Return the task if the task graph confirms that it is ready.

        A task that is marked as ready may be blocked in two cases: the clock was set back to before a timer's
        time, or an older version has changed the file. The timers of the task are then scheduled again.
        """
        graph = self._rows.graph_before([task_id])
        task = graph.tasks.get(task_id)
        if task is None:
            return None
        if graph.is_ready(task, now):
            return task
        self._rows.ready.remove(task_id)
        arm_timers(self._rows, graph, task_id)
        return None


def arm_timers(rows: TaskRows, graph: TaskGraph, task_id: str) -> None:
    """Schedule the timer gates of a waiting task again.

    The timer gates are closed again because the clock was set back.
    """
    for source, _ in graph.waits_for.get(task_id, ()):
        rows.ready.arm(graph.tasks[source])
