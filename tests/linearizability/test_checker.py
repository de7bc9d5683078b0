"""The linearizability checker itself, tested with histories that can and cannot be explained."""

from __future__ import annotations

from typing import Any

import pytest

from tests.linearizability.checker import NEVER, UNKNOWN, Operation, check
from tests.linearizability.models import NoteModel, TaskModel

NOTES, COUNTED, TASKS = NoteModel(outside_counts=False), NoteModel(outside_counts=True), TaskModel()
REFUSED: dict[str, tuple[Any, ...]] = {
    "conflict": ("version_conflict", 2), "gone": ("not_found",), "closed": ("closed",), "held": ("held",),
}  # fmt: skip


def _word(text: str) -> Any:
    return None if text == "-" else int(text) if text.isdigit() else text.strip("'")


def _operation(row: str) -> Operation:
    """Parse a row of the form `client name arguments = result begin-end`.

    The result `?` stands for a lost answer.
    """
    done, _, told = row.partition(" = ")
    client, name, *given = done.split()
    *words, times = told.split()
    begin, _, end = times.partition("-")
    arguments = tuple(map(_word, given))
    if name in ("write", "patch"):
        key = "body" if name == "write" else "tag"
        arguments = (arguments[0], ((key, arguments[1]),))
    if words == ["?"]:
        return Operation("x", client, name, arguments or None, UNKNOWN, int(begin), NEVER)
    result = ("refused", *REFUSED[words[0]]) if words[0] in REFUSED else ("ok", *map(_word, words[1:]))
    if name == "look":
        result = ("ok", words[1], (tuple(map(_word, words[2:])),))
    return Operation("x", client, name, arguments or None, result, int(begin), int(end))


EXPLAINED = {
    "a read beside a write may see either": (
        NOTES, "a write 1 a = ok 2 1-9; b read = ok 2 a '' 2-3; c read = ok 2 a '' 4-5",
    ),
    "a lost answer that takes effect late": (
        NOTES, "a write 1 a = ? 1-; b read = ok 1 '' '' 2-3; b read = ok 2 a '' 4-5",
    ),
    "a start that finds a save aside": (
        COUNTED, "e outside 1 e '' = ok 1-2; a read = ok 2 e '' 3-4; b read = ok 4 e '' 5-6",
    ),
    "a save counts as a version": (COUNTED, "e outside 1 a '' = ok 1-2; b write 1 b = conflict 3-4"),
    "a claim taken over after its time": (
        TASKS, "a claim s a = ok 5 1-2; t expire = ok 3-3; b claim s b = ok 6 4-5",
    ),
    "a claim whose answer was lost": (
        TASKS, "a claim s a = ? 1-; b claim s b = held 2-3; a renew s a = ok 7 4-5",
    ),
    "completed, reopened, completed": (
        TASKS, "a complete = ok 1-2; b complete = closed 3-4; b reopen = ok 5-6; b complete = ok 7-8",
    ),
}  # fmt: skip
NOT_EXPLAINED = {
    "a stale read": (NOTES, "a write 1 a = ok 2 1-2; b read = ok 1 '' '' 3-4"),
    "a read that goes back": (
        NOTES, "a write 1 a = ok 2 1-9; b read = ok 2 a '' 2-3; c read = ok 1 '' '' 4-5",
    ),
    "a lost update": (NOTES, "a write - a = ok 2 1-2; b write - b = ok 2 3-4"),
    "two winners": (NOTES, "a write 1 a = ok 2 1-4; b write 1 b = ok 2 2-3"),
    "a conflict with nobody": (NOTES, "b write 1 b = conflict 2-3"),
    "a patch that loses a body": (
        NOTES, "a write 1 a = ok 2 1-4; b patch - t = ok 3 2-5; c read = ok 3 '' t 6-7",
    ),
    "a lost answer that explains nothing": (NOTES, "a write 2 a = ? 1-; b read = ok 2 a '' 2-3"),
    "a lost answer that took effect twice": (NOTES, "a write - a = ? 1-; b read = ok 3 a '' 2-3"),
    "a version more without a save aside": (
        COUNTED, "e outside 1 e '' = ok 1-2; a read = ok 2 e '' 3-4; b read = ok 3 e '' 5-6",
    ),
    "a save that a write undoes": (COUNTED, "e outside 1 e '' = ok 1-2; b write 1 b = ok 2 3-4"),
    "a note that comes back": (NOTES, "a delete = ok 1-2; b read = ok 1 '' '' 3-4"),
    "a claim granted twice": (TASKS, "a claim s a = ok 5 1-4; b claim s b = ok 6 2-3"),
    "a fence that goes back": (
        TASKS, "a claim s a = ok 5 1-2; a release s a = ok 3-4; b claim s b = ok 4 5-6",
    ),
    "a renewal with another fence": (TASKS, "a claim s a = ok 5 1-2; a renew s a = ok 6 3-4"),
    "a renewal after its time": (
        TASKS, "a claim s a = ok 5 1-2; t expire = ok 3-3; a renew s a = ok 5 4-5",
    ),
    "a claim on what is completed": (TASKS, "a complete = ok 1-2; b claim s b = ok 5 3-4"),
    "a claim that outlives completion": (
        TASKS, "a claim s a = ok 5 1-2; a complete = ok 3-4; b look = ok completed s a 5 5-6",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*EXPLAINED, *NOT_EXPLAINED])
def test_checker_accepts_linearizable_histories_and_no_others(name: str) -> None:
    """Each row of `EXPLAINED` and `NOT_EXPLAINED` is one history."""
    model, rows = (EXPLAINED | NOT_EXPLAINED)[name]
    found = check([_operation(row) for row in rows.split("; ")], model)
    assert (not found) == (name in EXPLAINED)


def test_checker_treats_objects_separately() -> None:
    """An error of one object does not affect another object."""
    good = Operation("good", "a", "read", None, ("ok", 1, "", ""), 1, 2)
    bad = Operation("bad", "a", "read", None, ("ok", 2, "a", ""), 1, 2)
    (violation,) = check([good, bad], NOTES)
    assert violation.key == "bad"
    assert "read None" in str(violation)
