"""Older `coordination.db` files, which are built by SQL and opened by the store and by a complete server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unicodedata import normalize

import apsw
import pytest

from lithos.events.rows.store import CoordinationCounts, CoordinationStore
from lithos.kernel.values.times import format_time, parse_time
from lithos.tasks.model.task import BLOCKS, Claim, Task, TaskEdge
from lithos.tasks.rows.tasks import TaskRows
from tests.fakes import START
from tests.servers import refusal, serving

#: Schema of versions before the task graph, with SQLite's own times, foreign keys and nullable columns.
OLD_SCHEMA = """
CREATE TABLE agents(
    id TEXT PRIMARY KEY, name TEXT, type TEXT, first_seen_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    last_seen_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, metadata JSON);
CREATE TABLE tasks(
    id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT, status TEXT DEFAULT 'open',
    created_by TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, completed_at TIMESTAMP,
    tags JSON, metadata JSON, FOREIGN KEY(created_by) REFERENCES agents(id));
CREATE TABLE claims(
    id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, agent TEXT NOT NULL, aspect TEXT NOT NULL,
    claimed_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, expires_at TIMESTAMP NOT NULL,
    FOREIGN KEY(task_id) REFERENCES tasks(id), UNIQUE(task_id, aspect));
CREATE TABLE findings(
    id TEXT PRIMARY KEY, task_id TEXT NOT NULL, agent TEXT NOT NULL, summary TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE access_log(
    id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT, doc_id TEXT NOT NULL, operation TEXT NOT NULL,
    timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
INSERT INTO agents(id) VALUES('ann');
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / ".lithos").mkdir()
    return tmp_path / ".lithos" / "coordination.db"


@contextmanager
def sql(path: Path) -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(str(path))) as connection:
        yield connection


def make_old(path: Path, *statements: str, schema: str = OLD_SCHEMA) -> None:
    with sql(path) as connection:
        connection.execute(schema)
        for statement in statements:
            connection.execute(statement)


def add_task(path: Path, task_id: str, metadata: Any = None, **fields: Any) -> None:
    row = {"id": task_id, "title": task_id.upper(), "created_by": "ann", "created_at": "2025-01-01 10:00:00"}
    row |= {"metadata": metadata if metadata is None or isinstance(metadata, str) else json.dumps(metadata)}
    row |= fields
    with sql(path) as connection:
        marks = ",".join("?" * len(row))
        connection.execute(f"INSERT INTO tasks({','.join(row)}) VALUES({marks})", tuple(row.values()))


@contextmanager
def opened(path: Path, later: timedelta = timedelta(0)) -> Iterator[TaskRows]:
    with closing(CoordinationStore.open(path, START + later)) as store:
        yield store.rows(TaskRows)


