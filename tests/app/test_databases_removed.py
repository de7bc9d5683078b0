"""A served data directory whose databases other programs remove: nothing acknowledged is lost."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.app.stores
from tests.repeats import first_of
from tests.servers import Lithos, serving

DATABASES = ("coordination.db", "edges.db", "stats.db", "history.db", "manifest.db")


async def health(server: Lithos) -> dict[str, Any]:
    _, body = await server.server.state.report()
    return dict(body["components"])


async def change(server: Lithos, note: str, number: int) -> None:
    """Something of everything that is kept."""
    await server.write(id=note, content=f"Text {number}.")
    task = await server.call("lithos_task_create", title=f"Task {number}", agent="ada")
    assert task["task_id"]
    edge = await server.call(
        "lithos_edge_upsert", from_id=note, to_id=note, type=f"kind_{number}", weight=1.0,
        namespace="default", agent="ada",
    )  # fmt: skip
    assert edge["edge_id"]
    await server.call("lithos_retrieve", query="text", agent_id="ada")
    assert (server.data / ".lithos" / "stats.db").exists()


async def assert_kept(server: Lithos, note: str, changes: int) -> None:
    versions = await server.call("lithos_history", id=note)
    tasks = await server.call("lithos_task_list")
    edges = await server.call("lithos_edge_list")
    assert len(versions["versions"]) == changes + 1
    assert {task["title"] for task in tasks["tasks"]} == {f"Task {number}" for number in range(changes)}
    assert {edge["type"] for edge in edges["results"]} == {f"kind_{number}" for number in range(changes)}


def take_away(data: Path, name: str) -> None:
    if name == ".lithos":
        shutil.rmtree(data / name)
        return
    for file in (data / ".lithos").glob(f"{name}*"):
        file.unlink()


@pytest.mark.parametrize("name", first_of(["coordination.db", ".lithos", *DATABASES[1:]], 2))
async def test_what_is_acknowledged_after_a_loss_is_there_after_a_restart(tmp_path: Path, name: str) -> None:
    """docs/spec/lifecycle.md §2"""
    async with serving(tmp_path) as server:
        note = await server.create()
        await change(server, note, 0)
        assert (await health(server))["ownership"] == {"status": "ok"}
        take_away(tmp_path, name)
        await change(server, note, 1)
        await assert_kept(server, note, 2)
    async with serving(tmp_path) as server:
        await assert_kept(server, note, 2)


@pytest.mark.parametrize("name", first_of(DATABASES[:-1], 1))
async def test_a_loss_is_noticed_and_mended_without_a_write(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/spec/lifecycle.md §2"""
    monkeypatch.setattr(lithos.app.stores, "CONFIRM_EVERY", 0.02)
    async with serving(tmp_path / "data") as server:
        note = await server.create()
        await change(server, note, 0)
        take_away(tmp_path / "data", name)
        with trio.fail_after(60):
            while f"{name} was removed or replaced" not in (await health(server))["ownership"].get(
                "error", ""
            ):
                await trio.sleep(0.02)
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
        told = await health(server)
        assert [part for part, state in told.items() if state["status"] != "ok"] == ["ownership"]
        assert "put back with everything in it" in told["ownership"]["error"]
    async with serving(tmp_path / "killed") as server:
        await assert_kept(server, note, 1)
