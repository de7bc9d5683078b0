"""`stats.db`: retrieval data, and damaged or older files."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import apsw
import attrs
import pytest

from lithos.memory.model.memory import EnrichTrigger, FinalNode, NodeStats, Receipt, SurfacedConflict
from lithos.memory.rows.stats import StatsStore
from tests.fakes import START

LATER = START + timedelta(minutes=1)
RECEIPT = Receipt(
    id="r1",
    ts=START,
    query="wie, „so“?",
    limit=5,
    namespace_filter=("n", "m"),
    scouts_fired=("lexical", "vector"),
    candidates_considered=7,
    final_nodes=(FinalNode("a", ("because",), ("lexical",)), FinalNode("b")),
    conflicts_surfaced=(
        SurfacedConflict("e", "a", "b", "accepted_dual"),
        SurfacedConflict("f", "b", "c", None),
    ),
    surface_conflicts=True,
    temperature=0.25,
    terrace_reached=0,
    agent_id="ann",
    task_id="t",
)


@pytest.fixture
def store(tmp_path):
    store = StatsStore.open(tmp_path / "sub" / "stats.db", START)
    yield store
    store.close()


def raw(path, sql):
    connection = apsw.Connection(str(path))
    rows = connection.execute(sql).fetchall()
    connection.close()
    return rows


def test_statistics_file_is_created_by_the_first_write(store, tmp_path):
    tables = store.reading
    assert (tables.nodes.all(), tables.receipts.get("r1"), tables.queue.length()) == ([], None, 0)
    assert list(tmp_path.rglob("*.db*")) == []
    with store.transaction():
        store.writing.receipts.add(RECEIPT)
        assert store.reading.receipts.get("r1") is None
    assert store.reading.receipts.get("r1") == RECEIPT
    assert (tmp_path / "sub" / "stats.db").exists()


def test_receipt_is_stored_with_the_specified_column_names(store, tmp_path):
    """behaviour 141"""
    bare = Receipt(id="r2", ts=LATER, query="", limit=0)
    with store.transaction():
        store.writing.receipts.add(RECEIPT)
        store.writing.receipts.add(bare)
    assert store.reading.receipts.get("r2") == bare
    (row,) = raw(
        tmp_path / "sub" / "stats.db",
        'SELECT ts, "limit", namespace_filter, final_nodes, conflicts_surfaced, surface_conflicts,'
        " terrace_reached FROM receipts WHERE id='r1'",
    )
    assert row == (
        "2026-01-02T03:04:05.000006+00:00", 5, '["n", "m"]',
        '[{"id": "a", "reasons": ["because"], "scouts": ["lexical"]},'
        ' {"id": "b", "reasons": [], "scouts": []}]',
        '[{"edge_id": "e", "from_id": "a", "to_id": "b", "conflict_state": "accepted_dual"},'
        ' {"edge_id": "f", "from_id": "b", "to_id": "c", "conflict_state": null}]',
        1, 0,
    )  # fmt: skip


def test_newest_receipt_is_found_by_task_and_agent(store):
    """behaviour 151"""
    with store.transaction():
        for number, (agent, task, at) in enumerate(
            [
                ("ann", "t", LATER),
                ("ann", "t", START),
                ("bob", "t", LATER),
                ("ann", "u", LATER),
                (None, None, LATER),
            ]
        ):
            store.writing.receipts.add(
                attrs.evolve(RECEIPT, id=f"r{number}", agent_id=agent, task_id=task, ts=at)
            )
    newest = store.reading.receipts.newest
    assert newest("t", "ann").id == "r0"
    assert newest("t", "bob").id == "r2"
    assert newest("t", "eve") is None


def test_retrievals_are_counted_per_note(store):
    with store.transaction():
        store.writing.nodes.put([NodeStats(node_id="b", retrieval_count=3, cited_count=2)])
        store.writing.nodes.count_retrieval(["c", "a", "b"], START)
        store.writing.nodes.count_retrieval(["b", "a"], LATER)
        store.writing.nodes.count_retrieval(["d"], LATER)
    nodes = store.reading.nodes
    assert nodes.get(["b", "c", "unknown"]) == {
        "b": NodeStats(node_id="b", retrieval_count=5, cited_count=2, last_retrieved_at=LATER),
        "c": NodeStats(node_id="c", retrieval_count=1, last_retrieved_at=START),
    }
    assert [stats.node_id for stats in nodes.all()] == ["a", "b", "c", "d"]


def trigger(node, kind="note.updated"):
    return EnrichTrigger(trigger_type=kind, node_id=node)


def test_claimed_jobs_are_grouped_retried_and_finally_abandoned(store):
    """behaviour 156"""
    with store.transaction():
        queue = store.writing.queue
        queue.add([trigger("a", "note.created"), trigger("t"), trigger("a"), trigger("b")], START)
        first = queue.claim(2)
        assert [(job.node_id, job.rows, job.attempts) for job in first] == [
            ("a", (1, 3), 1), ("t", (2,), 1), ("b", (4,), 1),
        ]  # fmt: skip
        assert first[0].triggers == {"note.created", "note.updated"}
        assert {job.waiting_since for job in first} == {START}
        queue.finish([1, 3], LATER)
        assert [(job.rows, job.attempts) for job in queue.claim(2, after=2)] == [((4,), 2)]
        assert [(job.rows, job.attempts) for job in queue.claim(2, most=5)] == [((2,), 2)]
        assert queue.claim(2) == []
        assert queue.length() == 2  # abandoned jobs remain stored
        queue.drop_processed(LATER)
        queue.drop_processed(LATER + timedelta(seconds=1))
    assert store.reading.queue.length() == 2


def test_failed_part_of_a_batch_is_rolled_back_alone(store):
    with store.transaction():
        store.writing.queue.add([trigger("a")], START)
        with suppress(ZeroDivisionError), store.part():
            store.writing.queue.add([trigger("b")], START)
            raise ZeroDivisionError
        assert store.is_in_transaction
    assert not store.is_in_transaction
    assert store.reading.queue.length() == 1


def test_older_file_gets_missing_columns_and_keeps_its_rows(tmp_path):
    """behaviour 156"""
    path = tmp_path / "stats.db"
    raw(
        path,
        "CREATE TABLE enrich_queue(id INTEGER PRIMARY KEY, trigger_type TEXT NOT NULL, node_id TEXT,"
        " task_id TEXT, triggered_at TEXT NOT NULL, processed_at TEXT);"
        "INSERT INTO enrich_queue VALUES(7,'note.updated','a',NULL,'2026-01-01T00:00:00Z',NULL),"
        "(8,'task.completed',NULL,'t','2026-01-01T00:00:00Z',NULL);"
        "CREATE TABLE node_stats(node_id TEXT PRIMARY KEY, salience REAL, retrieval_count INTEGER);"
        "INSERT INTO node_stats VALUES('a',0.7,NULL),('b',NULL,4);"
        "CREATE TABLE receipts(id TEXT PRIMARY KEY, query TEXT);"
        "INSERT INTO receipts VALUES('old','what');",
    )
    store = StatsStore.open(path, START)
    try:
        assert store.reading.nodes.all() == [
            NodeStats(node_id="a"),
            NodeStats(node_id="b", retrieval_count=4),
        ]
        assert store.reading.receipts.get("old").query == "what"
        assert store.reading.queue.length() == 1  # jobs of tasks are not counted as waiting
        with store.transaction():
            (job,) = store.writing.queue.claim(3)
            assert (job.rows, job.node_id, job.attempts) == ((7,), "a", 1)
            store.writing.nodes.count_retrieval(["a", "b"], START)
            store.writing.receipts.add(RECEIPT)
        assert store.reading.nodes.get(["a"])["a"].retrieval_count == 1
        assert store.reading.receipts.newest("t", "ann") == RECEIPT
    finally:
        store.close()
    assert raw(path, "SELECT attempts FROM enrich_queue") == [(1,), (0,)]
    assert raw(path, "SELECT salience FROM node_stats") == [(0.7,), (None,)]


@pytest.mark.parametrize("junk", ["nonsense", "[1]", '{"a": 1}', '[{"reasons": "x"}]', "", "NaN"])
def test_unexpected_values_in_a_receipt_cause_no_error(tmp_path, junk):
    path = tmp_path / "stats.db"
    StatsStore.open(path, START).close()
    store = StatsStore.open(path, START)
    with store.transaction():
        store.writing.receipts.add(RECEIPT)
    store.close()
    raw(path, f"UPDATE receipts SET ts='{junk}', final_nodes='{junk}', conflicts_surfaced='{junk}'")
    store = StatsStore.open(path, START)
    found = store.reading.receipts.get("r1")
    store.close()
    assert (found.query, found.final_nodes, found.conflicts_surfaced) == (RECEIPT.query, (), ())
