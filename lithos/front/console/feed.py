"""`/console/events`: the event stream for pages of the console, which carry a cookie and no bearer token."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import Final

from lithos.front.console.sessions import COOKIE, Sessions
from lithos.front.server.ports import AsgiApp, Receive, Scope, Send, answer

PATH: Final = "/console/events"
#: Seconds between two sends to one page, which hears of the first event at once, and events that may wait.
PAUSE, CAPACITY = 1.0, 2_000


class ConsoleFeed:
    """An ASGI application: the event stream for whoever has a session, or for all where no token is set."""

    def __init__(self, stream: AsgiApp, sessions: Sessions, *, needs_login: bool) -> None:
        self._stream = stream
        self._sessions = sessions
        self._needs_login = needs_login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one subscriber; 401 without a session where one is needed."""
        if self._needs_login and self._sessions.find(_cookie_of(scope)) is None:
            await answer(scope, receive, send, 401, {"error": "unauthorized"})
        else:
            await self._stream(scope, receive, send)


def _cookie_of(scope: Scope) -> str | None:
    """The id of the session in the cookies of a request."""
    for name, value in scope["headers"]:
        if name == b"cookie":
            try:
                cookies = SimpleCookie(value.decode("latin-1"))
            except CookieError:
                return None
            if COOKIE in cookies:
                return cookies[COOKIE].value
    return None
