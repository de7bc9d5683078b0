"""The task graph: blockers, readiness, cycles, gates and task metadata (docs/spec/coordination.md §3).

Edges are passed as (from, to) pairs for each type. This module does not depend on how they are stored. Gates
are tasks that block other tasks until an external event has happened. Metadata is merged key by key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from attrs import field, frozen

from lithos.kernel.values.errors import InvalidInput, InvalidMetadataKey
from lithos.kernel.values.limits import check_merged
from lithos.kernel.values.times import parse_time
from lithos.tasks.model.task import BLOCKS, FORBIDDEN_METADATA, Task

GATE_TYPES: Final = ("human", "timer", "ci", "pr", "external_task")


def normalise_gate_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return valid gate metadata. The `ready_at` of a timer is in UTC and whole seconds.

    Raises `InvalidInput`.
    """
    kind = metadata.get("gate_type")
    if kind not in GATE_TYPES:
        raise InvalidInput(
            f"A gate needs metadata.gate_type. Use one of {', '.join(GATE_TYPES)}, not {kind!r}."
        )
    if kind != "timer":
        return dict(metadata)
    ready_at = read_ready_at(metadata)
    if ready_at is None:
        raise InvalidInput(
            "A timer gate needs metadata.ready_at. Use a time like 2026-01-31T12:00:00Z, not "
            f"{metadata.get('ready_at')!r}."
        )
    return {**metadata, "ready_at": ready_at.astimezone(UTC).isoformat(timespec="seconds")}


def read_ready_at(metadata: Mapping[str, Any]) -> datetime | None:
    """Return the time of a timer, or None if it is unreadable."""
    text = metadata.get("ready_at")
    if not isinstance(text, str):
        return None
    try:
        return parse_time(text)
    except ValueError:
        return None


def opens_at(task: Task) -> datetime | None:
    """Return the time at which an open timer gate opens automatically.

    Return None for every other task, and for a timer gate with an unreadable time.
    """
    if not task.is_open or task.task_type != "gate" or task.metadata.get("gate_type") != "timer":
        return None
    return read_ready_at(task.metadata)


def is_gate_open_to_pass(gate: Task, now: datetime) -> bool:
    """Return whether a gate no longer blocks tasks.

    The gate must be completed, or an open timer whose time has passed.
    """
    if gate.status == "completed":
        return True
    if not gate.is_open or gate.metadata.get("gate_type") != "timer":
        return False
    ready_at = read_ready_at(gate.metadata)
    return ready_at is not None and ready_at <= now


def check_keys(patch: Mapping[str, Any] | None) -> None:
    """Raise `InvalidMetadataKey` for keys that the task graph has replaced, whatever values they have."""
    for key in FORBIDDEN_METADATA:
        if key in (patch or {}):
            raise InvalidMetadataKey(
                f"metadata.{key} is not supported. Link tasks with depends_on at creation or "
                "lithos_task_edge_upsert."
            )


