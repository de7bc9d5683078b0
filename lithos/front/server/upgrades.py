"""HTTP/1.1 connections, and WebSocket connections after the upgrade (handshake, size limits, ping and pong).

Hypercorn's WebSocket buffers on after a message was too large, unpacks whatever it is sent, and never
looks for a pong. Here an upgraded connection is bounded in memory and ends when its client is gone.

Request heads are strict against request smuggling (RFC 9112): h11 looks at the length of a head only while
it waits for more of it, prefers chunks where a length was given too, and joins folded lines. Proxies that
read such requests in another way are how one client gets its bytes into the request of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, cast

import h11
import trio
from hypercorn.protocol.events import Body, Data, Event, Request, StreamClosed
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol, H11WSConnection
from hypercorn.protocol.ws_stream import ASGIWebsocketState, FrameTooLargeError, WSStream
from hypercorn.typing import ASGISendEvent, H11SendableEvent, WebsocketAcceptEvent, WebsocketResponseBodyEvent
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Message, Ping, Pong
from wsproto.frame_protocol import CloseReason

from lithos.front.events.frames import EncodedFrames
from lithos.front.server.limits import HEAD_BYTES, PING_INTERVAL
from lithos.telemetry import get_logger

BAD_REQUEST, HEAD_TOO_LARGE, VERSION_NOT_SUPPORTED = 400, 431, 505
_FOLDED: Final = re.compile(rb"\n[ \t]")
_ABSOLUTE: Final = re.compile(rb"(?i:https?)://(?P<host>[^/?#]+)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?")
_VERSIONS: Final = frozenset({b"1.0", b"1.1"})


class StrictConnection(h11.Connection):
    """The server's side of a connection.

    `refused` is told once, with the status, what is not taken; `is_answering` says whether a request is
    still being served.
    """

    def __init__(self, refused: Callable[[int], None], is_answering: Callable[[], bool]) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._told = refused
        self._is_answering = is_answering
        self._fault: h11.RemoteProtocolError | None = None

    @property
    def has_refused(self) -> bool:
        """Whether the client was told that its request is wrong; nothing more is read from it."""
        return self._fault is not None

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next event of the client. Raises `h11.RemoteProtocolError`, then again and again."""
        if self._fault is not None:
            raise self._fault
        before = self.trailing_data[0] if self.their_state is h11.IDLE else b""
        try:
            event = super().next_event()
            if isinstance(event, h11.Request):
                _check(event, before[: len(before) - len(self.trailing_data[0])])
        except h11.RemoteProtocolError as fault:
            self._fault = fault
            if not self.trailing_data[1]:  # else the client just left
                self._told(fault.error_status_hint)
            if self._is_answering() and self.our_state is not h11.SEND_RESPONSE:
                return h11.PAUSED  # the answer on its way is finished first
            raise
        return event


def _check(request: h11.Request, head: bytes) -> None:
    """Raises `h11.RemoteProtocolError`."""
    if len(head) > HEAD_BYTES:
        raise h11.RemoteProtocolError("the head is too large", HEAD_TOO_LARGE)
    if request.http_version not in _VERSIONS:
        raise h11.RemoteProtocolError("no such version of HTTP/1", VERSION_NOT_SUPPORTED)
    if _FOLDED.search(head):
        raise h11.RemoteProtocolError("a folded line", BAD_REQUEST)
    lengths = {name for name, _ in request.headers} & {b"transfer-encoding", b"content-length"}
    if len(lengths) == 2 or (b"transfer-encoding" in lengths and request.http_version == b"1.0"):
        raise h11.RemoteProtocolError("two ways to tell the length of the body", BAD_REQUEST)
    if path_of(request) is None:
        raise h11.RemoteProtocolError("a target of no resource here", BAD_REQUEST)
    if asks_for_websocket(request) and (lengths or not _is_ascii(request)):
        raise h11.RemoteProtocolError("no handshake of a WebSocket", BAD_REQUEST)


def path_of(request: h11.Request) -> bytes | None:
    """The path and query that a request is for; None when its target is for another host, or for none."""
    target = request.target
    if target.startswith(b"/") or target == b"*":
        return target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None or absolute["host"].lower() not in {
        value.lower() for name, value in request.headers if name == b"host"
    }:
        return None
    return (absolute["path"] or b"/") + (absolute["query"] or b"")


def asks_for_websocket(request: h11.Request) -> bool:
    """Whether a request asks for an upgrade to WebSocket."""
    fields = {name: value.strip().lower() for name, value in request.headers}
    tokens = [token.strip() for token in fields.get(b"connection", b"").split(b",")]
    # Hypercorn takes a method in small letters for the same.
    return (
        request.method.upper() == b"GET" and b"upgrade" in tokens and fields.get(b"upgrade") == b"websocket"
    )


def _is_ascii(request: h11.Request) -> bool:
    """Whether the handshake fields are plain ASCII."""
    return all(
        value.isascii()
        for name, value in request.headers
        if name == b"connection" or name.startswith(b"sec-websocket-")
    )


log = get_logger("lithos.front.upgrades")


