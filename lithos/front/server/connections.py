"""Client connections with deadlines for sends, request heads and idle time, served by Hypercorn.

Hypercorn sends under an unbounded shield and leaves half-sent request heads unanswered. A
`Connection` therefore wraps the socket stream: every send has a deadline of its own, a head that
never became a request is answered 408, and `abort` ends any send at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, Event, Updated
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from lithos.front.server.limits import (
    IDLE_PATIENCE,
    MESSAGE_BYTES,
    REFUSED_BYTES,
    REFUSED_SECONDS,
    SEND_PATIENCE,
    SEND_PIECE,
)
from lithos.front.server.ports import AsgiApp, ignore_rejection
from lithos.front.server.upgrades import HEAD_TOO_LARGE, Http1Protocol
from lithos.telemetry import get_logger

log = get_logger("lithos.front.connections")

TIMED_OUT: Final = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def hypercorn_config() -> Config:
    """Return Hypercorn's settings: no access log (it would show tokens), errors through `logging`."""
    config = Config()
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    config.include_server_header = False
    config.keep_alive_timeout = IDLE_PATIENCE
    config.keep_alive_max_requests = 1_000_000
    config.websocket_max_message_size = MESSAGE_BYTES
    return config


class Connection:
    """A socket stream with bounded sends, in the shape that Hypercorn's `TCPServer` takes."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._sending = trio.Lock()
        self._ended = False
        self._heard = False
        self._spoke = False

    @property
    def socket(self) -> trio.socket.SocketType:
        """The socket, for its addresses."""
        return self._stream.socket

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Return what arrived; empty when the client will send no more."""
        data = await self._stream.receive_some(max_bytes)
        self._heard = bool(data)
        return data

    async def send_all(self, data: bytes) -> None:
        """Send all of `data`, or cut the connection and raise `trio.BrokenResourceError`."""
        self._spoke = True
        async with self._sending:
            if self._ended:
                raise trio.ClosedResourceError
            view = memoryview(data)
            for start in range(0, len(view), SEND_PIECE):
                await self._send_piece(view[start : start + SEND_PIECE])

    async def _send_piece(self, piece: memoryview) -> None:
        with trio.move_on_after(SEND_PATIENCE) as patience:
            await self._stream.send_all(piece)
        if patience.cancelled_caught:
            self.abort()
            raise trio.BrokenResourceError("the client stopped reading")

    async def send_eof(self) -> None:
        """Close the sending side; `trio.BusyResourceError` while a send is running."""
        if self._sending.locked():
            raise trio.BusyResourceError
        async with self._sending:
            await self._answer_half_request()
            self._ended = True
            await self._stream.send_eof()

    async def drain(self) -> None:
        """Read and discard input for a moment: closing with unread input would reset the last response."""
        received = 0
        try:
            with trio.move_on_after(REFUSED_SECONDS):
                async with self._sending:
                    log.debug("what was being said is said")
            await self.send_eof()
            with trio.move_on_after(REFUSED_SECONDS):
                while received < REFUSED_BYTES and (part := await self._stream.receive_some()):
                    received += len(part)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            log.debug("client left before it read why it was refused")

    async def aclose(self) -> None:
        """Close the connection, even under a running send."""
        if not self._sending.locked():
            async with self._sending:
                await self._answer_half_request()
        self._ended = True
        await self._stream.aclose()

    def abort(self) -> None:
        """Close the connection at once; a running send or receive raises `trio.ClosedResourceError`."""
        self._stream.socket.close()

    async def _answer_half_request(self) -> None:
        if not self._heard or self._spoke:
            return
        self._spoke = True
        try:
            with trio.move_on_after(1):
                await self._stream.send_all(TIMED_OUT)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            log.debug("client left in the middle of a request head")


class _Server(TCPServer):
    """Hypercorn's connection handler, but without waiting for a client that left."""

    def __init__(self, *arguments: Any, refused: Callable[[int], None]) -> None:
        super().__init__(*arguments)
        self._client_left = False
        self._has_drained = False
        self._refused = refused

    async def _read_data(self) -> None:
        chosen = self.protocol
        self._http = chosen.protocol = Http1Protocol(
            chosen.app,
            chosen.config,
            chosen.context,
            chosen.task_group,
            chosen.state,
            chosen.ssl,
            chosen.client,
            chosen.server,
            chosen.send,
            refused=self._refused,
        )
        await super()._read_data()
        self._client_left = True
        await self.idle_task.stop()

    async def protocol_send(self, event: Event) -> None:
        if isinstance(event, Closed) and self._http.has_refused and not self._has_drained:
            self._has_drained = True
            await cast(Connection, self.stream).drain()
        waits_for_more = isinstance(event, Updated) and event.idle
        await super().protocol_send(Closed() if waits_for_more and self._client_left else event)


class Connections:
    """All open connections, served by Hypercorn.

    `rejected` is told `head_too_large` or `bad_request` for what is no request.
    """

    def __init__(
        self, app: AsgiApp, config: Config, rejected: Callable[[str], None] = ignore_rejection
    ) -> None:
        self._rejected = rejected
        self._app = ASGIWrapper(app)  # type: ignore[arg-type]  # Hypercorn types its messages one by one
        self._config = config
        self._context = WorkerContext(None)
        self._open: set[Connection] = set()
        self._emptied = trio.Event()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection until it closes; never raises an ordinary exception."""
        connection = Connection(stream)
        self._open.add(connection)
        try:
            server = _Server(
                self._app, self._config, self._context, ConnectionState({}), connection, refused=self._refuse
            )
            await server.run()
        except Exception:
            log.exception("connection failed")
        finally:
            connection.abort()
            self._open.discard(connection)
            if not self._open:
                self._emptied.set()
                self._emptied = trio.Event()

    def _refuse(self, status: int) -> None:
        self._rejected("head_too_large" if status == HEAD_TOO_LARGE else "bad_request")

    async def end_idle(self) -> None:
        """Close idle connections, and every other after its current response."""
        await self._context.terminated.set()

    async def wait_empty(self) -> None:
        """Wait until every connection is closed."""
        while self._open:
            await self._emptied.wait()

    def abort(self) -> None:
        """Cut every connection that is still open."""
        for connection in tuple(self._open):
            connection.abort()
