"""Task board without actors: its state after refused commands, and internal details."""

from __future__ import annotations

import pytest

from lithos.tasks.model.task import BLOCKS, PARENT_CHILD, WAITS_ON_GATE
from lithos.tasks.model.task_commands import (
    ClaimAspect,
    CompleteTask,
    CreateTask,
    NextTask,
    ReleaseClaim,
    RenewClaim,
    ReopenTask,
    SpawnTask,
    UpdateTask,
    UpsertTaskEdge,
)
from tests.kernel.actors.boards import START, Board

GATE = {"gate_type": "human"}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (CreateTask(title="T", agent="a", task_type="story"), "invalid_task_type"),
        (CreateTask(title="T", agent="a", metadata={"blocked_on": None}), "invalid_metadata_key"),
        (CreateTask(title="T", agent="a", task_type="gate"), "invalid_input"),
        (CreateTask(title="T", agent="a", depends_on=("id-0001", "no")), "task_not_found"),
        (CreateTask(title="T", agent="a", depends_on=("id-0001",), parent_task_id="no"), "task_not_found"),
        (UpdateTask(task_id="no", agent="a", title="N"), "task_not_found"),
        (UpdateTask(task_id="no", agent="a", metadata={"depends_on": []}), "invalid_metadata_key"),
        (SpawnTask(source_task_id="no", title="T", agent="a"), "task_not_found"),
        (SpawnTask(source_task_id="no", title="T", agent="a", relation_type="x"), "invalid_relation_type"),
        (ReopenTask(task_id="id-0001", agent="a"), "task_not_resolved"),
        (ClaimAspect(task_id="no", aspect="x", agent="a"), "claim_failed"),
        (RenewClaim(task_id="id-0001", aspect="x", agent="a"), "claim_not_found"),
        (UpsertTaskEdge(source="id-0001", target="no", type="x", agent="a"), "invalid_edge_type"),
    ],
)
def test_refused_command_changes_and_announces_nothing(command: object, code: str) -> None:
    """behaviours 104, 114, 116, 119, 127: edges and tasks created before the refusal are also removed."""
    board = Board()
    board.create("first")
    assert board.refusal(command).code == code  # type: ignore[arg-type]


def test_refused_claim_does_not_use_up_a_fence() -> None:
    """behaviour 192"""
    board = Board()
    task = board.create()
    board.run(ClaimAspect(task_id=task, aspect="x", agent="a"))
    fences = board.connection.execute("SELECT value FROM counters").fetchall()
    board.refusal(ClaimAspect(task_id=task, aspect="x", agent="b"))
    assert board.connection.execute("SELECT value FROM counters").fetchall() == fences


def test_renewal_does_not_change_the_start_of_the_claim() -> None:
    """behaviour 192: a renewal is not a new grant."""
    board = Board()
    task = board.create()
    board.run(ClaimAspect(task_id=task, aspect="x", agent="a"))
    board.pass_time(minutes=5)
    board.run(RenewClaim(task_id=task, aspect="x", agent="a"))
    ((claimed_at,),) = board.connection.execute("SELECT claimed_at FROM claims").fetchall()
    assert claimed_at == START.isoformat(timespec="microseconds")
    board.run(ReleaseClaim(task_id=task, aspect="x", agent="a"))
    assert board.connection.execute("SELECT * FROM claims").fetchall() == []


def test_edges_to_deleted_tasks_do_not_block() -> None:
    """behaviours 109, 120: a file that a person edited must not stop the coordinator."""
    board = Board()
    task, gone = board.create("task"), board.create("gone")
    waiting = board.create("waiting", depends_on=(task, gone))
    board.run(UpsertTaskEdge(source=task, target=gone, type=BLOCKS, agent="a"))
    board.run(UpsertTaskEdge(source=task, target=gone, type=PARENT_CHILD, agent="a"))
    board.connection.execute("DELETE FROM tasks WHERE id=?", (gone,))
    assert board.rows.children(task) == []
    graph = board.rows.graph_before([waiting], transitively=True)
    assert [blocker.task_id for blocker in graph.blockers(waiting, board.now)] == [task]
    assert board.run(CompleteTask(task_id=task, agent="a")) == [waiting]
    assert board.run(ReopenTask(task_id=task, agent="a")) == [waiting]


