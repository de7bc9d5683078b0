"""Console sessions with their agent names, and the form submissions that were carried out.

Sessions are stored in memory, so users log in again after a restart. If no token is defined, every browser
gets a session automatically. Such a session only names the agent and protects against forged submissions. A
session stores the principal of its token but not the token. It ends when the token ends. `/console/events`
(`ConsoleFeed`) is the event stream for pages, which send a cookie instead of a bearer token.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from http.cookies import CookieError, SimpleCookie
from typing import Final

import trio
from attrs import define, field, frozen

from lithos.kernel.values.limits import Newest
from lithos.kernel.values.principals import ANYONE, Principal
from lithos.server.http.ports import AsgiApp, Message, Receive, Scope, Send, answer, ignore_rejection
from lithos.server.tools.token_ports import Keyring

PATH: Final = "/console/events"
#: Minimum number of seconds between two sends to one page (the first event is sent at once), and maximum
#: number of queued events.
PAUSE, CAPACITY = 1.0, 2_000
#: Seconds between two checks whether the session of an open stream is still valid.
LOOK: Final = 0.5


@frozen(eq=False)
class ConsoleFeed:
    """ASGI application for the event stream of a session. The stream ends with the session.

    `rejected` is called with `unauthorized` if a required session is missing.
    """

    _stream: AsgiApp
    _sessions: Sessions
    _rejected: Callable[[str], None] = ignore_rejection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one subscriber. If a required session is missing, answer with 401."""
        session = self._sessions.find(_cookie_of(scope))
        if session is None and self._sessions.needs_login:
            self._rejected("unauthorized")
            await answer(scope, receive, send, 401, {"error": "unauthorized"})
            return

        def holds() -> bool:  # True also for a browser that has not loaded a page yet.
            return not self._sessions.needs_login if session is None else self._sessions.holds(session)

        await self._stream(scope, self._receiving_while(holds, receive), send)

    def _receiving_while(self, holds: Callable[[], bool], receive: Receive) -> Receive:
        """Return a `receive` function that sends a disconnect to the stream when `holds` becomes false."""

        async def receiving() -> Message:
            while holds():
                with trio.move_on_after(LOOK):
                    return await receive()
            return {"type": "http.disconnect"}

        return receiving


def _cookie_of(scope: Scope) -> str | None:
    """Return the session id from the cookies of a request, or None."""
    for name, value in scope["headers"]:
        if name == b"cookie":
            try:
                cookies = SimpleCookie(value.decode("latin-1"))
            except CookieError:
                return None
            if COOKIE in cookies:
                return cookies[COOKIE].value
    return None


COOKIE: Final = "lithos_session"
#: Lifetime of a session.
LIFE: Final = timedelta(hours=12)
#: Maximum number of sessions. The least recently used session is deleted first.
MOST_SESSIONS: Final = 1_000
#: Maximum number of submissions remembered per session. A repeated submission is not carried out again.
MOST_SUBMISSIONS: Final = 100
#: Maximum number of notices stored for the next page.
MOST_NOTICES: Final = 5
#: Maximum number of characters in an agent name.
LONGEST_NAME: Final = 200


@define(eq=False)
class Submission:
    """Submitted form. When it is `done`, `location` is the page with the outcome."""

    done: trio.Event = field(factory=trio.Event)
    location: str | None = None


