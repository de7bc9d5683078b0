"""Index queries that find the dependents of a note. They do not scan rows of other notes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from lithos.events.model.agents import READ, AuditRow
from lithos.events.rows.store import CoordinationStore
from lithos.tasks.model.task import Finding, Task
from lithos.tasks.rows import board_rows
from lithos.tasks.rows.board_rows import ImpactRows
from lithos.tasks.rows.tasks import TaskRows

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CoordinationStore]:
    with closing(CoordinationStore.open(tmp_path / "coordination.db", NOW)) as store:
        yield store


def put(rows: TaskRows, name: str, metadata: object = None) -> None:
    rows.put_task(Task(id=name, title=name.upper(), created_by="a", created_at=NOW))
    if metadata is not None:
        text = metadata if isinstance(metadata, str) else json.dumps(metadata)
        rows.connection.execute("UPDATE tasks SET metadata=? WHERE id=?", (text, name))


def find(rows: TaskRows, task: str, note: str, minutes: int) -> None:
    rows.add_finding(
        Finding(
            id=f"{task}{minutes}",
            task_id=task,
            agent="a",
            summary="s",
            knowledge_id=note,
            created_at=NOW + minutes * MINUTE,
        )
    )


def test_tasks_are_ordered_by_their_newest_findings_and_citations(store: CoordinationStore) -> None:
    rows = store.written(TaskRows)
    for name in "abcd":
        put(rows, name)
    find(rows, "a", "n", 1)
    find(rows, "a", "n", 9)
    find(rows, "b", "n", 2)
    find(rows, "d", "other", 3)
    rows.impact.cite("b", "ann", ["n", "n", "m"], NOW + 8 * MINUTE)
    rows.impact.cite("c", "ann", ["n"], NOW + 3 * MINUTE)
    rows.impact.cite("c", "ben", ["n"], NOW + 7 * MINUTE)
    rows.impact.cite("gone", "ann", ["n"], NOW + 20 * MINUTE)
    found = rows.impact.tasks("n", 10)
    assert [(task.task_id, task.title, task.how, task.at) for task in found] == [
        ("a", "A", "finding", NOW + 9 * MINUTE),
        ("b", "B", "finding", NOW + 8 * MINUTE),
        ("c", "C", "cited", NOW + 7 * MINUTE),
    ]
    assert [task.task_id for task in rows.impact.tasks("n", 2)] == ["a"]
    assert rows.impact.tasks("none", 10) == []


def test_readers_of_a_note_are_counted_by_agent(store: CoordinationStore) -> None:
    store.add_audit(
        [
            AuditRow("a", "n", READ, NOW),
            AuditRow("b", "n", READ, NOW + MINUTE),
            AuditRow("a", "n", READ, NOW + 2 * MINUTE),
            AuditRow("c", "n", "search_result", NOW),
            AuditRow("c", "m", READ, NOW),
        ]
    )
    readers = store.rows(TaskRows).impact.readers("n", 10)
    assert [(reader.agent, reader.last_read_at, reader.reads) for reader in readers] == [
        ("a", NOW + 2 * MINUTE, 2),
        ("b", NOW + MINUTE, 1),
    ]
    assert len(store.rows(TaskRows).impact.readers("n", 1)) == 1


def test_open_tasks_with_a_metadata_mark_count_as_reverifications(store: CoordinationStore) -> None:
    """Metadata of older files may be invalid JSON. The index must accept it."""
    rows = store.written(TaskRows)
    put(rows, "yes", {"impact_of": "n"})
    put(rows, "other", {"impact_of": "m"})
    put(rows, "nested", {"k": {"impact_of": "n"}})
    put(rows, "malformed", '{"impact_of": "n"')
    put(rows, "nothing", {})
    put(rows, "closed", {"impact_of": "n"})
    rows.connection.execute("UPDATE tasks SET status='completed' WHERE id='closed'")
    assert rows.impact.reverification("n") == ["yes"]


@pytest.mark.parametrize("name", ["_FOUND", "_CITED", "_READERS", "_REVERIFICATION"])
def test_every_query_uses_an_index_on_the_note(store: CoordinationStore, name: str) -> None:
    sql = getattr(board_rows, name)
    values = ("n", 10)[: sql.count("?")]
    plan = [str(row[3]) for row in store._reader.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert not [step for step in plan if step.startswith("SCAN")], plan
    assert [step for step in plan if step.startswith("SEARCH") and "INDEX" in step], plan


def test_older_file_with_malformed_metadata_and_events_is_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "coordination.db"
    with closing(CoordinationStore.open(path, NOW)) as store:
        rows = store.written(TaskRows)
        put(rows, "t", '{"impact_of": "n"')
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(
            "DROP INDEX tasks_impact; DROP TABLE citations; DROP TABLE completions;"
            "DELETE FROM meta WHERE name='completions';"
            "CREATE INDEX access_log_reads ON access_log(doc_id) WHERE operation='read'"
        )
        events = (
            {"task_id": "t", "cited_nodes": '["n", 5, "m"]'}, {"task_id": "t", "cited_nodes": "null"},
            {"task_id": None, "cited_nodes": '["n"]'}, {"cited_nodes": "["}, {"task_id": "t"},
        )  # fmt: skip
        for seq, payload in enumerate((*map(json.dumps, events), "no JSON"), 1):
            connection.execute(
                "INSERT INTO events"
                " VALUES(?,'task.completed','a',?,'[]','2026-01-02T00:00:00.000000+00:00','')",
                (seq, payload),
            )
    for _ in range(2):
        with closing(CoordinationStore.open(path, NOW)) as store:
            impact = ImpactRows(store._reader)
            assert [task.how for task in impact.tasks("n", 10)] == ["cited"]
            assert [task.how for task in impact.tasks("m", 10)] == ["cited"]
            names = [row[0] for row in store._reader.execute("SELECT name FROM sqlite_master")]
            assert "access_log_reads" not in names
            assert {"tasks_impact", "access_log_readers"} <= set(names)
