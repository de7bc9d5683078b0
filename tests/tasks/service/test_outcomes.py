"""Task calls when the actor cannot answer. The caller learns whether anything may have changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown, honest_outcome
from lithos.kernel.values.errors import InvalidInput, StorageFailed


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (ShuttingDown("writer is stopping"), "nothing was changed"),
        (ActorDown("disk"), "unknown: disk. Look again."),
        (trio.TooSlowError(), "unknown: it took too long. Look again."),
    ],
)
def test_error_without_an_answer_says_whether_anything_changed(failure: Exception, says: str) -> None:
    with pytest.raises(StorageFailed) as told, honest_outcome("Look again."):
        raise failure
    assert says in told.value.message


@pytest.mark.parametrize("make", [lambda: InvalidInput("no"), lambda: ValueError("bug")])
def test_refusals_and_programming_errors_are_raised_unchanged(make: Callable[[], Exception]) -> None:
    failure = make()
    with pytest.raises(type(failure)) as told, honest_outcome("Look again."):
        raise failure
    assert told.value is failure
