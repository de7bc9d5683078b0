"""What an import reads: records (one becomes one note), attachments, and what could not be read.

A source is read as a stream, so that a file of any size needs little memory (docs/spec/integration.md §1).

Of another Lithos's databases rows are carried over: a row is a tuple of the values of its table's columns, in
order. What is carried is remembered by key and hash (`imported_rows`): a second import touches only what
changed at the source, and nothing that changed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, Protocol

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


def _table(name: str, database: Database, columns: str, keys: int = 1, unique: str = "") -> CarriedTable:
    """A table from its columns in words: `name`, `name:kind`, and with `=` what stands for NULL.

    The kind is `text`, unless another is said; `note` is a text that is the id of a note. A time without a
    default behind its `=` was at `EPOCH_TEXT`.
    """
    found: list[Column] = []
    for word in columns.split():
        said, equals, default = word.partition("=")
        column, _, kind = said.partition(":")
        if kind == "time":
            found.append(Column(column, "time", EPOCH_TEXT if equals else None))
        elif kind == "whole":
            found.append(Column(column, "whole", int(default)))
        elif kind == "number":
            found.append(Column(column, "number", float(default)))
        else:
            found.append(Column(column, "text", default if equals else None, is_note=kind == "note"))
    return CarriedTable(name, database, tuple(found), keys, tuple(unique.split()))


AGENTS: Final = _table(
    "agents", "coordination.db", "id= name type first_seen_at:time last_seen_at:time metadata={}"
)
TASKS: Final = _table(
    "tasks",
    "coordination.db",
    f"id= title= description status=open task_type=task created_by={UNKNOWN_AGENT} created_at:time= tags=[] "
    "outcome resolved_at:time metadata={}",
)
TASK_EDGES: Final = _table(
    "task_edges",
    "coordination.db",
    f"from_task_id= to_task_id= type= metadata={{}} created_by={UNKNOWN_AGENT} created_at:time=",
    keys=3,
)
CLAIMS: Final = _table(
    "claims", "coordination.db", "task_id= aspect= agent= claimed_at:time= expires_at:time=", keys=2
)
FINDINGS: Final = _table(
    "findings", "coordination.db", "id= task_id= agent= summary= knowledge_id:note created_at:time="
)
#: The first column is the id of the row at the source, which it does not keep here.
ACCESSES: Final = _table(
    "access_log",
    "coordination.db",
    f"id:whole=0 agent_id={UNKNOWN_AGENT} doc_id:note= operation= timestamp:time=",
)
EDGES: Final = _table(
    "edges",
    "edges.db",
    "edge_id= from_id:note= to_id:note= type= weight:number=1.0 namespace=default created_at:time= "
    "updated_at:time= provenance_actor provenance_type evidence conflict_state",
    unique="from_id to_id type namespace",
)
#: The tables of `stats.db`: how many columns are the key, and the columns.
_STATS: Final[Mapping[str, tuple[int, str]]] = {
    "node_stats": (
        1,
        "node_id:note= retrieval_count:whole=0 last_retrieved_at:time last_used_at:time "
        "ignored_count:whole=0 misleading_count:whole=0 cited_count:whole=0",
    ),
    "receipts": (
        1,
        "id= ts:time= query= limit:whole=0 namespace_filter scouts_fired candidates_considered:whole=0 "
        "final_nodes conflicts_surfaced surface_conflicts:whole=0 temperature:number=0.0 "
        "terrace_reached:whole=0 agent_id task_id",
    ),
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
        *(_table(name, "stats.db", columns, keys) for name, (keys, columns) in _STATS.items()),
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


#: Bytes of the text of a note, as `storage.max_content_size_bytes` has it by default.
MOST_CONTENT: Final = 1_000_000


@frozen
class RecordEdge:
    """A typed edge from the record to another: `target` is the other's `id`, else its title."""

    relation: str
    target: str


@frozen
class Record:
    """One thing of a source that becomes one note.

    `id` is unique in its source and the same whenever the source is read again; `hash` (hex) changes exactly
    when something that is imported of the record changed. `position` names its place for a person (`line 12`,
    `conversations[3]`, `folder/note.md`). `path` is the wished path below the folder that is imported into,
    with `.md`; None leaves the file name to the title. `content` is Markdown without frontmatter.
    `properties` are further frontmatter keys, kept as they are. Times are aware; None when unknown.
    `text` is the whole file as it stands where the source is Markdown with frontmatter of its own, which is
    then kept byte for byte but for what an import adds.
    """

    id: str
    hash: str
    position: str
    title: str
    content: str
    path: str | None = None
    tags: tuple[str, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    source_url: str | None = None
    note_type: str | None = None
    namespace: str | None = None
    author: str | None = None
    properties: Mapping[str, Any] = field(factory=dict)
    edges: tuple[RecordEdge, ...] = ()
    #: Wiki-links and Markdown links to notes in `content`, counted for the report.
    links: int = 0
    text: bytes | None = None
    #: Further names by which the source links to it, such as a permalink.
    aliases: tuple[str, ...] = ()
    #: The frontmatter of `text` has to say the title, which is not that of the file.
    is_titled: bool = False
    #: What leads nowhere and is no link here, as the source has it.
    dead: tuple[str, ...] = ()


@frozen
class Attachment:
    """A file that is no note and is copied beside the notes; `path` is relative, `file` where it lies."""

    path: str
    file: Path
    size: int


@frozen
class Malformed:
    """What could not be read: it is skipped, and told with its place and the reason."""

    position: str
    reason: str


@frozen
class Degraded:
    """What was read, but not all of it as it was meant: told with its place and the reason."""

    position: str
    reason: str


Item = Record | Attachment | Malformed | Degraded | RowBatch


class Source(Protocol):
    """One kind of source. `kind` is its name on the command line."""

    kind: str

    def recognises(self, path: Path) -> bool:
        """Whether a file or folder looks like this kind; reads a few kilobytes at most."""

    def read(self, path: Path) -> Iterator[Item]:
        """Read item by item; called in a worker thread, pauses between items.

        Raises `ImportRefused` when nothing of it can be read (it is no such source at all).
        """


class ImportRefused(Exception):
    """The source cannot be imported: the message says what, why and what to do next."""
