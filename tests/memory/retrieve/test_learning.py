"""Lessons about all notes. Learning them in slices gives the same result as learning them at once."""

from __future__ import annotations

import pytest
import trio

import lithos.memory.retrieve.feedback
from lithos.kernel.actors.threads import Inline
from lithos.kernel.values.errors import StorageFailed
from lithos.memory.model.memory import ProjectionOutcome, ProjectProvenance
from lithos.memory.retrieve.feedback import Learning
from lithos.notes.model.edges import EdgeFilter
from tests.kernel.actors.memories import EDGE, FULL, Desk, retrieval

pytestmark = pytest.mark.autojump


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.setattr(lithos.memory.retrieve.feedback, "SLICE", 2)
    desk = Desk(tmp_path)
    desk.learning = Learning(desk.memory.mailbox, desk.stats, Inline())
    yield desk
    desk.close()


async def test_complete_projection_leaves_no_outdated_edges(desk):
    """behaviour 88"""

    async def body():
        desired = {f"n{number}": ("n", ("s",)) for number in range(5)}
        everything = ProjectProvenance(desired=desired, complete=True)
        await desk.ask(ProjectProvenance(desired={"stale": ("n", ("s", "t")), "n1": ("n", ("t",))}))
        dry = await desk.learning.submit(ProjectProvenance(desired=desired, complete=True, dry_run=True))
        assert await desk.learning.submit(everything) == dry == ProjectionOutcome(created=5, removed=3)
        assert {edge.from_id for edge in desk.edges.edges(EdgeFilter(to_id="s"))} == set(desired)
        assert await desk.learning.submit(everything) == ProjectionOutcome()
        assert await desk.learning.submit(ProjectProvenance(desired={}, complete=True)) == ProjectionOutcome(
            0, 5
        )
        assert desk.edges.edges(EdgeFilter()) == []

    await desk.run(body)


async def test_read_functions_return_the_learned_data(desk):
    async def body():
        await desk.learning.submit(retrieval(1, "a", "b"))
        learning = desk.learning
        assert set(await learning.stats(["a", "x"])) == {"a"}
        assert set(await learning.stats(["a", "b"])) == {"a", "b"}
        receipt = await learning.receipt("r1")
        assert receipt == await learning.newest_receipt("t", "ann")
        assert receipt is not None
        assert await learning.read(lambda tables: tables.queue.length()) == 0

    await desk.run(body)


async def test_refused_or_unanswered_commands_raise_storage_failed(desk):
    async def body():
        desk.stats_switch.failure = FULL
        with pytest.raises(StorageFailed, match="disk is full"):
            await desk.learning.submit(retrieval(1, "a"))
        await desk.ask(EDGE)

    await desk.run(body)
    with trio.fail_after(1), pytest.raises(StorageFailed, match="nothing was changed"):
        await desk.learning.submit(retrieval(1, "a"))
