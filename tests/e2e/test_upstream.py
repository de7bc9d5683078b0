"""Data directories of upstream 0.2 to 0.4, which a real server serves in place with every row and column."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lithos.kernel.databases.database import read_time
from lithos.kernel.databases.lock import read_owner
from tests import upstream
from tests.e2e.clients import call, connected
from tests.e2e.process import LITHOS, clean_environment, run_lithos, running_lithos, until
from tests.repeats import first_of

pytestmark = pytest.mark.slow

SHAPES = ("0.4", "0.3", "0.2")
#: All renamed columns, which docs/import.md lists.
RENAMED = {("tasks", "completed_at"): "resolved_at"}


def comparable(table: str, column: str, value: Any) -> Any:
    """Return a comparable value. Times become instants. Other values keep their type."""
    if column.endswith(("_at", "timestamp")) and (moment := read_time(value)) is not None:
        return moment
    return (type(value).__name__, value)


def lost(before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Yield the rows of `before` that have no equal row in `after`. Only columns of `before` are compared."""
    for table, rows in before.items():
        found = [
            {column: comparable(table, column, value) for column, value in row.items()}
            for row in after[table]
        ]
        for row in rows:
            wanted = {
                RENAMED.get((table, column), column): comparable(table, column, value)
                for column, value in row.items()
            }
            if not any(wanted.items() <= other.items() for other in found):
                yield f"{table}: {row}"


def databases(data: Path, shape: str) -> dict[str, dict[str, list[dict[str, Any]]]]:
    paths = [upstream.coordination_path(data, shape)]
    paths += [path for name in ("edges.db", "stats.db") if (path := data / ".lithos" / name).exists()]
    return {path.name: upstream.dump(path) for path in paths}


def check_nothing_is_lost(data: Path, before: dict[str, Any]) -> None:
    for name, tables in before.items():
        assert list(lost(tables, upstream.dump(data / ".lithos" / name))) == [], name
    for name, text in upstream.NOTES.items():
        assert (data / "knowledge" / name).read_bytes() == text.encode(), name
    assert (data / ".chroma" / "chroma.sqlite3").read_bytes() == b"vectors"
    assert (data / ".graph" / "graph.pickle").read_bytes() == b"\x80\x04never loaded"
    assert (data / "knowledge" / "picture.png").read_bytes() == b"\x89PNG"


async def check_all_is_shown(url: str, shape: str) -> None:
    async with connected("mcp", url=url) as client:
        listed = (await call(client, "lithos_list", limit=100))["items"]
        assert {item["path"] for item in listed} == set(upstream.NOTES)
        note = await call(client, "lithos_read", id=upstream.RAFT, agent_id="observer")
        assert "zanzibar" in note["content"]
        assert note["metadata"]["extra"] == {"owner_key": 7}
        assert (note["metadata"]["author"], note["metadata"]["tags"]) == ("ada", ["consensus"])
        assert note["retrieval_count"] >= 2  # includes reads in upstream's log and in this test
        older = await call(client, "lithos_read", path="old/mapping.md", agent_id="observer")
        assert older["metadata"]["derived_from_ids"] == [upstream.RAFT]
        tasks = (await call(client, "lithos_task_list", with_claims=True))["tasks"]
        by_id = {task["id"]: task for task in tasks}
        assert {task["title"]: task["status"] for task in tasks} == {
            "First": "completed", "Second": "open", "Gate": "open", "Epic": "open", "Fifth": "cancelled",
        }  # fmt: skip
        assert by_id[upstream.DONE]["resolved_at"].startswith("2025-01-02T03:04:05")
        assert by_id[upstream.DONE]["tags"] == ["a", "b"]
        (claim,) = by_id[upstream.OPEN]["claims"]
        assert (claim["agent"], claim["aspect"], claim["fence"]) == ("ada", "Work", 0)
        assert claim["expires_at"].startswith("2999-01-01T00:00:00")
        (finding,) = (await call(client, "lithos_finding_list", task_id=upstream.OPEN))["findings"]
        assert (finding["summary"], finding["agent"]) == ("Seen.", "ada")
        agents = {agent["id"]: agent for agent in (await call(client, "lithos_agent_list"))["agents"]}
        assert {"ada", "idle"} <= agents.keys()
        assert agents["idle"]["last_seen_at"].startswith("1970-01-01")
        if shape == "0.3":
            (blocked,) = (await call(client, "lithos_task_blocked"))["tasks"]
            assert [blocker["task_id"] for blocker in blocked["blockers"]] == [upstream.EPIC]
        if shape == "0.4":
            await check_what_only_0_4_has(client, by_id)


