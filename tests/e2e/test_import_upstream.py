"""`lithos import --from lithos`: import into an empty folder, import into a running server, and kills."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests import upstream
from tests.e2e.imports import bring, importing
from tests.e2e.process import run_lithos, running_lithos

#: Tables whose rows are compared after the imports.
KEPT = ("tasks", "claims", "findings", "task_edges", "access_log", "ready_tasks", "claim_ends")


def enlarge(source: Path, notes: int, tasks: int) -> None:
    """Add many notes and tasks, so that the import takes some time."""
    for number in range(notes):
        text = f"---\ntitle: Many {number}\n---\n\nText {number}.\n"
        (source / "knowledge" / f"many-{number}.md").write_text(text)
    script = (
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<{tasks}) "
        "INSERT INTO tasks(id,title,created_by,created_at,tags,metadata,status)"
        f" SELECT printf('cccccccc-0000-4000-8000-%012d', i), 'Many '||i, 'ada', '{upstream.AT}', '[]',"
        " '{}', CASE i%2 WHEN 0 THEN 'open' ELSE 'completed' END FROM n"
    )
    edges = (
        "INSERT INTO task_edges(from_task_id,to_task_id,type,metadata,created_by,created_at)"
        f" SELECT a.id, b.id, 'blocks', '{{}}', 'ada', '{upstream.AT}' FROM tasks a"
        " JOIN tasks b ON b.rowid=a.rowid+2 WHERE a.title LIKE 'Many%'"
    )
    for statement in (script, edges):
        upstream.run(source / ".lithos" / "coordination.db", statement)


def state(data: Path) -> dict[str, Any]:
    found = upstream.dump(data / ".lithos" / "coordination.db")
    rows: dict[str, Any] = {}
    for name in KEPT:
        for row in found[name]:
            row.pop("id", None) if name in ("claims", "access_log", "task_edges") else None
            row.pop("number", None)  # the rowid of a task depends on the order of insertion
        rows[name] = sorted(map(repr, found[name]))
    rows["edges"] = sorted(map(repr, upstream.dump(data / ".lithos" / "edges.db")["edges"]))
    rows["stats"] = sorted(map(repr, upstream.dump(data / ".lithos" / "stats.db")["node_stats"]))
    rows["notes"] = {path.name: path.read_bytes() for path in (data / "knowledge").rglob("*.md")}
    return rows


@pytest.mark.slow
def test_upstream_directory_is_recognised_and_imported(tmp_path: Path) -> None:
    """behaviour 240"""
    source = upstream.build(tmp_path / "theirs")
    plan = run_lithos("-d", tmp_path / "ours", "import", source, "--dry-run")
    assert "(lithos)" in plan.stdout
    assert "tasks: 5 created" in plan.stdout
    assert bring(tmp_path / "ours", source)["tables"]["tasks"]["created"] == 5
    (tmp_path / "served").mkdir()
    with running_lithos(tmp_path / "served"):
        report = bring(tmp_path / "served", source)
        assert report["tables"]["claims"]["created"] == 2
        again = bring(tmp_path / "served", source)
        assert {key for counts in again["tables"].values() for key, value in counts.items() if value} == {
            "unchanged"
        }
    there, here = state(tmp_path / "served"), state(tmp_path / "ours")
    assert {name: here[name] == there[name] for name in here if name != "notes"} == dict.fromkeys(
        [name for name in here if name != "notes"], True
    )
    assert here["notes"].keys() == there["notes"].keys()


@pytest.mark.slow
@pytest.mark.nightly
def test_import_killed_at_any_time_is_completed_by_a_rerun(tmp_path: Path) -> None:
    """behaviour 241: kill -9 comes at several times.

    The final rows and notes are the same as after one import.
    """
    source = upstream.build(tmp_path / "theirs")
    enlarge(source, 300, 2000)
    began = time.monotonic()
    bring(tmp_path / "whole", source)
    took = time.monotonic() - began
    data = tmp_path / "killed"
    for share in (0.4, 0.55, 0.7, 0.8, 0.9):
        with importing(data, source) as process:
            time.sleep(share * took)
            process.kill()
    report = bring(data, source)
    assert report["notes"]["failed"] == report["notes"]["changed_here"] == 0
    whole, killed = state(tmp_path / "whole"), state(data)
    for name in whole:
        if name == "notes":
            assert whole[name].keys() == killed[name].keys()
        else:
            assert whole[name] == killed[name], name
