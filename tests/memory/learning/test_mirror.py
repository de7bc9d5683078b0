"""Typed edges in memory, which warnings read. They always equal the stored edges."""

from __future__ import annotations

import attrs
import pytest

from lithos.kernel.values.errors import LithosError
from lithos.memory.model.memory import ProjectProvenance
from lithos.notes.model.edges import EdgeFilter, ResolveConflict
from tests.kernel.actors.memories import EDGE, FULL, Desk

pytestmark = pytest.mark.autojump

RESTS = attrs.evolve(EDGE, type="depends_on")
AGAINST = attrs.evolve(EDGE, type="contradicts")


def mirrored(desk: Desk) -> tuple[list[str], list[str]]:
    """Return the notes that x depends on, and the notes that a contradicts."""
    typed = desk.memory._relations.typed
    return sorted(typed.sources("x")), sorted(typed.opposed("a"))


async def test_edge_is_visible_in_memory_when_the_reply_arrives(desk):
    async with desk.running():
        await desk.ask(RESTS)
        assert mirrored(desk) == (["y"], [])
        await desk.ask(attrs.evolve(RESTS, provenance_type="inferred"))
        assert mirrored(desk) == ([], [])
        edge = await desk.ask(attrs.evolve(AGAINST, from_id="a"))
        assert mirrored(desk) == ([], ["y"])
        await desk.ask(ResolveConflict(edge_id=edge.id, resolution="refuted", resolver="ann"))
        assert mirrored(desk) == ([], [])
        # An inferred contradiction counts. An inferred dependency does not count.
        for kind, to in (("contradicts", "b"), ("depends_on", "c")):
            inferred = attrs.evolve(EDGE, from_id="a", to_id=to, type=kind, provenance_type="inferred")
            await desk.ask(inferred)
        assert mirrored(desk) == ([], ["b"])
        assert not desk.memory._relations.typed.dependents("c")


async def test_next_process_loads_all_edges_except_projected_edges(desk):
    async with desk.running():
        await desk.ask(RESTS)
        await desk.ask(attrs.evolve(RESTS, to_id="z", type="derived_from", provenance_type="asserted"))
        await desk.ask(ProjectProvenance(desired={"x": ("n", ("w",))}))
        assert mirrored(desk) == (["y", "z"], [])
    desk.reopen()
    async with desk.running():
        assert mirrored(desk) == (["y", "z"], [])


@pytest.mark.parametrize("where", ["failure", "instead_of_commit", "after_commit"])
async def test_memory_equals_stored_edges_after_a_failed_batch(desk, where):
    """An edge may be stored although the command is refused."""
    async with desk.running():
        await desk.ask(RESTS)
        setattr(desk.edges_switch, where, FULL)
        with pytest.raises(LithosError):
            await desk.ask(attrs.evolve(AGAINST, from_id="a"))
        setattr(desk.edges_switch, where, None)
        stored = [edge.to_id for edge in desk.edges.edges(EdgeFilter(type="contradicts"))]
        assert mirrored(desk) == (["y"], stored)


async def test_restarted_actor_reads_all_edges_again(desk):
    async with desk.running():
        desk.edges_switch.after_commit = RuntimeError("a crash between the commit and the mirror")
        with pytest.raises(Exception, match="crash"):
            await desk.ask(RESTS)
        desk.edges_switch.after_commit = None
        await desk.ask(AGAINST)  # the restarted actor answers
        assert mirrored(desk) == (["y"], [])
