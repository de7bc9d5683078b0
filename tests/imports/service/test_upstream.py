"""Import of an upstream data directory into a server with its own data (`lithos import --from lithos`)."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.imports.files.upstream import UpstreamSource, read_tables
from lithos.imports.model.importing import TABLES, ImportRefused
from lithos.imports.service.import_run import ImportReport, ImportRun
from lithos.imports.service.importing import Importing
from lithos.imports.service.records import Options, batch_from_json, batch_to_json
from tests import upstream
from tests.servers import Lithos, serving


async def import_from(lithos: Lithos, source: Path, **options: Any) -> ImportReport:
    run = ImportRun(
        UpstreamSource(),
        source,
        lithos.server.get(Importing),
        Options("lithos", "importer", **options),
        lambda _: None,
    )
    return await run.run()


def counts(report: ImportReport) -> dict[str, dict[str, int]]:
    return {
        name: {key: value for key, value in found.items() if value} for name, found in report.tables.items()
    }


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


ALL = {
    "agents": 2, "tasks": 5, "task_edges": 3, "claims": 2, "findings": 2, "access_log": 2, "edges": 2,
    "node_stats": 3, "receipts": 1,
}  # fmt: skip


async def test_upstream_directory_is_imported_completely_and_only_once(
    tmp_path: Path,
) -> None:
    """behaviour 240"""
    source = upstream.build(tmp_path / "theirs")
    before = fingerprint(source)
    async with serving(tmp_path / "ours") as lithos:
        plan = await import_from(lithos, source, dry_run=True)
        assert {name: found["created"] for name, found in plan.tables.items()} == ALL
        assert lithos.files() == []
        assert (await lithos.call("lithos_task_list"))["tasks"] == []
        report = await import_from(lithos, source)
        assert {name: found["created"] for name, found in report.tables.items()} == ALL
        assert report.results["created"] == 4
        assert not report.has_failures
        await check(lithos)
        told = [
            (kind, payload.get("task_id")) for kind, payload in lithos.events() if kind.startswith("task.")
        ]
        # Closed tasks have no events. Epics, gates and tasks behind a gate are never reported as ready.
        assert {task for kind, task in told if kind == "task.created"} == {
            upstream.OPEN, upstream.GATE, upstream.EPIC,
        }  # fmt: skip
        assert {kind for kind, _ in told} == {"task.created"}
        first = lithos.server.get(Coordinator).head
        files = {name: (lithos.knowledge / name).read_bytes() for name in lithos.files()}
        again = await import_from(lithos, source)
        assert counts(again) == {name: {"unchanged": number} for name, number in ALL.items()}
        assert again.results["unchanged"] == 4
        assert lithos.server.get(Coordinator).head == first
        assert {name: (lithos.knowledge / name).read_bytes() for name in lithos.files()} == files
        notices = {row.position for row in report.listed["notice"]}
        assert {
            ".chroma",
            ".graph",
            "coordination.db, their_table",
            "coordination.db, tasks.theirs",
        } <= notices
    assert fingerprint(source) == before


async def check(lithos: Lithos) -> None:
    note = await lithos.read(upstream.RAFT)
    assert note["metadata"]["extra"]["owner_key"] == 7
    assert note["retrieval_count"] == 2  # one retrieval comes from the upstream log, and one was made here
    text = (lithos.knowledge / "raft.md").read_bytes().decode()
    assert "owner_key: 007  # theirs" in text
    assert text.endswith(upstream.NOTES["raft.md"].partition("\n---\n")[2])
    assert (lithos.knowledge / "picture.png").read_bytes() == b"\x89PNG"
    tasks = (await lithos.call("lithos_task_list", with_claims=True))["tasks"]
    by_id = {task["id"]: task for task in tasks}
    assert by_id[upstream.DONE]["outcome"] == "It went well."
    assert by_id[upstream.DONE]["resolved_at"] == by_id[upstream.DONE]["created_at"] == upstream.AT
    (claim,) = by_id[upstream.OPEN]["claims"]
    assert (claim["agent"], claim["aspect"], claim["fence"]) == ("ada", "Work", 0)
    refused = await lithos.call("lithos_task_claim", task_id=upstream.OPEN, aspect="work", agent="eve")
    assert refused["code"] == "claim_failed"
    edges = (await lithos.call("lithos_task_edge_list", task_id=upstream.OPEN))["edges"]
    assert len(edges) == 3
    (finding,) = (await lithos.call("lithos_finding_list", task_id=upstream.OPEN))["findings"]
    assert (finding["id"], finding["knowledge_id"]) == (upstream.FINDING, upstream.RAFT)
    agents = {agent["id"]: agent for agent in (await lithos.call("lithos_agent_list"))["agents"]}
    assert (agents["ada"]["name"], agents["ada"]["first_seen_at"]) == ("Ada", upstream.AT)
    typed = {edge["edge_id"]: edge for edge in (await lithos.call("lithos_edge_list"))["edges"]}
    assert typed[upstream.EDGE]["weight"] == 0.7
    stats = await lithos.call("lithos_node_stats", node_id=upstream.RAFT)
    assert (stats["salience"], stats["cited_count"]) == (0.48, 4)


ARCHIVED_AT = "2026-01-02T03:04:05.000000+00:00"


async def archived_of(lithos: Lithos) -> dict[str, str | None]:
    rows = (await lithos.call("lithos_agent_list", include_archived=True))["agents"]
    return {row["id"]: row["archived_at"] for row in rows if row["id"] in ("ada", "idle")}


async def test_directory_of_0_6_is_served_with_its_archived_agents(tmp_path: Path) -> None:
    """behaviours 242, 333"""
    data = upstream.as_0_6(upstream.build(tmp_path))
    async with serving(data) as lithos:
        assert await archived_of(lithos) == {"ada": None, "idle": ARCHIVED_AT}
        assert "idle" not in {row["id"] for row in (await lithos.call("lithos_agent_list"))["agents"]}
        await lithos.call("lithos_agent_register", id="idle")
    async with serving(data) as lithos:
        assert await archived_of(lithos) == {"ada": None, "idle": None}


async def test_import_from_0_6_archives_only_agents_that_are_new_here(tmp_path: Path) -> None:
    """behaviours 240, 333"""
    source = upstream.as_0_6(upstream.build(tmp_path / "theirs"))
    upstream.run(upstream.coordination_path(source, "0.4"), "UPDATE agents SET archived_at='2026-01-01'")
    async with serving(tmp_path / "ours") as lithos:
        await lithos.call("lithos_agent_register", id="ada")
        await import_from(lithos, source)
        assert await archived_of(lithos) == {"ada": None, "idle": "2026-01-01T00:00:00.000000+00:00"}
        again = await import_from(lithos, source)
        assert counts(again)["agents"] == {"unchanged": 2}


async def test_receipt_from_upstream_accepts_feedback(tmp_path: Path) -> None:
    """behaviour 240"""
    source = upstream.build(tmp_path / "theirs")
    async with serving(tmp_path / "ours") as lithos:
        await import_from(lithos, source)
        await lithos.call(
            "lithos_task_complete", task_id=upstream.OPEN, agent="ada", receipt_id=upstream.RECEIPT,
            cited_nodes=[upstream.RAFT],
        )  # fmt: skip
        assert (await lithos.call("lithos_node_stats", node_id=upstream.RAFT))["cited_count"] == 5
        again = await import_from(lithos, source)
        assert counts(again)["tasks"] == {"unchanged": 4, "left": 1}  # the task was completed in this server
        assert counts(again)["claims"] == {"left": 2}  # completion deleted the claims, and they do not return
        assert (await lithos.call("lithos_task_get", task_id=upstream.OPEN))["task"]["status"] == "completed"


async def test_changed_source_updates_only_rows_without_local_changes(tmp_path: Path) -> None:
    """behaviour 240"""
    source = upstream.build(tmp_path / "theirs")
    database = source / ".lithos" / "coordination.db"
    async with serving(tmp_path / "ours") as lithos:
        await import_from(lithos, source)
        await lithos.call("lithos_task_update", task_id=upstream.EPIC, agent="eve", title="Ours")
        change(database, "UPDATE tasks SET title=title || ' again'")
        change(
            database,
            "INSERT INTO access_log(agent_id,doc_id,operation,timestamp)"
            f" VALUES('ada','{upstream.RAFT}','read','2025-02-02')",
        )
        change(source / ".lithos" / "edges.db", "UPDATE edges SET weight=0.1")
        report = await import_from(lithos, source)
        assert counts(report)["tasks"] == {"updated": 4, "left": 1}
        assert counts(report)["access_log"] == {"created": 1, "unchanged": 2}
        assert counts(report)["edges"] == {"updated": 2}
        (row,) = (row for row in report.listed["row"])
        assert row.position == f"tasks {upstream.EPIC}"
        assert "changed here" in row.reason
        titles = {task["id"]: task["title"] for task in (await lithos.call("lithos_task_list"))["tasks"]}
        assert (titles[upstream.EPIC], titles[upstream.DONE]) == ("Ours", "First again")
        assert (await lithos.read(upstream.RAFT))["retrieval_count"] == 3


async def test_rows_whose_ids_are_already_in_use_are_skipped(tmp_path: Path) -> None:
    """behaviour 240: covers a task, an edge and a note whose ids belong to other objects."""
    source = upstream.build(tmp_path / "theirs")
    ours = upstream.build(tmp_path / "ours")
    database = ours / ".lithos" / "coordination.db"
    change(database, f"DELETE FROM tasks WHERE id<>'{upstream.OPEN}'")
    change(database, "UPDATE tasks SET title='Ours'")
    for table in ("claims", "findings", "task_edges"):
        change(database, f"DELETE FROM {table}")
    change(ours / ".lithos" / "edges.db", "UPDATE edges SET edge_id='edge_111111111111' WHERE weight<1")
    (ours / "knowledge" / "raft.md").write_text(
        f"---\nid: {upstream.RAFT}\ntitle: Rafting\n---\n\n# Rafting\n"
    )
    (ours / "knowledge" / "deep" / "paxos.md").unlink()
    change(ours / ".lithos" / "stats.db", "DELETE FROM node_stats")
    async with serving(ours) as lithos:
        for _ in range(2):
            report = await import_from(lithos, source)
            left = {row.position for row in report.listed["row"]}
            assert f"tasks {upstream.OPEN}" in left
            assert f"edges {upstream.EDGE}" not in left  # in this vault, the edge connects other notes
            assert len([one for one in left if one.startswith("task_edges")]) == 3
            assert len([one for one in left if one.startswith("claims")]) == 2
            assert len([one for one in left if one.startswith("findings")]) == 1
            task = (await lithos.call("lithos_task_get", task_id=upstream.OPEN))["task"]
            assert task["title"] == "Ours"
            assert (await lithos.call("lithos_finding_list", task_id=upstream.OPEN))["findings"] == []
            assert (await lithos.read(upstream.RAFT))["title"] == "Rafting"
        (theirs,) = (item for item in (await lithos.call("lithos_list"))["items"] if item["title"] == "Raft")
        assert theirs["id"] != upstream.RAFT
        stats = await lithos.call("lithos_node_stats", node_id=theirs["id"])
        assert stats["salience"] == 0.48  # learned data is stored with its note
        typed = (await lithos.call("lithos_edge_list", from_id=theirs["id"], type="supports"))["edges"]
        assert [edge["to_id"] for edge in typed] == [upstream.PAXOS]


@pytest.mark.parametrize("shape", ["0.3", "0.2"])
async def test_older_schemas_are_imported(tmp_path: Path, shape: str) -> None:
    """behaviour 240"""
    source = upstream.build(tmp_path / "theirs", shape)
    async with serving(tmp_path / "ours") as lithos:
        report = await import_from(lithos, source)
        assert report.tables["tasks"]["created"] == 5
        done = (await lithos.call("lithos_task_get", task_id=upstream.DONE))["task"]
        assert done["resolved_at"].startswith("2025-01-02T03:04:05")
        blocked = (await lithos.call("lithos_task_blocked"))["tasks"]
        assert [task["id"] for task in blocked] == ([upstream.OPEN] if shape == "0.3" else [])
        again = await import_from(lithos, source)
        assert {key for found in counts(again).values() for key in found} == {"unchanged"}


def items(source: Path) -> list[str]:
    return [f"{item.position}: {item.reason}" for item in read_tables(source) if hasattr(item, "position")]


def test_unreadable_rows_are_reported_with_their_position(tmp_path: Path) -> None:
    """behaviour 241"""
    source = upstream.build(tmp_path / "theirs")
    database = source / ".lithos" / "coordination.db"
    change(database, "INSERT INTO agents(id) VALUES(NULL)")
    change(database, "INSERT INTO agents(id,name) VALUES('bad', CAST(x'ff00' AS TEXT))")
    change(
        source / ".lithos" / "stats.db",
        f"UPDATE node_stats SET cited_count='much' WHERE node_id='{upstream.RAFT}'",
    )
    (source / ".lithos" / "edges.db").write_bytes(b"no database" * 1000)
    told = "\n".join(items(source))
    assert "coordination.db, agents, row 1: id is missing" in told
    assert "name: the value is not valid UTF-8" in told
    assert "cited_count: 'much' is no" in told
    assert "edges.db: the database cannot be read" in told


def test_database_that_changes_during_the_import_is_refused(tmp_path: Path) -> None:
    """behaviour 241"""
    source = upstream.build(tmp_path / "theirs")
    reading = read_tables(source)
    next(reading)
    change(source / ".lithos" / "coordination.db", "DELETE FROM claims")
    with pytest.raises(ImportRefused, match="Stop the server"):
        list(reading)


def test_batches_are_unchanged_after_conversion_to_json_and_back(tmp_path: Path) -> None:
    source = upstream.build(tmp_path / "theirs")
    batches = [item for item in read_tables(source) if hasattr(item, "rows")]
    assert {batch.table.name for batch in batches} == set(TABLES)
    assert [batch_from_json(batch_to_json(batch)) for batch in batches] == batches
    bad: dict[str, object] = {"table": "tasks", "rows": [["x"]], "source": "", "is_look": False}
    with pytest.raises(ValueError, match="does not match the columns"):
        batch_from_json(bad)


@pytest.mark.parametrize("step", [14, pytest.param(1, marks=pytest.mark.nightly)])
async def test_import_interrupted_at_any_batch_is_completed_by_the_next(tmp_path: Path, step: int) -> None:
    """behaviour 241: the import stops after each batch in turn.

    The result is the same as after one import.
    """
    source = upstream.build(tmp_path / "theirs")

    class Ends(Exception):
        pass

    def state(data: Path) -> Mapping[str, Any]:
        found = upstream.dump(data / ".lithos" / "coordination.db")
        kept = ("tasks", "claims", "findings", "task_edges", "access_log", "ready_tasks", "claim_ends")
        rows = {name: sorted(map(repr, found[name])) for name in kept}
        for name in ("edges.db", "stats.db"):
            found = upstream.dump(data / ".lithos" / name)
            rows |= {f"{name}.{table}": sorted(map(repr, found[table])) for table in TABLES if table in found}
        return rows

    async with serving(tmp_path / "whole") as lithos:
        await import_from(lithos, source)
    batches = len(list(UpstreamSource().read(source)))
    for after in range(1, batches, step):
        data = tmp_path / f"ours-{after}"
        async with serving(data) as lithos:
            left = after

            class Stopping(UpstreamSource):
                def read(self, path: Path) -> Any:
                    nonlocal left
                    for item in super().read(path):
                        left -= 1
                        if left < 0:
                            raise Ends
                        yield item

            run = ImportRun(
                Stopping(),
                source,
                lithos.server.get(Importing),
                Options("lithos", "importer"),
                lambda _: None,
            )
            with pytest.raises(BaseExceptionGroup):
                await run.run()
            await trio.lowlevel.checkpoint()
        async with serving(data) as lithos:
            await import_from(lithos, source)
        assert state(data) == state(tmp_path / "whole"), after


async def test_source_with_a_write_ahead_log_is_read_and_unchanged(tmp_path: Path) -> None:
    """behaviour 241: the source server was killed and left a write-ahead log."""
    source = upstream.build(tmp_path / "theirs")
    script = (
        "import os,sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute('PRAGMA journal_mode=WAL');"
        "c.execute(\"INSERT INTO agents(id) VALUES('late')\"); c.commit(); os.kill(os.getpid(), 9)"
    )
    database = source / ".lithos" / "coordination.db"
    subprocess.run([sys.executable, "-c", script, str(database)], check=False)
    before = fingerprint(source)
    assert before[".lithos/coordination.db-wal"] != hashlib.sha256(b"").hexdigest()
    async with serving(tmp_path / "ours") as lithos:
        await import_from(lithos, source)
        assert "late" in {agent["id"] for agent in (await lithos.call("lithos_agent_list"))["agents"]}
    assert fingerprint(source) == before
