"""Data directories in the format that upstream Lithos 0.2 to 0.6 creates. They are built with SQL.

`python -m tests.upstream DIR [SHAPE]` creates such a directory.

Tables and columns follow docs/spec/coordination.md §1 and docs/spec/memory.md §5. They have the shapes of
older files that these sections describe, and additional unknown columns and tables. Nothing is copied from
upstream.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

RAFT = "11111111-1111-4111-8111-111111111111"
PAXOS = "22222222-2222-4222-8222-222222222222"
GONE = "33333333-3333-4333-8333-333333333333"
DONE = "aaaaaaaa-0000-4000-8000-000000000001"
OPEN = "aaaaaaaa-0000-4000-8000-000000000002"
GATE = "aaaaaaaa-0000-4000-8000-000000000003"
EPIC = "aaaaaaaa-0000-4000-8000-000000000004"
CANCELLED = "aaaaaaaa-0000-4000-8000-000000000005"
FINDING = "bbbbbbbb-0000-4000-8000-000000000001"
EDGE = "edge_0123456789ab"
RECEIPT = "rcpt_0123456789ab"
#: Times as version 0.4 writes them, and as the defaults of SQLite write them in older files.
AT = "2025-01-02T03:04:05.000006+00:00"
OLD_AT = "2025-01-02 03:04:05"
NEVER = "2999-01-01T00:00:00+00:00"

NOTES: Final[Mapping[str, str]] = {
    "raft.md": (
        f"---\nid: {RAFT}\ntitle: Raft\nauthor: ada\ncreated_at: '{AT}'\nupdated_at: '{AT}'\n"
        "tags: [consensus]\n"
        "confidence: 0.9\nowner_key: 007  # theirs\nsource: aaaaaaaa-0000-4000-8000-000000000001\n---\n\n"
        "# Raft\n\nA majority commits. See [[Paxos]]. zanzibar\n"
    ),
    "deep/paxos.md": (
        f"---\r\nid: {PAXOS}\r\ntitle: Paxos\r\nauthor: bob\r\nderived_from_ids: [{RAFT}]\r\n---\r\n\r\n"
        "# Paxos\r\n\r\nTwo phases.\r\n"
    ),
    "old/mapping.md": (
        "---\ntitle: Older\ncreated: 2024-05-06\nsource: {task: t0, derived_from: ["
        + RAFT
        + "]}\n---\n\n# Older\n"
    ),
    "plain.md": "No frontmatter at all, quokka.\n",
}

Rows = Mapping[str, Sequence[Mapping[str, Any]]]

_AGENTS = (
    "id TEXT PRIMARY KEY, name TEXT, type TEXT, first_seen_at TIMESTAMP,"
    " last_seen_at TIMESTAMP, metadata JSON"
)
_CLAIMS = (
    "id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, agent TEXT NOT NULL, aspect TEXT NOT NULL,"
    " claimed_at TIMESTAMP, expires_at TIMESTAMP NOT NULL"
)
_TASKS = (
    "id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT, status TEXT DEFAULT 'open',"
    " created_by TEXT NOT NULL, created_at TIMESTAMP, {resolved} TIMESTAMP, tags JSON"
)
_REFERENCE = "FOREIGN KEY(task_id) REFERENCES tasks(id), UNIQUE(task_id, aspect)"
_FINDINGS = (
    "id TEXT PRIMARY KEY, task_id TEXT NOT NULL, agent TEXT NOT NULL, summary TEXT NOT NULL,"
    " knowledge_id TEXT, created_at TIMESTAMP"
)
_ACCESS = (
    "id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT DEFAULT 'unknown', doc_id TEXT, operation TEXT,"
    " timestamp TIMESTAMP"
)

#: Columns of each table and shape. `theirs` are columns that only upstream uses.
COORDINATION: Final[Mapping[str, Mapping[str, str]]] = {
    "0.4": {
        "agents": f"{_AGENTS}, theirs TEXT",
        "tasks": _TASKS.format(resolved="resolved_at")
        + ", task_type TEXT NOT NULL DEFAULT 'task', outcome TEXT, metadata JSON, theirs TEXT DEFAULT 't',"
        " FOREIGN KEY(created_by) REFERENCES agents(id) ON DELETE CASCADE",
        "claims": f"{_CLAIMS}, theirs TEXT, {_REFERENCE}",
        "findings": f"{_FINDINGS}, theirs BLOB",
        "access_log": f"{_ACCESS}, theirs TEXT",
        "task_edges": "id INTEGER PRIMARY KEY, from_task_id TEXT, to_task_id TEXT, type TEXT, metadata JSON,"
        " created_by TEXT REFERENCES agents(id), created_at TIMESTAMP, theirs TEXT,"
        " UNIQUE(from_task_id, to_task_id, type)",
        "their_table": "a TEXT, b BLOB",
    },
    "0.3": {
        "agents": _AGENTS,
        "tasks": _TASKS.format(resolved="completed_at") + ", metadata JSON",
        "claims": f"{_CLAIMS}, {_REFERENCE}",
        "findings": _FINDINGS,
        "access_log": _ACCESS,
    },
    "0.2": {
        "agents": "id TEXT PRIMARY KEY, first_seen_at TIMESTAMP, last_seen_at TIMESTAMP",
        "tasks": _TASKS.format(resolved="completed_at"),
        "claims": f"{_CLAIMS}, {_REFERENCE}",
        "findings": _FINDINGS.replace(" knowledge_id TEXT,", ""),
        "access_log": _ACCESS,
    },
}
EDGES: Final = {
    "edges": "edge_id TEXT PRIMARY KEY, from_id TEXT NOT NULL, to_id TEXT NOT NULL, type TEXT NOT NULL,"
    " weight REAL DEFAULT 1.0, namespace TEXT NOT NULL, created_at TEXT, updated_at TEXT,"
    " provenance_actor TEXT, provenance_type TEXT, evidence TEXT, conflict_state TEXT, theirs TEXT,"
    " UNIQUE(from_id, to_id, type, namespace)",
    "their_edges": "x INTEGER",
}
STATS: Final = {
    "node_stats": "node_id TEXT PRIMARY KEY, salience REAL, retrieval_count INTEGER, last_retrieved_at TEXT,"
    " last_used_at TEXT, ignored_count INTEGER, misleading_count INTEGER, decay_rate REAL,"
    " spaced_rep_strength REAL, cited_count INTEGER, last_decay_applied_at TEXT, theirs TEXT",
    "coactivation": "node_id_a TEXT, node_id_b TEXT, namespace TEXT, count INTEGER, last_at TEXT,"
    " theirs TEXT, PRIMARY KEY(node_id_a, node_id_b, namespace)",
    "enrich_queue": "id INTEGER PRIMARY KEY AUTOINCREMENT, trigger_type TEXT, node_id TEXT, task_id TEXT,"
    " triggered_at TEXT, processed_at TEXT, attempts INTEGER",
    "working_memory": "task_id TEXT, node_id TEXT, activation_count INTEGER, first_seen_at TEXT,"
    " last_seen_at TEXT, last_receipt_id TEXT, PRIMARY KEY(task_id, node_id)",
    "receipts": 'id TEXT PRIMARY KEY, ts TEXT, query TEXT, "limit" INTEGER, namespace_filter TEXT,'
    " scouts_fired TEXT, candidates_considered INTEGER, final_nodes TEXT, conflicts_surfaced TEXT,"
    " surface_conflicts INTEGER, temperature REAL, terrace_reached INTEGER, agent_id TEXT,"
    " task_id TEXT, theirs TEXT",
    "task_consolidation_log": "task_id TEXT PRIMARY KEY, consolidated_at TEXT",
    "consolidation_edge_ops": "task_id TEXT, from_id TEXT, to_id TEXT, applied_at TEXT,"
    " PRIMARY KEY(task_id, from_id, to_id)",
    "consolidation_salience_ops": "task_id TEXT, node_id TEXT, applied_at TEXT,"
    " PRIMARY KEY(task_id, node_id)",
    "llm_budget": "day TEXT PRIMARY KEY, tokens_spent INTEGER, calls_made INTEGER, updated_at TEXT",
    "edge_inference_log": "node_id TEXT, doc_version INTEGER, inference_version TEXT, model TEXT,"
    " edges_written INTEGER, inferred_at TEXT, PRIMARY KEY(node_id, doc_version, inference_version)",
    "their_stats": "y TEXT",
}


def _task(task_id: str, title: str, status: str, at: str, **more: Any) -> dict[str, Any]:
    row = {"id": task_id, "title": title, "status": status, "created_by": "ada", "created_at": at}
    return row | {"description": f"About {title}", "tags": '["a", "b"]'} | more


def coordination_rows(shape: str) -> Rows:
    """Return the table rows of a shape. Times have the format of the shape."""
    at = AT if shape == "0.4" else OLD_AT
    resolved = "resolved_at" if shape == "0.4" else "completed_at"
    theirs = {"theirs": "x"} if shape == "0.4" else {}
    meta = {} if shape == "0.2" else {"metadata": '{"project": "p"}'}
    broken = {} if shape == "0.2" else {"metadata": "not json"}
    kinds = ("task", "task", "gate", "epic", "task")
    tasks = [
        _task(DONE, "First", "completed", at, **{resolved: at}, **meta),
        _task(OPEN, "Second", "open", at, **{resolved: None}, **broken),
        _task(GATE, "Gate", "open", at, **{resolved: None}, **meta),
        _task(EPIC, "Epic", "open", at, **{resolved: None}, **meta),
        _task(CANCELLED, "Fifth", "cancelled", at, **{resolved: at}, **meta),
    ]
    if shape == "0.4":
        tasks = [task | {"task_type": kind} | theirs for task, kind in zip(tasks, kinds, strict=True)]
        tasks[0]["outcome"] = "It went well."
        tasks[2]["metadata"] = '{"gate_type": "human"}'
    if shape == "0.3":
        tasks[1]["metadata"] = f'{{"depends_on": ["{EPIC}", "gone"]}}'
    agents: list[dict[str, Any]] = [
        {"id": "ada", "first_seen_at": at, "last_seen_at": at, **theirs},
        {"id": "idle", "first_seen_at": at, "last_seen_at": None, **theirs},
    ]
    if shape != "0.2":
        agents[0] |= {"name": "Ada", "type": "agent", "metadata": '{"k": 1}'}
    knowledge = {} if shape == "0.2" else {"knowledge_id": RAFT}
    rows: dict[str, Sequence[Mapping[str, Any]]] = {
        "agents": agents,
        "tasks": tasks,
        "claims": [
            {
                "id": 4,
                "task_id": OPEN,
                "agent": "ada",
                "aspect": "Work",
                "claimed_at": at,
                "expires_at": NEVER,
                **theirs,
            },
            {
                "id": 9,
                "task_id": OPEN,
                "agent": "bob",
                "aspect": "old",
                "claimed_at": at,
                "expires_at": at,
                **theirs,
            },
        ],
        "findings": [
            {
                "id": FINDING,
                "task_id": OPEN,
                "agent": "ada",
                "summary": "Seen.",
                "created_at": at,
                **knowledge,
            },
            {"id": "odd-id", "task_id": "no-such-task", "agent": "bob", "summary": "Lost?", "created_at": at},
        ],
        "access_log": [
            {"id": 3, "agent_id": "ada", "doc_id": RAFT, "operation": "read", "timestamp": at},
            {"id": 8, "agent_id": "unknown", "doc_id": GONE, "operation": "search_result", "timestamp": at},
        ],
    }
    if shape == "0.4":
        edge = {"metadata": '{"why": "x"}', "created_by": "nobody", "created_at": at, "theirs": "e"}
        rows["task_edges"] = [
            {"id": 2, "from_task_id": GATE, "to_task_id": OPEN, "type": "waits_on_gate", **edge},
            {"id": 5, "from_task_id": EPIC, "to_task_id": OPEN, "type": "parent_child", **edge},
            {"id": 6, "from_task_id": DONE, "to_task_id": OPEN, "type": "their_type", **edge},
        ]
        rows["their_table"] = [{"a": "kept", "b": b"\x00\xff"}]
    return rows


EDGE_ROWS: Final[Rows] = {
    "edges": [
        {
            "edge_id": EDGE, "from_id": RAFT, "to_id": PAXOS, "type": "supports", "weight": 0.7,
            "namespace": "default", "created_at": AT, "updated_at": AT, "provenance_actor": "ada",
            "provenance_type": "asserted",
            "evidence": '{"why": "both"}', "conflict_state": None, "theirs": "z",
        },
        {
            "edge_id": "edge_00000000beef", "from_id": RAFT, "to_id": GONE, "type": "contradicts",
            "weight": 1.0, "namespace": "default", "created_at": AT, "updated_at": AT,
            "conflict_state": "accepted_dual",
        },
    ],
    "their_edges": [{"x": 7}],
}  # fmt: skip
STATS_ROWS: Final[Rows] = {
    "node_stats": [
        {
            "node_id": RAFT, "salience": 0.83, "retrieval_count": 12, "last_retrieved_at": AT,
            "last_used_at": AT, "ignored_count": 1, "misleading_count": 2, "decay_rate": 0.1,
            "spaced_rep_strength": 0.15,
            "cited_count": 4, "last_decay_applied_at": AT, "theirs": "s",
        },
        {"node_id": PAXOS, "salience": None, "retrieval_count": None},
        {"node_id": GONE, "salience": 0.2},
    ],
    "coactivation": [
        {"node_id_a": RAFT, "node_id_b": PAXOS, "namespace": "default", "count": 3, "last_at": AT,
         "theirs": "c"}
    ],
    "enrich_queue": [
        {"id": 1, "trigger_type": "note.updated", "node_id": RAFT, "triggered_at": AT, "processed_at": AT,
         "attempts": 1},
    ],
    "working_memory": [
        {"task_id": OPEN, "node_id": RAFT, "activation_count": 2, "first_seen_at": AT, "last_seen_at": AT,
         "last_receipt_id": RECEIPT},
    ],
    "receipts": [
        {
            "id": RECEIPT, "ts": AT, "query": "consensus", "limit": 10, "namespace_filter": '["default"]',
            "scouts_fired": '["scout_lexical"]', "candidates_considered": 3,
            "final_nodes": f'[{{"id": "{RAFT}", "reasons": ["words"], "scouts": ["scout_lexical"]}}]',
            "conflicts_surfaced": "[]", "surface_conflicts": 0, "temperature": 0.5, "terrace_reached": 1,
            "agent_id": "ada", "task_id": OPEN, "theirs": "r",
        },
    ],
    "task_consolidation_log": [{"task_id": DONE, "consolidated_at": AT}],
    "consolidation_edge_ops": [{"task_id": DONE, "from_id": RAFT, "to_id": PAXOS, "applied_at": AT}],
    "consolidation_salience_ops": [{"task_id": DONE, "node_id": RAFT, "applied_at": AT}],
    "llm_budget": [{"day": "2025-01-02", "tokens_spent": 100, "calls_made": 2, "updated_at": AT}],
    "edge_inference_log": [
        {"node_id": RAFT, "doc_version": 1, "inference_version": "v1", "model": "m", "edges_written": 1,
         "inferred_at": AT},
    ],
    "their_stats": [{"y": "kept"}],
}  # fmt: skip


def build(data: Path, shape: str = "0.4") -> Path:
    """Create a data directory of a shape.

    Shape `0.4` has its database in `.lithos`, older shapes at the root.
    """
    for name, text in NOTES.items():
        path = data / "knowledge" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (data / ".lithos").mkdir(exist_ok=True)
    (data / ".chroma").mkdir(exist_ok=True)
    (data / ".chroma" / "chroma.sqlite3").write_bytes(b"vectors")
    (data / ".graph").mkdir(exist_ok=True)
    (data / ".graph" / "graph.pickle").write_bytes(b"\x80\x04never loaded")
    (data / "knowledge" / "picture.png").write_bytes(b"\x89PNG")
    database = coordination_path(data, shape)
    make(database, COORDINATION[shape], coordination_rows(shape))
    if shape == "0.4":
        make(data / ".lithos" / "edges.db", EDGES, EDGE_ROWS)
        make(data / ".lithos" / "stats.db", STATS, STATS_ROWS)
    return data


def as_0_6(data: Path) -> Path:
    """Turn a directory of version 0.4 into one of version 0.6, in which the agent `idle` is archived."""
    database = coordination_path(data, "0.4")
    run(database, "ALTER TABLE agents ADD COLUMN archived_at TIMESTAMP")
    run(database, "UPDATE agents SET archived_at='2026-01-02 03:04:05' WHERE id='idle'")
    return data


def coordination_path(data: Path, shape: str) -> Path:
    """Return the path of the database in which a shape stores tasks and claims."""
    return data / ".lithos" / "coordination.db" if shape == "0.4" else data / "coordination.db"


def make(path: Path, tables: Mapping[str, str], rows: Rows) -> None:
    """Create a database with tables and rows."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, columns in tables.items():
            connection.execute(f"CREATE TABLE {table}({columns})")
        for table, found in rows.items():
            for row in found:
                names = ",".join(f'"{name}"' for name in row)
                marks = ",".join("?" * len(row))
                connection.execute(f"INSERT INTO {table}({names}) VALUES({marks})", tuple(row.values()))


def run(path: Path, statement: str) -> None:
    """Run a statement that changes a database."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def dump(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return every table of a database as rows by column."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        return {
            name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")]
            for name in names
            if not name.startswith("sqlite_")
        }


if __name__ == "__main__":
    build(Path(sys.argv[1]), *sys.argv[2:3])
