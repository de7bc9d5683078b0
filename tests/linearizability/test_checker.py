"""The checker itself: histories that can be explained, such that cannot, and faults put into a register."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.linearizability.checker import NEVER, UNKNOWN, Model, Operation, check
from tests.linearizability.models import NoteModel, TaskModel


def _history(*rows: tuple[Any, ...]) -> list[Operation]:
    """Rows of client, name, argument, result, times of call and return."""
    return [Operation("x", *row) for row in rows]


def _is_explained(model: Model, *rows: tuple[Any, ...]) -> bool:
    return not check(_history(*rows), model)


def _set(expected: int | None, body: str) -> tuple[Any, ...]:
    return expected, (("body", body),)


FIRST, SECOND = ("ok", 1, "", ""), ("ok", 2, "a", "")
CONFLICT = ("refused", "version_conflict", 2)
GONE = ("refused", "not_found")
NOTES = NoteModel(outside_counts=False)
COUNTED = NoteModel(outside_counts=True)
TASKS = TaskModel()
CLOSED, HELD = ("refused", "closed"), ("refused", "held")

EXPLAINED: dict[str, tuple[Model, list[tuple[Any, ...]]]] = {
    "a read beside a write may see either": (
        NOTES,
        [
            ("a", "write", _set(1, "a"), ("ok", 2), 1, 9),
            ("b", "read", None, SECOND, 2, 3),
            ("c", "read", None, SECOND, 4, 5),
        ],
    ),
    "one of two wins": (
        NOTES,
        [("a", "write", _set(1, "a"), ("ok", 2), 1, 4), ("b", "write", _set(1, "b"), CONFLICT, 2, 3)],
    ),
    "a lost answer that took effect": (
        NOTES,
        [("a", "write", _set(1, "a"), UNKNOWN, 1, NEVER), ("b", "read", None, SECOND, 2, 3)],
    ),
    "a lost answer that did not": (
        NOTES,
        [("a", "write", _set(1, "a"), UNKNOWN, 1, NEVER), ("b", "read", None, FIRST, 2, 3)],
    ),
    "a start that finds a save aside": (
        COUNTED,
        [
            ("e", "outside", (1, "e", ""), ("ok",), 1, 2),
            ("a", "read", None, ("ok", 2, "e", ""), 3, 4),
            ("b", "read", None, ("ok", 4, "e", ""), 5, 6),
        ],
    ),
    "a lost answer that takes effect late": (
        NOTES,
        [
            ("a", "write", _set(1, "a"), UNKNOWN, 1, NEVER),
            ("b", "read", None, FIRST, 2, 3),
            ("b", "read", None, SECOND, 4, 5),
        ],
    ),
    "a save counts as a version": (
        COUNTED,
        [("e", "outside", (1, "a", ""), ("ok",), 1, 2), ("b", "write", _set(1, "b"), CONFLICT, 3, 4)],
    ),
    "a note that is gone": (
        NOTES,
        [
            ("a", "delete", None, ("ok",), 1, 4),
            ("b", "read", None, GONE, 2, 3),
            ("b", "read", None, GONE, 5, 6),
        ],
    ),
    "a claim taken over after its time": (
        TASKS,
        [
            ("a", "claim", ("s", "a"), ("ok", 5), 1, 2),
            ("t", "expire", None, ("ok",), 3, 3),
            ("b", "claim", ("s", "b"), ("ok", 6), 4, 5),
        ],
    ),
    "a claim whose answer was lost": (
        TASKS,
        [
            ("a", "claim", ("s", "a"), UNKNOWN, 1, NEVER),
            ("b", "claim", ("s", "b"), HELD, 2, 3),
            ("a", "renew", ("s", "a"), ("ok", 7), 4, 5),
        ],
    ),
    "completed, reopened, completed": (
        TASKS,
        [
            ("a", "complete", None, ("ok",), 1, 2),
            ("b", "complete", None, CLOSED, 3, 4),
            ("b", "reopen", None, ("ok",), 5, 6),
            ("b", "complete", None, ("ok",), 7, 8),
        ],
    ),
}

NOT_EXPLAINED: dict[str, tuple[Model, list[tuple[Any, ...]]]] = {
    "a stale read": (
        NOTES,
        [("a", "write", _set(1, "a"), ("ok", 2), 1, 2), ("b", "read", None, FIRST, 3, 4)],
    ),
    "a read that goes back": (
        NOTES,
        [
            ("a", "write", _set(1, "a"), ("ok", 2), 1, 9),
            ("b", "read", None, SECOND, 2, 3),
            ("c", "read", None, FIRST, 4, 5),
        ],
    ),
    "a lost update": (
        NOTES,
        [("a", "write", _set(None, "a"), ("ok", 2), 1, 2), ("b", "write", _set(None, "b"), ("ok", 2), 3, 4)],
    ),
    "two winners": (
        NOTES,
        [("a", "write", _set(1, "a"), ("ok", 2), 1, 4), ("b", "write", _set(1, "b"), ("ok", 2), 2, 3)],
    ),
    "a conflict with nobody": (NOTES, [("b", "write", _set(1, "b"), CONFLICT, 2, 3)]),
    "a patch that loses a body": (
        NOTES,
        [
            ("a", "write", _set(1, "a"), ("ok", 2), 1, 4),
            ("b", "patch", (None, (("tag", "t"),)), ("ok", 3), 2, 5),
            ("c", "read", None, ("ok", 3, "", "t"), 6, 7),
        ],
    ),
    "a lost answer that explains nothing": (
        NOTES,
        [("a", "write", _set(2, "a"), UNKNOWN, 1, NEVER), ("b", "read", None, SECOND, 2, 3)],
    ),
    "a lost answer that took effect twice": (
        NOTES,
        [("a", "write", _set(None, "a"), UNKNOWN, 1, NEVER), ("b", "read", None, ("ok", 3, "a", ""), 2, 3)],
    ),
    "a version more without a save aside": (
        COUNTED,
        [
            ("e", "outside", (1, "e", ""), ("ok",), 1, 2),
            ("a", "read", None, ("ok", 2, "e", ""), 3, 4),
            ("b", "read", None, ("ok", 3, "e", ""), 5, 6),
        ],
    ),
    "two versions more without a save at all": (
        COUNTED,
        [("a", "read", None, FIRST, 1, 2), ("b", "read", None, ("ok", 3, "", ""), 3, 4)],
    ),
    "a save that a write undoes": (
        COUNTED,
        [("e", "outside", (1, "e", ""), ("ok",), 1, 2), ("b", "write", _set(1, "b"), ("ok", 2), 3, 4)],
    ),
    "a second half of a save that is lost": (
        COUNTED,
        [
            ("e", "outside", (1, "e", ""), ("ok",), 1, 2),
            ("a", "patch", (None, (("tag", "t"),)), ("ok", 3), 3, 4),
            ("e", "outside", (1, "ee", ""), ("ok",), 5, 6),
            ("b", "read", None, ("ok", 3, "e", "t"), 7, 8),
        ],
    ),
    "a note that comes back": (
        NOTES,
        [("a", "delete", None, ("ok",), 1, 2), ("b", "read", None, FIRST, 3, 4)],
    ),
    "a claim granted twice": (
        TASKS,
        [("a", "claim", ("s", "a"), ("ok", 5), 1, 4), ("b", "claim", ("s", "b"), ("ok", 6), 2, 3)],
    ),
    "a fence that goes back": (
        TASKS,
        [
            ("a", "claim", ("s", "a"), ("ok", 5), 1, 2),
            ("a", "release", ("s", "a"), ("ok",), 3, 4),
            ("b", "claim", ("s", "b"), ("ok", 4), 5, 6),
        ],
    ),
    "a renewal with another fence": (
        TASKS,
        [("a", "claim", ("s", "a"), ("ok", 5), 1, 2), ("a", "renew", ("s", "a"), ("ok", 6), 3, 4)],
    ),
    "a renewal after its time": (
        TASKS,
        [
            ("a", "claim", ("s", "a"), ("ok", 5), 1, 2),
            ("t", "expire", None, ("ok",), 3, 3),
            ("a", "renew", ("s", "a"), ("ok", 5), 4, 5),
        ],
    ),
    "completed twice": (
        TASKS,
        [("a", "complete", None, ("ok",), 1, 4), ("b", "complete", None, ("ok",), 2, 3)],
    ),
    "a claim on what is completed": (
        TASKS,
        [("a", "complete", None, ("ok",), 1, 2), ("b", "claim", ("s", "b"), ("ok", 5), 3, 4)],
    ),
    "a claim that outlives completion": (
        TASKS,
        [
            ("a", "claim", ("s", "a"), ("ok", 5), 1, 2),
            ("a", "complete", None, ("ok",), 3, 4),
            ("b", "look", None, ("ok", "completed", (("s", "a", 5),)), 5, 6),
        ],
    ),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_what_can_be_explained_is(name: str) -> None:
    """tests of Build 3"""
    model, rows = EXPLAINED[name]
    assert _is_explained(model, *rows)


@pytest.mark.parametrize("name", NOT_EXPLAINED)
def test_what_cannot_be_explained_is_not(name: str) -> None:
    """tests of Build 3"""
    model, rows = NOT_EXPLAINED[name]
    assert not _is_explained(model, *rows)


def test_objects_are_told_apart() -> None:
    """One object's fault is not another's."""
    good = Operation("good", "a", "read", None, FIRST, 1, 2)
    bad = Operation("bad", "a", "read", None, SECOND, 1, 2)
    (violation,) = check([good, bad], NOTES)
    assert violation.key == "bad"
    assert "read None" in str(violation)


class Register:
    """A toy note with one fault, or none, whose operations take effect somewhere within their time."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.version, self.body = 1, ""
        self.before = (1, "")

    def read(self, random: Random) -> tuple[Any, ...]:
        is_stale = self.fault == "stale reads" and random.random() < 0.2
        version, body = self.before if is_stale else (self.version, self.body)
        return "ok", version, body, ""

    def write(self, expected: int | None, body: str, random: Random) -> tuple[Any, ...]:
        is_blind = self.fault == "blind compare" and random.random() < 0.3
        if expected not in (None, self.version) and not is_blind:
            return "refused", "version_conflict", self.version
        if self.fault == "lost writes" and random.random() < 0.2:
            return "ok", self.version + 1
        self.before = (self.version, self.body)
        stays = self.fault == "version stays" and random.random() < 0.2
        self.version, self.body = self.version + (not stays), body
        return "ok", self.version


