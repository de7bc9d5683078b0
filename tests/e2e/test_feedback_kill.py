"""Kill -9 while tasks are completed with feedback. Each completion must be learned exactly once."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import trio

from lithos.events.rows.store import CoordinationStore
from lithos.tasks.model.task_commands import Lesson
from lithos.tasks.rows.tasks import TaskRows
from tests.e2e.clients import Gone, WireClient
from tests.e2e.process import Lithos, running_lithos
from tests.repeats import repeats

KILLS = repeats("KILLS", 2)
CREWS = 6
PATIENCE = 60.0


async def work(server: Lithos, note: str, acknowledged: list[str]) -> None:
    """Retrieve notes for a task and complete the task. Repeat until the server has ended."""
    try:
        async with WireClient.open(server.address) as client:
            while True:
                task = (await client.call("lithos_task_create", title="Work", agent="a"))["task_id"]
                found = await client.call("lithos_retrieve", query="zanzibar", task_id=task, agent_id="a")
                assert [row["id"] for row in found["results"]] == [note]
                done = await client.call("lithos_task_complete", task_id=task, agent="a", cited_nodes=[note])
                assert done["success"], done
                acknowledged.append(task)
    except Gone:
        return


async def rage(server: Lithos, note: str, acknowledged: list[str], lag: float) -> None:
    """Load the server. Kill it shortly after a few tasks are completed."""
    enough = len(acknowledged) + CREWS
    async with trio.open_nursery() as nursery:
        for _ in range(CREWS):
            nursery.start_soon(work, server, note, acknowledged)
        with trio.fail_after(PATIENCE):
            while len(acknowledged) < enough:
                await trio.sleep(0.002)
            await trio.sleep(lag)
        server.kill()


def lessons(data: Path) -> list[Lesson]:
    """Return the feedback that has not been learned yet, or that must not be learned."""
    store = CoordinationStore.open_read_only(data / ".lithos" / "coordination.db")
    try:
        return store.rows(TaskRows).lessons()
    finally:
        store.close()


@pytest.mark.slow
@pytest.mark.disk
@pytest.mark.takes(5)
@pytest.mark.deadline(180)
@pytest.mark.nightly
async def test_feedback_of_each_completion_is_learned_once_despite_kills(tmp_path: Path) -> None:
    """behaviours 153, 187, 267"""
    data, acknowledged, random = tmp_path / "data", list[str](), Random(5)
    with running_lithos(data) as server:
        async with WireClient.open(server.address) as client:
            note = (await client.call("lithos_write", title="Zanzibar", content="zanzibar", agent="a"))["id"]
        assert server.stop() == 0
    for _ in range(KILLS):
        with running_lithos(data) as server:
            await rage(server, note, acknowledged, random.uniform(0, 0.05))
    with running_lithos(data) as server:
        async with WireClient.open(server.address) as client:
            tasks = (await client.call("lithos_task_list", status="completed"))["tasks"]
            completed = {task["id"] for task in tasks}
            assert completed >= set(acknowledged)
            with trio.fail_after(PATIENCE):
                while lessons(data):
                    await trio.sleep(0.05)
            stats = await client.call("lithos_node_stats", node_id=note)
            assert stats["cited_count"] == len(completed)
            assert [(each["question"], each["for"]) for each in stats["cited_for"]] == [
                ("zanzibar", len(completed))
            ]
        assert server.stop() == 0
