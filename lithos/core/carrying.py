"""Rows of another Lithos's databases that an import carries over: tables, columns, and commands.

A row is a tuple of the values of its table's columns, in order. What is carried is remembered by key and hash
(`imported_rows`): a second import touches only what changed at the source, and nothing that changed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from attrs import field, frozen

from lithos.core.learning.memory import LearningCommand
from lithos.core.principals import UNKNOWN_AGENT
from lithos.core.tasks.commands import TaskCommand
from lithos.core.tasks.model import Agent

Value = str | int | float | None
Row = tuple[Value, ...]
#: How a value is read: what is no such value becomes the column's default.
Kind = Literal["text", "time", "whole", "number"]
_AGENT_COLUMNS: Final = frozenset({"agent", "agent_id", "created_by", "provenance_actor"})
Database = Literal["coordination.db", "edges.db", "stats.db"]


@frozen
class Column:
    """A column that is carried. `default` stands for NULL; `is_note` says that it holds the id of a note."""

    name: str
    kind: Kind = "text"
    default: Value = None
    is_note: bool = False


@frozen
class CarriedTable:
    """A table that is carried: its first `keys` columns identify a row; `unique` ones must be free."""

    name: str
    database: Database
    columns: tuple[Column, ...]
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

    def key(self, row: Row) -> Row:
        """What identifies a row."""
        return row[: self.keys]


EPOCH_TEXT: Final = "1970-01-01T00:00:00.000000+00:00"


def _time(name: str, *, needed: bool = False) -> Column:
    return Column(name, "time", EPOCH_TEXT if needed else None)


def _whole(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "whole", 0) for name in names)


def _needed(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, default="") for name in names)


def _note(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, default="", is_note=True) for name in names)


def _texts(*names: str) -> tuple[Column, ...]:
    return tuple(map(Column, names))


AGENTS: Final = CarriedTable(
    "agents",
    "coordination.db",
    (
        *_needed("id"),
        *_texts("name", "type"),
        _time("first_seen_at"),
        _time("last_seen_at"),
        Column("metadata", default="{}"),
    ),
)
TASKS: Final = CarriedTable(
    "tasks",
    "coordination.db",
    (
        *_needed("id", "title"),
        *_texts("description"),
        Column("status", default="open"),
        Column("task_type", default="task"),
        Column("created_by", default=UNKNOWN_AGENT),
        _time("created_at", needed=True),
        Column("tags", default="[]"),
        *_texts("outcome"),
        _time("resolved_at"),
        Column("metadata", default="{}"),
    ),
)
TASK_EDGES: Final = CarriedTable(
    "task_edges",
    "coordination.db",
    (
        *_needed("from_task_id", "to_task_id", "type"),
        Column("metadata", default="{}"),
        Column("created_by", default=UNKNOWN_AGENT),
        _time("created_at", needed=True),
    ),
    keys=3,
)
CLAIMS: Final = CarriedTable(
    "claims",
    "coordination.db",
    (
        *_needed("task_id", "aspect", "agent"),
        _time("claimed_at", needed=True),
        _time("expires_at", needed=True),
    ),
    keys=2,
)
FINDINGS: Final = CarriedTable(
    "findings",
    "coordination.db",
    (
        *_needed("id", "task_id", "agent", "summary"),
        Column("knowledge_id", is_note=True),
        _time("created_at", needed=True),
    ),
)
#: The first column is the id of the row at the source, which it does not keep here.
ACCESSES: Final = CarriedTable(
    "access_log",
    "coordination.db",
    (
        *_whole("id"),
        Column("agent_id", default=UNKNOWN_AGENT),
        *_note("doc_id"),
        *_needed("operation"),
        _time("timestamp", needed=True),
    ),
)
EDGES: Final = CarriedTable(
    "edges",
    "edges.db",
    (
        *_needed("edge_id"),
        *_note("from_id", "to_id"),
        *_needed("type"),
        Column("weight", "number", 1.0),
        Column("namespace", default="default"),
        _time("created_at", needed=True),
        _time("updated_at", needed=True),
        *_texts("provenance_actor", "provenance_type", "evidence", "conflict_state"),
    ),
    unique=("from_id", "to_id", "type", "namespace"),
)
_STATS: Final[Mapping[str, tuple[int, tuple[Column, ...]]]] = {
    "node_stats": (
        1,
        (
            *_note("node_id"),
            Column("salience", "number", 0.5),
            *_whole("retrieval_count"),
            _time("last_retrieved_at"),
            _time("last_used_at"),
            *_whole("ignored_count", "misleading_count"),
            Column("decay_rate", "number", 0.0),
            Column("spaced_rep_strength", "number", 0.0),
            *_whole("cited_count"),
            _time("last_decay_applied_at"),
        ),
    ),
    "coactivation": (
        3,
        (*_note("node_id_a", "node_id_b"), *_needed("namespace"), *_whole("count"), _time("last_at")),
    ),
    "receipts": (
        1,
        (
            *_needed("id"),
            _time("ts", needed=True),
            *_needed("query"),
            *_whole("limit"),
            *_texts("namespace_filter", "scouts_fired"),
            *_whole("candidates_considered"),
            *_texts("final_nodes", "conflicts_surfaced"),
            *_whole("surface_conflicts"),
            Column("temperature", "number", 0.0),
            *_whole("terrace_reached"),
            *_texts("agent_id", "task_id"),
        ),
    ),
    "working_memory": (
        2,
        (
            *_needed("task_id"),
            *_note("node_id"),
            *_whole("activation_count"),
            _time("first_seen_at"),
            _time("last_seen_at"),
            *_texts("last_receipt_id"),
        ),
    ),
    "task_consolidation_log": (1, (*_needed("task_id"), _time("consolidated_at"))),
    "consolidation_edge_ops": (3, (*_needed("task_id"), *_note("from_id", "to_id"), _time("applied_at"))),
    "consolidation_salience_ops": (2, (*_needed("task_id"), *_note("node_id"), _time("applied_at"))),
}
#: In the order in which they are carried.
TABLES: Final[Mapping[str, CarriedTable]] = {
    table.name: table
    for table in (
        AGENTS,
        TASKS,
        TASK_EDGES,
        CLAIMS,
        FINDINGS,
        ACCESSES,
        EDGES,
        *(CarriedTable(name, "stats.db", columns, keys) for name, (keys, columns) in _STATS.items()),
    )
}


@frozen
class RowBatch:
    """Some rows of one table. `source` tells logs of accesses apart.

    `is_look`: nothing is written, it is only looked at which of their keys are taken.
    """

    table: CarriedTable
    rows: tuple[Row, ...] = field(repr=False)
    source: str = ""
    is_look: bool = False


@frozen
class KeptRow:
    """A row that was not carried: its key, and why. `is_taken`: something else here has the key."""

    key: str
    reason: str
    is_taken: bool = False


@frozen
class Carried:
    """What became of the rows of a batch."""

    created: int = 0
    updated: int = 0
    same: int = 0
    kept: tuple[KeptRow, ...] = ()
    #: Agents as they are stored now.
    agents: tuple[Agent, ...] = ()
    #: Reads that were added, by note.
    reads: Mapping[str, int] = field(factory=dict)


@frozen(kw_only=True)
class CarryRows(TaskCommand[Carried]):
    """Merge rows of one table of `coordination.db`; with `dry_run` nothing is written.

    `source` tells the log of accesses from those of other sources.
    """

    table: str
    rows: tuple[Row, ...] = field(repr=False)
    source: str = ""
    dry_run: bool = False


@frozen(kw_only=True)
class SettleTasks(TaskCommand[int]):
    """Announce carried tasks that are ready, once all that they wait for is here; the reply is how many."""

    task_ids: tuple[str, ...]


@frozen(kw_only=True)
class CarryLearned(LearningCommand[Carried]):
    """Merge rows of one table of `edges.db` or `stats.db`; with `dry_run` nothing is written."""

    agent: str
    table: str
    rows: tuple[Row, ...] = field(repr=False)
    dry_run: bool = False


def is_running(expires_at: Value, now: datetime) -> bool:
    """Whether a claim that ends then still runs."""
    return isinstance(expires_at, str) and datetime.fromisoformat(expires_at) > now
