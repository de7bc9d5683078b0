"""Tracking of running requests and WebSockets, so that a graceful shutdown can end each kind properly.

At shutdown, event streams and WebSockets end at once, while requests may finish. The end of every response is
sent in a cancel scope that is shielded for a limited time. The reason is that the server reports a disconnect
while this send is still running. An application that cancelled itself at that moment would leave the
connection open forever.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import anyio
import trio

from lithos.kernel.log import get_logger
from lithos.server.http.limits import FINAL_SEND, SEND_PIECE
from lithos.server.http.ports import AsgiApp, Message, Receive, Scope, Send, answer, path_in_vault

log = get_logger("lithos.front.exchanges")

CLIENT_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)
STOPPING: Final = {
    "error": "stopping",
    "message": "The server stopped before this call finished, so its outcome is unknown. Check "
    "the current state before you repeat the call.",
}
FAULT: Final = {
    "error": "internal_error",
    "message": "The server could not answer this request because of an internal error. The "
    "reason is in the server's log.",
}
GOING_AWAY, SERVER_FAULT = 1001, 1011


class Exchanges:
    """ASGI application that runs `app` and tracks all its running exchanges.

    `end_themselves` contains the paths of streams that end on their own at shutdown.
    """

    def __init__(self, app: AsgiApp, end_themselves: Collection[str] = ()) -> None:
        self._app = app
        self._end_themselves = frozenset(end_themselves)
        self._open: set[_Exchange] = set()
        self._stopping = False
        self._empty = trio.Event()

    @property
    def open_count(self) -> int:
        """Return the number of running exchanges."""
        return len(self._open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one exchange. Never raises an ordinary exception."""
        exchange = _Exchange(scope, receive, send)
        self._open.add(exchange)
        try:
            with exchange.cancel_scope:
                await self._run(exchange)
            await self._end(exchange)
        finally:
            self._open.discard(exchange)
            if self._stopping and not self._open:
                self._empty.set()

    async def _run(self, exchange: _Exchange) -> None:
        try:
            await self._app(exchange.scope, exchange.receive, exchange.send)
        except Exception as error:  # noqa: BLE001 - whatever one request fails with, the others go on
            fault = _fault_of(error)
            if fault is not None:
                exchange.failed = True
                log.error("request failed", exc=fault, path=exchange.path)

    async def _end(self, exchange: _Exchange) -> None:
        try:
            await exchange.end()
        except Exception:
            log.exception("response not completed", path=exchange.path)

    def end_streams(self) -> None:
        """Begin the shutdown. Event streams and WebSockets end now, but requests may finish."""
        self._stopping = True
        if not self._open:
            self._empty.set()
        for exchange in self._open:
            if exchange.is_stream and path_in_vault(exchange.path) not in self._end_themselves:
                exchange.cancel_scope.cancel()

    def cancel(self) -> None:
        """Cancel the running exchanges. Each gets a final response (`503`) or close code (`1001`).

        A response that is already being sent is not cancelled.
        """
        for exchange in self._open:
            if exchange.is_stream or not exchange.has_started:
                exchange.cancel_scope.cancel()

    async def wait_empty(self) -> None:
        """Wait until no exchange is running. `end_streams` must have been called before."""
        await self._empty.wait()


class _Exchange:
    """One request or WebSocket and the state of its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.cancel_scope = trio.CancelScope()
        self.failed = False
        self.is_stream = scope["type"] == "websocket"
        self.path: str = scope["path"]
        self.has_started = False
        self._complete = False
        self._accepted = False
        self._asked = False
        self._streaming = trio.Event()
        self._receive = receive
        self._send = send

    async def receive(self) -> Message:
        """Return the next message from the server.

        If the client disconnects, a plain response is still completed.

        The server cannot detect whether the client has left or has only closed its sending side.
        """
        message = await self._receive()
        if message["type"] == "http.request":
            self._asked = not message.get("more_body", False)
        elif message["type"] == "http.disconnect" and self._asked:
            await self._streaming.wait()
        return message

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "websocket.close" or (
            kind.endswith(".response.body") and not message.get("more_body", False)
        ):
            await self._send_last(message)
            return
        await self._send(message)
        if kind.endswith(".response.start"):
            self.has_started = True
            if _is_event_stream(message):
                self.is_stream = True
                self._streaming.set()
        elif kind == "websocket.accept":
            self._accepted = True

    async def _send_last(self, message: Message) -> None:
        """Send the last message of a response.

        A long body is sent before the shielded part, which covers only the end.
        """
        self._complete = True
        if len(message.get("body", b"")) > SEND_PIECE:
            await self._send({**message, "more_body": True})
            message = {"type": message["type"], "body": b"", "more_body": False}
        with trio.move_on_after(FINAL_SEND, shield=True):
            await self._send(message)

    async def end(self) -> None:
        """Complete the response if the application did not complete it."""
        if self._complete or not (self.failed or self.cancel_scope.cancelled_caught or self.has_started):
            return
        with trio.move_on_after(FINAL_SEND, shield=True):
            if self._accepted:
                code = SERVER_FAULT if self.failed else GOING_AWAY
                await self.send({"type": "websocket.close", "code": code})
            elif self.has_started:
                kind = "websocket.http" if self.scope["type"] == "websocket" else "http"
                await self.send({"type": f"{kind}.response.body", "body": b"", "more_body": False})
            else:
                status, body = (500, FAULT) if self.failed else (503, STOPPING)
                await answer(self.scope, self._rest, self.send, status, body)

    async def _rest(self) -> Message:
        """Return the next part of the request body."""
        return {"type": "http.disconnect"} if self._asked else await self._receive()


def _is_event_stream(start: Message) -> bool:
    headers: Any = start.get("headers", ())
    return any(name.lower() == b"content-type" and b"event-stream" in value for name, value in headers)


def _fault_of(error: Exception) -> Exception | None:
    """Return the error to log, or None if the client has disconnected."""
    if isinstance(error, ExceptionGroup):
        return error.split(CLIENT_GONE)[1]
    return None if isinstance(error, CLIENT_GONE) else error
