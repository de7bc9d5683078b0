"""Tables whose rows can be imported from another Lithos server (docs/spec/integration.md §1).

A row is a tuple of column values in the column order of the table. The table `imported_rows` stores the key
and hash of each imported row. A second import updates only rows that changed at the source and did not change
here.
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
#: Type as which a value is parsed. An invalid value is replaced by the column's default.
Kind = Literal["text", "time", "whole", "number"]
_AGENT_COLUMNS: Final = frozenset({"agent", "agent_id", "created_by", "provenance_actor"})
Database = Literal["coordination.db", "edges.db", "stats.db"]


@frozen
class CarriedColumn:
    """A column to import. `default` replaces NULL. `is_note` is True if the column contains note ids."""

    name: str
    kind: Kind = "text"
    default: Value = None
    is_note: bool = False


@frozen
class CarriedTable:
    """A table to import.

    The first `keys` columns of the table identify a row. The values of `unique` columns must not exist yet.
    """

    name: str
    database: Database
    columns: tuple[CarriedColumn, ...]
    keys: int = 1
    unique: tuple[str, ...] = ()

    @property
    def agent_places(self) -> tuple[int, ...]:
        """The positions of the columns that contain agent ids."""
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
    """Return a table from column words. A word is `name` or `name:kind`, with `=default` for NULL values.

    The default kind is `text`. The kind `note` is a text that contains a note id. For a time with an empty
    default, `EPOCH_TEXT` replaces NULL.
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
    "agents",
    "coordination.db",
    "id= name type first_seen_at:time last_seen_at:time metadata={} archived_at:time",
)
#: The first column is the row id at the source. The imported row gets a different id.
ACCESSES: Final = carried_table(
    "access_log",
    "coordination.db",
    f"id:whole=0 agent_id={UNKNOWN_AGENT} doc_id:note= operation= timestamp:time=",
)


@frozen
class KeptRow:
    """A row that was not imported, with its key and the reason.

    `is_taken` is True if a different row here has the same key.
    """

    key: str
    reason: str
    is_taken: bool = False


@frozen
class Carried:
    """The results for a batch of imported rows."""

    created: int = 0
    updated: int = 0
    same: int = 0
    kept: tuple[KeptRow, ...] = ()
    #: Merged agents, as they are stored.
    agents: tuple[Agent, ...] = ()
    #: Number of added reads, by note id.
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
