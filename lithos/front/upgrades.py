"""HTTP/1.1 connections and what becomes of those that turn into WebSockets.

Hypercorn's WebSocket buffers on after a message was too large, unpacks whatever it is sent, and never
looks for a pong. Here an upgraded connection is bounded in memory and ends when its client is gone.
"""

from __future__ import annotations

from typing import Any, cast

import h11
import trio
from hypercorn.protocol.events import Data, Event, Request, StreamClosed
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol, H11WSConnection
from hypercorn.protocol.ws_stream import FrameTooLargeError, WSStream
from hypercorn.typing import ASGISendEvent, WebsocketAcceptEvent
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Message, Ping, Pong
from wsproto.frame_protocol import CloseReason

from lithos.front.frames import EncodedFrames
from lithos.front.limits import PING_INTERVAL


class WebSocketStream(WSStream):
    """One WebSocket: bounded messages, no compression, a ping whose pong must come before the next one."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._has_refused = False
        self._has_ponged = True
        self._ended = trio.Event()

    async def handle(self, event: Event) -> None:
        """Take what the connection received, or its end."""
        if isinstance(event, StreamClosed):
            self._ended.set()
        await super().handle(event)

    async def app_send(self, message: ASGISendEvent | None) -> None:
        """Send what the application says; frames that are encoded already go out as they are."""
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
                await self.send(StreamClosed(stream_id=self.stream_id))

    async def _take(self, part: Message[Any]) -> None:
        """Collect a message; after one that was too large nothing is kept until the client closes."""
        if self._has_refused:
            return
        try:
            self.buffer.extend(part)
        except FrameTooLargeError:
            self._has_refused = True
            self.buffer.clear()
            await self._send_wsproto_event(CloseConnection(code=CloseReason.MESSAGE_TOO_BIG))
            return
        if part.message_finished and self.app_put is not None:
            await self.app_put(self.buffer.to_message())
            self.buffer.clear()


class Http1Protocol(H11Protocol):
    """HTTP/1.1 only: an offer to upgrade to HTTP/2 is ignored, as it may be."""

    async def _check_protocol(self, event: h11.Request) -> None:
        """Let every request pass as HTTP/1.1."""

    async def _create_stream(self, request: h11.Request) -> None:
        if not _asks_for_websocket(request):
            await super()._create_stream(request)
            return
        self.stream = WebSocketStream(
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
        self.connection = H11WSConnection(cast(h11.Connection, self.connection))
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


def _asks_for_websocket(request: h11.Request) -> bool:
    fields = {name: value.strip().lower() for name, value in request.headers}
    tokens = [token.strip() for token in fields.get(b"connection", b"").split(b",")]
    return request.method == b"GET" and b"upgrade" in tokens and fields.get(b"upgrade") == b"websocket"
