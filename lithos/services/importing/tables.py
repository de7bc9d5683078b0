"""The tables of an import: rows go to the actors that own the databases, one transaction a batch.

What is remembered of a run: tasks whose ids something else has here, so that nothing of theirs is attached to
it; notes that got another id; tasks that are announced as ready at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
from attrs import define, field

from lithos.actors.coordinating.messages import CoordinatorMailbox
from lithos.actors.remembering.actor import MemoryMailbox
from lithos.core.importing import (
    TABLES,
    TASKS,
    Carried,
    CarriedTable,
    CarryLearned,
    CarryRows,
    KeptRow,
    Row,
    RowBatch,
    SettleTasks,
)
from lithos.services.importing.records import Options
from lithos.stores.carrying import key_text

#: Seconds for one batch.
DEADLINE: Final = 120.0
#: Tasks whose readiness is looked at in one transaction.
SETTLED_AT_ONCE: Final = 100
#: Tasks, and notes with another id, that one run remembers.
MOST_REMEMBERED: Final = 1_000_000
_TASK_COLUMNS: Final = ("task_id", "from_task_id", "to_task_id")
_TASK_TAKEN: Final = "its task has an id that something else has here"


@define(eq=False)
class Remembered:
    """What one run remembers of what it carried."""

    #: Ids of tasks that something else has here.
    taken: set[str] = field(factory=set)
    tasks: dict[str, None] = field(factory=dict)
    #: The new id of each note whose id was taken.
    renamed: dict[str, str] = field(factory=dict)

    def rename(self, said: str, note_id: str) -> None:
        """A note that says one id has another here."""
        if said != note_id and len(self.renamed) < MOST_REMEMBERED:
            self.renamed[said] = note_id


class Tables:
    """Carries batches of rows over; `agent` is who imports."""

    def __init__(self, coordinator: CoordinatorMailbox, memory: MemoryMailbox) -> None:
        self._coordinator = coordinator
        self._memory = memory

    async def carry(self, remembered: Remembered, batch: RowBatch, agent: str, *, dry_run: bool) -> Carried:
        """What became of the rows. Raises `StorageFailed`."""
        table = batch.table
        rows, kept = _separate(table, batch.rows, remembered)
        rows = [rename_notes(table, row, remembered.renamed) for row in rows]
        if table.database == "coordination.db":
            carried = await self._coordinator.ask(
                CarryRows(
                    agent=agent, table=table.name, rows=tuple(rows), source=batch.source,
                    dry_run=dry_run or batch.is_look,
                ),
                within=DEADLINE,
            )  # fmt: skip
        else:
            learned = CarryLearned(agent=agent, table=table.name, rows=tuple(rows), dry_run=dry_run)
            carried = await self._memory.ask(learned, within=DEADLINE)
        if table.name == TASKS.name:
            left = {row.key for row in carried.kept if row.is_taken}
            remembered.taken |= left
            for row in rows:
                if row[0] not in left and len(remembered.tasks) < MOST_REMEMBERED:
                    remembered.tasks[str(row[0])] = None
        if batch.is_look:
            return Carried()
        return attrs.evolve(carried, kept=(*kept, *carried.kept))

    async def settle(self, remembered: Remembered, agent: str) -> None:
        """Announce the carried tasks that are ready, once all rows are here."""
        for some in _slices(list(remembered.tasks), SETTLED_AT_ONCE):
            await self._coordinator.ask(SettleTasks(agent=agent, task_ids=tuple(some)), within=DEADLINE)


def _separate(
    table: CarriedTable, rows: Sequence[Row], remembered: Remembered
) -> tuple[list[Row], list[KeptRow]]:
    """The rows that may be carried, and those of tasks whose ids are taken."""
    places = [number for number, name in enumerate(table.names) if name in _TASK_COLUMNS]
    if not remembered.taken or not places:
        return list(rows), []
    free: list[Row] = []
    kept: list[KeptRow] = []
    for row in rows:
        if any(row[place] in remembered.taken for place in places):
            kept.append(KeptRow(key_text(table.key(row)), _TASK_TAKEN))
        else:
            free.append(row)
    return free, kept


def own_rows(batch: RowBatch, options: Options) -> tuple[RowBatch, list[KeptRow]]:
    """The rows that may be written in the name of who imports, and those under the name of another agent."""
    if not options.is_bound or batch.is_look:
        return batch, []
    table, own, kept = batch.table, [], []
    for row in batch.rows:
        reason = options.names_another(*(row[place] for place in table.agent_places))
        if reason:
            kept.append(KeptRow(key_text(table.key(row)), reason))
        else:
            own.append(row)
    return attrs.evolve(batch, rows=tuple(own)), kept


def rename_notes(table: CarriedTable, row: Row, renamed: dict[str, str]) -> Row:
    """A row with the ids that notes have here, also inside of the lists of receipts."""
    if not renamed:
        return row
    values = list(row)
    for number, column in enumerate(table.columns):
        value = values[number]
        if column.is_note and isinstance(value, str):
            values[number] = renamed.get(value, value)
        elif column.name == "final_nodes" and isinstance(value, str):
            for said, note_id in renamed.items():
                if said in value:
                    value = value.replace(said, note_id)
            values[number] = value
    if table.name == "coactivation" and str(values[0]) > str(values[1]):
        values[0], values[1] = values[1], values[0]  # the lesser id is first
    return tuple(values)


def batch_to_json(batch: RowBatch) -> dict[str, object]:
    """A batch as it goes over HTTP."""
    rows = [list(row) for row in batch.rows]
    return {"table": batch.table.name, "rows": rows, "source": batch.source, "is_look": batch.is_look}


def batch_from_json(given: dict[str, object]) -> RowBatch:
    """The batch that `batch_to_json` wrote. Raises `KeyError`, `TypeError` and `ValueError` for others."""
    table, rows = TABLES[str(given["table"])], given["rows"]
    if not isinstance(rows, list):
        raise TypeError("rows is no list")
    for row in rows:
        if len(row) != len(table.columns) or not all(
            isinstance(value, str | int | float | None) for value in row
        ):
            raise ValueError(f"a row does not fit the table {table.name}")
    return RowBatch(table, tuple(map(tuple, rows)), str(given["source"]), given["is_look"] is True)


def _slices(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[begin : begin + size] for begin in range(0, len(items), size))
