"""Merge of imported task rows in the coordinator's transaction, with events for open tasks.

An imported open task is announced with `task.created`, and with `task.ready` once its predecessors are
imported. Finished items of the source (closed tasks, findings, claims, accesses) are history and cause no
event.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from lithos.events.journal.boards import Carrier
from lithos.events.model.imported_rows import Carried, CarriedTable, CarryRows
from lithos.events.rows.imported_rows import RowMerger
from lithos.kernel.values.messages import Done
from lithos.kernel.values.times import parse_time
from lithos.tasks.board.readiness import Readiness
from lithos.tasks.board.task_events import created_event
from lithos.tasks.model.imported_tables import CARRIED, CLAIMS, TASKS, SettleTasks, is_running
from lithos.tasks.model.task import Claim, Task
from lithos.tasks.rows.tasks import TaskRows


class Carrying:
    """Board commands that merge imported task rows in a transaction."""

    def __init__(self, rows: TaskRows, readiness: Readiness) -> None:
        self._rows = rows
        self._readiness = readiness
        # bounded: a method for each table
        self.carriers: Mapping[str, Carrier] = {table.name: partial(self._carry, table) for table in CARRIED}

    def _carry(self, table: CarriedTable, command: CarryRows, now: datetime) -> Done[Carried]:
        merger = RowMerger(self._rows.connection, table, dry_run=command.dry_run)
        carried = merger.merge(command.rows)
        if command.dry_run:
            return Done(carried)
        if table is TASKS:
            return Done(carried, tuple(map(created_event, self._placed(merger))))
        if table is CLAIMS:
            self._follow_claims(merger, now)
        return Done(carried)

    def _placed(self, merger: RowMerger) -> list[Task]:
        """Return the newly imported open tasks. Their timer gates are scheduled."""
        found = self._rows.tasks_by_id([str(row[0]) for row in (*merger.created, *merger.updated)])
        for task in found.values():
            self._rows.ready.arm(task)
        created = [found[str(row[0])] for row in merger.created]
        return [task for task in created if task.is_open]

    def _follow_claims(self, merger: RowMerger, now: datetime) -> None:
        """Schedule expiry events for unexpired claims. Expired claims get no event."""
        for row in (*merger.created, *merger.updated):
            values: list[Any] = list(row)
            claim = Claim(
                task_id=values[0],
                aspect=values[1],
                agent=values[2],
                expires_at=parse_time(values[4]),
                fence=0,
            )
            self._rows.ready.follow_carried(claim, is_told=not is_running(row[4], now))

    def settle(self, command: SettleTasks, now: datetime) -> Done[int]:
        """Announce the imported tasks that are ready."""
        looked = self._readiness.refresh(command.task_ids, command.agent, now)
        return Done(len(looked.ready), tuple(looked.events))
