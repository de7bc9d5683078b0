"""Client connections with deadlines for sends, request heads and idle time, served by Hypercorn.

Hypercorn sends under an unbounded shield and leaves half-sent request heads unanswered. A
`Connection` therefore wraps the socket stream: every send has a deadline of its own, a head that
never became a request is answered 408, and `abort` ends any send at once. Plain requests are
served by the task that reads the connection, all others by Hypercorn.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from math import inf
from operator import attrgetter
from typing import Any, Final

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, RawData, Updated
from hypercorn.events import Event as ProtocolEvent
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import MAX_RECV, TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState, Event

from lithos.core.principals import Principal
from lithos.front.server.exchanges import FAULT, STOPPING, PlainExchange
from lithos.front.server.limits import (
    FINAL_SEND,
    IDLE_PATIENCE,
    MESSAGE_BYTES,
    PIECES_PATIENCE,
    REFUSED_BYTES,
    REFUSED_SECONDS,
    SEND_PATIENCE,
    SEND_PIECE,
)
from lithos.front.server.plain import PlainPath, PlainRequest, head_of
from lithos.front.server.ports import AsgiApp, compact_json, ignore_rejection
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

    async def receive_some(self, max_bytes: int = MAX_RECV) -> bytes:
        """Return what arrived; empty when the client will send no more."""
        while True:
            # Read once it says that there is something: a stream of Trio first tries in vain.
            await trio.lowlevel.wait_readable(self._fileno())
            try:
                data = os.read(self._fileno(), max_bytes)
            except BlockingIOError:
                continue
            except OSError as error:
                raise trio.BrokenResourceError("the client left") from error
            self._heard = bool(data)
            return data

    def _fileno(self) -> int:
        """The socket's number, of this moment: a closed one is another's soon."""
        number = self._stream.socket.fileno()
        if number < 0:
            raise trio.ClosedResourceError
        return number

    async def send_soon(self, data: bytes) -> None:
        """As `send_all`, but without letting others run where the socket takes all of `data` at once."""
        sent = 0
        if not self._sending.locked():
            self._spoke = True
            try:
                sent = os.write(self._fileno(), data[:SEND_PIECE])
            except OSError:
                log.debug("the socket takes nothing now")
        if sent < len(data):
            with trio.CancelScope(shield=True):  # a stop cuts no answer in half; it aborts the connection
                await self.send_all(data[sent:])

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


class _Idleness:
    """Since when a connection is idle, as Hypercorn's `idle_task`, which is a new task after each request."""

    def __init__(self) -> None:
        #: Infinite while a request is served.
        self.since = inf
        self._watch: trio.CancelScope | None = None

    async def restart(self, task_group: TaskGroup, action: Callable[[], Awaitable[None]]) -> None:
        """It is idle from now on; the first time, start `action`."""
        self.since = trio.current_time()
        if self._watch is None:
            self._watch = trio.CancelScope()
            task_group.spawn(self._run, self._watch, action)

    @staticmethod
    async def _run(watch: trio.CancelScope, action: Callable[[], Awaitable[None]]) -> None:
        with watch:
            await action()

    async def stop(self) -> None:
        """It is in use."""
        self.since = inf

    def end(self) -> None:
        """Cancel the action."""
        if self._watch is not None:
            self._watch.cancel()

    async def wait(self, patience: float, ended: Event) -> bool:
        """Wait until it was idle for `patience` seconds, or `ended` is set; whether it is idle then."""
        while not ended.is_set() and (left := self.since + patience - trio.current_time()) > 0:
            with trio.move_on_after(min(left, patience)):
                await ended.wait()
        return self.since < inf


#: What Hypercorn's chooser of a protocol gives the one that it chooses.
_PASSED_ON: Final = attrgetter(
    "app", "config", "context", "task_group", "state", "ssl", "client", "server", "send"
)


