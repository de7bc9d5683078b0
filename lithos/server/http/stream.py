"""Stream for Hypercorn: it passes on one whole request at a time, limits waiting times and checks frames.

Hypercorn sends under a shield without a time limit, leaves incomplete request heads unanswered, and never
checks that a WebSocket client is still connected. A `Connection` wraps the socket stream and limits the time
of every send. It passes a head on when the head is complete and valid (`fault_of`) and the previous request
has been answered.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from typing import Final

import trio

from lithos.kernel.log import get_logger
from lithos.server.http.limits import HEAD_BYTES, PING_INTERVAL
from lithos.server.http.request_heads import HEAD_END, HEAD_TOO_LARGE, Chunks, fault_of, without_offers
from lithos.server.http.socket_frames import PING, SocketFrames
from lithos.server.http.sockets import MAX_RECEIVE, PatientSocket

log = get_logger("lithos.front.connections")

TIMED_OUT: Final = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_REFUSAL: Final = b"HTTP/1.1 %d \r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class _Phase(Enum):
    """State of a connection: waiting for a head, head passed on, request being served, WebSocket, or over."""

    HEAD = auto()
    ASKED = auto()
    SERVED = auto()
    SOCKET = auto()
    OVER = auto()


class Connection:
    """Socket stream with the interface that Hypercorn's `TCPServer` expects.

    `refused` is called with the status of each response to an invalid request. `scope` is cancelled when the
    client has left and no request is being served.
    """

    def __init__(self, stream: trio.SocketStream, refused: Callable[[int], None] = lambda _: None) -> None:
        self._client = PatientSocket(stream)
        self.socket = stream.socket
        self._tell_refused = refused
        self.scope = trio.CancelScope()
        self._phase = _Phase.HEAD
        self._turned = trio.Event()
        self._received = bytearray()
        #: Position where the search for the end of a head continues. Searching from the start for each byte
        #: would take quadratic time.
        self._searched = 0
        #: Number of bytes of the body that have not been passed on yet, or 0 for a chunked body (`_chunks`).
        self._left = 0
        self._chunks: Chunks | None = None
        self._has_ended = self._has_refused = self._is_mute = False
        self._is_serving = self._is_answering = False
        self._frames = SocketFrames()

    @property
    def _is_over(self) -> bool:
        return self._phase is _Phase.OVER

    # Methods for the application

    def begin(self, body_length: int | None) -> bool:
        """Record that a request is being served. Return whether more bytes follow the head."""
        self._is_serving, self._left = True, body_length or 0
        self._chunks = Chunks() if body_length is None else None
        self._turn(_Phase.SERVED)
        return bool(self._received)

    def begin_answer(self) -> None:
        """Record that the next bytes to be sent are the application's response."""
        self._is_answering = True

    def finish(self) -> None:
        """Record that the request has been answered."""
        self._is_serving = False
        self._turn(_Phase.OVER if self._phase is _Phase.SOCKET else _Phase.HEAD)
        self._leave()

    def upgrade(self) -> None:
        """Record that the response has announced WebSocket frames to the client."""
        self._turn(_Phase.SOCKET)

    async def ping(self) -> None:
        """Send pings to a WebSocket client until cancelled.

        Close the connection if the client does not answer before the next ping.
        """
        while self._phase is not _Phase.SOCKET:
            await self._turned.wait()
        await trio.sleep(PING_INTERVAL)
        while self._frames.has_ponged:
            self._frames.has_ponged = False
            await self.send_frames(PING)
            await trio.sleep(PING_INTERVAL)
        self.abort()

    async def send_frames(self, data: bytes) -> None:
        """Send whole encoded frames.

        The frames are discarded if the client has left or either side has begun to close.
        """
        if self._frames.is_open:
            try:
                await self.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                log.debug("client left")

    async def refuse(self, status: int) -> None:
        """Send the response to an invalid request in place of the application.

        Nothing more is sent afterwards.
        """
        self._note_refusal(status)
        await self._say_last(_REFUSAL % status)

    async def _say_last(self, data: bytes) -> None:
        self._is_mute = True
        try:
            await self._client.send(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            log.debug("client left")

    def _note_refusal(self, status: int) -> None:
        self._has_refused = self._is_answering = True
        if not self._has_ended:
            self._tell_refused(status)
        self._turn(_Phase.OVER)

    def _turn(self, phase: _Phase) -> None:
        if self._phase is not _Phase.OVER:
            self._phase = phase
        self._turned.set()
        self._turned = trio.Event()

    def _leave(self) -> None:
        if self._has_ended and not self._is_serving:
            self.scope.cancel()

    # Methods with which Hypercorn reads

    async def receive_some(self, max_bytes: int = MAX_RECEIVE) -> bytes:
        """Return the bytes that Hypercorn may read now.

        The result is empty if the client will send no more.
        """
        while not self._is_over:
            if given := await self._next():
                return given
            if self._phase is _Phase.ASKED or (self._phase is _Phase.SERVED and self._received):
                await self._turned.wait()
            elif not self._is_over and not await self._receive(max_bytes):
                return self._end()
        if self._has_refused and not self._is_serving:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
                await self.send_eof()
            self._has_ended = True
            self._leave()
        return b""

    async def _next(self) -> bytes:
        """Return the received bytes that may be passed on now."""
        if self._phase is _Phase.HEAD:
            return await self._next_head()
        if self._phase is _Phase.SOCKET:
            checked = self._frames.check(self._take(len(self._received)))
            if checked.is_over:
                self._has_refused = True
                self._turn(_Phase.OVER)
            if checked.close:
                await self._say_last(checked.close)
            return checked.passed
        return self._next_of_body()

    def _next_of_body(self) -> bytes:
        if self._chunks is None or not self._received:
            data = self._take(min(self._left, len(self._received)))
            self._left -= len(data)
        elif (surplus := self._chunks.surplus(bytes(self._received))) is None:
            data = self._take(len(self._received))
        else:
            data, self._chunks = self._take(len(self._received) - surplus), None
        return data

    async def _next_head(self) -> bytes:
        end = HEAD_END.search(self._received, self._searched)
        self._searched = max(0, len(self._received) - 2) if end is None else 0
        status = HEAD_TOO_LARGE if end is None and len(self._received) > HEAD_BYTES else None
        head = b"" if end is None else self._take(end.end())
        if status := status or (fault_of(head) if head else None):
            await self.refuse(status)
            return b""
        if head:
            self._is_answering = False
            self._turn(_Phase.ASKED)
        return without_offers(head)

    def _take(self, size: int) -> bytes:
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    async def _receive(self, max_bytes: int) -> bool:
        """Wait for bytes from the client. Return False if the client will send no more."""
        try:
            data = await self._client.receive(max_bytes)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.abort()
            raise
        self._received += data
        return bool(data)

    def _end(self) -> bytes:
        """Return the rest of the client's input. It may be part of a head, which h11 then refuses."""
        self._has_ended = True
        if self._phase is not _Phase.HEAD or not self._received:
            self._leave()
            return b""
        self._is_answering = False
        self._phase = _Phase.OVER
        return self._take(len(self._received))

    # Methods with which Hypercorn writes

    async def send_all(self, data: bytes) -> None:
        """Send all of `data`. If that fails, close the connection and raise `trio.BrokenResourceError`."""
        if self._is_mute or not data:
            return
        if not self._is_answering and data[:9] == b"HTTP/1.1 " and data[9:10] != b"1":
            self._note_refusal(int(data[9:12]))  # the status shows that h11 could not read the request
        await self._client.send(data)

    async def send_eof(self) -> None:
        """Close the sending side. Raises `trio.BusyResourceError` while a send is running."""
        if self._client.sending.locked():
            raise trio.BusyResourceError
        await self._answer_half_request()
        await self._client.send_eof()
        if self._has_refused:
            await self._client.drain()

    async def aclose(self) -> None:
        """Close the connection, even while a send is running."""
        if not self._client.sending.locked():
            await self._answer_half_request()
        self.abort()

    def abort(self) -> None:
        """Close the connection at once. A running send or receive raises `trio.ClosedResourceError`."""
        self._client.abort()
        self._has_ended = True
        self._leave()

    async def _answer_half_request(self) -> None:
        if self._phase is not _Phase.HEAD or not self._received or self._has_ended:
            return
        self._turn(_Phase.OVER)
        try:
            with trio.move_on_after(1):
                await self._client.send(TIMED_OUT)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            log.debug("client disconnected while sending headers")
