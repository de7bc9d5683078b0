"""The checker itself: histories that can be explained, and such that cannot."""

from __future__ import annotations

from typing import Any

import pytest

from tests.linearizability.checker import NEVER, UNKNOWN, Model, Operation, check
from tests.linearizability.models import NoteModel, TaskModel


def _is_explained(model: Model, *rows: tuple[Any, ...]) -> bool:
    """Rows of client, name, argument, result, times of call and return."""
    return not check([Operation("x", *row) for row in rows], model)


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
    "a lost update": (
        NOTES,
        [("a", "write", _set(None, "a"), ("ok", 2), 1, 2), ("b", "write", _set(None, "b"), ("ok", 2), 3, 4)],
    ),
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
    "a save that a write undoes": (
        COUNTED,
        [("e", "outside", (1, "e", ""), ("ok",), 1, 2), ("b", "write", _set(1, "b"), ("ok", 2), 3, 4)],
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
