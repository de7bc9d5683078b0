"""`lithos reconcile --forget-questions` with a running server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from tests.e2e.clients import WireClient
from tests.e2e.process import run_lithos, running_lithos


@pytest.mark.slow
async def test_running_server_deletes_remembered_questions_at_once(tmp_path: Path) -> None:
    """behaviour 268"""
    data = tmp_path / "data"
    with running_lithos(data) as server:
        async with WireClient.open(server.address) as client:
            with trio.fail_after(60):  # citations do not count until the model has computed vectors
                while "semantic search ready" not in server.log():
                    await trio.sleep(0.05)
            notes = []
            for title in ("Zebra", "Okapi"):
                answer = await client.call("lithos_write", title=title, content="striped", agent="ann")
                notes.append(answer["id"])
            task = (await client.call("lithos_task_create", title="T", agent="ann"))["task_id"]
            await client.call("lithos_retrieve", query="who is striped", task_id=task, agent_id="ann")
            await client.call("lithos_task_complete", task_id=task, agent="ann", cited_nodes=notes)

            async def told() -> list[bool]:
                found = await client.call("lithos_retrieve", query="who is striped")
                rows = {row["id"]: row["reasons"][0] for row in found["results"]}
                return [rows[note] == "cited for: who is striped" for note in notes]

            assert await told() == [True, True]
            command = ("-d", data, "reconcile", "--forget-questions", "--json", "--note", notes[0])
            looked = run_lithos(*command, "--dry-run")
            assert json.loads(looked.stdout) == {"dry_run": True, "questions": 1, "forgotten": False}
            assert await told() == [True, True]
            done = run_lithos(*command)
            assert json.loads(done.stdout) == {"dry_run": False, "questions": 1, "forgotten": True}
            assert await told() == [False, True]
        assert server.stop() == 0
