"""`GET /events/ws`: filtered events over a WebSocket, with cursors (docs/spec/events-http.md §4).

Clients send the commands subscribe and ack. A text frame contains one JSON object.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, cast

import trio
from attrs import Factory, define, evolve, field, frozen
from pydantic_core import from_json
from quart import Response, Websocket, websocket
from quart_trio import QuartTrio

from lithos.events.reading.agents import Cursors
from lithos.events.reading.event_stream import (
    EventFilter,
    EventStream,
    EventStreams,
    Resync,
    StreamEnded,
    SubscriberOverflow,
)
from lithos.events.streams.frames import Items, Query, Subscribers, message_frames, read_query
from lithos.kernel.values.errors import StorageFailed
from lithos.server.http.admissions import ended_of, principal_of
from lithos.server.http.ports import Scope, cancel_when, compact_json


class BadFrame(Exception):
    """Raised when a frame is not a valid command. The message gives the reason."""


@frozen
class Subscribe:
    """Command that replaces the filter. If `since` is given, the command also restarts the replay there."""

    wanted: EventFilter
    since: str | None = None


@frozen
class Ack:
    """Command that confirms that all events up to `seq` were processed."""

    seq: int


def read_command(frame: str | bytes | None) -> Subscribe | Ack:
    """Parse a frame as a command. Raises `BadFrame`."""
    if not isinstance(frame, str):
        raise BadFrame("Send text frames, not binary frames.")
    try:
        content = from_json(frame)
    except ValueError as error:
        raise BadFrame(f"A frame must be one JSON object: {str(error)[:100]}.") from None
    operation = content.get("op") if isinstance(content, dict) else None
    if operation == "subscribe":
        return Subscribe(
            EventFilter.of(_texts(content, "types"), _texts(content, "tags")), _position(content.get("since"))
        )
    seq = content.get("seq") if operation == "ack" else None
    if operation == "ack" and (not isinstance(seq, int) or isinstance(seq, bool)):
        raise BadFrame('"seq" must be an integer, the seq of an event.')
    if isinstance(seq, int):
        return Ack(seq)
    raise BadFrame('A frame must be a JSON object with "op": "subscribe" or "ack".')


def _texts(content: dict[str, Any], name: str) -> list[str]:
    value = [] if content.get(name) is None else content[name]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadFrame(f'"{name}" must be a list of texts. Omit it for no filter.')
    return value


def _position(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)[:100] if abs(value) < 10**100 else "-"
    if value is not None and not isinstance(value, str):
        raise BadFrame('"since" must be a text, the id of an event.')
    return value


PATH: Final = "/events/ws"
GOING_AWAY, POLICY_VIOLATION, TRY_AGAIN_LATER = 1001, 1008, 1013
NAME_LENGTH: Final = 200
#: Seconds to read frames that arrived before the end, and maximum seconds to store a cursor after the end.
LAST_FRAMES, LAST_STORE = 0.05, 2.0


@frozen(eq=False)
class WsEndpoint:
    """The WebSocket endpoint as a route of the Quart application."""

    _streams: EventStreams
    _cursors: Cursors
    _subscribers: Subscribers

    def add_routes(self, app: QuartTrio) -> None:
        """Add the endpoint to the application."""

        @app.websocket(PATH)
        async def serve_events() -> Response | None:
            return await self._admit(cast(Websocket, websocket._get_current_object()))  # type: ignore[attr-defined]

    async def _admit(self, socket: Websocket) -> Response | None:
        """Serve one client, or reject its WebSocket upgrade."""
        query = read_query(socket.query_string)
        refusal = self._subscribers.refusal()
        if refusal is None and len(query.subscriber or "") > NAME_LENGTH:
            refusal = 400, f"The subscriber's name is longer than {NAME_LENGTH} characters"
        caller = principal_of(cast(Scope, socket.scope))
        if query.subscriber is not None and caller is not None and caller.agent is not None:
            # Cursors are private to an agent, so the position of another agent's cursor is never sent.
            query = evolve(query, subscriber=f"{caller.agent}/{query.subscriber}")
        if refusal is not None:
            return _refuse(*refusal)
        with self._subscribers.place():
            try:
                cursor = await self._find_cursor(query)
            except StorageFailed as failure:
                return _refuse(503, str(failure))
            await self._serve(socket, query, cursor)
        return None

    async def _find_cursor(self, query: Query) -> int | None:
        """Return the cursor of the query's subscriber.

        A new cursor starts at the head, unless the client requests a position.
        """
        if query.subscriber is None:
            return None
        if query.since is not None:
            return await self._cursors.find(query.subscriber)
        return await self._cursors.start(query.subscriber)

    async def _serve(self, socket: Websocket, query: Query, cursor: int | None) -> None:
        resumed = None if cursor is None else str(cursor)
        stream = await self._streams.open(query.since or resumed, query.wanted)
        hello = {"type": "hello", "head": self._streams.head, "cursor": cursor}
        async with self._subscribers.following(stream):
            await socket.accept()
            await socket.send(compact_json(hello))
            await _Conversation(socket, stream, self._cursors, query.subscriber, self._subscribers).run()


@define(eq=False)
class _Conversation:
    """The connection of one client after the hello message."""

    _socket: Websocket
    _stream: EventStream
    _cursors: Cursors
    _subscriber: str | None
    _subscribers: Subscribers
    #: Highest position that the client may acknowledge. It is the last sent event, or at first the client's
    #: start position.
    _sent: int = field(init=False, default=Factory(lambda self: self._stream.position, takes_self=True))
    _acknowledged: trio.Event = field(factory=trio.Event)

    async def run(self) -> None:
        """Serve the connection until the stream ends. If the client disconnects, this method is cancelled.

        The connection also ends when its token becomes invalid, for example because the token was revoked.
        """
        code = POLICY_VIOLATION
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._answer_frames)
                nursery.start_soon(self._store_cursor)
                nursery.start_soon(
                    cancel_when, ended_of(cast(Scope, self._socket.scope)), nursery.cancel_scope
                )
                code = await self._deliver()
                nursery.cancel_scope.cancel()
            await self._socket.close(code)
        finally:
            await self._take_leave()

    async def _deliver(self) -> int:
        """Send events as they arrive. Return the WebSocket close code."""

        async def send_items(items: Items) -> None:
            seqs = [self._stream.position if isinstance(one, Resync) else one.seq for one in items]
            self._sent = max(self._sent, *seqs)
            await self._socket.send(message_frames(items))

        try:
            await self._subscribers.deliver(self._stream, send_items)
        except SubscriberOverflow:
            return TRY_AGAIN_LATER
        except StreamEnded:
            return GOING_AWAY

    async def _answer_frames(self) -> None:
        while True:
            try:
                command = read_command(await self._socket.receive())
                if isinstance(command, Ack):
                    self._acknowledge(command.seq)
                    continue
                if command.since is not None:
                    await self._stream.seek(command.since)
                self._stream.wanted = command.wanted
            except BadFrame as fault:
                refusal = {"type": "error", "code": "invalid_input", "message": str(fault)}
                await self._socket.send(compact_json(refusal))

    def _acknowledge(self, seq: int) -> None:
        if self._subscriber is None:
            return
        if seq > self._sent:
            raise BadFrame(f"This seq was not sent on this connection. The last sent seq is {self._sent}.")
        self._cursors.acknowledge(self._subscriber, seq)
        self._acknowledged.set()

    async def _store_cursor(self) -> None:
        """Store acknowledgements. If more arrive during a store, they are stored together."""
        while True:
            await self._acknowledged.wait()
            self._acknowledged = trio.Event()
            if self._subscriber is not None:
                await self._cursors.store(self._subscriber)

    async def _take_leave(self) -> None:
        """Read the acknowledgements that arrived before the end, and store the last one."""
        if self._subscriber is None:
            return
        with trio.move_on_after(LAST_FRAMES, shield=True):
            while True:
                with suppress(BadFrame):  # The client may have disconnected.
                    command = read_command(await self._socket.receive())
                    if isinstance(command, Ack):
                        self._acknowledge(command.seq)
        with trio.move_on_after(LAST_STORE, shield=True):
            await self._cursors.store(self._subscriber)


def _refuse(status: int, text: str) -> Response:
    return Response(text, status=status, content_type="text/plain; charset=utf-8")