def test_reopened_gate_with_two_edges_reports_its_task_once() -> None:
    """behaviour 121"""
    board = Board()
    gate = board.create("gate", task_type="gate", metadata=GATE)
    task = board.create("task")
    for kind in (BLOCKS, WAITS_ON_GATE):
        board.run(UpsertTaskEdge(source=gate, target=task, type=kind, agent="a"))
    assert board.run(CompleteTask(task_id=gate, agent="a")) == [task]
    assert board.run(ReopenTask(task_id=gate, agent="a")) == [task]
    kinds = [blocker.type for blocker in board.rows.graph_before([task]).blockers(task, board.now)]
    assert kinds == [BLOCKS, WAITS_ON_GATE]


def test_child_waits_until_the_blocker_of_its_epic_closes() -> None:
    """Behaviour 403."""
    board = Board()
    before = board.create("Design")
    epic = board.create("Build", task_type="epic", depends_on=(before,))
    inner = board.create("Server", task_type="epic", parent_task_id=epic)
    child = board.create("Write it", parent_task_id=inner)
    free = board.create("Free")
    given = [board.run(NextTask(agent=agent)) for agent in ("a", "b", "c")]
    assert [None if one is None else one.task.id for one in given] == [before, free, None]
    (blocker,) = board.rows.graph_before([child]).blockers(child, board.now)
    assert (blocker.kind, blocker.task_id) == ("task", before)
    assert "part of 'Build'" in blocker.message

    board.events.clear()
    assert board.run(CompleteTask(task_id=before, agent="a")) == [child]
    assert [event.payload["task_id"] for event in board.events if event.type == "task.ready"] == [child]
    assert board.run(NextTask(agent="c")).task.id == child


def test_epic_waiting_for_its_child_blocks_no_other_child() -> None:
    """Behaviour 403."""
    board = Board()
    epic = board.create("Epic", task_type="epic")
    last, other = (board.create(title, parent_task_id=epic) for title in ("Last", "Other"))
    board.run(UpsertTaskEdge(source=last, target=epic, type=BLOCKS, agent="a"))
    assert board.rows.ready.are_ready([last, other]) == {last, other}


def test_closed_epic_unblocks_its_children_and_reopened_epic_blocks_them() -> None:
    """Behaviour 403."""
    board = Board()
    before = board.create("Before")
    epic = board.create("Epic", task_type="epic", depends_on=(before,))
    child = board.create("Child", parent_task_id=epic)
    board.run(CompleteTask(task_id=epic, agent="a"))
    assert board.rows.ready.are_ready([child]) == {child}
    board.run(ReopenTask(task_id=epic, agent="a"))
    assert board.rows.ready.are_ready([child]) == set()


def test_task_does_not_inherit_a_blocker_that_waits_for_it() -> None:
    """Behaviour 403."""
    board = Board()
    epic = board.create("Epic", task_type="epic")
    child = board.create("Child", parent_task_id=epic)
    review = board.create("Review", depends_on=(child,))
    board.run(UpsertTaskEdge(source=review, target=epic, type=BLOCKS, agent="a"))
    assert board.rows.ready.are_ready([child]) == {child}


def test_edge_is_refused_when_epics_would_wait_for_each_other() -> None:
    """Behaviour 403."""
    board = Board()
    one, two = (board.create(title, task_type="epic") for title in ("One", "Two"))
    first, second = board.create("First", parent_task_id=one), board.create("Second", parent_task_id=two)
    board.run(UpsertTaskEdge(source=first, target=two, type=BLOCKS, agent="a"))
    refused = board.refusal(UpsertTaskEdge(source=second, target=one, type=BLOCKS, agent="a"))
    assert refused.code == "cycle"
    assert "parent" in refused.message
