"""The database `.lithos/stats.db`: note statistics and other retrieval data (docs/spec/memory.md §5).

Only a server or the first write creates the file. Until then, it reads as empty. Older files are migrated to
the schema `_TABLES`, but their additional tables and columns are kept. `NodeRows` stores the counters of
notes.

`extracted_entities` stores the entities of notes, and the digest of the entities that a machine wrote into
their files. The digest distinguishes these entities from those that a person chose. `applied_lessons` is an
addition to the specification. With it, feedback is repeated if the process ended before all effects were
stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

import apsw

from lithos.events.model.imported_rows import Carried
from lithos.events.rows.imported_rows import LEDGER_TABLE, RowMerger
from lithos.kernel.databases.database import SET_ASIDE, DatabaseLayout, LearningDatabase, add_missing_columns
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.databases.table import COUNT, MOMENT, Rows, Table, listed
from lithos.memory.model.imported_tables import LEARNED, CarryLearned
from lithos.memory.model.memory import NodeStats
from lithos.memory.rows.question_matrix import QuestionMatrix
from lithos.memory.rows.questions import QuestionRows
from lithos.memory.rows.queue import LedgerRows, QueueRows
from lithos.memory.rows.receipts import ReceiptRows

_COUNT: Final = "INTEGER NOT NULL DEFAULT 0"
_SCORE: Final = "REAL NOT NULL DEFAULT 0"
_TEXT: Final = "TEXT NOT NULL"

#: The columns of each table, and their definitions.
_TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "node_stats": {
        "node_id": "TEXT PRIMARY KEY", "retrieval_count": _COUNT, "last_retrieved_at": "TEXT",
        "last_used_at": "TEXT", "ignored_count": _COUNT, "misleading_count": _COUNT, "cited_count": _COUNT,
    },
    "enrich_queue": {
        "id": "INTEGER PRIMARY KEY AUTOINCREMENT", "trigger_type": _TEXT, "node_id": "TEXT",
        "triggered_at": _TEXT, "processed_at": "TEXT", "attempts": _COUNT,
    },
    "receipts": {
        "id": "TEXT PRIMARY KEY", "ts": _TEXT, "query": _TEXT, "limit": _COUNT, "namespace_filter": "TEXT",
        "scouts_fired": "TEXT", "candidates_considered": _COUNT, "final_nodes": "TEXT",
        "conflicts_surfaced": "TEXT", "surface_conflicts": _COUNT, "temperature": _SCORE,
        "terrace_reached": _COUNT, "agent_id": "TEXT", "task_id": "TEXT", "tokens": "INTEGER",
        "is_followup": _COUNT, "project": "TEXT",
    },
    "extracted_entities": {
        "node_id": "TEXT PRIMARY KEY", "digest": _TEXT, "extractor": _COUNT, "source": "TEXT",
        "entities": "TEXT",
    },
    "applied_lessons": {"id": "TEXT PRIMARY KEY"},
    "question_memory": {
        "id": "INTEGER PRIMARY KEY", "digest": _TEXT, "note_id": _TEXT, "namespace": _TEXT, "question": _TEXT,
        "vector": "BLOB", "embedder": _TEXT, "agent_id": "TEXT", "is_private": _COUNT, "a": _SCORE,
        "b": _SCORE, "last_at": "TEXT",
    },
    "question_texts": {"note_id": "TEXT PRIMARY KEY", "sketch": "BLOB NOT NULL"},
}  # fmt: skip


def _make_table(name: str, columns: Mapping[str, str]) -> str:
    """Return the statement that creates the table unless it exists."""
    defined = ", ".join(f'"{column}" {definition}' for column, definition in columns.items())
    return f"CREATE TABLE IF NOT EXISTS {name}({defined});"


TABLES: Final = "\n".join(_make_table(*each) for each in _TABLES.items()) + LEDGER_TABLE
_INDEXES: Final = """
CREATE INDEX IF NOT EXISTS receipts_task ON receipts(task_id, agent_id) WHERE task_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS receipts_agent ON receipts(agent_id);
CREATE UNIQUE INDEX IF NOT EXISTS question_of_note ON question_memory(note_id,digest);
CREATE INDEX IF NOT EXISTS question_age ON question_memory(last_at,id);
CREATE INDEX IF NOT EXISTS question_embedder ON question_memory(embedder);
CREATE INDEX IF NOT EXISTS enrich_waiting ON enrich_queue(id) WHERE processed_at IS NULL;
CREATE INDEX IF NOT EXISTS enrich_waiting_notes ON enrich_queue(node_id) WHERE processed_at IS NULL;
"""


def upgrade(connection: apsw.Connection, _: datetime) -> None:
    """Add the tables and columns that an older file lacks. This runs in a transaction."""
    add_missing_columns(connection, _TABLES)
    connection.execute(_INDEXES)


_NODES: Final = Table(
    "node_stats", NodeStats, "node_id",
    retrieval_count=COUNT, last_retrieved_at=MOMENT, last_used_at=MOMENT, ignored_count=COUNT,
    misleading_count=COUNT, cited_count=COUNT,
)  # fmt: skip
#: All columns are listed, because the columns of older files may have no defaults.
_RETRIEVED: Final = (
    f"{_NODES.insert} ON CONFLICT(node_id) DO UPDATE SET retrieval_count=IFNULL(retrieval_count,0)+1,"
    " last_retrieved_at=excluded.last_retrieved_at"
)


class NodeRows(Rows):
    """The counters of notes on one connection. Writes need an open transaction."""

    def get(self, node_ids: Iterable[str]) -> dict[str, NodeStats]:
        """Return the stored rows of these notes."""
        found = self._find(_NODES, "WHERE node_id IN (SELECT value FROM json_each(?))", listed(node_ids))
        return {each.node_id: each for each in found}

    def all(self) -> list[NodeStats]:
        """Return every row, ordered by id."""
        return self._find(_NODES, "ORDER BY node_id")

    def put(self, changed: Iterable[NodeStats]) -> None:
        """Insert or replace rows."""
        self._run_all(_NODES.upsert, map(_NODES.row, changed))

    def count_retrieval(self, node_ids: Iterable[str], now: datetime) -> None:
        """Increment the retrieval count of each note."""
        notes = [
            NodeStats(node_id=each, retrieval_count=1, last_retrieved_at=now)
            for each in sorted(set(node_ids))
        ]
        self._run_all(_RETRIEVED, map(_NODES.row, notes))


class StatsTables:
    """The tables of `stats.db` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.nodes = NodeRows(connection)
        self.receipts = ReceiptRows(connection)
        self.queue = QueueRows(connection)
        self.ledgers = LedgerRows(connection)
        self.questions = QuestionRows(connection)