def merge_metadata(task_type: str, old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merged metadata. A key with the value null is deleted.

    Raises `InvalidInput` if the result is an invalid gate or grows beyond the size limit of metadata.
    """
    merged = {**old, **patch}
    kept = {key: value for key, value in merged.items() if value is not None or key not in patch}
    check_merged(old, kept)
    return normalise_gate_metadata(kept) if task_type == "gate" else kept


@frozen
class Blocker:
    """The reason why a task cannot start. `kind` is `blocker_unsatisfiable`, `gate`, `cycle` or `task`."""

    kind: str
    task_id: str
    type: str
    status: str
    message: str


@frozen
class TaskGraph:
    """Tasks by id, and the blocking edges of each waiting task as (predecessor id, edge type).

    If a task inherits an edge, `through` maps (waiting task, predecessor) to the parent that has the edge.
    """

    tasks: Mapping[str, Task]
    waits_for: Mapping[str, Sequence[tuple[str, str]]]
    through: Mapping[tuple[str, str], str] = field(factory=dict)

    def blockers(self, task_id: str, now: datetime) -> list[Blocker]:
        """Return the unsatisfied blockers of a task, in the order of their edges."""
        found = (
            self._blocker(task_id, self.tasks[source], kind, now)
            for source, kind in self.waits_for.get(task_id, ())
        )
        return [blocker for blocker in found if blocker is not None]

    def is_ready(self, task: Task, now: datetime) -> bool:
        """Return whether a task is open, has the type `task`, and has no unsatisfied predecessors."""
        return task.is_open and task.task_type == "task" and not self.holders(task.id, now)

    def holders(self, task_id: str, now: datetime) -> set[str]:
        """Return the ids of the predecessors that block a task."""
        return {
            source
            for source, kind in self.waits_for.get(task_id, ())
            if not is_satisfied(self.tasks[source], kind, now)
        }

    def _blocker(self, task_id: str, before: Task, edge_type: str, now: datetime) -> Blocker | None:
        if is_satisfied(before, edge_type, now):
            return None
        kind, message = self._explain(task_id, before, edge_type)
        parent = self.tasks.get(self.through.get((task_id, before.id), ""))
        if parent is not None:
            message = f"The task is part of {parent.title!r} ({parent.id}), which is blocked. {message}"
        return Blocker(kind, before.id, edge_type, before.status, message)

    def _explain(self, task_id: str, before: Task, edge_type: str) -> tuple[str, str]:
        name = f"{before.title!r} ({before.id})"
        if before.status in ("cancelled", "failed"):
            how = "was cancelled" if before.status == "cancelled" else "has failed"
            return "blocker_unsatisfiable", (
                f"{name} {how} and can never be completed: intervention is needed. Reopen it, or cancel "
                "this task."
            )
        if edge_type != BLOCKS:
            return "gate", _explain_gate(before, name)
        if task_id in self._tangled and before.id in self._tangled:
            path = find_path(before.id, task_id, self._predecessors)
            if path is not None:
                return "cycle", f"The tasks wait for each other: {' -> '.join([*path[::-1], task_id])}."
        return "task", f"Waits for {name} to be completed."

    @cached_property
    def _tangled(self) -> frozenset[str]:
        """Return the tasks on cycles, and the tasks that wait for a task on a cycle.

        The search for a path is needed only for these tasks.
        """
        sorter = TopologicalSorter({one: set(self._predecessors(one)) for one in self.waits_for})
        with suppress(CycleError):
            sorter.prepare()
        free = set[str]()
        while loose := sorter.get_ready():
            free.update(loose)
            sorter.done(*loose)
        return frozenset(self.waits_for.keys() - free)

    def _predecessors(self, task_id: str) -> list[str]:
        return [source for source, _ in self.waits_for.get(task_id, ())]


def is_satisfied(before: Task, edge_type: str, now: datetime) -> bool:
    """Return whether a predecessor does not block (any more) through an edge of this type."""
    if edge_type == BLOCKS:
        return before.status == "completed"
    return is_gate_open_to_pass(before, now)


def find_path(start: str, goal: str, successors: Callable[[str], Iterable[str]]) -> list[str] | None:
    """Return the shortest path from `start` to `goal` along edges, including both ends.

    Return None if there is no path.
    """
    came_from: dict[str, str | None] = {start: None}
    frontier = [start]
    while frontier:
        reached: list[str] = []
        for node in frontier:
            if node == goal:
                path = [node]
                while (previous := came_from[path[-1]]) is not None:
                    path.append(previous)
                return path[::-1]
            for successor in successors(node):
                if successor not in came_from:
                    came_from[successor] = node
                    reached.append(successor)
        frontier = reached
    return None


def _explain_gate(gate: Task, name: str) -> str:
    kind = gate.metadata.get("gate_type")
    if kind == "timer":
        ready_at = read_ready_at(gate.metadata)
        when = (
            f"opens at {ready_at.isoformat(timespec='seconds')}" if ready_at else "has no readable ready_at"
        )
        return f"Waits for the timer gate {name}, which {when}."
    return f"Waits for the {kind} gate {name}, which opens when it is completed."
