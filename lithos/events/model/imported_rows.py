"""The tables whose rows can be imported from another Lithos (docs/spec/integration.md §1).

A row is a tuple of column values in the order of the table. `imported_rows` remembers imported rows by key
and hash. A second import updates only rows that changed at the source and not here.
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
#: How a value is parsed. An invalid value becomes the column's default.
Kind = Literal["text", "time", "whole", "number"]
_AGENT_COLUMNS: Final = frozenset({"agent", "agent_id", "created_by", "provenance_actor"})
Database = Literal["coordination.db", "edges.db", "stats.db"]


@frozen
class CarriedColumn:
    """A column to import. `default` replaces NULL. `is_note` means that the column contains note ids."""

    name: str
    kind: Kind = "text"
    default: Value = None
    is_note: bool = False


@frozen
class CarriedTable:
    """A table to import.

    The table's first `keys` columns identify a row. The values of `unique` columns must not exist yet.
    """

    name: str
    database: Database
    columns: tuple[CarriedColumn, ...]
    keys: int = 1
    unique: tuple[str, ...] = ()

    @property
    def agent_places(self) -> tuple[int, ...]:
        """The positions of the columns that name an agent."""
        own = _AGENT_COLUMNS | ({"id"} if self.name == "agents" else frozenset())
        return tuple(place for place, name in enumerate(self.names) if name in own)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.columns)

    def key(self, row: TableRow) -> TableRow:
        """Return the key of a row."""
        return row[: self.keys]


EPOCH_TEXT: Final = "1970-01-01T00:00:00.000000+00:00"


def carried_table(
    name: str, database: Database, columns: str, keys: int = 1, unique: str = ""
) -> CarriedTable:
    """Return a table from column words of the form `name` or `name:kind`, with `=default` for NULL values.

    The default kind is `text`. The kind `note` is a text with a note id. For a time with an empty default,
    `EPOCH_TEXT` replaces NULL.
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
#: The first column is the id of a row at the source. The imported row gets another id.
ACCESSES: Final = carried_table(
    "access_log",
    "coordination.db",
    f"id:whole=0 agent_id={UNKNOWN_AGENT} doc_id:note= operation= timestamp:time=",
)


@frozen
class KeptRow:
    """A row that was not imported, with its key and the reason.

    `is_taken` means that another row here has the same key.
    """

    key: str
    reason: str
    is_taken: bool = False


@frozen
class Carried:
    """The outcomes for the rows of a batch."""

    created: int = 0
    updated: int = 0
    same: int = 0
    kept: tuple[KeptRow, ...] = ()
    #: Agents in their stored form.
    agents: tuple[Agent, ...] = ()
    #: Number of added reads by note id.
    reads: Mapping[str, int] = field(factory=dict)


@frozen(kw_only=True)
class CarryRows(BoardCommand[Carried]):
    """Merge rows into one table of `coordination.db`. With `dry_run`, nothing is written.

    For the access log, `source` identifies the log from which the rows come.
    """

    agent: str
    table: str
    rows: tuple[TableRow, ...] = field(repr=False)
    source: str = ""
    dry_run: bool = False
