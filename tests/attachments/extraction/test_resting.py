"""Pauses of attachment reading, in which writers get the interpreter (docs/spec/attachments.md §5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
import trio

from lithos.attachments.extraction.actor import LONGEST_REST, LOOK, Attaching

pytestmark = pytest.mark.autojump


def attaching(changes: Callable[[], int]) -> Attaching:
    """Return an actor. The test uses only its pauses."""
    nothing = cast(Any, None)
    return Attaching(
        nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, changes, is_enabled=False
    )


async def rested(changes: Callable[[], int], seconds: float) -> float:
    began = trio.current_time()
    await attaching(changes)._rest(0, seconds)
    return trio.current_time() - began


async def test_reading_pauses_while_a_writer_is_active():
    """behaviour 291"""
    assert await rested(lambda: 1 + int(trio.current_time() * 100), 2.0) == pytest.approx(2.0)
    assert await rested(lambda: 1 + int(trio.current_time() * 100), 60.0) == pytest.approx(LONGEST_REST)


async def test_reading_pause_ends_with_the_last_writer():
    assert await rested(lambda: 0, 2.0) == 0.0
    assert await rested(lambda: 1, 2.0) == pytest.approx(LOOK)
