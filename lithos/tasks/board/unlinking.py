"""Removal of task edges: the board command and the readiness changes that follow from it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from lithos.kernel.values.errors import EdgeNotFound, InvalidEdgeType
from lithos.kernel.values.messages import Done
from lithos.tasks.board.readiness import Readiness
from lithos.tasks.model.task import BLOCKING_TYPES, EDGE_TYPES, PARENT_CHILD
from lithos.tasks.model.task_commands import RemovedEdge, RemoveTaskEdge
from lithos.tasks.rows.tasks import TaskRows

#: Maximum number of characters of an id in an error message.
_SHOWN: Final = 100


class Unlinking:
    """The board command that removes one edge between two tasks."""

    def __init__(self, rows: TaskRows, readiness: Readiness) -> None:
        self._rows = rows
        self._readiness = readiness

    def remove(self, command: RemoveTaskEdge, now: datetime) -> Done[RemovedEdge]:
        """Remove an edge. The tasks that it blocked may become ready in the same transaction.

        Raises `InvalidEdgeType` and `EdgeNotFound`.
        """
        source, target, kind = command.source, command.target, command.type
        if kind not in EDGE_TYPES:
            raise InvalidEdgeType(f"type must be one of {', '.join(EDGE_TYPES)}, not {kind!r}.")
        former = self._waiting_for(target) if kind == PARENT_CHILD else []
        if not self._rows.drop_edge(source, target, kind):
            raise EdgeNotFound(
                f"No {kind} edge leads from {source[:_SHOWN]!r} to {target[:_SHOWN]!r}. Nothing was changed. "
                "lithos_task_edge_list shows the edges of a task, with their direction and type."
            )
        touched = [target, *self._rows.below([target]), *former]
        if kind == PARENT_CHILD:
            # A child blocks only its parent. When it is detached, it also blocks the parent's other children.
            touched += self._waiting_for(target)
        elif kind in BLOCKING_TYPES:
            # Tasks before the source may inherit a blocker again that waited for them through this edge.
            touched += self._rows.before(source)
        events = self._readiness.refresh(touched, command.agent, now).events
        titles = self._rows.titles([source, target])
        removed = RemovedEdge(source, titles.get(source, ""), target, titles.get(target, ""), kind)
        return Done(removed, tuple(events))

    def _waiting_for(self, task_id: str) -> list[str]:
        """Return the tasks that wait for this task or for a task below it."""
        part = [task_id, *self._rows.below([task_id])]
        return [one for each in part for one in self._rows.dependents(each)]