async def check_what_only_0_4_has(client: Any, tasks: dict[str, Any]) -> None:
    assert tasks[upstream.DONE]["outcome"] == "It went well."
    assert tasks[upstream.GATE]["task_type"] == "gate"
    assert (tasks[upstream.OPEN]["metadata"], tasks[upstream.EPIC]["metadata"]) == ({}, {"project": "p"})
    edges = (await call(client, "lithos_task_edge_list", task_id=upstream.OPEN))["edges"]
    assert {edge["type"]: edge["from_task_id"] for edge in edges} == {
        "waits_on_gate": upstream.GATE, "parent_child": upstream.EPIC, "their_type": upstream.DONE,
    }  # fmt: skip
    typed = {edge["edge_id"]: edge for edge in (await call(client, "lithos_edge_list"))["edges"]}
    assert typed[upstream.EDGE]["weight"] == 0.7
    assert json.loads(typed[upstream.EDGE]["evidence"]) == {"why": "both"}
    assert typed["edge_00000000beef"]["conflict_state"] == "accepted_dual"
    stats = await call(client, "lithos_node_stats", node_id=upstream.RAFT)
    told = {name: stats[name] for name in ("salience", "retrieval_count", "cited_count", "misleading_count")}
    assert told == {"salience": 0.48, "retrieval_count": 12, "cited_count": 4, "misleading_count": 2}
    assert stats["last_used_at"] == upstream.AT
    assert (await call(client, "lithos_node_stats", node_id=upstream.PAXOS))["salience"] == 0.5


@pytest.mark.parametrize("shape", first_of(SHAPES, 1))
async def test_every_upstream_row_and_column_is_served_and_kept(tmp_path: Path, shape: str) -> None:
    """behaviour 242"""
    data = upstream.build(tmp_path / "data", shape)
    before = databases(data, shape)
    told = run_lithos("-d", data, "doctor").stdout
    assert "Upstream Lithos used this directory" in told
    assert "5 tasks" in told
    assert databases(data, shape) == before  # the doctor changes nothing
    for _ in range(2):  # the second start has nothing to migrate
        with running_lithos(data) as server:
            await check_all_is_shown(server.url, shape)
        check_nothing_is_lost(data, before)
    if shape == "0.4":
        for name in ("their_table", "tasks.theirs", "node_stats.theirs", "their_stats"):
            assert name in told


async def test_columns_that_only_upstream_uses_are_kept(tmp_path: Path) -> None:
    """behaviour 242: agents register, claim, complete and give feedback on upstream's rows."""
    data = upstream.build(tmp_path / "data")
    with running_lithos(data) as server:
        async with connected("mcp", url=server.url) as client:
            await call(client, "lithos_agent_register", id="ada", name="Ada L.")
            await call(client, "lithos_task_update", task_id=upstream.OPEN, agent="ada", title="Changed")
            await call(client, "lithos_task_claim", task_id=upstream.OPEN, agent="ada", aspect="work")
            await call(
                client, "lithos_task_complete", task_id=upstream.OPEN, agent="ada",
                receipt_id=upstream.RECEIPT, cited_nodes=[upstream.RAFT],
            )  # fmt: skip
            stats = await call(client, "lithos_node_stats", node_id=upstream.RAFT)
            assert (stats["cited_count"], round(stats["salience"], 2)) == (5, 0.5)
    after = upstream.dump(data / ".lithos" / "coordination.db")
    (ada,) = (row for row in after["agents"] if row["id"] == "ada")
    assert (ada["name"], ada["theirs"]) == ("Ada L.", "x")
    (task,) = (row for row in after["tasks"] if row["id"] == upstream.OPEN)
    assert (task["title"], task["status"], task["theirs"]) == ("Changed", "completed", "x")
    assert len(after["tasks"]) == 5  # foreign keys in upstream's tables must not cause the deletion of rows
    rows = upstream.dump(data / ".lithos" / "stats.db")["node_stats"]
    assert next(row for row in rows if row["node_id"] == upstream.RAFT)["theirs"] == "s"


