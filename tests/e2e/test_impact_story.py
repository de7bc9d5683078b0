"""A source is wrong: what rests on it is told, verified again once, and the source cleared, over MCP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from mcp.client import Client

from lithos.stores.coordination.store import CoordinationStore
from tests.e2e.clients import Gone, WireClient, call, connected
from tests.e2e.process import running_lithos
from tests.repeats import repeats

pytestmark = pytest.mark.slow

DEPENDENTS = 150
KILLS = repeats("KILLS", 3)
PATIENCE = 30.0


async def write(client: Client, title: str, sources: list[str]) -> str:
    content = f"{title} is written down here."
    written = await call(
        client, "lithos_write", title=title, content=content, agent="ana", derived_from_ids=sources
    )
    return str(written["id"])


def reverifications(data: Path) -> list[Any]:
    """The tasks there are, as stored."""
    store = CoordinationStore.open_read_only(data / ".lithos" / "coordination.db")
    try:
        return store.readable_task_rows().tasks()
    finally:
        store.close()


async def test_a_source_is_quarantined_verified_again_and_cleared(tmp_path: Path) -> None:
    """behaviour 232"""
    data = tmp_path / "data"
    with running_lithos(data) as server:
        async with connected("mcp", url=server.url) as client:
            source = await write(client, "Limits of the interface", [])
            near = await write(client, "How fast we may ask", [source])
            far = await write(client, "Plan of the importer", [near])
            task = (await call(client, "lithos_task_create", title="Write the importer", agent="ben"))[
                "task_id"
            ]
            await call(client, "lithos_read", id=source, agent_id="ben")
            await call(
                client, "lithos_finding_post", task_id=task, agent="ben", summary="100 a minute.",
                knowledge_id=source,
            )  # fmt: skip
            await call(client, "lithos_task_complete", task_id=task, agent="ben", cited_nodes=[source, near])
            files = {path: path.read_bytes() for path in (data / "knowledge").rglob("*.md")}

            preview = await call(client, "lithos_impact", id=source)
            assert [(row["id"], row["distance"]) for row in preview["dependents"]] == [(near, 1), (far, 2)]
            assert [(row["task_id"], row["status"], row["how"]) for row in preview["tasks"]] == [
                (task, "completed", "finding")
            ]
            assert [(row["agent"], row["reads"]) for row in preview["readers"]] == [("ben", 1)]
            assert (preview["status"], preview["task_ids"], preview["truncated"]) == ("active", [], False)
            assert {path: path.read_bytes() for path in (data / "knowledge").rglob("*.md")} == files
            assert await call(client, "lithos_task_list", status="open") == {"tasks": [], "total": 0}

            doubt = {
                "id": source, "action": "quarantine", "agent": "cleo", "open_tasks": True,
                "reason": "The limit was halved in March.",
            }  # fmt: skip
            done = await call(client, "lithos_impact", **doubt)
            epic, verify = done["task_ids"]
            assert done["status"] == "quarantined"
            assert await call(client, "lithos_impact", **doubt) == done
            assert (await call(client, "lithos_task_list", status="open"))["total"] == 2

            given = await call(client, "lithos_task_next", agent="dan")
            assert given["task"]["id"] == verify
            assert given["task"]["title"] == "Re-verify How fast we may ask"
            assert near in given["task"]["description"]
            await call(
                client, "lithos_note_edit", id=near, agent="dan", op="append", text="50 a minute since March."
            )
            await call(
                client, "lithos_task_complete", task_id=verify, agent="dan", fence=given["fence"],
                outcome="Corrected.",
            )  # fmt: skip
            await call(client, "lithos_task_complete", task_id=epic, agent="dan")

            cleared = await call(client, "lithos_impact", id=source, action="clear", agent="cleo")
            assert (cleared["status"], cleared["task_ids"]) == ("active", [])
            read = await call(client, "lithos_read", id=source)
            assert (read["version"], read["metadata"]["status"]) == (3, "active")
            assert (await call(client, "lithos_task_list", status="open"))["total"] == 0
            for note, title in ((far, "plan-of-the-importer.md"), (source, "limits-of-the-interface.md")):
                assert (await call(client, "lithos_read", id=note))["path"] == title
            unchanged = data / "knowledge" / "plan-of-the-importer.md"
            assert unchanged.read_bytes() == files[unchanged], "dependents' files are not changed"
        assert server.stop() == 0


@pytest.mark.deadline(180)
async def test_a_kill_between_the_quarantine_and_its_tasks_is_repaired_by_the_same_call(
    tmp_path: Path,
) -> None:
    """behaviour 232: after a kill there are all tasks or none; the repeated call makes each once."""
    data = tmp_path / "data"
    notes = data / "knowledge"
    notes.mkdir(parents=True)
    ids = [f"{number:08}-0000-4000-8000-000000000000" for number in range(KILLS)]
    for source in ids:
        (notes / f"{source}.md").write_text(f"---\nid: {source}\n---\n# Source {source}\n")
    for number in range(DEPENDENTS):
        (notes / f"n{number}.md").write_text(
            f"---\nderived_from_ids: [{', '.join(ids)}]\n---\n# Note {number}\n"
        )
    outcomes: set[tuple[str, int]] = set()
    for number, source in enumerate(ids):
        doubt = {"id": source, "action": "quarantine", "agent": "a", "reason": "r", "open_tasks": True}

        async def quarantine(address: tuple[str, int], doubt: dict[str, Any] = doubt) -> None:
            try:
                async with WireClient.open(address) as client:
                    await client.call("lithos_impact", **doubt)
            except Gone:
                return

        with running_lithos(data) as server:
            async with WireClient.open(server.address) as client:
                await client.call("lithos_list", limit=1)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(quarantine, server.address)
                text = (notes / f"{source}.md").read_text
                with trio.move_on_after(PATIENCE):
                    while number and "quarantined" not in text():
                        await trio.sleep(0.001)
                    await trio.sleep(0.02 * max(0, number - 1))
                server.kill()
        made = [task for task in reverifications(data) if task.metadata["impact_of"] == source]
        assert len(made) in (0, DEPENDENTS + 1)
        outcomes.add(("quarantined" if "quarantined" in text() else "active", len(made)))
        with running_lithos(data) as server:
            async with WireClient.open(server.address) as client:
                done = await client.call("lithos_impact", **doubt)
                assert done == await client.call("lithos_impact", **doubt)
            assert server.stop() == 0
        made = [task for task in reverifications(data) if task.metadata["impact_of"] == source]
        assert {task.id for task in made} == set(done["task_ids"])
        assert len(made) == DEPENDENTS + 1
        assert "version: 2" in text(), "one update of the note, however often it was asked for"
    assert ("quarantined", 0) in outcomes, outcomes
