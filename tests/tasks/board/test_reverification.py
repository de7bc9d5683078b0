"""Re-verifications on a task board without actors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values.limits import TITLE
from lithos.tasks.board.reverification import MOST
from lithos.tasks.model.task import PARENT_CHILD
from lithos.tasks.model.task_commands import (
    CancelTask,
    CompleteTask,
    Dependent,
    OpenReverification,
    Reverification,
)
from tests.kernel.actors.boards import Board


def note(name: str, title: str | None = None) -> Dependent:
    return Dependent(name, title or name.upper(), f"{name}.md")


def verify(board: Board, *names: str, source: str = "s", reason: str = "r") -> Reverification:
    command = OpenReverification(
        agent="ann", note=note(source), reason=reason, dependents=tuple(map(note, names))
    )
    reply: Reverification = board.run(command)
    return reply


def test_reverification_epic_is_created_first_as_parent_of_all_tasks() -> None:
    """behaviour 232"""
    board = Board()
    epic, *tasks = verify(board, "a", "b").task_ids
    assert [edge.target for edge in board.rows.edges_from(epic, (PARENT_CHILD,))] == tasks
    assert [event.type for event in board.events] == [
        "task.created", "task.created", "task.ready", "task.created", "task.ready",
    ]  # fmt: skip
    before = board.dump(), len(board.events)
    assert verify(board, "a", "b").task_ids == (epic, *tasks)
    assert (board.dump(), len(board.events)) == before


def test_each_doubtful_note_gets_its_own_task() -> None:
    board = Board()
    assert not {*verify(board, "a").task_ids} & {*verify(board, "a", source="other").task_ids}


def test_open_reverifications_are_limited_and_the_rest_follows_later() -> None:
    """behaviour 232"""
    board = Board()
    names = [f"n{number:03}" for number in range(MOST + 3)]
    first = verify(board, *names)
    assert (len(first.task_ids), first.is_complete) == (MOST + 1, False)
    assert verify(board, *names) == first
    for task in first.task_ids[1:3]:
        board.run(CompleteTask(task_id=task, agent="ann"))
    second = verify(board, *names)
    assert (len(second.task_ids), second.is_complete) == (MOST + 3, False)
    for task in first.task_ids[3:5]:
        board.run(CancelTask(task_id=task, agent="ann"))
    third = verify(board, *names)
    assert (len(third.task_ids), third.is_complete) == (MOST + 4, True)


def test_long_titles_are_cut_to_the_task_limit() -> None:
    board = Board()
    long = note("a", "t" * TITLE)
    command = OpenReverification(agent="ann", note=long, reason="r" * TITLE, dependents=(long,))
    for task_id in board.run(command).task_ids:
        task = board.rows.task(task_id)
        assert task is not None
        assert len(task.title) == TITLE


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("verify"), st.sets(st.sampled_from("abcd")), st.sampled_from("rq")),
            st.tuples(st.sampled_from(("complete", "cancel")), st.integers(0, 10), st.none()),
        ),
        max_size=12,
    )
)
def test_dependent_note_never_has_two_open_tasks(
    steps: list[tuple[str, object, str | None]],
) -> None:
    """behaviour 232"""
    board = Board()
    for kind, what, reason in steps:
        if isinstance(what, set):
            told = verify(board, *sorted(what), reason=str(reason))
            tasks = [
                task for one in told.task_ids if (task := board.rows.task(one)) and task.task_type == "task"
            ]
            assert [task.metadata["verify"] for task in tasks] == sorted(what)
        else:
            opened = board.rows.tasks(status="open")
            if opened:
                assert isinstance(what, int)
                task_id = opened[what % len(opened)].id
                ends = CompleteTask if kind == "complete" else CancelTask
                board.run(ends(task_id=task_id, agent="ann"))
        verified = [task.metadata.get("verify") for task in board.rows.tasks(status="open")]
        assert len(verified) == len(set(verified)), "one epic, and one task for each"