@define(eq=False)
class BrowserSession:
    """Session of one browser. All its forms contain the token `csrf`, which proves their origin.

    `agent` is the name for changes of this session. It is fixed if the principal is bound to an agent. The
    principal is `ANYONE` if no token is defined and the user has not logged in.
    """

    id: str = field(repr=False)
    agent: str
    expires_at: datetime
    principal: Principal = ANYONE
    csrf: str = field(factory=lambda: secrets.token_urlsafe(24), repr=False)
    submissions: Newest[str, Submission] = field(factory=lambda: Newest(MOST_SUBMISSIONS), repr=False)
    #: Sentences to show on the next page.
    _notices: list[str] = field(factory=list, repr=False)

    def tell(self, notice: str) -> None:
        """Show a sentence on the next page."""
        self._notices = [*self._notices, notice][-MOST_NOTICES:]

    def take_notices(self) -> list[str]:
        """Return the notices for the next page and clear the list."""
        taken, self._notices = self._notices, []
        return taken

    def owns(self, csrf: str) -> bool:
        """Return whether a form's token belongs to this session. The comparison takes constant time."""
        return hmac.compare_digest(csrf.encode(), self.csrf.encode())

    async def once(self, key: str, act: Callable[[], Awaitable[str]]) -> str:
        """Carry out a submission once and return the location of its outcome.

        If the submission is already running, wait for it.

        `key` was created for the form. If `act` raises, the form may be submitted again. One of the waiting
        repetitions is then carried out, and the others wait for it. `act` has its own deadlines, so the wait
        is limited.
        """
        while (known := self.submissions.get(key)) is not None:
            await known.done.wait()
            if known.location is not None:
                return known.location
        submission = self.submissions[key] = Submission()
        try:
            submission.location = await act()
        finally:
            if submission.location is None:
                self.submissions.pop(key, None)
            submission.done.set()
        return submission.location


@define(eq=False)
class Sessions:
    """All console sessions by id. `agent` is the default agent name for changes."""

    _clock: Callable[[], datetime]
    _agent: str
    keyring: Keyring
    _by_id: Newest[str, BrowserSession] = field(factory=lambda: Newest(MOST_SESSIONS))
    #: Reason for the end of each session, by session id. It is shown to a browser that returns with that
    #: session.
    _ended: Newest[str, str] = field(factory=lambda: Newest(MOST_SESSIONS))

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def needs_login(self) -> bool:
        """Return whether a session requires a token now. A token may be defined while the server runs."""
        return not self.keyring.is_open

    def find(self, session_id: str | None) -> BrowserSession | None:
        """Return the valid session with this id, or None."""
        session = self._by_id.get(session_id or "")
        if session is None or not self.holds(session):
            return None
        self._by_id.move_to_end(session.id)
        return session

    def holds(self, session: BrowserSession) -> bool:
        """Return whether a session is still valid.

        A session ends after its lifetime or when its token ends.
        """
        if self._by_id.get(session.id) is not session:
            return False
        if reason := self._end_of(session):
            self.end(session, reason)
            return False
        return True

    def knows(self, scope: Scope) -> bool:
        """Return whether a request contains the cookie of a valid session."""
        return self.find(_cookie_of(scope)) is not None

    def why_ended(self, session_id: str | None) -> str:
        """Return a sentence that says why this session ended.

        The text is empty if the session is unknown or still open.
        """
        return self._ended.get(session_id or "", "")

    def begin(self, agent: str | None = None, principal: Principal = ANYONE) -> BrowserSession:
        """Create a session. If the principal is bound to an agent, the session uses that agent name."""
        session = BrowserSession(
            secrets.token_urlsafe(32),
            principal.agent or agent or self._agent,
            self._clock() + LIFE,
            principal,
        )
        self._by_id[session.id] = session
        return session

    def end(self, session: BrowserSession, reason: str = "") -> None:
        """Delete a session. The login page shows `reason`."""
        self._by_id.pop(session.id, None)
        if reason:
            self._ended[session.id] = reason

    def _end_of(self, session: BrowserSession) -> str:
        """Return why a session must end now, or an empty text if it is still valid."""
        # If a session would end much later than a new session, the clock was set back after its creation.
        if not timedelta(0) < session.expires_at - self._clock() < LIFE + timedelta(minutes=1):
            return f"Your session has ended: a session lasts {LIFE // timedelta(hours=1)} hours."
        if self.keyring.is_valid(session.principal):
            return ""
        if session.principal == ANYONE:
            return "Your session has ended: this server requires a token now."
        return (
            f"Your session has ended: the token {session.principal.name} was revoked, has expired, or has "
            "other rights now."
        )
