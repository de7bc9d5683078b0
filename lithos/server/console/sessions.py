"""Console sessions: their agent names and the form submissions that were carried out.

Sessions are kept in memory, so users log in again after a restart. If no token is defined, every browser gets
a session automatically; it only names the agent and protects against forged submissions. A session keeps the
principal of its token but not the token, and ends when the token does. `/console/events` (`ConsoleFeed`) is
the event stream for pages, which send a cookie instead of a bearer token.
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
#: Minimum seconds between two sends to one page (the first event is sent at once), and maximum number of
#: queued events.
PAUSE, CAPACITY = 1.0, 2_000
#: Seconds between two checks that the session of an open stream is still valid.
LOOK: Final = 0.5


@frozen(eq=False)
class ConsoleFeed:
    """ASGI application of a session's event stream, which ends with the session.

    `rejected` is called with `unauthorized` for a request without a required session.
    """

    _stream: AsgiApp
    _sessions: Sessions
    _rejected: Callable[[str], None] = ignore_rejection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one subscriber. Answer with 401 if a session is required and missing."""
        session = self._sessions.find(_cookie_of(scope))
        if session is None and self._sessions.needs_login:
            self._rejected("unauthorized")
            await answer(scope, receive, send, 401, {"error": "unauthorized"})
            return

        def holds() -> bool:  # also true for a browser that has not loaded a page yet
            return not self._sessions.needs_login if session is None else self._sessions.holds(session)

        await self._stream(scope, self._receiving_while(holds, receive), send)

    def _receiving_while(self, holds: Callable[[], bool], receive: Receive) -> Receive:
        """Return a `receive` that sends a disconnect to the stream once `holds` is false."""

        async def receiving() -> Message:
            while holds():
                with trio.move_on_after(LOOK):
                    return await receive()
            return {"type": "http.disconnect"}

        return receiving


def _cookie_of(scope: Scope) -> str | None:
    """Return the session id in the cookies of a request."""
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
#: Maximum number of sessions; the least recently used session is deleted first.
MOST_SESSIONS: Final = 1_000
#: Maximum number of remembered submissions of a session, which are not carried out again.
MOST_SUBMISSIONS: Final = 100
#: Maximum number of sentences that wait for the next page.
MOST_NOTICES: Final = 5
#: Maximum characters of an agent name.
LONGEST_NAME: Final = 200


@define(eq=False)
class Submission:
    """A submitted form; `location` shows its outcome once it is `done`."""

    done: trio.Event = field(factory=trio.Event)
    location: str | None = None


@define(eq=False)
class BrowserSession:
    """Session of one browser. Each of its forms contains `csrf`, which proves their origin.

    `agent` is the name for the session's changes, fixed if the principal is bound to an agent. The principal
    `ANYONE` has not logged in, because no token was defined.
    """

    id: str = field(repr=False)
    agent: str
    expires_at: datetime
    principal: Principal = ANYONE
    csrf: str = field(factory=lambda: secrets.token_urlsafe(24), repr=False)
    submissions: Newest[str, Submission] = field(factory=lambda: Newest(MOST_SUBMISSIONS), repr=False)
    #: Sentences for the next page.
    _notices: list[str] = field(factory=list, repr=False)

    def tell(self, notice: str) -> None:
        """Show a sentence on the next page."""
        self._notices = [*self._notices, notice][-MOST_NOTICES:]

    def take_notices(self) -> list[str]:
        """Return the sentences to show, and clear them."""
        taken, self._notices = self._notices, []
        return taken

    def owns(self, csrf: str) -> bool:
        """Return whether a form's token is this session's. Compares in constant time."""
        return hmac.compare_digest(csrf.encode(), self.csrf.encode())

    async def once(self, key: str, act: Callable[[], Awaitable[str]]) -> str:
        """Carry out a submission, or wait if it is already running; return the location of its outcome.

        `key` was created for the form. If `act` raises, the form may be submitted again: one waiting
        repetition is then carried out, and the others wait for it. `act` has its own deadlines, so the
        waiting ends.
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
    """All sessions by id; `agent` is the default name for changes."""

    _clock: Callable[[], datetime]
    _agent: str
    keyring: Keyring
    _by_id: Newest[str, BrowserSession] = field(factory=lambda: Newest(MOST_SESSIONS))
    #: Why sessions ended, by session id, for browsers that return with an ended session.
    _ended: Newest[str, str] = field(factory=lambda: Newest(MOST_SESSIONS))

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def needs_login(self) -> bool:
        """Return whether a session needs a token now. A token may be defined while the server runs."""
        return not self.keyring.is_open

    def find(self, session_id: str | None) -> BrowserSession | None:
        """Return the session with this id, unless it has ended."""
        session = self._by_id.get(session_id or "")
        if session is None or not self.holds(session):
            return None
        self._by_id.move_to_end(session.id)
        return session

    def holds(self, session: BrowserSession) -> bool:
        """Return whether a session is still valid; it ends after its lifetime, and with its token."""
        if self._by_id.get(session.id) is not session:
            return False
        if reason := self._end_of(session):
            self.end(session, reason)
            return False
        return True

    def knows(self, scope: Scope) -> bool:
        """Return whether a request has the cookie of a valid session."""
        return self.find(_cookie_of(scope)) is not None

    def why_ended(self, session_id: str | None) -> str:
        """Return why this session ended, as a sentence, or an empty text if unknown or still open."""
        return self._ended.get(session_id or "", "")

    def begin(self, agent: str | None = None, principal: Principal = ANYONE) -> BrowserSession:
        """Create a session under the agent that the principal is bound to, if any."""
        session = BrowserSession(
            secrets.token_urlsafe(32),
            principal.agent or agent or self._agent,
            self._clock() + LIFE,
            principal,
        )
        self._by_id[session.id] = session
        return session

    def end(self, session: BrowserSession, reason: str = "") -> None:
        """Forget a session; the login page shows `reason`."""
        self._by_id.pop(session.id, None)
        if reason:
            self._ended[session.id] = reason

    def _end_of(self, session: BrowserSession) -> str:
        """Return why a session has to end now, or an empty text if it has not."""
        # A session that ends much later than a new one would was created before the clock was set back.
        if not timedelta(0) < session.expires_at - self._clock() < LIFE + timedelta(minutes=1):
            return f"Your session has ended: a session lasts {LIFE // timedelta(hours=1)} hours."
        if self.keyring.is_valid(session.principal):
            return ""
        if session.principal == ANYONE:
            return "Your session has ended: this server asks for a token now."
        return (
            f"Your session has ended: the token {session.principal.name} was revoked, has expired, or has "
            "other rights now."
        )
