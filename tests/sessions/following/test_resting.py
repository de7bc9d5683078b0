"""Pauses between steps, in which other work gets the interpreter (docs/spec/sessions.md §3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
import trio

from lithos.sessions.following.follower import LONGEST_REST, REST, SessionFollower
from lithos.sessions.rows.store import Embedding
from tests.fakes import Clock

T = TypeVar("T")

pytestmark = pytest.mark.autojump


class Slow:
    """A thread whose calls take a second."""

    async def run(self, call: Callable[[], T]) -> T:
        await trio.sleep(1)
        return call()


async def pause_after_a_second(changes: Callable[[], int]) -> float:
    nothing = cast(Any, None)
    follower = SessionFollower(
        nothing, Path(), (), 90, None, Embedding, Clock(), Clock(), changes=changes, working=Slow()
    )
    began = trio.current_time()
    assert await follower._rested(lambda: "done") == "done"
    return trio.current_time() - began - 1


async def test_step_is_followed_by_a_short_pause() -> None:
    assert await pause_after_a_second(lambda: 0) == pytest.approx(REST)


async def test_pause_lasts_while_notes_are_written() -> None:
    waited = await pause_after_a_second(lambda: int(trio.current_time() * 100))
    assert waited == pytest.approx(REST + LONGEST_REST)


async def test_pause_ends_with_the_last_write() -> None:
    began = trio.current_time()
    waited = await pause_after_a_second(lambda: int(trio.current_time() > began + 0.5))
    assert waited < REST + 1
