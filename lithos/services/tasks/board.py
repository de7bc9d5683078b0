"""The task board: open tasks by what can be done with them now, gates, epics, and what is done.

The columns follow the rules of `lithos_task_ready` and `lithos_task_blocked`; only the tasks that are
shown are read whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from attrs import frozen

from lithos.actors.actors import Actors
from lithos.core.tasks.graph import Blocker, is_satisfied
from lithos.core.tasks.model import WAITS_ON_GATE, Task
from lithos.stores.coordination.board_rows import HeldClaim, LightTask

READY: Final = "ready"
BLOCKED: Final = "blocked"
CLAIMED: Final = "claimed"
DONE: Final = "done"
GATES: Final = "gates"
EPICS: Final = "epics"
COLUMNS: Final = (READY, BLOCKED, CLAIMED, DONE, GATES, EPICS)


@frozen(kw_only=True)
class BoardFilter:
    """Which tasks to show; `agent` created the task or holds a claim on it."""

    project: str | None = None
    tag: str | None = None
    agent: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether every task will do."""
        return not (self.project or self.tag or self.agent)

    def passes(self, task: LightTask, claims: Sequence[HeldClaim]) -> bool:
        """Whether a task is to be shown."""
        return (
            (not self.project or task.is_of(self.project))
            and (not self.tag or task.has_tag(self.tag))
            and (
                not self.agent
                or task.created_by == self.agent
                or any(held.claim.agent == self.agent for held in claims)
            )
        )


@frozen(kw_only=True)
class Card:
    """One task of a column; `children` counts those of each status, `waiting` the open tasks behind it."""

    task: Task
    claims: Sequence[HeldClaim] = ()
    #: Each with the title of the task or gate that blocks.
    blockers: Sequence[tuple[Blocker, str]] = ()
    children: dict[str, int]
    waiting: int = 0


@frozen
class Column:
    """Some cards of a column, and how many there are in all."""

    name: str
    cards: Sequence[Card]
    total: int


class Board:
    """Reads columns of the board, each time as of one moment."""

    def __init__(self, actors: Actors) -> None:
        self._tasks = actors.stores.coordination.readable_task_rows()
        self._rows = actors.stores.coordination.board_rows()
        self._reading = actors.coordination_reading
        self._clock = actors.clock

    async def columns(
        self, wanted: BoardFilter, limit: int, *, only: str | None = None, offset: int = 0
    ) -> dict[str, Column]:
        """All columns with at most so many cards each, or one from an offset on."""

        def read() -> dict[str, Column]:
            with self._tasks.snapshot():
                return self._columns(wanted, limit, only, offset)

        return await self._reading.run(read)

    def _columns(self, wanted: BoardFilter, limit: int, only: str | None, offset: int) -> dict[str, Column]:
        now = self._clock()
        claims = self._rows.claims(now)
        names = COLUMNS if only is None else (only,)
        ids = self._sort(wanted, claims, now)
        found: dict[str, Column] = {}
        for name in names:
            if name == DONE:
                found[name] = self._done(wanted, limit, offset)
            else:
                shown = ids[name][offset : offset + limit]
                found[name] = Column(name, self._cards(shown, claims, now), len(ids[name]))
        return found

    def _sort(
        self, wanted: BoardFilter, claims: dict[str, list[HeldClaim]], now: datetime
    ) -> dict[str, list[str]]:
        """The ids of the open tasks of each column, newest first."""
        held_back = self._held_back(now)
        found: dict[str, list[str]] = {name: [] for name in COLUMNS}
        for task_id, kind in self._open(wanted, claims):
            if kind in ("gate", "epic"):
                found[GATES if kind == "gate" else EPICS].append(task_id)
            if task_id in claims:
                found[CLAIMED].append(task_id)
            elif kind == "task":
                found[BLOCKED if task_id in held_back else READY].append(task_id)
        return found

    def _open(self, wanted: BoardFilter, claims: dict[str, list[HeldClaim]]) -> Iterable[tuple[str, str]]:
        """Id and type of the open tasks that are wanted, newest first."""
        if wanted.is_empty:
            return self._rows.open_kinds()
        found = self._rows.tasks_like(wanted.project, wanted.tag, wanted.agent, is_open=True)
        return [(one.id, one.task_type) for one in found if wanted.passes(one, claims.get(one.id, ()))]

    def _held_back(self, now: datetime) -> set[str]:
        """The open tasks before which something is not satisfied; only gates are read whole."""
        edges = self._rows.waiting()
        gates = self._tasks.tasks_by_id(list({first for _, kind, first, _ in edges if kind == WAITS_ON_GATE}))
        passed = {one for one, gate in gates.items() if is_satisfied(gate, WAITS_ON_GATE, now)}
        return {
            task
            for task, kind, first, status in edges
            if not (first in passed if kind == WAITS_ON_GATE else status == "completed")
        }

    def _done(self, wanted: BoardFilter, limit: int, offset: int) -> Column:
        if wanted.is_empty:
            ids, total = self._rows.closed_ids(limit, offset)
            return Column(DONE, self._plain(ids), total)
        rows = self._rows.tasks_like(wanted.project, wanted.tag, wanted.agent, is_open=False)
        passing = [row.id for row in rows if wanted.passes(row, ())]
        return Column(DONE, self._plain(passing[offset : offset + limit]), len(passing))

    def _plain(self, ids: Sequence[str]) -> list[Card]:
        tasks = self._tasks.tasks_by_id(ids)
        return [Card(task=tasks[one], children={}) for one in ids if one in tasks]

    def _cards(self, ids: Sequence[str], claims: dict[str, list[HeldClaim]], now: datetime) -> list[Card]:
        tasks = self._tasks.tasks_by_id(ids)
        graph = self._tasks.graph_before(ids, transitively=True)
        children, behind = self._rows.children(ids), self._rows.dependents(ids)
        return [
            Card(
                task=tasks[one],
                claims=claims.get(one, ()),
                blockers=[(each, graph.tasks[each.task_id].title) for each in graph.blockers(one, now)],
                children=children.get(one, {}),
                waiting=behind.get(one, 0),
            )
            for one in ids
            if one in tasks
        ]
