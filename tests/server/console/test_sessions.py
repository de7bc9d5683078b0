"""Console sessions: lifetime, maximum number, and forms that take effect only once."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from attrs import define, field

from lithos.kernel.values.principals import ANYONE, OWNER, Principal
from lithos.server.console.sessions import LIFE, MOST_SESSIONS, MOST_SUBMISSIONS, Sessions
from tests.servers import Clock

READER = Principal("ci", "read", "ci-bot")


@define
class Ring:
    """A keyring with these principals. Without principals, all callers are admitted."""

    valid: set[Principal] = field(factory=set)
    closed: bool = False

    @property
    def is_open(self) -> bool:
        return not self.valid and not self.closed

    def find(self, secret: bytes) -> Principal | None:
        return next((one for one in self.valid if one.name.encode() == secret), None)

    def is_valid(self, principal: Principal) -> bool:
        return principal in self.valid or (principal == ANYONE and self.is_open)

    async def wait_changed(self) -> None:
        await trio.sleep_forever()


def test_session_ends_with_its_token_and_reports_the_reason() -> None:
    """behaviour 248: revoking a token ends its sessions."""
    ring = Ring({READER, OWNER})
    sessions = Sessions(Clock(), "person", ring)
    session = sessions.begin("Ann", principal=READER)
    other = sessions.begin("Ann", principal=OWNER)
    assert (session.agent, other.agent) == ("ci-bot", "Ann")
    assert sessions.find(session.id) is session
    ring.valid.discard(READER)
    assert not sessions.holds(session)
    assert sessions.find(session.id) is None
    assert "the token ci was revoked, has expired, or has other rights now" in sessions.why_ended(session.id)
    assert sessions.find(other.id) is other
    assert sessions.why_ended(other.id) == sessions.why_ended(None) == ""


def test_session_without_a_token_ends_when_a_token_is_defined() -> None:
    ring = Ring()
    sessions = Sessions(Clock(), "person", ring)
    session = sessions.begin()
    assert (sessions.needs_login, sessions.find(session.id)) == (False, session)
    ring.valid.add(OWNER)
    assert sessions.needs_login
    assert sessions.find(session.id) is None
    assert "requires a token now" in sessions.why_ended(session.id)
    ring.valid.clear()
    assert sessions.find(session.id) is None


def test_stored_reasons_for_ended_sessions_are_limited() -> None:
    ring = Ring({READER})
    sessions = Sessions(Clock(), "person", ring)
    ended = [sessions.begin(principal=READER) for _ in range(MOST_SESSIONS)]
    ring.valid.clear()
    assert [sessions.find(one.id) for one in ended] == [None] * MOST_SESSIONS
    ring.valid.add(READER)
    last = sessions.begin(principal=READER)
    ring.valid.clear()
    sessions.find(last.id)
    assert sessions.why_ended(last.id)
    assert not sessions.why_ended(ended[0].id)
    assert sessions.why_ended(ended[1].id)


def test_session_ends_after_its_lifetime() -> None:
    clock = Clock()
    sessions = Sessions(clock, "person", Ring())
    session = sessions.begin()
    clock.advance(seconds=LIFE.total_seconds() - 1)
    assert sessions.find(session.id) is session
    clock.advance(seconds=1)
    assert sessions.find(session.id) is None
    assert len(sessions) == 0


def test_session_ends_when_the_clock_is_set_far_back() -> None:
    clock = Clock()
    sessions = Sessions(clock, "person", Ring())
    session = sessions.begin()
    clock.advance(seconds=-1)
    assert sessions.find(session.id) is session
    clock.advance(days=-400)
    assert sessions.find(session.id) is None


def test_least_recently_used_session_is_dropped() -> None:
    sessions = Sessions(Clock(), "person", Ring())
    first, second = sessions.begin(), sessions.begin()
    for _ in range(MOST_SESSIONS - 2):
        sessions.begin()
    assert sessions.find(first.id) is first
    sessions.begin()
    assert len(sessions) == MOST_SESSIONS
    assert sessions.find(first.id) is first
    assert sessions.find(second.id) is None


async def test_only_one_waiting_submission_is_executed_after_a_failure() -> None:
    """behaviour 239: a change is made only once."""
    session = Sessions(Clock(), "person", Ring()).begin()
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


async def test_only_the_newest_form_submissions_are_remembered() -> None:
    session = Sessions(Clock(), "person", Ring()).begin()

    async def act() -> str:
        return "/console/"

    for number in range(MOST_SUBMISSIONS + 5):
        await session.once(str(number), act)
    assert len(session.submissions) == MOST_SUBMISSIONS
