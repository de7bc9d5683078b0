"""`.lithos/stats.db`: node statistics, coactivation and what else retrieval learns (docs/spec/memory.md §5).

Only a server, or the first write, creates the file; until then it reads as empty. `_TABLES` is the schema, to
which older files are migrated. `NodeRows` has the usage counts of notes and of pairs retrieved together.

`extracted_entities` has what was found in notes, and the digest of what a machine wrote into their files,
without which that could not be told from a person's choice. `applied_lessons` is beyond the specification: it
lets feedback be repeated when the process ended before all its effects were stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import apsw
from attrs import frozen

from lithos.core.importing import TABLES as CARRIED
from lithos.core.importing import Carried, CarryLearned
from lithos.core.learning.memory import INITIAL_SALIENCE, NodeStats, Pair, PairsForgotten, SalienceSummary
from lithos.core.times import format_time
from lithos.stores.carrying import LEDGER_TABLE, RowMerger
from lithos.stores.database import SET_ASIDE, Layout, LearningDatabase, add_missing_columns
from lithos.stores.learning.question_matrix import QuestionMatrix
from lithos.stores.learning.questions import QuestionRows
from lithos.stores.learning.queue import LedgerRows, QueueRows
from lithos.stores.learning.receipts import ReceiptRows
from lithos.stores.sqlite import DatabaseFailed
from lithos.stores.table import COUNT, MOMENT, Rows, Stored, Table, listed, or_else


@frozen
class _Table:
    """Columns with their definitions; `key` names those of a key of several, by which rows are stored."""

    columns: Mapping[str, str]
    key: str = ""

    def make(self, name: str) -> str:
        """The statement that makes the table unless it is there."""
        columns = ", ".join(f'"{column}" {definition}' for column, definition in self.columns.items())
        # Without rowid such a table needs no second copy of its key: half the size for coactivations.
        key, tail = (f", PRIMARY KEY({self.key})", " WITHOUT ROWID") if self.key else ("", "")
        return f"CREATE TABLE IF NOT EXISTS {name}({columns}{key}){tail};"


_COUNT: Final = "INTEGER NOT NULL DEFAULT 0"
_SCORE: Final = "REAL NOT NULL DEFAULT 0"
_TEXT: Final = "TEXT NOT NULL"

_TABLES: Final[Mapping[str, _Table]] = {
    "node_stats": _Table({
        "node_id": "TEXT PRIMARY KEY", "salience": "REAL NOT NULL DEFAULT 0.5", "retrieval_count": _COUNT,
        "last_retrieved_at": "TEXT", "last_used_at": "TEXT", "ignored_count": _COUNT,
        "misleading_count": _COUNT, "decay_rate": _SCORE, "spaced_rep_strength": _SCORE,
        "cited_count": _COUNT, "last_decay_applied_at": "TEXT",
    }),
    "coactivation": _Table(
        {"node_id_a": _TEXT, "node_id_b": _TEXT, "namespace": _TEXT, "count": _COUNT, "last_at": "TEXT"},
        "node_id_a, node_id_b, namespace",
    ),
    "enrich_queue": _Table({
        "id": "INTEGER PRIMARY KEY AUTOINCREMENT", "trigger_type": _TEXT, "node_id": "TEXT",
        "task_id": "TEXT", "triggered_at": _TEXT, "processed_at": "TEXT", "attempts": _COUNT,
    }),
    "working_memory": _Table(
        {
            "task_id": _TEXT, "node_id": _TEXT, "activation_count": _COUNT, "first_seen_at": "TEXT",
            "last_seen_at": "TEXT", "last_receipt_id": "TEXT",
        },
        "task_id, node_id",
    ),
    "receipts": _Table({
        "id": "TEXT PRIMARY KEY", "ts": _TEXT, "query": _TEXT, "limit": _COUNT, "namespace_filter": "TEXT",
        "scouts_fired": "TEXT", "candidates_considered": _COUNT, "final_nodes": "TEXT",
        "conflicts_surfaced": "TEXT", "surface_conflicts": _COUNT, "temperature": _SCORE,
        "terrace_reached": _COUNT, "agent_id": "TEXT", "task_id": "TEXT", "tokens": "INTEGER",
        "is_followup": _COUNT,
    }),
    "task_consolidation_log": _Table({"task_id": "TEXT PRIMARY KEY", "consolidated_at": "TEXT"}),
    "consolidation_edge_ops": _Table(
        {"task_id": _TEXT, "from_id": _TEXT, "to_id": _TEXT, "applied_at": "TEXT"},
        "task_id, from_id, to_id",
    ),
    "consolidation_salience_ops": _Table(
        {"task_id": _TEXT, "node_id": _TEXT, "applied_at": "TEXT"}, "task_id, node_id"
    ),
    "extracted_entities": _Table({
        "node_id": "TEXT PRIMARY KEY", "digest": _TEXT, "extractor": _COUNT, "source": "TEXT",
        "entities": "TEXT",
    }),
    "applied_lessons": _Table({"id": "TEXT PRIMARY KEY"}),
    "question_memory": _Table({
        "id": "INTEGER PRIMARY KEY", "digest": _TEXT, "note_id": _TEXT, "namespace": _TEXT, "question": _TEXT,
        "vector": "BLOB", "embedder": _TEXT, "agent_id": "TEXT", "is_private": _COUNT, "a": _SCORE,
        "b": _SCORE, "last_at": "TEXT",
    }),
    "question_texts": _Table({"note_id": "TEXT PRIMARY KEY", "sketch": "BLOB NOT NULL"}),
}  # fmt: skip

TABLES: Final = "\n".join(table.make(name) for name, table in _TABLES.items()) + LEDGER_TABLE
_INDEXES: Final = """
CREATE INDEX IF NOT EXISTS coactivation_b ON coactivation(node_id_b);
CREATE INDEX IF NOT EXISTS receipts_task ON receipts(task_id, agent_id) WHERE task_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS receipts_agent ON receipts(agent_id);
CREATE UNIQUE INDEX IF NOT EXISTS question_of_note ON question_memory(note_id,digest);
CREATE INDEX IF NOT EXISTS question_age ON question_memory(last_at,id);
CREATE INDEX IF NOT EXISTS question_embedder ON question_memory(embedder);
CREATE INDEX IF NOT EXISTS enrich_waiting ON enrich_queue(id) WHERE processed_at IS NULL;
CREATE INDEX IF NOT EXISTS enrich_waiting_notes ON enrich_queue(node_id, task_id) WHERE processed_at IS NULL;
"""


def upgrade(connection: apsw.Connection, _: datetime) -> None:
    """Give an older file what it lacks, inside a transaction."""
    add_missing_columns(connection, {name: table.columns for name, table in _TABLES.items()})
    connection.execute(_INDEXES)


#: A NULL, which older files may hold, reads as the default.
_NODES: Final = Table(
    "node_stats", NodeStats, "node_id",
    salience=Stored(None, lambda value: INITIAL_SALIENCE if value is None else value), retrieval_count=COUNT,
    last_retrieved_at=MOMENT, last_used_at=MOMENT, ignored_count=COUNT, misleading_count=COUNT,
    decay_rate=or_else(0.0), spaced_rep_strength=or_else(0.0), cited_count=COUNT,
    last_decay_applied_at=MOMENT,
)  # fmt: skip
#: All columns are given, since those of older files may have no defaults.
_RETRIEVED: Final = (
    f"{_NODES.insert} ON CONFLICT(node_id) DO UPDATE SET retrieval_count=IFNULL(retrieval_count,0)+1,"
    " last_retrieved_at=excluded.last_retrieved_at"
)
_TOGETHER: Final = (
    "INSERT INTO coactivation(node_id_a,node_id_b,namespace,count,last_at) VALUES(?,?,?,?,?)"
    " ON CONFLICT(node_id_a,node_id_b,namespace) DO UPDATE SET count=IFNULL(count,0)+excluded.count,"
    " last_at=excluded.last_at"
)
_COMPANIONS: Final = """
SELECT other, SUM(count) FROM (
    SELECT node_id_b AS other, namespace, count FROM coactivation
        WHERE node_id_a IN (SELECT value FROM json_each(?1))
    UNION ALL
    SELECT node_id_a AS other, namespace, count FROM coactivation
        WHERE node_id_b IN (SELECT value FROM json_each(?1)))
