"""JSON form of records and table rows. The command sends it to the server that writes them.

Table rows are sent to the actors that own the databases, with one transaction per batch. A run remembers
three things: tasks whose ids are already used here, so that no rows are attached to the wrong task; notes
that got another id; and tasks to announce as ready at the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import attrs
from attrs import define, field, frozen

from lithos.events.journal.messages import CoordinatorMailbox
from lithos.events.model.imported_rows import Carried, CarriedTable, CarryRows, KeptRow, TableRow
from lithos.events.rows.imported_rows import key_text
from lithos.imports.model.importing import TABLES, Record, RecordEdge, RowBatch
from lithos.kernel.actors.threads import slices
from lithos.kernel.values.limits import holds_more_values
from lithos.kernel.values.times import format_optional, parse_time
from lithos.memory.learning.actor import MemoryMailbox
from lithos.memory.model.imported_tables import CarryLearned
from lithos.tasks.model.imported_tables import TASKS, SettleTasks

#: Maximum seconds for one batch.
DEADLINE: Final = 120.0
#: Number of tasks whose readiness is checked in one transaction.
SETTLED_AT_ONCE: Final = 100
#: Maximum number of tasks, and of notes with another id, that one run remembers.
MOST_REMEMBERED: Final = 1_000_000
_TASK_COLUMNS: Final = ("task_id", "from_task_id", "to_task_id")
_TASK_TAKEN: Final = "its task id is already used here"


@define(eq=False)
class Remembered:
    """Facts about imported rows that one run remembers."""

    #: Ids of imported tasks that other objects already use here.
    taken: set[str] = field(factory=set)
    tasks: dict[str, None] = field(factory=dict)
    #: New id of each note whose original id was already used.
    renamed: dict[str, str] = field(factory=dict)

    def rename(self, said: str, note_id: str) -> None:
        """Remember that the note with the original id `said` has the id `note_id` here."""
        if said != note_id and len(self.renamed) < MOST_REMEMBERED:
            self.renamed[said] = note_id


class RowImporter:
    """Importer for table rows."""

    def __init__(self, coordinator: CoordinatorMailbox, memory: MemoryMailbox) -> None:
        self._coordinator = coordinator
        self._memory = memory

    async def carry(self, remembered: Remembered, batch: RowBatch, agent: str, *, dry_run: bool) -> Carried:
        """Import the rows of a batch for `agent`. Return the results. Raises `StorageFailed`."""
        table, taken = batch.table, remembered.taken
        places = [number for number, name in enumerate(table.names) if name in _TASK_COLUMNS]
        rows, kept = _separate(
            batch, lambda row: _TASK_TAKEN if any(row[place] in taken for place in places) else ""
        )
        rows = tuple(rename_notes(table, row, remembered.renamed) for row in rows)
        if table.database == "coordination.db":
            carried = await self._coordinator.ask(
                CarryRows(
                    agent=agent, table=table.name, rows=rows, source=batch.source,
                    dry_run=dry_run or batch.is_look,
                ),
                within=DEADLINE,
            )  # fmt: skip
        else:
            learned = CarryLearned(agent=agent, table=table.name, rows=rows, dry_run=dry_run)
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
        """Announce the imported tasks that are ready. Call this after all rows are imported."""
        async for some in slices(list(remembered.tasks), SETTLED_AT_ONCE):
            await self._coordinator.ask(SettleTasks(agent=agent, task_ids=tuple(some)), within=DEADLINE)


def _separate(
    batch: RowBatch, why_not: Callable[[TableRow], str]
) -> tuple[tuple[TableRow, ...], list[KeptRow]]:
    """Split the rows: those that can be imported, and those that cannot, with the reasons."""
    free, kept = list[TableRow](), list[KeptRow]()
    for row in batch.rows:
        if reason := why_not(row):
            kept.append(KeptRow(key_text(batch.table.key(row)), reason))
        else:
            free.append(row)
    return tuple(free), kept


def own_rows(batch: RowBatch, options: Options) -> tuple[RowBatch, list[KeptRow]]:
    """Return the rows that the agent may write, and the rows that name another agent."""
    if not options.is_bound or batch.is_look:
        return batch, []
    places = batch.table.agent_places
    own, kept = _separate(batch, lambda row: options.names_another(*(row[place] for place in places)))
    return attrs.evolve(batch, rows=own), kept


def rename_notes(table: CarriedTable, row: TableRow, renamed: dict[str, str]) -> TableRow:
    """Return a row with the note ids that are used here, also in the lists of receipts."""
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
    return tuple(values)


def batch_to_json(batch: RowBatch) -> dict[str, object]:
    """Return a batch as JSON for the HTTP request."""
    rows = [list(row) for row in batch.rows]
    return {"table": batch.table.name, "rows": rows, "source": batch.source, "is_look": batch.is_look}


def batch_from_json(given: dict[str, object]) -> RowBatch:
    """Return the batch from the JSON that `batch_to_json` returned.

    Raises `KeyError`, `TypeError` or `ValueError` if the JSON has another form.
    """
    table, rows = TABLES[str(given["table"])], given["rows"]
    if not isinstance(rows, list):
        raise TypeError("rows is not a list")
    for row in rows:
        if len(row) != len(table.columns) or not all(
            isinstance(value, str | int | float | None) for value in row
        ):
            raise ValueError(f"a row does not match the columns of table {table.name}")
    return RowBatch(table, tuple(map(tuple, rows)), str(given["source"]), given["is_look"] is True)


#: Maximum number of values in the properties of one record. One import request may contain twice as many.
MOST_VALUES: Final = 100_000
_TEXTS = ("path", "source_url", "note_type", "namespace", "author")


def record_to_json(record: Record) -> dict[str, Any]:
    """Return a record as JSON. Empty fields are left out. `text` is UTF-8."""
    given = attrs.asdict(record, recurse=False) | {
        "content": "" if record.text is not None else record.content,
        "created_at": format_optional(record.created_at),
        "updated_at": format_optional(record.updated_at),
        "edges": [[edge.relation, edge.target] for edge in record.edges],
        "text": None if record.text is None else record.text.decode(),
    }
    return {name: value for name, value in given.items() if value not in (None, (), [], {}, 0)}


def record_from_json(given: Mapping[str, Any]) -> Record:
    """Return the record from the JSON that `record_to_json` returned.

    Raises `KeyError`, `TypeError` or `ValueError` if the JSON has another form.
    """
    text = given.get("text")
    return Record(
        **{name: _text(given[name]) for name in ("id", "hash", "position", "title")},
        content=_text(given.get("content", "")),
        tags=tuple(_text(tag) for tag in given.get("tags", ())),
        aliases=tuple(_text(alias) for alias in given.get("aliases", ())),
        created_at=_time(given.get("created_at")),
        updated_at=_time(given.get("updated_at")),
        properties=dict(given.get("properties", {})),
        edges=tuple(
            RecordEdge(_text(relation), _text(target)) for relation, target in given.get("edges", ())
        ),
        links=int(given.get("links", 0)),
        is_titled=given.get("is_titled") is True,
        dead=tuple(_text(each) for each in given.get("dead", ())),
        text=None if text is None else _text(text).encode(),
        **{name: _text(given[name]) for name in _TEXTS if name in given},
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:100]!r} is not a text")
    return value


def _time(value: Any) -> datetime | None:
    return None if value is None else parse_time(_text(value))


def size_of(record: Record) -> int:
    """Return the approximate size of a record in bytes.

    Characters of the text, properties and edges are counted as bytes.
    """
    text = len(record.text) if record.text is not None else len(record.content)
    # Properties count five times, because the number of values in a batch is limited too.
    properties = 5 * len(_properties_of(record))
    return text + properties + 100 * (len(record.edges) + len(record.tags)) + 500


def excess_of(record: Record, limit: int) -> str:
    """Return why a record is too large for a note, or "" if it is not."""
    content = record.content.encode("utf-8", "surrogatepass") if record.text is None else record.text
    if len(content) <= limit:
        if not holds_more_values(_properties_of(record), MOST_VALUES):
            return ""
        return f"its properties contain more than {MOST_VALUES:,} values; remove some of them"
    return (
        f"it has {len(content):,} bytes, more than storage.max_content_size_bytes ({limit:,}); "
        "split it, or raise that setting"
    )


def _properties_of(record: Record) -> bytes:
    return json.dumps(dict(record.properties), default=str).encode() if record.properties else b""


@frozen
class Options:
    """Options of an import. `into` is a folder inside the notes folder, or "" for the notes folder itself."""

    kind: str
    agent: str
    into: str = ""
    dry_run: bool = False
    #: True if notes that were deleted here are created again.
    recreate: bool = False
    #: True if the importing agent is bound. Then nothing may be written under another name.
    is_bound: bool = False

    def names_another(self, *names: object) -> str:
        """Return why a bound agent may not write under the names in the options.

        Return "" if the agent may write. Empty names are allowed.
        """
        others = [name for name in names if name not in (None, "", "unknown", self.agent)]
        if not self.is_bound or not others:
            return ""
        return (
            f"it names {str(others[0])[:100]!r}, but the token is bound to {self.agent!r}: import "
            "with a token that is not bound to an agent, such as the operator's"
        )


@frozen
class ImportSession:
    """A started import: its number, the notes folder (for attachments), and the maximum bytes of a note."""

    session: str
    notes_folder: Path
    content_limit: int


@frozen
class ImportResult:
    """The result for a record: one of the constants below, the path of its note, and the reason.

    `notices` inform a person about other differences, such as a path other than the requested path.
    """

    position: str
    result: str
    path: str | None = None
    reason: str = ""
    notices: tuple[str, ...] = ()


CREATED = "created"
UPDATED = "updated"
UNCHANGED = "unchanged"
#: The record changed in the source, and its note was changed here.
CHANGED_HERE = "changed here"
DELETED_HERE = "deleted here"
DUPLICATE = "duplicate"
MALFORMED = "malformed"
FAILED = "failed"
#: The note waits for a person's approval.
PROPOSED = "proposed"
RESULTS = (CREATED, UPDATED, UNCHANGED, CHANGED_HERE, DELETED_HERE, DUPLICATE, MALFORMED, FAILED)

#: Results for edges.
EDGE_MADE = "made"
EDGE_THERE = "there already"
EDGE_MISSING = "missing"
EDGE_RESULTS = (EDGE_MADE, EDGE_THERE, EDGE_MISSING)


@frozen
class SourceEdge:
    """A typed edge of a source: the id of its record, and the id or title of its target."""

    source: str
    relation: str
    target: str