def is_owner(data: Path, pid: int) -> bool:
    """Return whether the process has begun to open the directory."""
    owner = read_owner(data / ".lithos" / "lock")
    return owner is not None and owner.pid == pid


@pytest.mark.parametrize("shape", first_of(SHAPES, 1))
async def test_first_start_killed_at_any_point_can_be_repeated(tmp_path: Path, shape: str) -> None:
    """behaviour 242"""
    data = upstream.build(tmp_path / "data", shape)
    before = databases(data, shape)
    for round_ in range(8):
        with subprocess.Popen(
            [*LITHOS, "-d", str(data), "serve", "-t", "http", "-p", "0"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment(),
        ) as process:  # fmt: skip
            until(partial(is_owner, data, process.pid))
            time.sleep(0.02 * round_)  # in each round, the kill comes a little later during the start
            process.kill()
    with running_lithos(data) as server:
        await check_all_is_shown(server.url, shape)
    check_nothing_is_lost(data, before)


def test_rows_that_are_only_in_the_wal_are_migrated(tmp_path: Path) -> None:
    """behaviour 242: the upstream server was killed with its last commits in the write-ahead log."""
    data = upstream.build(tmp_path / "data", "0.3")
    script = (
        "import os,sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute('PRAGMA journal_mode=WAL');"
        "c.execute(\"INSERT INTO agents(id,first_seen_at) VALUES('late','2025-01-02')\"); c.commit();"
        "os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([LITHOS[0], "-c", script, str(data / "coordination.db")], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (data / "coordination.db-wal").stat().st_size
    assert "3 agents" in run_lithos("-d", data, "doctor").stdout
    with running_lithos(data):
        pass
    assert "late" in {row["id"] for row in upstream.dump(data / ".lithos" / "coordination.db")["agents"]}


@pytest.mark.parametrize("shape", first_of(["0.4", "0.3"], 1))
def test_damaged_coordination_database_is_refused_and_unchanged(tmp_path: Path, shape: str) -> None:
    """behaviour 242"""
    data = upstream.build(tmp_path / "data", shape)
    path = upstream.coordination_path(data, shape)
    damaged = path.read_bytes()[:5000] + b"\x13" * 9000
    path.write_bytes(damaged)
    refused = run_lithos("-d", data, "serve", "-t", "http", "-p", "0")
    assert refused.returncode == 1
    assert "coordination.db is damaged" in refused.stderr
    assert (data / ".lithos" / "coordination.db").read_bytes() == damaged


def test_damaged_statistics_file_is_set_aside_unchanged(tmp_path: Path) -> None:
    """behaviour 242"""
    data = upstream.build(tmp_path / "data")
    path = data / ".lithos" / "stats.db"
    path.write_bytes(b"no database at all" * 100)
    with running_lithos(data):
        pass
    (aside,) = (data / ".lithos").glob("stats.db.corrupt-*")
    assert aside.read_bytes() == b"no database at all" * 100


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_directory_is_refused_and_unchanged(tmp_path: Path) -> None:
    """behaviour 242"""
    data = upstream.build(tmp_path / "data")
    before = databases(data, "0.4")
    for folder in (data / ".lithos", data):
        folder.chmod(0o500)
    try:
        refused = run_lithos("-d", data, "serve", "-t", "http", "-p", "0")
        assert refused.returncode == 1
        assert str(data) in refused.stderr
    finally:
        for folder in (data, data / ".lithos"):
            folder.chmod(0o700)
    assert databases(data, "0.4") == before


def test_times_are_compared_as_points_in_time() -> None:
    """Checks that `comparable` equates one time in two notations and distinguishes different times."""
    noon = comparable("tasks", "created_at", "2025-01-02 12:00:00")
    assert (
        noon
        == comparable("tasks", "created_at", "2025-01-02T12:00:00+00:00")
        == datetime(2025, 1, 2, 12, tzinfo=UTC)
    )
    assert noon != comparable("tasks", "created_at", "2025-01-02 12:00:01")
    assert comparable("tasks", "title", "1") != comparable("tasks", "title", 1)
