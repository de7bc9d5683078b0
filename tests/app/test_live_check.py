"""Dry run of `lithos reconcile` while a server runs.

The command asks the server and does not read its files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lithos.memory.model.memory import ProjectProvenance
from lithos.memory.retrieve.feedback import Learning
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.note_graph import Resolved
from lithos.search.indexing.ports import FulltextPort
from lithos.upkeep.checks.checks import Installed
from lithos.upkeep.checks.reconcile import reconcile
from lithos.upkeep.checks.reconcile_indices import SCOPES
from tests.e2e.feeds import call_tool
from tests.e2e.process import run_lithos, running_lithos
from tests.e2e.vault import snapshot
from tests.servers import Lithos, serving


async def check(lithos: Lithos, *scopes: str) -> list[dict[str, Any]]:
    results = await reconcile(lithos.server.get(Installed), scopes or SCOPES, dry_run=True)
    return [result.as_json() for result in results]


async def test_reconcile_finds_nothing_on_a_busy_server(tmp_path: Path) -> None:
    """Vectors are saved some seconds later. Until then, missing vectors are not an error."""
    async with serving(tmp_path) as lithos:
        one = await lithos.create("One", "By [[Two]] and [[Nowhere]].")
        await lithos.create("Two", "The log.", derived_from_ids=[one])
        indices, graph, provenance = await check(lithos)
    assert (indices["status"], indices["actions"], indices["summary"]["scanned"]) == ("noop", [], 2)
    assert graph["actions"] == [{"reason": "target_slug_not_found", "count": 1, "targets": ["Nowhere"]}]
    assert (graph["status"], graph["summary"]["skipped"]) == ("noop", 1)
    assert provenance["dry_run"] is True


async def test_reconcile_dry_run_finds_real_errors_without_fixing_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as lithos:
        one = await lithos.create("One", "By [[Two]].")
        await lithos.create("Two", "The log.", derived_from_ids=[one])
        learning = lithos.server.get(Learning)
        await learning.submit(ProjectProvenance(desired={}, gone=(), complete=True))
        held = lithos.server.get(Catalogue).graph.resolved()
        wrong = Resolved(held.fingerprint + 1, {**held.targets, "Two": None})
        monkeypatch.setattr(lithos.server.get(Catalogue).graph, "resolved", lambda: wrong)
        monkeypatch.setattr(FulltextPort, "stamps", lambda _: {99: 1})
        for _ in range(2):
            indices, graph, provenance = await check(lithos)
            assert indices["actions"] == [
                {"reason": "doc_set_mismatch", "count": 1, "index": "fulltext", "missing": 2, "surplus": 1}
            ]
            reasons = {action["reason"] for action in graph["actions"]}
            assert reasons == {"node_set_mismatch", "edge_set_mismatch"}
            assert provenance["actions"] == [{"reason": "created", "count": 1}]
            assert {each["status"] for each in (indices, graph, provenance)} == {"ok"}


async def test_failed_scope_does_not_stop_the_other_scopes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> Any:
        raise OSError(5, "the disk is gone")

    async with serving(tmp_path) as lithos:
        await lithos.create("One", "Text.")
        monkeypatch.setattr(FulltextPort, "stamps", fail)
        indices, graph, _ = await check(lithos)
    assert indices["failures"][0]["code"] == "index_rebuild_failed"
    assert "the disk is gone" in indices["failures"][0]["detail"]
    assert graph["status"] == "noop"


@pytest.mark.slow
def test_reconcile_command_asks_the_running_server(tmp_path: Path) -> None:
    """behaviour 162: data that the server has not saved yet is not an error. The dry run writes nothing."""
    data = tmp_path / "data"
    with running_lithos(data) as server:
        for number in range(3):
            call_tool(server, "lithos_write", title=f"Note {number}", content="[[Note 0]]", agent="ada")
            done = run_lithos("-d", data, "reconcile", "--dry-run", "--json")
            assert (done.returncode, done.stderr) == (0, "")
            told = json.loads(done.stdout)
            assert [each["status"] for each in told["results"]] == ["noop"] * 3
            assert told["results"][0]["summary"]["scanned"] == number + 1
        before = snapshot(data / "knowledge")
        alone = run_lithos("-d", data, "reconcile", "--dry-run", "-s", "graph")
        assert alone.stdout == "graph: noop, 3 notes checked (dry run, nothing was changed)\n"
        assert snapshot(data / "knowledge") == before
