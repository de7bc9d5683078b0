"""Tables of `stats.db` (memory spec, section 5), and how older files get the columns they lack.

`extracted_entities` is beyond the specification: without it a machine's entities of the current marker could
not be told from a person's, and a rewritten note would keep those of its old text. So is `applied_lessons`:
it lets feedback be repeated when the process ended before all its effects were stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import apsw
from attrs import frozen

from lithos.stores.database import add_missing_columns


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
        "terrace_reached": _COUNT, "agent_id": "TEXT", "task_id": "TEXT",
    }),
    "task_consolidation_log": _Table({"task_id": "TEXT PRIMARY KEY", "consolidated_at": "TEXT"}),
    "consolidation_edge_ops": _Table(
        {"task_id": _TEXT, "from_id": _TEXT, "to_id": _TEXT, "applied_at": "TEXT"},
        "task_id, from_id, to_id",
    ),
    "consolidation_salience_ops": _Table(
        {"task_id": _TEXT, "node_id": _TEXT, "applied_at": "TEXT"}, "task_id, node_id"
    ),
    "llm_budget": _Table(
        {"day": "TEXT PRIMARY KEY", "tokens_spent": _COUNT, "calls_made": _COUNT, "updated_at": "TEXT"}
    ),
    "extracted_entities": _Table({"node_id": "TEXT PRIMARY KEY", "digest": _TEXT}),
    "applied_lessons": _Table({"id": "TEXT PRIMARY KEY"}),
    "edge_inference_log": _Table(
        {
            "node_id": _TEXT, "doc_version": "INTEGER NOT NULL", "inference_version": _TEXT,
            "model": "TEXT", "edges_written": _COUNT, "inferred_at": "TEXT",
        },
        "node_id, doc_version, inference_version",
    ),
}  # fmt: skip

TABLES: Final = "\n".join(table.make(name) for name, table in _TABLES.items())
_INDEXES: Final = """
CREATE INDEX IF NOT EXISTS coactivation_b ON coactivation(node_id_b);
CREATE INDEX IF NOT EXISTS receipts_task ON receipts(task_id, agent_id) WHERE task_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS enrich_waiting ON enrich_queue(id) WHERE processed_at IS NULL;
CREATE INDEX IF NOT EXISTS enrich_waiting_notes ON enrich_queue(node_id, task_id) WHERE processed_at IS NULL;
"""


def upgrade(connection: apsw.Connection) -> None:
    """Give an older file what it lacks, inside a transaction."""
    add_missing_columns(connection, {name: table.columns for name, table in _TABLES.items()})
    connection.execute(_INDEXES)
