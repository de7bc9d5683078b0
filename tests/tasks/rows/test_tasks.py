"""Task rows: their order and identity, and graphs that are larger than one SQL statement."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from attrs import evolve

from lithos.tasks.model.task import BLOCKS, PARENT_CHILD, WAITS_ON_GATE, Claim, Finding, Task, TaskEdge
from lithos.tasks.rows.task_tables import TASK_TABLES
from lithos.tasks.rows.tasks import TaskRows

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def rows() -> Iterator[TaskRows]:
    connection = apsw.Connection(":memory:")
    connection.execute(TASK_TABLES.create + TASK_TABLES.indexes)
    yield TaskRows(connection)
    connection.close()


def put(rows: TaskRows, name: str, **fields: Any) -> Task:
    task = Task(**{"id": name, "title": name, "created_by": "ann", "created_at": NOW} | fields)
    rows.put_task(task)
    return task


def relate(rows: TaskRows, source: str, target: str, kind: str = BLOCKS, **fields: Any) -> TaskEdge:
    edge = TaskEdge(
        **{"source": source, "target": target, "type": kind, "created_by": "ann", "created_at": NOW} | fields
    )
    rows.put_edge(edge)
    return edge


def test_task_is_read_back_unchanged(rows: TaskRows) -> None:
    """behaviour 51"""
    task = put(
        rows, "a", description="ä\n", status="cancelled", task_type="gate", tags=("x", "é"), outcome="",
        metadata={"k": [1, 1.5, None, {"x": True}]}, resolved_at=NOW + timedelta(microseconds=1),
    )  # fmt: skip
    assert rows.task("a") == task
    assert rows.task("b") is None


def test_tasks_are_listed_newest_first_with_ties_in_insertion_order(rows: TaskRows) -> None:
    """behaviour 100"""
    for name, minutes in (("z", 1), ("a", 0), ("m", 1), ("b", 2)):
        put(rows, name, created_at=NOW + timedelta(minutes=minutes))
    put(rows, "a", title="changed, and so written again")
    assert [task.id for task in rows.tasks()] == ["b", "m", "z", "a"]


def test_children_are_listed_oldest_first_with_ties_in_insertion_order(rows: TaskRows) -> None:
    """behaviour 124"""
    put(rows, "p")
    for name in ("z", "a", "m"):
        put(rows, name)
    put(rows, "old", created_at=NOW - timedelta(days=1))
    for name in ("m", "z", "old", "a"):
        relate(rows, "p", name, PARENT_CHILD)
    relate(rows, "p", "z", BLOCKS)
    assert [task.id for task in rows.children("p")] == ["old", "z", "a", "m"]


def test_task_update_keeps_creator_and_creation_time(rows: TaskRows) -> None:
    """behaviour 107"""
    task = put(rows, "a")
    rows.put_task(evolve(task, created_by="bob", created_at=NOW + timedelta(days=1), title="new"))
    assert rows.task("a") == evolve(task, title="new")


def test_repeated_edge_upsert_changes_only_the_metadata(rows: TaskRows) -> None:
    """behaviour 112"""
    first = relate(rows, "a", "b", metadata={"k": 1})
    relate(rows, "a", "b", metadata={"l": 2}, created_by="bob", created_at=NOW + timedelta(days=1))
    assert rows.edges_from("a") == [evolve(first, metadata={"l": 2})]
    assert rows.edges_to("b", (PARENT_CHILD,)) == []


def test_running_claim_ends_exactly_at_its_expiry(rows: TaskRows) -> None:
    """behaviour 96"""
    claim = Claim(task_id="a", agent="ann", aspect="x", expires_at=NOW, fence=1)
    later = Claim(task_id="b", agent="ann", aspect="x", expires_at=NOW + timedelta(hours=1), fence=2)
    for one in (claim, later):
        rows.put_claim(one, NOW - timedelta(hours=1))
    assert rows.active_claims(NOW - timedelta(microseconds=1)) == {"a": [claim], "b": [later]}
    assert rows.active_claims(NOW) == {"b": [later]}
    assert rows.active_claims(NOW, "a") == {}
    assert rows.active_claims(NOW, "b") == {"b": [later]}
    assert rows.claim("a", "x") == claim  # the expired claim is not deleted too early


def test_findings_with_equal_times_keep_their_order(rows: TaskRows) -> None:
    """behaviour 106"""
    for name in ("z", "a", "m"):
        rows.add_finding(
            Finding(id=name, task_id="t", agent="ann", summary="s", knowledge_id=None, created_at=NOW)
        )
    assert [finding.id for finding in rows.findings("t")] == ["z", "a", "m"]


def test_task_graph_may_be_larger_than_one_statement(rows: TaskRows) -> None:
    """behaviours 109, 111"""
    names = [f"t{number:04}" for number in range(1_300)]
    for name in names:
        put(rows, name)
    for source in names[:-1]:
        relate(rows, source, names[-1])
    relate(rows, names[1], names[0], WAITS_ON_GATE)
    graph = rows.graph_before([names[-1]])
    assert len(graph.holders(names[-1], NOW)) == 1_299
    assert graph.waits_for.keys() == {names[-1]}
    whole = rows.graph_before(names, transitively=True)
    assert whole.waits_for[names[0]] == [(names[1], WAITS_ON_GATE)]
    assert len(whole.tasks) == 1_300


def test_snapshot_is_consistent_during_concurrent_writes(tmp_path: Path) -> None:
    """behaviour 120: the edges and the statuses of a task list must come from the same moment."""
    writer = apsw.Connection(str(tmp_path / "tasks.db"))
    writer.execute("PRAGMA journal_mode=WAL").fetchall()
    writer.execute(TASK_TABLES.create + TASK_TABLES.indexes)
    put(TaskRows(writer), "a")
    reader = TaskRows(apsw.Connection(str(tmp_path / "tasks.db"), flags=apsw.SQLITE_OPEN_READONLY))
    with reader.snapshot():
        assert len(reader.tasks()) == 1
        put(TaskRows(writer), "b")
        assert len(reader.tasks()) == 1
    assert len(reader.tasks()) == 2
