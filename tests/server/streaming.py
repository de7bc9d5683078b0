"""Event streams from a real journal, for tests of both event endpoints."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, field
from trio_websocket import WebSocketConnection, open_websocket_url

from lithos.events.journal.boards import Boards
from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import AppendEvents
from lithos.events.reading.agents import Cursors
from lithos.events.reading.event_stream import EventStreams
from lithos.events.rows.store import CoordinationStore
from lithos.events.streams.frames import Subscribers
from lithos.events.streams.sse import PATH, SseEndpoint
from lithos.events.streams.ws import WsEndpoint
from lithos.kernel.actors.threads import Inline
from lithos.kernel.values.events import Event, EventDraft
from tests.fakes import START, Clock, served
from tests.server.running import Front, read_until, running_front


@define
class Counts:
    delivered: int = 0
    dropped: int = 0

    def deliver(self) -> None:
        self.delivered += 1

    def drop(self) -> None:
        self.dropped += 1


@define(eq=False, slots=False)
class Station:
    """A coordinator with its journal, and the two event endpoints that read the journal."""

    store: CoordinationStore
    queue: int = 100
    limit: int = 50
    counts: Counts = field(factory=Counts)

    def __attrs_post_init__(self) -> None:
        self.broadcaster = Broadcaster(500, self.queue)
        self.coordinator = Coordinator(
            self.store, Boards(()), Inline(), self.broadcaster, Clock(), journal_size=1000
        )
        self.streams = EventStreams(self.broadcaster, self.store, Inline())
        self.cursors = Cursors(self.coordinator.mailbox, self.store, Inline())
        self.sse_clients, self.ws_clients = (
            Subscribers(name, limit=self.limit, delivered=self.counts.deliver, dropped=self.counts.drop)
            for name in ("SSE", "WebSocket")
        )
        self.sse = SseEndpoint(self.streams, self.sse_clients)
        self.ws = WsEndpoint(self.streams, self.cursors, self.ws_clients)

    @property
    def head(self) -> int:
        return self.coordinator.head

    async def publish(
        self, type: str = "note.created", tags: tuple[str, ...] = (), agent: str = "ada", **payload: Any
    ) -> int:
        """Store and broadcast one event. Return its sequence number."""
        draft = EventDraft(
            type=type, agent=agent, payload=payload, tags=tags, timestamp=START, origin="tool:secret"
        )
        return await self.coordinator.mailbox.ask(AppendEvents((draft,)))

    async def publish_many(self, count: int, **payload: Any) -> list[int]:
        return [await self.publish(**payload) for _ in range(count)]

    def broadcast(self, count: int, **payload: Any) -> None:
        """Broadcast `count` events without a pause."""
        draft = EventDraft(type="note.created", agent="ada", payload=payload, timestamp=START)
        events = [Event(seq=self.head + 1 + n, draft=draft) for n in range(count)]
        with self.store.transaction():
            self.store.append_events(events)
        self.coordinator._next_seq = events[-1].seq + 1
        self.broadcaster.publish(events)


@contextmanager
def station_at(path: Path, **settings: Any) -> Iterator[Station]:
    store = CoordinationStore.open(path / "coordination.db", START)
    store._writer.execute("PRAGMA synchronous=OFF")
    try:
        yield Station(store, **settings)
    finally:
        store.close()


@asynccontextmanager
async def broadcasting(path: Path, **settings: Any) -> AsyncIterator[tuple[Station, Front]]:
    """Yield a station and its front on a free port.

    `settings` may contain settings of the station or the front.
    """
    own = {name: settings.pop(name) for name in ("queue", "enabled", "limit") if name in settings}
    with station_at(path, **own) as station:
        async with (
            served(station.coordinator.mailbox, station.coordinator.start),
            running_front([station.ws.add_routes], {PATH: station.sse}, **settings) as front,
        ):
            yield station, front


@define(eq=False)
class Frame:
    """One server-sent event frame or comment."""

    fields: Mapping[str, str]
    comment: str = ""

    @property
    def seq(self) -> int:
        return int(self.fields["id"])

    @property
    def data(self) -> Any:
        return json.loads(self.fields["data"])


class SseClient:
    """A client that reads frames from a raw connection and skips chunk headers."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.rest = b""

    async def next(self) -> Frame | None:
        """Return the next frame, or None at the end of the stream."""
        while b"\n\n" not in self.rest:
            part = await self.stream.receive_some()
            if not part:
                return None
            self.rest = (self.rest + bytes(part)).replace(b"\r\n", b"\r")
        text, _, self.rest = self.rest.partition(b"\n\n")
        lines = [line for line in text.decode().split("\r")[-1].split("\n") if line]
        if lines[0].startswith(":"):
            return Frame({}, lines[0][1:].strip())
        return Frame(dict(line.split(": ", 1) for line in lines))

    async def seqs(self, count: int) -> list[int]:
        return [(await self.next()).seq for _ in range(count)]  # type: ignore[union-attr]


async def open_sse(front: Front, query: str = "", headers: str = "") -> SseClient:
    """Open an event stream, which the server must accept."""
    stream = await front.connect()
    await stream.send_all(f"GET /events?{query} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
    head = await read_until(stream, b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    client = SseClient(stream)
    client.rest = head.partition(b"\r\n\r\n")[2].replace(b"\r\n", b"\r")
    return client


class WsClient:
    """A client that reads and sends JSON frames over a WebSocket."""

    def __init__(self, socket: WebSocketConnection) -> None:
        self.socket = socket

    async def next(self) -> Any:
        return json.loads(await self.socket.get_message())

    async def seqs(self, count: int) -> list[int]:
        return [(await self.next())["seq"] for _ in range(count)]

    async def send(self, frame: Any) -> None:
        await self.socket.send_message(frame if isinstance(frame, str | bytes) else json.dumps(frame))


@asynccontextmanager
async def open_ws(
    front: Front, query: str = "", headers: list[tuple[str, str]] | None = None
) -> AsyncIterator[tuple[WsClient, Any]]:
    """Yield a connected client, and the hello message that the client received."""
    url = f"ws://{front.host}:{front.port}/events/ws?{query}"
    async with open_websocket_url(url, extra_headers=headers) as socket:
        client = WsClient(socket)
        try:
            yield client, await client.next()
        finally:
            if socket.closed is not None:  # the library does not close a stream that the server closed
                await socket._stream.aclose()
