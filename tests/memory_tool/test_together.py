"""Two programs with one memory: no change is lost, and line numbers stay right."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from lithos.memory_tool import LithosMemory
from lithos.memory_tool.folder import FolderStore
from lithos.memory_tool.positions import line_now
from lithos.memory_tool.refusals import Changed
from lithos.memory_tool.server import ServerStore
from tests.memory_tool.backends import Make, ask, refused, text_of

pytestmark = pytest.mark.needs("memory_tool")

PATH = "/memories/notes.md"


def run_together(*works: Callable[[], None]) -> None:
    """Run functions in threads at the same time, and raise the first failure."""
    failures: list[BaseException] = []
    barrier = threading.Barrier(len(works))

    def target(work: Callable[[], None]) -> None:
        barrier.wait()
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 - raised again by the test
            failures.append(failure)

    threads = [threading.Thread(target=target, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_two_agents_that_insert_in_one_file_lose_nothing(make: Make) -> None:
    """behaviour 326"""
    ask(make(), "create", PATH, file_text="top\nmiddle\nend\n")

    def insert(name: str) -> None:
        memory = make()
        ask(memory, "view", PATH)
        for number in range(8):
            ask(memory, "insert", PATH, insert_line=number % 3, insert_text=f"{name}{number}")

    run_together(lambda: insert("ann"), lambda: insert("ben"))
    lines = text_of(make(), PATH).split("\n")
    expected = {f"{name}{number}" for name in ("ann", "ben") for number in range(8)}
    assert sorted(lines) == sorted(expected | {"top", "middle", "end"})
    assert [each for each in lines if each in ("top", "middle", "end")] == ["top", "middle", "end"]


def test_two_agents_that_replace_in_one_file_lose_nothing(make: Make) -> None:
    """behaviour 326"""
    rows = [f"{name}{number}: open" for number in range(6) for name in ("ann", "ben")]
    ask(make(), "create", PATH, file_text="\n".join(rows) + "\n")

    def close(name: str) -> None:
        memory = make()
        for number in range(6):
            ask(memory, "str_replace", PATH, old_str=f"{name}{number}: open", new_str=f"{name}{number}: done")

    run_together(lambda: close("ann"), lambda: close("ben"))
    assert text_of(make(), PATH).split("\n") == [row.replace("open", "done") for row in rows]


def test_only_one_of_two_agents_creates_a_file(make: Make) -> None:
    results: list[str] = []

    def create(name: str) -> None:
        memory = make()
        try:
            results.append(ask(memory, "create", PATH, file_text=name))
        except Exception as refusal:  # noqa: BLE001 - the test checks the message
            results.append(str(refusal))

    run_together(lambda: create("ann"), lambda: create("ben"))
    assert sorted(results) == [f"File {PATH} already exists", f"File created successfully at: {PATH}"]
    assert text_of(make(), PATH) in ("ann", "ben")


def test_line_numbers_are_those_that_the_model_saw(make: Make) -> None:
    """behaviour 326"""
    mine, other = make(), make()
    ask(mine, "create", PATH, file_text="a\nb\nc\n")
    ask(other, "insert", PATH, insert_line=0, insert_text="new 1\nnew 2")
    ask(mine, "insert", PATH, insert_line=2, insert_text="after b")
    ask(mine, "insert", PATH, insert_line=3, insert_text="after that")
    assert text_of(other, PATH).split("\n") == ["new 1", "new 2", "a", "b", "after b", "after that", "c"]
    ask(mine, "view", PATH)
    ask(mine, "insert", PATH, insert_line=7, insert_text="end")
    assert text_of(other, PATH).endswith("c\nend")


def test_replacement_of_a_text_that_another_agent_changed_is_refused(make: Make) -> None:
    mine, other = make(), make()
    ask(mine, "create", PATH, file_text="color: blue\n")
    ask(other, "str_replace", PATH, old_str="blue", new_str="red")
    message = refused(mine, "str_replace", PATH, old_str="color: blue", new_str="color: green")
    assert message == (
        f"No replacement was performed, old_str `color: blue` did not appear verbatim in {PATH}."
    )
    assert text_of(mine, PATH) == "color: red"


def test_file_that_another_agent_deleted_is_missing(make: Make) -> None:
    mine, other = make(), make()
    ask(mine, "create", PATH, file_text="a\n")
    ask(other, "delete", PATH)
    for command, more in (("insert", {"insert_line": 1, "insert_text": "b"}), ("view", {})):
        message = refused(mine, command, PATH, **more)
        assert message == f"The path {PATH} does not exist. Please provide a valid path."


def test_endless_changes_by_others_end_with_a_clear_answer(
    memory: LithosMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(memory, "create", PATH, file_text="a\n")
    calls: list[Changed] = []

    def fail(*given: object) -> None:
        calls.append(Changed())
        raise calls[-1]

    for store in (FolderStore, ServerStore):
        monkeypatch.setattr(store, "replace", fail)
        monkeypatch.setattr(store, "remove", fail)
    message = refused(memory, "insert", PATH, insert_line=0, insert_text="b")
    assert "was changed by others 20 times" in message
    assert len(calls) == 20
    assert "changed by others at the same time" in refused(memory, "delete", PATH)
    assert text_of(memory, PATH) == "a"


def test_threads_of_one_program_take_turns(memory: LithosMemory) -> None:
    ask(memory, "create", PATH, file_text="")

    def append() -> None:
        for _ in range(5):
            ask(memory, "insert", PATH, insert_line=0, insert_text="line")

    run_together(append, append)
    assert text_of(memory, PATH).split("\n") == ["line"] * 10


@pytest.mark.parametrize(
    ("seen", "now", "line", "expected"),
    [
        ("a\nb\nc\n", "a\nb\nc\n", 2, 2),
        ("a\nb\nc\n", "x\na\nb\nc\n", 2, 3),
        ("a\nb\nc\n", "x\na\nb\nc\n", 0, 0),
        ("a\nb\nc\n", "b\nc\n", 1, 0),
        ("a\nb\nc\n", "a\nx\ny\nc\n", 2, 3),
        ("a\nb\n", "a\nB\nc\nd\n", 2, 4),
        ("a\nb\n", "x\ny\n", 2, 2),
        ("", "x\n", 0, 0),
        ("a\n", "", 1, 0),
        ("a\n", "a\nb\n", 2, 2),
        ("a\n", "a\nb\n", 7, 7),
    ],
)
def test_position_moves_with_the_lines_next_to_it(seen: str, now: str, line: int, expected: int) -> None:
    assert line_now(seen, now, line) == expected
