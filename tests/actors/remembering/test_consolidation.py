"""What a task used again and again is strengthened once, even if the process ends in the midst."""

from __future__ import annotations

import apsw
import pytest

from lithos.core.learning.edges import EdgeFilter
from lithos.core.learning.memory import Consolidate
from tests.actors.memories import SPACES, Killed, fill_working_memory, nodes, retrieval, weights

pytestmark = pytest.mark.autojump


def is_consolidated_once(desk) -> bool:
    salience = {id: round(stats.salience, 9) for id, stats in nodes(desk).items()}
    return weights(desk) == {"ab": 0.53} and salience == {"a": 0.51, "b": 0.51, "c": 0.5, "d": 0.51}


async def test_a_task_is_consolidated_once(desk):
    """behaviour 155"""
    async with desk.running():
        await fill_working_memory(desk)
        assert await desk.ask(Consolidate("t", SPACES)) == 3
        assert is_consolidated_once(desk)
        assert await desk.ask(Consolidate("t", SPACES)) == 0
        await desk.ask(retrieval(3, "c"))
        assert await desk.ask(Consolidate("t", SPACES)) == 0
        assert is_consolidated_once(desk)


async def test_a_pair_without_edge_gets_a_weak_one(desk):
    """behaviour 155"""
    async with desk.running():
        for number in (1, 2):
            await desk.ask(retrieval(number, "b", "a"))
        await desk.ask(Consolidate("t", {"b": "n", "a": "n"}))
        (edge,) = desk.edges.edges(EdgeFilter())
        assert (edge.from_id, edge.to_id, edge.type, edge.weight, edge.namespace, edge.provenance_type) == (
            "a", "b", "related_to", 0.03, "n", "consolidation",
        )  # fmt: skip
        assert desk.told() == []


@pytest.mark.parametrize("where", ["failure", "instead_of_commit", "after_commit"])
@pytest.mark.parametrize("store", ["edges_switch", "stats_switch"])
async def test_a_consolidation_cut_off_anywhere_is_completed_and_not_doubled(desk, store, where):
    """behaviour 155"""
    async with desk.killed():
        await fill_working_memory(desk)
        setattr(getattr(desk, store), where, Killed())
        await desk.ask(Consolidate("t", SPACES))
    was_committed = (store, where) == ("stats_switch", "after_commit")
    assert is_consolidated_once(desk) == was_committed
    edges_were_committed = (store, where) in [
        ("edges_switch", "after_commit"),
        ("stats_switch", "instead_of_commit"),
        ("stats_switch", "after_commit"),
    ]
    assert weights(desk) == {"ab": 0.53 if edges_were_committed else 0.5}
    async with desk.running():
        assert await desk.ask(Consolidate("t", SPACES)) == (0 if was_committed else 3)
        assert is_consolidated_once(desk)
        assert await desk.ask(Consolidate("t", SPACES)) == 0
        assert is_consolidated_once(desk)


async def test_what_an_older_version_has_entered_in_the_ledgers_is_not_repeated(desk):
    """behaviour 155"""
    async with desk.running():
        await fill_working_memory(desk)
        connection = apsw.Connection(str(desk.root / "stats.db"))
        connection.execute(
            "INSERT INTO consolidation_edge_ops VALUES('t','a','b',NULL);"
            "INSERT INTO consolidation_salience_ops VALUES('t','a',NULL)"
        )
        connection.close()
        assert await desk.ask(Consolidate("t", SPACES)) == 2
        assert weights(desk) == {"ab": 0.5}
        assert (nodes(desk)["a"].salience, nodes(desk)["b"].salience) == (0.5, 0.51)
