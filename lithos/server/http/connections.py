"""Client connections.

Each connection has its own `Connection`, Hypercorn `TCPServer` and application wrapper.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio
from attrs import frozen
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from lithos.kernel.log import get_logger
from lithos.server.http.limits import HEAD_BYTES, IDLE_PATIENCE, MESSAGE_BYTES
from lithos.server.http.ports import AsgiApp, EncodedFrames, Message, Receive, Scope, Send, ignore_rejection
from lithos.server.http.request_heads import BAD_REQUEST, HEAD_TOO_LARGE, body_length, correct_scope
from lithos.server.http.stream import Connection

log = get_logger("lithos.front.connections")


def hypercorn_config() -> Config:
    """Return the settings of Hypercorn.

    There is no access log, because it would contain tokens. Errors are logged through `logging`.
    """
    config = Config()
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    config.include_server_header = False
    config.h11_max_incomplete_size = HEAD_BYTES
    config.keep_alive_timeout = IDLE_PATIENCE
    config.keep_alive_max_requests = 1_000_000
    config.websocket_max_message_size = MESSAGE_BYTES
    return config


class Connections:
    """All open connections. Hypercorn serves them.

    `rejected` is called with `head_too_large` or `bad_request` if a client sends an invalid request.
    """

    def __init__(
        self, app: AsgiApp, config: Config, rejected: Callable[[str], None] = ignore_rejection
    ) -> None:
        self._rejected = rejected
        self._app = app
        self._config = config
        self._context = WorkerContext(None)
        self._open: set[Connection] = set()
        self._emptied = trio.Event()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection until it closes. Never raises an ordinary exception."""
        connection = Connection(stream, self._refuse)
        app = ASGIWrapper(_Requests(connection, self._app))  # type: ignore[arg-type]  # typed one by one
        self._open.add(connection)
        try:
            with connection.scope:
                # The type hint names Hypercorn's own stream class, but `Connection` has all the methods that
                # Hypercorn uses.
                await TCPServer(app, self._config, self._context, ConnectionState({}), connection)  # type: ignore[arg-type]
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
        """Close idle connections now. All other connections are closed after their current response."""
        await self._context.terminated.set()

    async def wait_empty(self) -> None:
        """Wait until every connection is closed."""
        while self._open:
            await self._emptied.wait()

    def abort(self) -> None:
        """Close all open connections at once."""
        for connection in tuple(self._open):
            connection.abort()


@frozen
class _Requests:
    """ASGI application for the requests of one connection.

    The application passes only unambiguous requests on to `_app`.
    """

    _connection: Connection
    _app: AsgiApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or WebSocket."""
        has_more = self._connection.begin(body_length(scope))
        is_socket = scope["type"] == "websocket"
        try:
            if not correct_scope(scope) or (is_socket and has_more):
                await self._connection.refuse(BAD_REQUEST)
            elif is_socket:
                await self._serve_socket(scope, receive, send)
            else:
                await self._app(scope, receive, self._answering(send))
        finally:
            self._connection.finish()

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._connection.ping)
            await self._app(scope, receive, self._answering(send))
            nursery.cancel_scope.cancel()

    def _answering(self, send: Send) -> Send:
        """Return a `send` function that also reports each message to the connection."""

        async def answer(message: Message) -> None:
            data = message.get("bytes")
            self._connection.begin_answer()
            if isinstance(data, EncodedFrames):
                await self._connection.send_frames(data)
                return
            await send(message)
            if message["type"] == "websocket.accept":
                self._connection.upgrade()

        return answer
