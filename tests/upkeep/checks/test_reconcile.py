"""Reconciliation of derived data without a server (docs/spec/cli-config.md §2.2)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import lithos.upkeep.maintenance.maintenance
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.notes.catalogue.note_graph import NoteGraph, Resolved
from lithos.search.embedding.embedder import load_embedder
from lithos.search.index.fulltext_schema import remove_index
from lithos.search.settings import SearchConfig
from lithos.upkeep.checks.reconcile_indices import SCOPES
from lithos.upkeep.maintenance.maintenance import owned, reconcile
from tests.e2e.vault import snapshot
from tests.servers import load_once, put_note, serving

ONE, TWO = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
NOTES = {
    "one.md": f"---\nid: {ONE}\ntitle: One\n---\nBy [[Two]] and [[Nowhere]], of consensus.\n",
    "two.md": f"---\nid: {TWO}\ntitle: Two\nderived_from_ids: [{ONE}]\n---\nThe replicated log.\n",
}


@pytest.fixture(autouse=True)
def _quick_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lithos.upkeep.maintenance.maintenance, "load_embedder", load_once)


async def make_data(data: Path) -> Config:
    """Create a data directory with correct derived data and an edge that a person asserted."""
    for path, text in NOTES.items():
        put_note(data, path, text)
    async with serving(data) as server:
        fields = {"from_id": ONE, "to_id": TWO, "type": "supports", "weight": 0.5, "namespace": "n"}
        await server.call("lithos_edge_upsert", **fields)
    config = Config(storage=StorageConfig(data_dir=data))
    await reconcile(config, ["provenance_projection"], dry_run=False)
    return config


async def run(config: Config, *scopes: str, dry_run: bool = False) -> list[dict[str, Any]]:
    """Reconcile and return the envelopes. Assert that a dry run changes no byte and no file time."""
    data = config.of(StorageConfig).data_dir
    before = (snapshot(data), tree(data))
    results = await reconcile(config, scopes or SCOPES, dry_run=dry_run)
    if dry_run:
        assert (snapshot(data), tree(data)) == before
    return [result.as_json() for result in results]


def tree(data: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in [data, *data.rglob("*")] if path.is_dir()}


def reasons(envelope: dict[str, Any]) -> list[str]:
    return [action["reason"] for action in envelope["actions"] if action["reason"] != "target_slug_not_found"]


def projected(config: Config) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(str(config.of(StorageConfig).data_dir / ".lithos" / "edges.db"))
    sql = "SELECT from_id,to_id,weight FROM edges WHERE provenance_type='frontmatter'"
    return connection.execute(sql).fetchall()


async def test_reconcile_changes_nothing_in_a_healthy_directory(tmp_path: Path) -> None:
    config = await make_data(tmp_path)
    for dry_run in (True, False):
        envelopes = await run(config, dry_run=dry_run)
        assert [envelope["status"] for envelope in envelopes] == ["noop"] * 3
        assert [list(envelope) for envelope in envelopes] == [
            ["scope", "dry_run", "supported", "status", "summary", "actions", "failures"]
        ] * 3
        assert envelopes[1]["actions"] == [
            {"reason": "target_slug_not_found", "count": 1, "targets": ["Nowhere"]}
        ]
        assert envelopes[0]["summary"] == {"scanned": 2, "repaired": 0, "failed": 0, "skipped": 0}


async def test_reconcile_rebuilds_everything_from_the_notes(tmp_path: Path) -> None:
    """Behaviour 162: a dry run writes nothing, the first run repairs, and the second run changes nothing."""
    for path, text in NOTES.items():
        put_note(tmp_path, path, text)
    config = Config(storage=StorageConfig(data_dir=tmp_path))
    for dry_run, indices in ((True, "ok"), (False, "ok"), (False, "noop")):
        envelopes = await run(config, dry_run=dry_run)
        assert [envelope["status"] for envelope in envelopes] == [indices, "noop", "noop"]
    assert envelopes[2]["supported"] is False
    assert reasons(envelopes[2]) == ["not_enabled"]
    assert not (tmp_path / ".lithos" / "edges.db").exists()
    async with serving(tmp_path) as server:
        assert await server.found("consensus", mode="fulltext") == ["One"]
        assert "Two" in await server.found("replicated log", mode="semantic")


def break_index(data: Path, damage: str) -> None:
    """Damage one index."""
    if damage == "fulltext missing":
        remove_index(data / ".tantivy")
    elif damage == "fulltext format":
        (data / ".tantivy" / ".schema_version").write_text("L0")
    elif damage == "fulltext bytes":
        next((data / ".tantivy").glob("*.store")).write_bytes(b"x" * 200)
    elif damage == "vectors bytes":
        next((data / ".usearch").glob("*.usearch")).write_bytes(b"x" * 200)
    elif damage == "vectors missing":
        shutil.rmtree(data / ".usearch")
    elif damage == "embedder":
        manifest = json.loads((data / ".usearch" / "manifest.json").read_bytes())
        manifest["embedder"]["model_sha256"] = "0" * 64
        (data / ".usearch" / "manifest.json").write_text(json.dumps(manifest))
    else:
        (data / "knowledge" / "two.md").unlink()
        put_note(data, "three.md", "# Three\n\nAnother note in its place.\n")


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ("fulltext missing", ["schema_mismatch"]),
        ("fulltext format", ["schema_mismatch"]),
        ("fulltext bytes", ["check_failed"]),
        ("vectors bytes", ["check_failed"]),
        ("vectors missing", ["doc_set_mismatch"]),
        ("embedder", ["embedder_mismatch"]),
        ("other notes", ["doc_set_mismatch", "doc_set_mismatch"]),
    ],
)
async def test_damaged_index_is_detected_and_repaired(
    tmp_path: Path, damage: str, expected: list[str]
) -> None:
    """Behaviour 162: the number of indexed notes may be right although the notes are wrong."""
    config = await make_data(tmp_path)
    break_index(tmp_path, damage)
    (looked,) = await run(config, "indices", dry_run=True)
    assert (looked["status"], reasons(looked), looked["summary"]["repaired"]) == ("ok", expected, 0)
    (repaired,) = await run(config, "indices")
    assert (repaired["status"], reasons(repaired)) == ("ok", expected)
    assert repaired["summary"]["repaired"] == len(expected)
    assert (await run(config, "indices"))[0]["status"] == "noop"


async def test_provenance_edges_are_repaired_and_asserted_edges_kept(tmp_path: Path) -> None:
    """Behaviour 88."""
    config = await make_data(tmp_path)
    assert projected(config) == [(TWO, ONE, 1.0)]
    connection = apsw.Connection(str(tmp_path / ".lithos" / "edges.db"))
    connection.execute("UPDATE edges SET weight=0.2 WHERE provenance_type='frontmatter'")
    connection.execute(
        "INSERT INTO edges SELECT 'edge_x',to_id,from_id,type,1,namespace,created_at,updated_at,NULL,"
        "provenance_type,NULL,NULL FROM edges WHERE provenance_type='frontmatter'"
    )
    connection.close()
    (looked,) = await run(config, "provenance_projection", dry_run=True)
    counts = [{"reason": "removed", "count": 1}, {"reason": "resynced", "count": 1}]
    assert (looked["status"], looked["actions"]) == ("ok", counts)
    (repaired,) = await run(config, "provenance_projection")
    assert (repaired["actions"], repaired["summary"]["repaired"]) == (counts, 2)
    assert projected(config) == [(TWO, ONE, 1.0)]
    assert (await run(config, "provenance_projection"))[0]["status"] == "noop"
    async with serving(tmp_path) as server:
        listed = await server.call("lithos_edge_list", type="supports")
        assert [(edge["from_id"], edge["to_id"]) for edge in listed["results"]] == [(ONE, TWO)]


async def test_incomplete_scan_removes_no_edges(tmp_path: Path) -> None:
    """Behaviour 88."""
    config = await make_data(tmp_path)
    put_note(tmp_path, "two.md", b"\x00 binary now")
    (envelope,) = await run(config, "provenance_projection")
    assert envelope["status"] == "failed"
    assert [failure["code"] for failure in envelope["failures"]] == ["projection_apply_failed"]
    assert "two.md" in envelope["failures"][0]["detail"]
    assert projected(config) == [(TWO, ONE, 1.0)]


async def test_failed_scope_does_not_affect_other_scopes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 162: a scope repairs only its own data. Its failure does not stop the other scopes."""
    config = await make_data(tmp_path)
    remove_index(tmp_path / ".tantivy")

    def fail_with(problem: Exception) -> Callable[[object], Resolved]:
        def fail(_: object) -> Resolved:
            raise problem

        return fail

    for problem, first, code in (
        (OSError(5, "Input/output error"), "ok", "graph_rebuild_failed"),
        (KeyError("bug"), "noop", "internal_error"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(NoteGraph, "resolved", fail_with(problem))
            envelopes = await run(config)
        assert [envelope["status"] for envelope in envelopes] == [first, "failed", "noop"]
        assert envelopes[1]["failures"][0]["code"] == code


async def test_unrepairable_index_is_reported_as_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = await make_data(tmp_path)
    config = Config(
        storage=config.of(StorageConfig), search=SearchConfig(embedding_model=str(tmp_path / "no model"))
    )
    monkeypatch.setattr(lithos.upkeep.maintenance.maintenance, "load_embedder", load_embedder)
    assert (await run(config, "indices"))[0]["status"] == "noop"
    shutil.rmtree(tmp_path / ".usearch")
    remove_index(tmp_path / ".tantivy")
    (envelope,) = await run(config, "indices")
    assert (envelope["status"], reasons(envelope)) == ("partial_failure", ["schema_mismatch"])
    assert [failure["code"] for failure in envelope["failures"]] == ["index_rebuild_failed"]
    assert "no model" in envelope["failures"][0]["detail"]


async def test_unreadable_note_does_not_count_as_an_index_error(tmp_path: Path) -> None:
    config = await make_data(tmp_path)
    put_note(tmp_path, "two.md", b"\x00 binary now")
    assert (await run(config, "indices", dry_run=True))[0]["status"] == "noop"
    remove_index(tmp_path / ".tantivy")
    assert (await run(config, "indices"))[0]["status"] == "ok"
    assert (await run(config, "indices"))[0]["status"] == "noop"


async def test_dry_run_reads_the_wal_of_a_killed_server(tmp_path: Path) -> None:
    """The newest rows of a database may exist only in its write-ahead log."""
    config = await make_data(tmp_path)
    path = tmp_path / ".lithos" / "edges.db"
    writer = apsw.Connection(str(path))
    writer.execute("UPDATE edges SET weight=0.2 WHERE provenance_type='frontmatter'")
    left = {file: file.read_bytes() for file in path.parent.glob("edges.db*")}
    writer.close()
    for file, content in left.items():
        file.write_bytes(content)
    assert (path.parent / "edges.db-wal").stat().st_size
    (looked,) = await run(config, "provenance_projection", dry_run=True)
    assert looked["actions"] == [{"reason": "resynced", "count": 1}]


async def test_dry_run_works_while_a_server_runs(tmp_path: Path) -> None:
    config = await make_data(tmp_path)
    async with serving(tmp_path) as server:
        await server.write("Three", "A third note.", derived_from_ids=[ONE])
        (indices, graph, _) = [each.as_json() for each in await reconcile(config, SCOPES, dry_run=True)]
        assert (graph["status"], indices["summary"]["scanned"]) == ("noop", 3)
        assert "check_failed" not in reasons(indices)


async def test_directory_is_released_at_the_end_of_the_block(tmp_path: Path) -> None:
    for _ in range(2):
        async with owned(StorageConfig(data_dir=tmp_path)):
            pass