class WebSocketStream(WSStream):
    """One WebSocket: bounded messages, no compression, a ping whose pong must come before the next one."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        #: Whether it closes because of what the client sent.
        self.has_refused = False
        self._is_answered = self._came_early = False
        self._has_ponged = True
        self._ended = trio.Event()

    async def handle(self, event: Event) -> None:
        """Take what the connection received, or its end."""
        if isinstance(event, StreamClosed):
            self._ended.set()
        if isinstance(event, Body | Data) and not self.closed and not self.handshake.accepted:
            await self._refuse_early()
        else:
            await super().handle(event)

    async def _refuse_early(self) -> None:
        """End what did not wait for the handshake; Hypercorn would leave the application waiting."""
        if self._is_answered:
            return  # with a refusal, which is being sent
        self.has_refused = self._is_answered = self._came_early = True
        self.state = ASGIWebsocketState.HTTPCLOSED
        await self._send_error_response(BAD_REQUEST)
        await self.send(StreamClosed(stream_id=self.stream_id))

    async def _send_rejection(self, message: WebsocketResponseBodyEvent) -> None:
        self._is_answered = True
        await super()._send_rejection(message)

    async def app_send(self, message: ASGISendEvent | None) -> None:
        """Send what the application says; frames that are encoded already go out as they are."""
        if self._came_early:
            return  # it was answered for the application, which hears of the end
        data = None if message is None else cast(Any, message).get("bytes")
        if not isinstance(data, EncodedFrames):
            await super().app_send(message)
        elif not self.closed and self.connection.state is ConnectionState.OPEN:
            await self.send(Data(stream_id=self.stream_id, data=data))

    async def _accept(self, message: WebsocketAcceptEvent) -> None:
        self.handshake.extensions = None  # compressed, a few bytes unpack to gigabytes
        await super()._accept(message)
        self.task_group.spawn(self._ping)

    async def _ping(self) -> None:
        """Ping until the end; a client that does not answer before the next ping is cut off."""
        while not await self._ends_within(PING_INTERVAL):
            if not self._has_ponged:
                await self.send(StreamClosed(stream_id=self.stream_id))
                return
            self._has_ponged = False
            await self._send_wsproto_event(Ping())

    async def _ends_within(self, seconds: float) -> bool:
        with trio.move_on_after(seconds):
            await self._ended.wait()
        return self._ended.is_set()

    async def _handle_events(self) -> None:
        for event in self.connection.events():
            if isinstance(event, Message):
                await self._take(event)
            elif isinstance(event, Ping):
                await self._send_wsproto_event(event.response())
            elif isinstance(event, Pong):
                self._has_ponged = True
            elif isinstance(event, CloseConnection):
                if self.connection.state == ConnectionState.REMOTE_CLOSING:
                    await self._send_wsproto_event(event.response())
                elif self.connection.state == ConnectionState.OPEN:  # not the client's: it sent no frame
                    self.has_refused = True
                    await self._send_wsproto_event(event)
                await self.send(StreamClosed(stream_id=self.stream_id))
                return

    async def _take(self, part: Message[Any]) -> None:
        """Collect a message; after one that was too large nothing is kept until the client closes."""
        if self.has_refused:
            return
        try:
            self.buffer.extend(part)
        except FrameTooLargeError:
            self.has_refused = True
            self.buffer.clear()
            await self._send_wsproto_event(CloseConnection(code=CloseReason.MESSAGE_TOO_BIG))
            return
        if part.message_finished and self.app_put is not None:
            await self.app_put(self.buffer.to_message())
            self.buffer.clear()


class Http1Protocol(H11Protocol):
    """HTTP/1.1 only: an offer to upgrade to HTTP/2 is ignored, as it may be.

    `refused` is told the status of every answer to what is no request.
    """

    def __init__(self, *arguments: Any, refused: Callable[[int], None]) -> None:
        super().__init__(*arguments)
        self._requests = StrictConnection(refused, lambda: self.stream is not None)
        self.connection = self._requests
        self._socket: WebSocketStream | None = None

    @property
    def has_refused(self) -> bool:
        """Whether the connection ends because of what the client sent."""
        return self._requests.has_refused or (self._socket is not None and self._socket.has_refused)

    @property
    def is_between_requests(self) -> bool:
        """Whether the next byte that is received begins a request."""
        return self._requests.their_state is h11.IDLE and not self._requests.trailing_data[0]

    async def _send_h11_event(self, event: H11SendableEvent) -> None:
        try:
            await super()._send_h11_event(event)
        except h11.LocalProtocolError:
            if not self.has_refused:
                raise
            log.debug("an answer came after the refusal")

    async def _check_protocol(self, event: h11.Request) -> None:
        """Let every request pass as HTTP/1.1."""

    async def _create_stream(self, request: h11.Request) -> None:
        # A target may name the server too (RFC 9112, 3.2.2); everything behind goes by its path.
        target = path_of(request)
        if target is not None and target != request.target:
            request = h11.Request(
                method=request.method,
                headers=request.headers,
                target=target,
                http_version=request.http_version,
            )
        if not asks_for_websocket(request):
            await super()._create_stream(request)
            return
        self.stream = self._socket = WebSocketStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        self.connection = H11WSConnection(self._requests)
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=list(request.headers),
                http_version=request.http_version.decode(),
                method="GET",
                raw_path=request.target,
                state=self.connection_state,
            )
        )
