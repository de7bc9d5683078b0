"""Sessions of the console: their life, their number, and submissions that are carried out once."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from lithos.front.console.sessions import LIFE, MOST_SESSIONS, MOST_SUBMISSIONS, Sessions
from tests.servers import Clock


def test_a_session_ends_after_its_life() -> None:
    clock = Clock()
    sessions = Sessions(clock, "person")
    session = sessions.begin()
    clock.advance(seconds=LIFE.total_seconds() - 1)
    assert sessions.find(session.id) is session
    clock.advance(seconds=1)
    assert sessions.find(session.id) is None
    assert len(sessions) == 0


def test_the_session_that_was_unused_for_longest_makes_room() -> None:
    sessions = Sessions(Clock(), "person")
    first, second = sessions.begin(), sessions.begin()
    for _ in range(MOST_SESSIONS - 2):
        sessions.begin()
    assert sessions.find(first.id) is first
    sessions.begin()
    assert len(sessions) == MOST_SESSIONS
    assert sessions.find(first.id) is first
    assert sessions.find(second.id) is None


async def test_of_those_that_wait_for_a_submission_that_fails_one_is_carried_out() -> None:
    """behaviour 239: a change happens once."""
    session = Sessions(Clock(), "person").begin()
    acts, places, begun = 0, list[str](), trio.Event()

    async def act() -> str:
        nonlocal acts
        acts += 1
        begun.set()
        await trio.testing.wait_all_tasks_blocked()
        if acts == 1:
            raise OSError("the disk is full")
        return f"/console/{acts}"

    async def submit() -> None:
        places.append(await session.once("key", act))

    async def fail() -> None:
        with pytest.raises(OSError, match="full"):
            await session.once("key", act)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail)
        await begun.wait()
        for _ in range(3):
            nursery.start_soon(submit)
    assert acts == 2
    assert places == ["/console/2"] * 3


async def test_only_the_last_submissions_are_remembered() -> None:
    session = Sessions(Clock(), "person").begin()

    async def act() -> str:
        return "/console/"

    for number in range(MOST_SUBMISSIONS + 5):
        await session.once(str(number), act)
    assert len(session.submissions) == MOST_SUBMISSIONS