def dump(path: Path) -> dict[str, Any]:
    """Return schema and rows of all tables except the fence and event counters, which follow the clock."""
    with sql(path) as connection:
        tables = [
            str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        rows = {
            table: connection.execute(f"SELECT * FROM {table}").fetchall()
            for table in tables
            if table not in ("counters", "sqlite_sequence")
        }
        rows["meta"] = [row for row in rows.get("meta", []) if row[0] != "next_seq"]
        return rows | {"schema": connection.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()}


def pairs(edges: list[TaskEdge]) -> list[tuple[str, str, str]]:
    return [(edge.source, edge.target, edge.type) for edge in edges]


def test_completed_at_column_becomes_resolved_at(path: Path) -> None:
    """behaviour 126"""
    make_old(path)
    add_task(path, "done", status="completed", completed_at="2025-02-03 04:05:06")
    add_task(path, "open")
    with opened(path) as rows:
        done, still_open = rows.task("done"), rows.task("open")
        assert done is not None
        assert done.resolved_at is not None
        assert done.resolved_at.isoformat() == "2025-02-03T04:05:06+00:00"
        assert still_open is not None
        assert still_open.resolved_at is None
    with sql(path) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(tasks)")}
    assert "completed_at" not in columns


def test_empty_resolved_at_is_filled_and_completed_at_is_kept(path: Path) -> None:
    """behaviour 126"""
    make_old(path, "ALTER TABLE tasks ADD COLUMN resolved_at TIMESTAMP")
    add_task(path, "old", status="completed", completed_at="2025-02-03 04:05:06")
    add_task(
        path,
        "both",
        status="cancelled",
        completed_at="2025-02-03 04:05:06",
        resolved_at="2025-03-03T00:00:00Z",
    )
    with opened(path) as rows:
        found = {task.id: task.resolved_at for task in rows.tasks()}
        assert {key: value and value.isoformat() for key, value in found.items()} == {
            "old": "2025-02-03T04:05:06+00:00",
            "both": "2025-03-03T00:00:00+00:00",
        }
    with sql(path) as connection:
        assert connection.execute("SELECT COUNT(completed_at) FROM tasks").fetchall() == [(2,)]


def test_reopened_task_does_not_get_its_old_completion_time(path: Path) -> None:
    """behaviours 121, 126: the `completed_at` column still contains a value from before the reopening."""
    make_old(path, "ALTER TABLE tasks ADD COLUMN resolved_at TIMESTAMP")
    add_task(path, "old", status="completed", completed_at="2025-02-03 04:05:06")
    with opened(path):
        pass
    with sql(path) as connection:
        connection.execute("UPDATE tasks SET status='open', resolved_at=NULL")
    with opened(path) as rows:
        task = rows.task("old")
        assert task is not None
        assert task.resolved_at is None


@pytest.mark.parametrize("key", ["depends_on", "blocked_on"])
@pytest.mark.parametrize("form", ["text", "list"])
def test_dependencies_in_metadata_become_edges_only_once(path: Path, key: str, form: str) -> None:
    """behaviour 126"""
    make_old(path)
    add_task(path, "a", {"k": 1})
    add_task(path, "b", {key: "a" if form == "text" else ["a", "missing", "a", 7, None]})
    for _ in range(3):
        with opened(path) as rows:
            (edge,) = rows.edges_to("b")
            assert (edge.source, edge.target, edge.type) == ("a", "b", BLOCKS)
            assert edge.metadata == {"migrated_from": f"metadata.{key}"}
            assert (edge.created_by, edge.created_at) == ("migration", START)
            assert rows.edges_from("b") == rows.edges_to("a") == []
            assert [task.id for task in rows.tasks()] == ["b", "a"]
            kept = rows.task("b")
            assert kept is not None
            assert key in kept.metadata


def test_only_open_tasks_get_edges_including_edges_to_closed_tasks(path: Path) -> None:
    """behaviour 126"""
    make_old(path)
    add_task(path, "done", {"depends_on": ["gone"]}, status="completed")
    add_task(path, "gone", {"blocked_on": "done"}, status="cancelled")
    add_task(path, "open", {"depends_on": ["done", "gone"], "blocked_on": ["gone", "nowhere"]})
    with opened(path) as rows:
        assert rows.edges_to("done") == rows.edges_to("gone") == []
        assert pairs(rows.edges_to("open")) == [("done", "open", BLOCKS), ("gone", "open", BLOCKS)]
        graph = rows.graph_before(["open"], transitively=True)
        (blocker,) = graph.blockers("open", START)
        assert (blocker.kind, blocker.task_id) == ("blocker_unsatisfiable", "gone")


async def test_dependency_cycles_are_kept_and_shown_with_their_path(tmp_path: Path, path: Path) -> None:
    """behaviour 126"""
    make_old(path)
    for task_id, before in (("a", "c"), ("b", "a"), ("c", "b"), ("after", "a"), ("free", "missing")):
        add_task(path, task_id, {"depends_on": before})
    async with serving(tmp_path, settled=False) as lithos:
        blocked = (await lithos.call("lithos_task_blocked"))["tasks"]
        shown = {task["id"]: task["blockers"] for task in blocked}
        assert {key: [row["kind"] for row in rows] for key, rows in shown.items()} == {
            "a": ["cycle"], "b": ["cycle"], "c": ["cycle"], "after": ["task"],
        }  # fmt: skip
        (row,) = shown["a"]
        assert (row["task_id"], row["type"], row["status"]) == ("c", "blocks", "open")
        assert "a -> b -> c -> a" in row["message"]
        ready = (await lithos.call("lithos_task_ready"))["tasks"]
        assert [task["id"] for task in ready] == ["free"]
        # A person completes one task of the cycle, which breaks the cycle.
        answer = await lithos.call("lithos_task_complete", task_id="a", agent="ann")
        assert sorted(answer["unblocked"]) == ["after", "b"]


async def test_malformed_metadata_is_read_as_empty(tmp_path: Path, path: Path) -> None:
    """behaviour 126"""
    texts = ["{", "", "null", "[1]", '"text"', "{'a': 1}", '{"a": NaN}', "[" * 5000, None]
    make_old(path)
    for number, broken in enumerate(texts):
        add_task(path, f"t{number}", broken, tags=broken)
        with sql(path) as connection:
            connection.execute("INSERT INTO agents(id, metadata) VALUES(?, ?)", (f"a{number}", broken))
    async with serving(tmp_path, settled=False) as lithos:
        for number, broken in enumerate(texts):
            task, agent = {"task_id": f"t{number}"}, f"a{number}"
            assert (await lithos.call("lithos_task_get", **task))["task"]["metadata"] == {}, broken
            assert (await lithos.call("lithos_agent_info", id=agent))["metadata"] == {}, broken
            await lithos.call("lithos_task_update", **task, agent=agent, metadata={"k": 1})
            assert (await lithos.call("lithos_task_get", **task))["task"]["metadata"] == {"k": 1}, broken


@pytest.mark.parametrize("is_old", [True, False])
def test_upgraded_file_does_not_change_when_it_is_reopened(path: Path, is_old: bool) -> None:
    """behaviour 126"""
    if is_old:
        make_old(path)
        add_task(path, "a", status="completed", completed_at="2025-02-03 04:05:06")
        add_task(path, "b", {"depends_on": ["a", "c"]})
        add_task(path, "c", {"depends_on": ["b"]})
    with opened(path):
        pass
    first = dump(path)
    for days in (1, 2):
        with opened(path, timedelta(days=days)):
            pass
        assert dump(path) == first


def test_deleted_edges_are_not_created_again_at_the_next_startup(path: Path) -> None:
    """behaviour 126: dependencies are converted only when `task_type` is added."""
    make_old(path)
    add_task(path, "a")
    add_task(path, "b", {"depends_on": "a"})
    with opened(path):
        pass
    with sql(path) as connection:
        connection.execute("DELETE FROM task_edges")
    with opened(path) as rows:
        assert rows.edges_to("b") == []


def test_oldest_tables_get_all_missing_columns(path: Path) -> None:
    """behaviour 126"""
    make_old(
        path,
        "INSERT INTO tasks VALUES('t', 'T', '2025-01-01 00:00:00')",
        "INSERT INTO claims(task_id, agent, aspect, expires_at) VALUES('t', 'ann', 'code', '2099-01-01')",
        "INSERT INTO findings VALUES('f', 't', 'ann', 'found', '2025-01-01 00:00:00')",
        schema="""
        CREATE TABLE agents(id TEXT PRIMARY KEY, first_seen_at TEXT, last_seen_at TEXT);
        CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT, created_at TEXT);
        CREATE TABLE claims(task_id TEXT, agent TEXT, aspect TEXT, expires_at TEXT, UNIQUE(task_id, aspect));
        CREATE TABLE findings(id TEXT PRIMARY KEY, task_id TEXT, agent TEXT, summary TEXT, created_at TEXT);
        CREATE TABLE access_log(id INTEGER PRIMARY KEY, doc_id TEXT, operation TEXT, timestamp TEXT);
        """,
    )
    with opened(path) as rows:
        task = rows.task("t")
        assert task is not None
        assert (task.status, task.task_type, task.tags, task.metadata) == ("open", "task", (), {})
        (claim,) = rows.active_claims(START)["t"]
        assert claim.fence == 0
        (finding,) = rows.findings("t")
        assert (finding.summary, finding.knowledge_id) == ("found", None)


async def test_old_file_with_foreign_keys_works_with_every_command(tmp_path: Path, path: Path) -> None:
    """behaviours 91, 126: columns that were added late are last.

    Agents are stored before rows that name them.
    """
    make_old(
        path,
        "INSERT INTO tasks(id, title, created_by) VALUES('t', 'T', 'ann')",
        "INSERT INTO claims(task_id, agent, aspect, expires_at) VALUES('t', 'ann', 'x', '2025-01-01 00:00')",
    )
    async with serving(tmp_path, settled=False) as lithos:

        async def done(tool: str, **arguments: Any) -> Any:
            answer = await lithos.call(f"lithos_{tool}", agent="newcomer", **arguments)
            assert "status" not in answer, answer
            return answer

        child = (await done("task_create", title="Child", parent_task_id="t", depends_on=["t"]))["task_id"]
        claim = await done("task_claim", task_id="t", aspect="x")
        assert claim["fence"] > 0
        posted = await done("finding_post", task_id="t", summary="s", knowledge_id="k")
        rows = (await lithos.call("lithos_finding_list", task_id="t"))["findings"]
        assert [(row["id"], row["summary"], row["knowledge_id"]) for row in rows] == [
            (posted["finding_id"], "s", "k")
        ]
        assert (await done("task_complete", task_id="t", outcome="ok"))["unblocked"] == [child]
        await done("task_reopen", task_id="t")
        await lithos.call("lithos_agent_register", id="ann", name="Ann", metadata={"k": 1})
    async with serving(tmp_path, settled=False) as lithos:
        info = await lithos.call("lithos_agent_info", id="ann")
        assert (info["name"], info["metadata"]) == ("Ann", {"k": 1})
        assert (await lithos.call("lithos_task_get", task_id="t"))["task"]["resolved_at"] is None
        answer = await lithos.call("lithos_task_claim", task_id=child, aspect="x", agent="a", ttl_minutes=1)
        assert answer["fence"] > claim["fence"]


@pytest.mark.parametrize(
    ("written", "runs"),
    [
        (START + timedelta(minutes=1), True),
        (START - timedelta(minutes=1), False),
        (START, False),
    ],
)
@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%fZ", "offset"])
def test_times_in_all_formats_are_compared_as_points_in_time(
    path: Path, written: Any, runs: bool, form: str
) -> None:
    """behaviour 96"""
    make_old(path)
    add_task(path, "t")
    shifted = (written + timedelta(hours=5, minutes=30)).strftime("%Y-%m-%dT%H:%M:%S.%f+05:30")
    text = shifted if form == "offset" else written.strftime(form)
    with sql(path) as connection:
        connection.execute(
            "INSERT INTO claims(task_id, agent, aspect, expires_at) VALUES('t', 'ann', 'x', ?)", (text,)
        )
    with closing(CoordinationStore.open(path, START)) as store:
        assert store.counts(START) == CoordinationCounts(1, int(runs), int(not runs))
        assert bool(store.rows(TaskRows).active_claims(START)) is runs
        claim = store.rows(TaskRows).claim("t", "x")
        assert claim is not None
        assert claim.expires_at == written


async def test_unreadable_time_causes_no_error(tmp_path: Path, path: Path) -> None:
    """behaviours 126, 242"""
    make_old(path, "UPDATE agents SET last_seen_at='yesterday'", "UPDATE agents SET first_seen_at=NULL")
    add_task(path, "t", created_at="soon", status="completed", completed_at="never")
    add_task(path, "u", created_at=None)
    async with serving(tmp_path, settled=False) as lithos:
        tasks = (await lithos.call("lithos_task_list"))["tasks"]
        assert {task["id"]: task["resolved_at"] for task in tasks} == {"t": None, "u": None}
        assert (await lithos.call("lithos_agent_info", id="ann"))["last_seen_at"]
        (task,) = (await lithos.call("lithos_task_ready"))["tasks"]
        assert task["created_at"].startswith("1970-01-01")
        assert (await lithos.call("lithos_task_next", agent="ann"))["task"]["id"] == "u"


async def test_metadata_patches_of_migrated_tasks_cannot_add_dependencies(tmp_path: Path, path: Path) -> None:
    """behaviours 119, 126"""
    make_old(path)
    add_task(path, "a")
    add_task(path, "b", {"depends_on": "a", "project": "p"})
    async with serving(tmp_path, settled=False) as lithos:
        answer = await lithos.call("lithos_task_update", task_id="b", agent="ann", metadata={"k": 1})
        assert answer["success"] is True
        for key in ("depends_on", "blocked_on"):
            answer = await lithos.call("lithos_task_update", task_id="b", agent="ann", metadata={key: None})
            refusal(answer, "invalid_metadata_key")
        spawned = await lithos.call("lithos_task_spawn", source_task_id="b", title="S", agent="ann")
        task = (await lithos.call("lithos_task_get", task_id=spawned["task_id"]))["task"]
        assert task["metadata"] == {"project": "p"}


def told(path: Path, table: str) -> set[str]:
    with sql(path) as connection:
        return {str(row[0]) for row in connection.execute(f"SELECT * FROM {table}")}


def test_initial_states_of_an_older_file_cause_no_events(path: Path) -> None:
    """behaviour 260: tasks became ready and claims expired before Lithos had such events."""
    make_old(
        path,
        "INSERT INTO tasks(id,title,created_by,created_at) VALUES('a','A','ann','2025-01-01')",
        "INSERT INTO tasks(id,title,created_by,created_at,metadata)"
        " VALUES('b','B','ann','2025-01-02','{\"depends_on\": [\"a\"]}')",
        "INSERT INTO claims(task_id,agent,aspect,expires_at) VALUES('a','ann','old','2025-01-01')",
        "INSERT INTO claims(task_id,agent,aspect,expires_at) VALUES('a','ann','new','2099-01-01')",
    )
    with opened(path) as rows:
        assert rows.ready.are_ready(["a", "b"]) == {"a"}
        assert rows.ready.next_due() == parse_time("2099-01-01")
    before = dump(path)
    with opened(path, timedelta(days=1)):
        pass
    assert dump(path) == before


def test_claim_that_ends_later_wins_and_all_are_shown(path: Path) -> None:
    """behaviours 126, 242"""
    make_old(
        path,
        "INSERT INTO tasks(id,title,created_by,created_at) VALUES('a','A','ann','2025-01-01')",
        "INSERT INTO claims(task_id,agent,aspect,expires_at) VALUES('a','ann',' Code','2099-01-02')",
        "INSERT INTO claims(task_id,agent,aspect,expires_at) VALUES('a','bob','code','2099-01-03')",
        "INSERT INTO claims(task_id,agent,aspect,expires_at) VALUES('a','cy','docs','2099-01-01')",
    )
    for _ in range(2):
        with opened(path) as rows:
            held = {claim.aspect: claim.agent for claim in rows.claims_of("a", START)}
            assert held == {" Code": "ann", "code": "bob", "docs": "cy"}
            found = rows.claim("a", "CODE ")
            assert found is not None
            assert found.agent == "bob"
    with closing(CoordinationStore.open(path, START)) as store, store.transaction():
        until = parse_time("2099-02-01")
        claim = Claim(task_id="a", agent="dee", aspect=" Code", expires_at=until, fence=9)
        store.written(TaskRows).put_claim(claim, START)  # same spelling as the claim that is only shown
        held = {claim.aspect: claim.agent for claim in store.written(TaskRows).claims_of("a", START)}
        assert held == {" Code": "dee", "docs": "cy"}


def test_changes_made_by_an_older_version_are_applied(path: Path) -> None:
    """behaviour 260: the older version claimed, renewed and closed tasks without updating these tables."""
    with closing(CoordinationStore.open(path, START)) as store, store.transaction():
        rows = store.written(TaskRows)
        for name in ("open", "closed"):
            rows.put_task(Task(id=name, title=name, created_by="a", created_at=START))
            rows.ready.add(name)
        for aspect in ("kept", "renewed", "gone"):
            until = START + timedelta(hours=1)
            rows.put_claim(Claim(task_id="open", agent="a", aspect=aspect, expires_at=until, fence=1), START)
    with sql(path) as connection:
        connection.execute("UPDATE tasks SET status='completed' WHERE id='closed'")
        connection.execute("DELETE FROM claims WHERE aspect='gone'")
        until = format_time(START + timedelta(hours=2))
        connection.execute("UPDATE claims SET expires_at=? WHERE aspect='renewed'", (until,))
        connection.execute(
            "INSERT INTO claims(task_id,agent,aspect,claimed_at,expires_at,fence)"
            " VALUES('open','b','Made',?1,?1,2)",
            (until,),
        )
    with opened(path) as rows:
        assert rows.ready.are_ready(["open", "closed"]) == {"open"}
        assert told(path, "ready_tasks") == {"open"}
    with sql(path) as connection:
        ends = connection.execute("SELECT aspect_key,expires_at,is_told FROM claim_ends").fetchall()
    first = format_time(START + timedelta(hours=1))
    assert sorted(ends) == [("kept", first, 0), ("made", until, 0), ("renewed", until, 0)]


def test_two_unicode_forms_of_an_aspect_become_one(path: Path) -> None:
    """behaviour 351: the aspect belongs to the claim that ends later."""
    one, other = (normalize(form, "\u00e4rger") for form in ("NFC", "NFD"))
    with closing(CoordinationStore.open(path, START)) as store, store.transaction():
        rows = store.written(TaskRows)
        rows.put_task(Task(id="t", title="t", created_by="a", created_at=START))
        for hours in (1, 2):
            until = START + timedelta(hours=hours)
            rows.put_claim(
                Claim(task_id="t", agent="a", aspect=str(hours), expires_at=until, fence=hours), START
            )
    with sql(path) as connection:
        for hours, aspect in (("1", one), ("2", other)):
            connection.execute("UPDATE claims SET aspect=? WHERE aspect=?", (aspect, hours))
            connection.execute(
                "UPDATE claim_ends SET aspect=?1, aspect_key=?1 WHERE aspect=?2", (aspect, hours)
            )
    for _ in range(2):
        CoordinationStore.open(path, START).close()
        with sql(path) as connection:
            ends = connection.execute("SELECT aspect_key,aspect,expires_at FROM claim_ends").fetchall()
        assert ends == [(one, other, format_time(START + timedelta(hours=2)))]


def test_malformed_time_values_are_kept(path: Path) -> None:
    """behaviour 242"""
    make_old(path, "UPDATE agents SET last_seen_at='yesterday', first_seen_at=NULL")
    add_task(path, "t", created_at="soon", status="completed", completed_at="never")
    add_task(path, "u", created_at=None)
    for _ in range(2):
        with closing(CoordinationStore.open(path, START)) as store:
            (ann,) = store.agents()
            assert (format_time(ann.first_seen_at)[:10], format_time(ann.last_seen_at)[:10]) == (
                "1970-01-01", "1970-01-01",
            )  # fmt: skip
            tasks = {task.id: task for task in store.rows(TaskRows).tasks()}
            assert tasks["t"].resolved_at is None
            assert {format_time(task.created_at)[:10] for task in tasks.values()} == {"1970-01-01"}
        with sql(path) as connection:
            kept = connection.execute(
                "SELECT of_table,of_column,stood_there FROM unreadable_times"
            ).fetchall()
            assert sorted(kept) == [
                ("agents", "last_seen_at", "yesterday"),
                ("tasks", "created_at", "soon"),
                ("tasks", "resolved_at", "never"),
            ]
            assert connection.execute("SELECT created_at FROM tasks WHERE id='u'").fetchall() == [(None,)]
