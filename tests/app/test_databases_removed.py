"""Running server whose databases another program removes. The server must refuse changes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.kernel.actors.ownership
from lithos.kernel.databases.database import DatabaseLost
from lithos.server.service_state import ServerState
from tests.repeats import first_of
from tests.servers import Lithos, serving

DATABASES = ("coordination.db", "edges.db", "stats.db", "history.db", "manifest.db")


async def health(server: Lithos) -> dict[str, Any]:
    _, body = await server.server.get(ServerState).report()
    return dict(body["components"])


async def change(server: Lithos, note: str, number: int) -> None:
    """Change one object of every stored kind."""
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


def take_away(data: Path, name: str) -> None:
    if name == ".lithos":
        shutil.rmtree(data / name)
        return
    for file in (data / ".lithos").glob(f"{name}*"):
        file.unlink()


@pytest.mark.parametrize("name", first_of(["coordination.db", "history.db", ".lithos"], 2))
async def test_server_with_a_lost_database_refuses_changes_and_exit_fails(tmp_path: Path, name: str) -> None:
    """docs/spec/lifecycle.md §2: the server must not confirm a change that it cannot store.

    Reads still work.
    """
    with pytest.RaisesGroup(DatabaseLost, allow_unwrapped=True):
        async with serving(tmp_path) as server:
            note = await server.create(content="Before.")
            assert (await health(server))["ownership"] == {"status": "ok"}
            take_away(tmp_path, name)
            refused = await server.call("lithos_write", id=note, content="After.", agent="ada")
            assert refused["status"] == "error"
            assert "restore a backup" in refused["message"]
            assert "Before." in (await server.call("lithos_read", id=note))["content"]
            task = await server.call("lithos_task_create", title="A task", agent="ada")
            assert ("restore a backup" in task.get("message", "")) == (name != "history.db")
            told = (await health(server))["ownership"]
            assert told["status"] == "degraded"
            assert "restore a backup" in told["error"]
    async with serving(tmp_path) as server:
        assert "Before." in (await server.call("lithos_read", id=note))["content"]


@pytest.mark.parametrize("name", first_of(DATABASES, 1))
async def test_lost_database_is_noticed_without_a_change(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/spec/lifecycle.md §2"""
    monkeypatch.setattr(lithos.kernel.actors.ownership, "CONFIRM_EVERY", 0.02)
    with pytest.RaisesGroup(DatabaseLost, allow_unwrapped=True):
        async with serving(tmp_path) as server:
            await change(server, await server.create(), 0)
            take_away(tmp_path, name)
            with trio.fail_after(60):
                while name not in (await health(server))["ownership"].get("error", ""):
                    await trio.sleep(0.02)
