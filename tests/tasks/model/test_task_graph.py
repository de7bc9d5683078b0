"""Readiness, blockers and gates without a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lithos.kernel.values.errors import InvalidInput
from lithos.tasks.model.graph import TaskGraph, find_path, is_gate_open_to_pass, normalise_gate_metadata
from lithos.tasks.model.task import BLOCKS, WAITS_ON_GATE, Task

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def task(name: str, **fields: Any) -> Task:
    return Task(id=name, title=name.upper(), created_by="a", created_at=NOW, **fields)


def graph(*tasks: Task, **waits: list[tuple[str, str]]) -> TaskGraph:
    return TaskGraph({one.id: one for one in tasks}, waits)


def timer(ready_at: str | None, **fields: Any) -> Task:
    metadata = {"gate_type": "timer"} | ({} if ready_at is None else {"ready_at": ready_at})
    return task("gate", task_type="gate", metadata=metadata, **fields)


def test_task_waits_until_every_predecessor_is_completed() -> None:
    """Behaviours 109, 110."""
    waits = {"c": [("a", BLOCKS), ("b", BLOCKS)]}
    half = graph(task("a", status="completed"), task("b"), task("c"), **waits)
    assert [blocker.task_id for blocker in half.blockers("c", NOW)] == ["b"]
    assert not half.is_ready(half.tasks["c"], NOW)
    whole = graph(task("a", status="completed"), task("b", status="completed"), task("c"), **waits)
    assert whole.is_ready(whole.tasks["c"], NOW)


def test_cancelled_predecessor_is_never_satisfied() -> None:
    """Behaviour 109."""
    one = graph(task("a", status="cancelled"), task("b"), b=[("a", BLOCKS)])
    (blocker,) = one.blockers("b", NOW)
    assert blocker.kind == "blocker_unsatisfiable"
    assert blocker.status == "cancelled"
    assert "intervention" in blocker.message


@pytest.mark.parametrize("kind", ["epic", "gate"])
def test_epics_and_gates_are_never_ready(kind: str) -> None:
    """Behaviour 115."""
    one = task("a", task_type=kind, metadata={"gate_type": "human"})
    assert not graph(one).is_ready(one, NOW)


@pytest.mark.parametrize(
    ("gate", "passes"),
    [
        (timer("2026-05-01T11:59:59Z"), True),
        (timer("2026-05-01T12:00:00Z"), True),
        (timer("2026-05-01T12:00:01Z"), False),
        (timer("2026-05-01T11:00:00Z", status="cancelled"), False),
        (timer("2099-01-01T00:00:00Z", status="completed"), True),
        (timer("soon"), False),
        (timer(None), False),
        (task("gate", task_type="gate", metadata={}), False),
        (task("gate", task_type="gate", metadata={"gate_type": "human"}), False),
    ],
)
def test_gate_opens_by_completion_and_timer_gate_by_time(gate: Task, passes: bool) -> None:
    """Behaviour 117."""
    assert is_gate_open_to_pass(gate, NOW) is passes
    held = graph(gate, task("b"), b=[("gate", WAITS_ON_GATE)])
    assert held.is_ready(held.tasks["b"], NOW) is passes


def test_blocker_entry_of_a_gate_names_type_and_time() -> None:
    one = graph(timer("2026-05-02T00:00:00+00:00"), task("b"), b=[("gate", WAITS_ON_GATE)])
    (blocker,) = one.blockers("b", NOW)
    assert blocker.kind == "gate"
    assert "timer" in blocker.message
    assert "2026-05-02T00:00:00+00:00" in blocker.message


def test_stored_cycle_is_reported_with_its_path() -> None:
    """Behaviour 126."""
    one = graph(task("a"), task("b"), a=[("b", BLOCKS)], b=[("a", BLOCKS)])
    (blocker,) = one.blockers("a", NOW)
    assert blocker.kind == "cycle"
    assert "a -> b -> a" in blocker.message


def test_gate_metadata_is_checked_and_normalised() -> None:
    """Behaviour 116."""
    shifted = (NOW + timedelta(hours=2)).isoformat().replace("+00:00", "+02:00")
    kept = normalise_gate_metadata({"gate_type": "timer", "ready_at": shifted, "x": 1})
    assert kept == {"gate_type": "timer", "ready_at": "2026-05-01T12:00:00+00:00", "x": 1}
    for bad in ({}, {"gate_type": "door"}, {"gate_type": "timer"}, {"gate_type": "timer", "ready_at": 5}):
        with pytest.raises(InvalidInput):
            normalise_gate_metadata(bad)


def test_find_path_returns_the_shortest_path_and_ends_on_cycles() -> None:
    edges = {"a": ["b", "c"], "b": ["a", "d"], "c": ["d"], "d": []}
    assert find_path("a", "d", lambda node: edges[node]) == ["a", "b", "d"]
    assert find_path("a", "x", lambda node: edges[node]) is None
    assert find_path("a", "a", lambda node: edges[node]) == ["a"]