class StatsStore(LearningDatabase):
    """The store of statistics.

    `reading` uses the second connection, and `remembered` has all questions in memory.
    """

    layout = DatabaseLayout(TABLES, upgrade, set_aside=SET_ASIDE)

    def __init__(self, path: Path, now: datetime) -> None:
        super().__init__(path, now)
        empty = apsw.Connection(":memory:")
        empty.execute(TABLES)
        self.remembered = QuestionMatrix()
        #: Last committed state. Only one reader may use it at a time.
        self.reading = StatsTables(empty)
        #: State in the open transaction.
        self.writing = self.reading

    def carry(self, command: CarryLearned) -> Carried:
        """Merge imported rows in a transaction."""
        return RowMerger(self._writer, LEARNED[command.table], dry_run=command.dry_run).merge(command.rows)

    def publish(self) -> None:
        """Update `remembered` to the stored state. This must not run in a transaction.

        Only the writing thread may call this.
        """
        try:
            self.writing.questions.publish(self.remembered)
        except DatabaseFailed as failure:
            self.log.error("remembered questions reloaded", reason=str(failure))
            self.remembered.begin(None, 0)

    def _connect(self, now: datetime) -> None:
        super()._connect(now)
        self.writing, self.reading = StatsTables(self._writer), StatsTables(self._reader)
