"""Rows that are imported from another Lithos, table by table (docs/spec/integration.md §1).

A row is a tuple of the values of its table's columns, in order. Imported rows are remembered by key and hash
(`imported_rows`): a second import updates only rows that changed at the source and not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from attrs import field, frozen

from lithos.events.model.agents import Agent
from lithos.kernel.values.messages import BoardCommand
from lithos.kernel.values.principals import UNKNOWN_AGENT

Value = str | int | float | None
TableRow = tuple[Value, ...]
#: How a value is read: an invalid value becomes the column's default.
Kind = Literal["text", "time", "whole", "number"]
_AGENT_COLUMNS: Final = frozenset({"agent", "agent_id", "created_by", "provenance_actor"})
Database = Literal["coordination.db", "edges.db", "stats.db"]


@frozen
class CarriedColumn:
    """A column that is imported. `default` replaces NULL; `is_note` means that it holds the id of a note."""

    name: str
    kind: Kind = "text"
    default: Value = None
    is_note: bool = False


@frozen
class CarriedTable:
    """A table that is carried: its first `keys` columns identify a row; `unique` ones must be free."""

    name: str
    database: Database
    columns: tuple[CarriedColumn, ...]
    keys: int = 1
    unique: tuple[str, ...] = ()

    @property
    def agent_places(self) -> tuple[int, ...]:
        """The places of the columns that name an agent."""
        own = _AGENT_COLUMNS | ({"id"} if self.name == "agents" else frozenset())
        return tuple(place for place, name in enumerate(self.names) if name in own)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def key(self, row: TableRow) -> TableRow:
        """Return the identity of a row."""
        return row[: self.keys]


EPOCH_TEXT: Final = "1970-01-01T00:00:00.000000+00:00"


def carried_table(
    name: str, database: Database, columns: str, keys: int = 1, unique: str = ""
) -> CarriedTable:
    """A table from its columns in words: `name`, `name:kind`, and with `=` what stands for NULL.

    The kind is `text`, unless another is said; `note` is a text that is the id of a note. A time without a
    default behind its `=` was at `EPOCH_TEXT`.
    """
    found: list[CarriedColumn] = []
    for word in columns.split():
        said, equals, default = word.partition("=")
        column, _, kind = said.partition(":")
        if kind == "time":
            found.append(CarriedColumn(column, "time", EPOCH_TEXT if equals else None))
        elif kind == "whole":
            found.append(CarriedColumn(column, "whole", int(default)))
        elif kind == "number":
            found.append(CarriedColumn(column, "number", float(default)))
        else:
            found.append(CarriedColumn(column, "text", default if equals else None, is_note=kind == "note"))
    return CarriedTable(name, database, tuple(found), keys, tuple(unique.split()))


AGENTS: Final = carried_table(
    "agents", "coordination.db", "id= name type first_seen_at:time last_seen_at:time metadata={}"
)
#: The first column is the id of the row at the source, which it does not keep here.
ACCESSES: Final = carried_table(
    "access_log",
    "coordination.db",
    f"id:whole=0 agent_id={UNKNOWN_AGENT} doc_id:note= operation= timestamp:time=",
)


@frozen
class KeptRow:
    """A row that was not imported: its key, and why. `is_taken`: another row here has the key."""

    key: str
    reason: str
    is_taken: bool = False


@frozen
class Carried:
    """The outcomes of the rows of a batch."""

    created: int = 0
    updated: int = 0
    same: int = 0
    kept: tuple[KeptRow, ...] = ()
    #: Agents as they are stored now.
    agents: tuple[Agent, ...] = ()
    #: Reads that were added, by note.
    reads: Mapping[str, int] = field(factory=dict)


@frozen(kw_only=True)
class CarryRows(BoardCommand[Carried]):
    """Merge rows of one table of `coordination.db`; with `dry_run` nothing is written.

    `source` distinguishes the access log from those of other sources.
    """

    agent: str
    table: str
    rows: tuple[TableRow, ...] = field(repr=False)
    source: str = ""
    dry_run: bool = False
