"""Kill -9 after a source is quarantined. Each dependent note must get exactly one verification task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.events.rows.store import CoordinationStore
from lithos.tasks.rows.tasks import TaskRows
from tests.e2e.clients import Gone, WireClient
from tests.e2e.process import running_lithos
from tests.repeats import repeats

pytestmark = pytest.mark.slow

DEPENDENTS = 150
KILLS = repeats("KILLS", 3)
#: Maximum number of additional kills until one kill falls between the quarantine and its tasks. On a busy
#: machine, some kills come too late.
MORE = 12
PATIENCE = 60.0


def reverifications(data: Path) -> list[Any]:
    """Return the stored verification tasks."""
    store = CoordinationStore.open_read_only(data / ".lithos" / "coordination.db")
    try:
        return store.rows(TaskRows).tasks()
    finally:
        store.close()


@pytest.mark.deadline(900)
async def test_repeated_call_creates_the_missing_tasks_after_a_kill(
    tmp_path: Path,
) -> None:
    """behaviour 232: after a kill, all tasks exist or none. The repeated call creates each task only once."""
    data = tmp_path / "data"
    notes = data / "knowledge"
    notes.mkdir(parents=True)
    ids = [f"{number:08}-0000-4000-8000-000000000000" for number in range(KILLS + MORE)]
    for source in ids:
        (notes / f"{source}.md").write_text(f"---\nid: {source}\n---\n# Source {source}\n")
    for number in range(DEPENDENTS):
        (notes / f"n{number}.md").write_text(
            f"---\nderived_from_ids: [{', '.join(ids)}]\n---\n# Note {number}\n"
        )
    outcomes: set[tuple[str, int]] = set()
    for number, source in enumerate(ids):
        if number >= KILLS and ("quarantined", 0) in outcomes:
            break
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
                    await trio.sleep(0.02 * max(0, number % KILLS - 1))
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
