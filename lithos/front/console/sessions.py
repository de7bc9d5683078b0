"""Sessions of the console: who is there, under which agent name, and which submissions were carried out.

They live in memory: after a restart one logs in anew. Without a token every browser gets a session by itself,
which only names the agent and protects against forged submissions.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

import trio
from attrs import define, field

COOKIE: Final = "lithos_session"
#: How long a session lasts.
LIFE: Final = timedelta(hours=12)
#: Sessions kept; the one unused for longest goes first.
MOST_SESSIONS: Final = 1_000
#: Submissions of one session that are remembered, so that a repeated one is not carried out again.
MOST_SUBMISSIONS: Final = 100
#: Sentences that wait for the next page.
MOST_NOTICES: Final = 5
#: Characters of an agent name.
LONGEST_NAME: Final = 200


@define(eq=False)
class Submission:
    """One submitted form: `location` is where its outcome is shown, once it is `done`."""

    done: trio.Event = field(factory=trio.Event)
    location: str | None = None


@define(eq=False)
class Session:
    """One browser. `csrf` is in each of its forms, and proves that a submission comes from its pages."""

    id: str = field(repr=False)
    agent: str
    expires_at: datetime
    csrf: str = field(factory=lambda: secrets.token_urlsafe(24), repr=False)
    submissions: OrderedDict[str, Submission] = field(factory=OrderedDict, repr=False)
    #: Sentences for the next page that is shown.
    _notices: list[str] = field(factory=list, repr=False)

    def tell(self, notice: str) -> None:
        """Have a sentence shown on the next page."""
        self._notices = [*self._notices, notice][-MOST_NOTICES:]

    def take_notices(self) -> list[str]:
        """The sentences to show, once."""
        taken, self._notices = self._notices, []
        return taken

    def owns(self, csrf: str) -> bool:
        """Whether a form is one of this session's; compared in constant time."""
        return hmac.compare_digest(csrf.encode(), self.csrf.encode())

    async def once(self, key: str, act: Callable[[], Awaitable[str]]) -> str:
        """Carry a submission out, or wait for the one that does; the location of its outcome.

        `key` was made for the form. What raises may be submitted again: of several that waited for it, one
        is carried out and the others wait for that. `act` has its own deadlines, so that waiting ends.
        """
        while (known := self.submissions.get(key)) is not None:
            await known.done.wait()
            if known.location is not None:
                return known.location
        submission = self.submissions[key] = Submission()
        while len(self.submissions) > MOST_SUBMISSIONS:
            self.submissions.popitem(last=False)
        try:
            submission.location = await act()
        finally:
            if submission.location is None:
                self.submissions.pop(key, None)
            submission.done.set()
        return submission.location


class Sessions:
    """All sessions by id."""

    def __init__(self, clock: Callable[[], datetime], agent: str, *, life: timedelta = LIFE) -> None:
        """`agent` is the name of those who choose none."""
        self._clock = clock
        self._agent = agent
        self._life = life
        self._by_id: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_id)

    def find(self, session_id: str | None) -> Session | None:
        """The session with this id, unless it has expired."""
        session = self._by_id.get(session_id or "")
        if session is None:
            return None
        if self._clock() >= session.expires_at:
            del self._by_id[session.id]
            return None
        self._by_id.move_to_end(session.id)
        return session

    def begin(self, agent: str | None = None) -> Session:
        """A new session."""
        session = Session(secrets.token_urlsafe(32), agent or self._agent, self._clock() + self._life)
        self._by_id[session.id] = session
        while len(self._by_id) > MOST_SESSIONS:
            self._by_id.popitem(last=False)
        return session

    def end(self, session: Session) -> None:
        """Forget a session."""
        self._by_id.pop(session.id, None)