class _Server(TCPServer):
    """Hypercorn's connection handler, but it serves plain requests, and waits for no client that left."""

    stream: Connection  # type: ignore[assignment]  # Hypercorn names what it makes, not what it needs
    idle_task: _Idleness  # type: ignore[assignment]

    def __init__(self, *arguments: Any, refused: Callable[[int], None], plain: PlainPath | None) -> None:
        super().__init__(*arguments)
        self.idle_task = _Idleness()
        self._client_left = False
        self._has_drained = False
        self._refused = refused
        self._plain = plain
        self._exchange = PlainExchange()
        #: What was received last went to h11.
        self._is_at_h11 = False

    async def _read_data(self) -> None:
        chosen = self.protocol
        self._http = chosen.protocol = Http1Protocol(*_PASSED_ON(chosen), refused=self._refused)
        try:
            with self._exchange.cancel_scope:
                await self._serve()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            log.debug("client left")
        await self.protocol.handle(Closed())
        self._client_left = True
        self.idle_task.end()

    async def _serve(self) -> None:
        """Serve what the client sends until it ends: plain requests here, the others by Hypercorn."""
        while data := await self.stream.receive_some():
            if data := await self._serve_plain(data):
                self._is_at_h11 = True
                await self.protocol.handle(RawData(data))
            elif self.context.terminated.is_set():
                return
        await self.protocol.handle(RawData(b""))

    async def _serve_plain(self, data: bytes) -> bytes:
        """Answer the plain requests that `data` begins with; what is left of it is for h11."""
        if self._is_at_h11:
            self._is_at_h11 = not self._http.is_between_requests
        plain = self._plain
        while data and plain is not None and not self._is_at_h11 and (found := plain.find(data)):
            request, principal = found
            self.idle_task.since = inf
            if len(data) < request.end:
                data += await self._receive_rest(request.end - len(data))
            is_answered = len(data) >= request.end and await self._answer(plain, request, principal, data)
            self.idle_task.since = trio.current_time()
            if not is_answered:
                break
            data = b"" if self.context.terminated.is_set() else data[request.end :]
            if data:
                await trio.lowlevel.checkpoint()
        return data

    async def _receive_rest(self, missing: int) -> bytes:
        """The rest of a body whose head came first; less of it where it does not follow at once."""
        received = b""
        with trio.move_on_after(PIECES_PATIENCE):
            while len(received) < missing and (part := await self.stream.receive_some()):
                received += part
        return received

    async def _answer(
        self, plain: PlainPath, request: PlainRequest, principal: Principal, data: bytes
    ) -> bool:
        """Answer the request that `data` begins with; False where h11 has to look after all."""
        plain.exchanges.begin(self._exchange)
        status, parts = 200, None
        try:
            try:
                body = data[request.body_at : request.end]
                parts = await plain.apps[request.path](request, principal, body)
            except trio.Cancelled:
                if self._exchange.cancel_scope.cancel_called:
                    with trio.move_on_after(FINAL_SEND, shield=True):
                        await self._send_json(503, [compact_json(STOPPING).encode()])
                raise
            except Exception:
                log.exception("request failed", path=request.path)
                status, parts = 500, [compact_json(FAULT).encode()]
            if parts is not None:
                await self._send_json(status, parts)
        finally:
            plain.exchanges.finish(self._exchange)
        return parts is not None

    async def _send_json(self, status: int, parts: list[bytes]) -> None:
        length = sum(map(len, parts))
        parts = [head_of(status, length), *parts]
        for part in parts if length > SEND_PIECE else [b"".join(parts)]:
            await self.stream.send_soon(part)

    async def _idle_timeout(self) -> None:
        if await self.idle_task.wait(self.config.keep_alive_timeout, self.context.terminated):
            with trio.CancelScope(shield=True):
                await self._initiate_server_close()

    async def protocol_send(self, event: ProtocolEvent) -> None:
        if isinstance(event, Closed) and self._http.has_refused and not self._has_drained:
            self._has_drained = True
            await self.stream.drain()
        waits_for_more = isinstance(event, Updated) and event.idle
        await super().protocol_send(Closed() if waits_for_more and self._client_left else event)


class Connections:
    """All open connections, served by Hypercorn.

    `rejected` is told `head_too_large` or `bad_request` for what is no request.
    """

    def __init__(
        self,
        app: AsgiApp,
        config: Config,
        rejected: Callable[[str], None] = ignore_rejection,
        plain: PlainPath | None = None,
    ) -> None:
        self._rejected = rejected
        self._app = ASGIWrapper(app)  # type: ignore[arg-type]  # Hypercorn types its messages one by one
        self._config = config
        self._plain = plain
        self._context = WorkerContext(None)
        self._open: set[Connection] = set()
        self._emptied = trio.Event()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection until it closes; never raises an ordinary exception."""
        connection = Connection(stream)
        self._open.add(connection)
        try:
            server = _Server(
                self._app,
                self._config,
                self._context,
                ConnectionState({}),
                connection,
                refused=self._refuse,
                plain=self._plain,
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
