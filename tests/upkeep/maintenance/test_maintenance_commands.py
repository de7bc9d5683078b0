"""Commands `lithos reindex`, `lithos reconcile` and `lithos extract-entities`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

import lithos.upkeep.maintenance.maintenance
from lithos.kernel.databases.lock import OwnerLock
from lithos.kernel.parts import utc_now
from lithos.memory.model.memory import ApplyFeedback, AskedQuestion, NodeStats
from lithos.memory.model.questions import QuestionFilter
from lithos.memory.rows.forget_orders import ForgetOrders
from lithos.memory.rows.stats import StatsStore
from lithos.notes.model.entities import MARKER
from tests.app.program import Program, make_program
from tests.e2e.vault import snapshot
from tests.servers import put_note

NAMES = "By [[Diego Ongaro]], who wrote about [[Raft]].\n"
CURATED = "---\ntitle: Kept\nentities: [My Choice]\n---\nBy [[Somebody]].\n"
MUTATING = [
    ["reindex"],
    ["reindex", "--clear"],
    ["reconcile"],
    ["reconcile", "--scope", "graph"],
    ["extract-entities"],
]


@pytest.fixture
def program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Program]:
    put_note(tmp_path, "raft.md", NAMES)
    put_note(tmp_path, "kept.md", CURATED)
    yield from make_program(tmp_path, capsys, monkeypatch)


def put_stats(data: Path, *rows: NodeStats) -> None:
    store = StatsStore.open(data / ".lithos" / "stats.db", utc_now())
    with store.transaction():
        store.writing.nodes.put(rows)
    store.close()


def test_reindex_counts_indexed_notes_and_names_failed_notes(program: Program) -> None:
    put_note(program.data, "binary.md", b"\x00")
    for arguments in ([], ["--clear"], ["--force"], ["--no-clear"]):
        done = program.run("reindex", *arguments)
        lines = ["Found 3 markdown files", "Indexed 2 documents", "Total chunks: 2"]
        assert done.out.splitlines() == [*lines, "Graph nodes: 4", "Graph edges: 3"]
        assert done.err.startswith("Errors: 1\n  binary.md: ")
        assert done.code == 0
    answer = program.run("reindex", "--json").answer
    assert (answer["found"], answer["indexed"], answer["errors"], answer["chunks"]) == (3, 2, 1, 2)


def test_each_reindex_is_journalled_only_once(program: Program) -> None:
    """Behaviour 405."""
    for arguments in ([], ["--clear"], []):
        assert program.run("reindex", *arguments).code == 0
    with closing(sqlite3.connect(program.data / ".lithos" / "coordination.db")) as connection:
        rows = connection.execute("SELECT payload FROM events WHERE type='reindex_complete'").fetchall()
    assert [json.loads(row[0]) for row in rows] == [{"documents": 2, "chunks": 2}] * 3


def test_clear_option_begins_with_empty_indexes(program: Program) -> None:
    program.run("reindex")
    marker = program.data / ".tantivy" / "left by hand"
    for option, stays in (("--no-clear", True), ("--clear", False)):
        marker.write_text("x")
        assert program.run("reindex", option).code == 0
        assert marker.exists() is stays


def test_reconcile_prints_one_envelope_per_chosen_scope(program: Program) -> None:
    """Behaviour 162."""
    looked = program.run("reconcile", "--dry-run", "--json-output").answer
    assert list(looked) == ["scope", "dry_run", "results"]
    assert [each["scope"] for each in looked["results"]] == ["indices", "graph", "provenance_projection"]
    assert not (program.data / ".lithos").exists()
    one = program.run("reconcile", "-s", "graph", "--json")
    assert (one.code, one.answer["scope"], one.answer["status"]) == (0, "graph", "noop")
    assert program.run("reconcile", "-s", "indices").out == (
        "indices: ok, 2 notes checked\n"
        "  schema_mismatch: 1 (index fulltext, detail it has no format marker)\n"
        "  doc_set_mismatch: 1 (index vectors, missing 2, surplus 0)\n"
    )
    assert [each["status"] for each in program.run("reconcile", "--json").answer["results"]] == ["noop"] * 3


def test_reconcile_exits_with_1_when_a_scope_fails(program: Program) -> None:
    program.run("reindex")
    (program.data / ".lithos" / "edges.db").write_bytes(b"no database")
    done = program.run("reconcile", "--dry-run", "-s", "provenance_projection")
    assert done.code == 1
    assert done.err.startswith("  projection_apply_failed: ")
    assert (program.data / ".lithos" / "edges.db").read_bytes() == b"no database"


def put_questions(data: Path) -> None:
    """Store three questions: two by ann about notes a and b in 2026, and one by bob about note b in 2027."""
    store = StatsStore.open(data / ".lithos" / "stats.db", utc_now())
    with store.transaction():
        for text, agent, cited, year in (("one", "ann", ("a", "b"), 2026), ("two", "bob", ("b",), 2027)):
            question = AskedQuestion(text=text, digest=text, agent_id=agent)
            taught = ApplyFeedback(task_id="t", cited=cited, question=question, sketches={"b": b"x"})
            store.writing.questions.apply(taught, 100, datetime(year, 1, 1, tzinfo=UTC))
    store.close()


def questions(data: Path) -> list[tuple[str, str]]:
    store = StatsStore.open(data / ".lithos" / "stats.db", utc_now())
    rows = store.reading.questions
    found = [(each.note_id, each.question) for note in rows.notes() for each in rows.of_note(note, 9)]
    store.close()
    return sorted(found)


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--note", "b"], [("a", "one")]),
        (["--agent", "ann"], [("b", "two")]),
        (["--agent", "ann", "--note", "b"], [("a", "one"), ("b", "two")]),
        (["--since", "2026-06-01T00:00:00Z"], [("a", "one"), ("b", "one")]),
        (["--until", "2026-06-01"], [("b", "two")]),
        (["--since", "2000-01-01"], []),
        (["--agent", "nobody"], [("a", "one"), ("b", "one"), ("b", "two")]),
    ],
)
def test_questions_are_deleted_by_note_agent_and_time(
    program: Program, options: list[str], left: list[tuple[str, str]]
) -> None:
    """behaviour 268"""
    put_questions(program.data)
    before = snapshot(program.data)
    looked = program.run("reconcile", "--forget-questions", *options, "--dry-run", "--json").answer
    assert snapshot(program.data) == before
    assert looked == {"dry_run": True, "questions": 3 - len(left), "forgotten": False}
    done = program.run("reconcile", "--forget-questions", *options)
    assert (done.code, done.out) == (0, f"Forgot {3 - len(left)} questions\n")
    assert questions(program.data) == left
    again = program.run("reconcile", "--forget-questions", *options, "--json").answer
    assert again == {"dry_run": False, "questions": 0, "forgotten": True}


def test_question_deletion_needs_a_filter_and_creates_no_database(program: Program) -> None:
    done = program.run("reconcile", "--forget-questions")
    assert done.code == 2
    assert "--since 2000-01-01" in done.err
    done = program.run("reconcile", "--note", "a")
    assert done.code == 2
    assert "--forget-questions" in done.err
    assert program.run("reconcile", "--forget-questions", "--note", "a").out == "Forgot 0 questions\n"
    assert not (program.data / ".lithos" / "stats.db").exists()


def test_old_statistics_file_contains_no_questions(program: Program) -> None:
    path = program.data / ".lithos" / "stats.db"
    path.parent.mkdir()
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE node_stats(node_id TEXT PRIMARY KEY, salience REAL)")
    connection.close()
    options = ["reconcile", "--forget-questions", "--note", "a", "--json"]
    assert program.run(*options, "--dry-run").answer["questions"] == 0
    assert program.run(*options).answer["questions"] == 0


def test_deletion_request_is_kept_until_a_server_executes_it(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_questions(program.data)
    monkeypatch.setattr(lithos.upkeep.maintenance.maintenance, "SERVER_BOUND", 0.2)
    lock = OwnerLock(program.data / ".lithos" / "lock")
    lock.acquire("2026-01-01T00:00:00+00:00")
    try:
        done = program.run("reconcile", "--forget-questions", "--note", "b", "--json")
        assert done.code == 1
        assert "the next" not in done.err
        assert "at the server's next check or start" in done.err
        assert '"forgotten": false' in done.out or '"forgotten":false' in done.out
    finally:
        lock.release()
    assert len(questions(program.data)) == 3
    orders = ForgetOrders(program.data / ".lithos")
    (name,) = orders.waiting()
    assert orders.read(name) == QuestionFilter(note_ids=("b",))
    (program.data / ".lithos" / name).write_text("[1")
    assert orders.read(name) is None


def test_entities_are_extracted_except_for_curated_notes(program: Program) -> None:
    """Behaviour 158."""
    before = snapshot(program.data)
    looked = program.run("extract-entities", "--dry-run", "--json").answer
    assert snapshot(program.data) == before
    assert [(each["path"], each["entities"]) for each in looked["notes"]] == [
        ("raft.md", ["Diego Ongaro", "Raft"])
    ]
    files = snapshot(program.data / "knowledge")
    done = program.run("extract-entities")
    assert done.out == "raft.md: Diego Ongaro, Raft\nChanged the entities of 1 of 2 notes\n"
    assert snapshot(program.data / "knowledge") == files
    for arguments in ([], ["--dry-run"]):
        assert program.run("extract-entities", *arguments, "--json").answer["changed"] == 0
    assert program.run("reconcile", "--scope", "indices", "--json").answer["status"] == "noop"


def test_entities_are_written_into_note_files_on_request(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = program.run("extract-entities", "--force")
    assert (refused.code, "lcma.write_entities is false" in refused.err) == (1, True)
    monkeypatch.setenv("LITHOS_LCMA__WRITE_ENTITIES", "true")
    assert program.run("extract-entities", "--json").answer["changed"] == 1
    assert f"entities_extractor: {MARKER}" in (program.data / "knowledge" / "raft.md").read_text()
    assert (program.data / "knowledge" / "kept.md").read_text() == CURATED
    assert program.run("extract-entities", "--json").answer["changed"] == 0


def test_force_option_also_extracts_from_curated_notes(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITHOS_LCMA__WRITE_ENTITIES", "true")
    answer = program.run("extract-entities", "--force", "--json").answer
    assert [(each["before"], each["entities"]) for each in answer["notes"]] == [
        (["My Choice"], ["Somebody"]),
        ([], ["Diego Ongaro", "Raft"]),
    ]


def test_changing_commands_name_the_owner_and_exit_with_4(program: Program) -> None:
    """Behaviour 197: commands that only read work while another process owns the directory."""
    lock = OwnerLock(program.data / ".lithos" / "lock")
    lock.acquire("2026-01-01T00:00:00+00:00")
    try:
        before = snapshot(program.data)
        for arguments in MUTATING:
            done = program.run(*arguments)
            assert (done.code, done.out) == (4, ""), arguments
            assert "Another process uses the data directory: process" in done.err
            assert "2026-01-01T00:00:00+00:00" in done.err
        for arguments in (["reconcile"], ["extract-entities"]):
            assert program.run(*arguments, "--dry-run", "--json").code == 0, arguments
        assert snapshot(program.data) == before
    finally:
        lock.release()


def test_commands_create_nothing_when_no_notes_exist(program: Program) -> None:
    program.data = program.data / "typo"
    for arguments in [*MUTATING, ["reconcile", "--dry-run"], ["extract-entities", "--dry-run"]]:
        done = program.run(*arguments)
        assert (done.code, done.out) == (1, ""), arguments
        assert str(program.data) in done.err
    assert not program.data.exists()


@pytest.mark.parametrize("arguments", [["reconcile", "--scope", "notes"], ["reindex", "--dry-run"]])
def test_contradictory_arguments_are_a_usage_error(program: Program, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.run(*arguments)
    assert ended.value.code == 2