WHERE other NOT IN (SELECT value FROM json_each(?1))
    AND (?2 IS NULL OR namespace IN (SELECT value FROM json_each(?2)))
GROUP BY other
"""
_BEHIND: Final = "(node_id_a,node_id_b,namespace)>(?1,?2,?3)"
_LAST_OF_SLICE: Final = (
    f"SELECT node_id_a,node_id_b,namespace FROM coactivation WHERE {_BEHIND}"  # noqa: S608 - constants
    " ORDER BY node_id_a,node_id_b,namespace LIMIT 1 OFFSET ?4"
)
#: A time that cannot be read is no reason to drop anything.
_FORGET_BEHIND: Final = (
    f"DELETE FROM coactivation WHERE {_BEHIND}"  # noqa: S608 - constants
    " AND julianday(last_at)<julianday(?4)-?5*MAX(IFNULL(count,1),1)"
)
_FORGET_SLICE: Final = f"{_FORGET_BEHIND} AND (node_id_a,node_id_b,namespace)<=(?6,?7,?8)"


class NodeRows(Rows):
    """The rows as one connection sees them; writing needs an open transaction."""

    def get(self, node_ids: Iterable[str]) -> dict[str, NodeStats]:
        """The stored rows among these notes."""
        found = self._find(_NODES, "WHERE node_id IN (SELECT value FROM json_each(?))", listed(node_ids))
        return {each.node_id: each for each in found}

    def all(self) -> list[NodeStats]:
        """Every row, by id."""
        return self._find(_NODES, "ORDER BY node_id")

    def ids(self, after: str, most: int) -> list[str]:
        """The ids of at most so many rows behind `after`, in order."""
        sql = "SELECT node_id FROM node_stats WHERE node_id>? ORDER BY node_id LIMIT ?"
        return self._texts(sql, after, most)

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

    def count_pairs(self, counts: Mapping[Pair, int], now: datetime) -> None:
        """Add to the coactivations of pairs."""
        moment = format_time(now)
        self._run_all(_TOGETHER, [(*pair, count, moment) for pair, count in counts.items()])

    def companions(self, seeds: Sequence[str], namespaces: Sequence[str] | None) -> dict[str, int]:
        """Coactivation counts of other notes with any of the seeds; None is any namespace."""
        among = None if namespaces is None else listed(namespaces)
        return dict(self._all(_COMPANIONS, listed(seeds), among))

    def forget_pairs(self, after: Pair, most: int, days: float, now: datetime) -> PairsForgotten:
        """Drop pairs idle for more than `days` times their count, among `most` behind `after`."""
        last: Pair | None = self._first(_LAST_OF_SLICE, *after, most - 1)
        sql = _FORGET_SLICE if last else _FORGET_BEHIND
        return PairsForgotten(self._run(sql, *after, format_time(now), days, *(last or ())), last)

    def summarize(self, floor: float) -> SalienceSummary:
        """Aggregates over all stored notes; `floor` is a salience."""
        sql = "SELECT COUNT(*), AVG(salience), SUM(salience<?) FROM node_stats"
        notes, mean, below = self._first(sql, floor)
        pairs = self._first("SELECT COUNT(*) FROM coactivation")[0]
        mean = INITIAL_SALIENCE if mean is None else mean
        return SalienceSummary(notes=notes, mean=mean, below=below or 0, pairs=pairs)


class StatsTables:
    """The tables as one connection sees them."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.nodes = NodeRows(connection)
        self.receipts = ReceiptRows(connection)
        self.queue = QueueRows(connection)
        self.ledgers = LedgerRows(connection)
        self.questions = QuestionRows(connection)


class StatsStore(LearningDatabase):
    """The statistics; `reading` uses the second connection, `remembered` has all questions in memory."""

    layout = Layout(TABLES, upgrade, set_aside=SET_ASIDE)

    def __init__(self, path: Path, now: datetime) -> None:
        super().__init__(path, now)
        empty = apsw.Connection(":memory:")
        empty.execute(TABLES)
        self.remembered = QuestionMatrix()
        #: The last committed state, for one reader at a time.
        self.reading = StatsTables(empty)
        #: The state inside the open transaction.
        self.writing = self.reading

    def carry(self, command: CarryLearned) -> Carried:
        """Merge carried rows, inside a transaction."""
        return RowMerger(self._writer, CARRIED[command.table], dry_run=command.dry_run).merge(command.rows)

    def publish(self) -> None:
        """Have `remembered` agree with what is stored, outside transactions; the writing thread calls it."""
        try:
            self.writing.questions.publish(self.remembered)
        except DatabaseFailed as failure:
            self.log.error("questions are loaded again", reason=str(failure))
            self.remembered.begin(None, 0)

    def _connect(self, now: datetime) -> None:
        super()._connect(now)
        self.writing, self.reading = StatsTables(self._writer), StatsTables(self._reader)