def _run(register: Register, seed: int, operations: int = 120, clients: int = 4) -> list[Operation]:
    """A random history: at each moment a client calls, takes effect, or returns."""
    random = Random(seed)
    calls: dict[int, dict[str, Any]] = {}
    history: list[Operation] = []
    seen = 1
    now = 0
    while len(history) < operations:
        now += 1
        client = random.randrange(clients)
        call = calls.get(client)
        if call is None:
            argument = None if random.random() < 0.4 else _set(random.choice([None, seen]), f"b{now}")
            calls[client] = {"called": now, "argument": argument}
        elif "result" not in call:
            argument = call["argument"]
            body = "" if argument is None else argument[1][0][1]
            call["result"] = (
                register.read(random) if argument is None else register.write(argument[0], body, random)
            )
            seen = register.version
        else:
            del calls[client]
            name = "read" if call["argument"] is None else "write"
            is_lost = random.random() < 0.05
            history.append(
                Operation("x", f"c{client}", name, call["argument"], UNKNOWN if is_lost else call["result"],
                          call["called"], NEVER if is_lost else now)
            )  # fmt: skip
    for client, call in calls.items():
        name = "read" if call["argument"] is None else "write"
        history.append(Operation("x", f"c{client}", name, call["argument"], UNKNOWN, call["called"], NEVER))
    return history


def test_a_sound_register_is_always_explained() -> None:
    """No history of a register that works is refused, whatever answers are lost."""
    assert not [seed for seed in range(40) if check(_run(Register(""), seed), NOTES)]


@pytest.mark.parametrize("fault", ["stale reads", "blind compare", "lost writes", "version stays"])
def test_a_fault_in_a_register_is_found(fault: str) -> None:
    """Each seeded fault is found in nearly every history."""
    found = [seed for seed in range(20) if check(_run(Register(fault), seed), NOTES)]
    assert len(found) >= 18
