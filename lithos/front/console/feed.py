"""`/console/events`: the event stream for pages of the console, which carry a cookie and no bearer token."""

from __future__ import annotations

from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Final

import trio

from lithos.front.console.sessions import COOKIE, Sessions
from lithos.front.server.ports import AsgiApp, Message, Receive, Scope, Send, answer, ignore_rejection

PATH: Final = "/console/events"
#: Seconds between two sends to one page, which hears of the first event at once, and events that may wait.
PAUSE, CAPACITY = 1.0, 2_000
#: Seconds between two looks at whether the session of an open stream goes on.
LOOK: Final = 0.5


class ConsoleFeed:
    """An ASGI application: the event stream for whoever has a session; it ends with the session."""

    def __init__(
        self, stream: AsgiApp, sessions: Sessions, rejected: Callable[[str], None] = ignore_rejection
    ) -> None:
        """`rejected` is told `unauthorized` for whoever has no session and needs one."""
        self._stream = stream
        self._sessions = sessions
        self._rejected = rejected

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one subscriber; 401 without a session where one is needed."""
        session = self._sessions.find(_cookie_of(scope))
        if session is not None:
            await self._stream(
                scope, self._receiving_while(lambda: self._sessions.holds(session), receive), send
            )
        elif self._sessions.needs_login:
            self._rejected("unauthorized")
            await answer(scope, receive, send, 401, {"error": "unauthorized"})
        else:  # whoever has not loaded a page yet
            await self._stream(
                scope, self._receiving_while(lambda: not self._sessions.needs_login, receive), send
            )

    def _receiving_while(self, holds: Callable[[], bool], receive: Receive) -> Receive:
        """A `receive` that tells the stream of a disconnect once `holds` is false."""

        async def receiving() -> Message:
            while holds():
                with trio.move_on_after(LOOK):
                    return await receive()
            return {"type": "http.disconnect"}

        return receiving


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
