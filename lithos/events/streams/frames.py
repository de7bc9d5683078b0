"""Event subscriptions over SSE and WebSocket: connection limits, query parameters and encoding.

Events and resync notices are encoded as JSON objects, which are sent in WebSocket frames or as server-sent
events.
"""

from __future__ import annotations

import math
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, NoReturn
from urllib.parse import parse_qs

import trio
from attrs import define, field, frozen

from lithos.events.reading.event_stream import EventFilter, EventStream, Resync
from lithos.kernel.values.events import Event
from lithos.kernel.values.times import format_time
from lithos.server.http.ports import EncodedFrames, compact_json

KEEPALIVE_FRAME: Final = b": keepalive\n\n"
OVERFLOW_FRAME: Final = b": overflow\n\n"
#: Last comment in a stream whose token was revoked or has expired.
REVOKED_FRAME: Final = b": token ended\n\n"
_FINAL_TEXT: Final = 0x81
#: Maximum number of events per send, some 20 kB.
SEND_TOGETHER: Final = 64
Items = Sequence[Event | Resync]


def message_frames(items: Iterable[Event | Resync]) -> EncodedFrames:
    """Return events and notices as WebSocket messages.

    A message is a JSON object without the event's origin.
    """
    return EncodedFrames(b"".join(map(_message_frame, items)))


def _message_frame(item: Event | Resync) -> bytes:
    if isinstance(item, Resync):
        return _text_frame(compact_json(resync_record(item)))
    return _once(item, "message", lambda: _text_frame(compact_json(event_record(item))))


def _text_frame(text: str) -> bytes:
    """Return a text message from the server as a final, unmasked, uncompressed frame (RFC 6455 §5.2)."""
    payload = text.encode()
    length = len(payload)
    if length < 126:
        head = struct.pack("!BB", _FINAL_TEXT, length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", _FINAL_TEXT, 126, length)
    else:
        head = struct.pack("!BBQ", _FINAL_TEXT, 127, length)
    return head + payload


def event_record(event: Event) -> dict[str, Any]:
    """Return the JSON object of an event."""
    draft = event.draft
    return {
        "id": str(event.seq),
        "seq": event.seq,
        "type": draft.type,
        "agent": draft.agent,
        "payload": dict(draft.payload),
        "tags": list(draft.tags),
        "timestamp": format_time(draft.timestamp),
    }


def resync_record(notice: Resync) -> dict[str, Any]:
    """Return the JSON object of a resync notice."""
    return {"type": "resync", **_resync_data(notice)}


def sse_frames(items: Iterable[Event | Resync]) -> bytes:
    """Return events and notices as server-sent events."""
    return b"".join(map(_sse_frame, items))


def _sse_frame(item: Event | Resync) -> bytes:
    """Return one frame with id, event and data. Envelope keys replace payload keys with the same name."""
    if isinstance(item, Resync):
        # A resync frame has no id, so that the client's position does not change.
        return f"event: resync\ndata: {compact_json(_resync_data(item))}\n\n".encode()
    return _once(item, "frame", lambda: _make_frame(item).encode())


def _once(event: Event, form: str, encode: Callable[[], bytes]) -> bytes:
    """Encode an event once. The cached result serves all subscribers."""
    data = event.encoded.get(form)
    if data is None:
        data = event.encoded[form] = encode()
    return data


def _make_frame(event: Event) -> str:
    draft = event.draft
    envelope = {"agent": draft.agent, "tags": list(draft.tags), "timestamp": format_time(draft.timestamp)}
    data = {"agent": draft.agent, **draft.payload, **envelope}
    return f"id: {event.seq}\nevent: {draft.type}\ndata: {compact_json(data)}\n\n"


def _resync_data(notice: Resync) -> dict[str, str]:
    return {"reason": notice.reason, "since_id": notice.since, "message": notice.message}


@define(eq=False)
class Subscribers:
    """Connection limit and number of clients for one kind of subscriber.

    Refusals contain `name`. `delivered` is called for each sent event. `dropped` is called for each client
    that was disconnected because it was too slow.
    """

    _name: str
    _limit: int = field(kw_only=True)
    _delivered: Callable[[], None] = field(default=lambda: None, kw_only=True)
    _dropped: Callable[[], None] = field(default=lambda: None, kw_only=True)
    #: Number of connected clients.
    active: int = field(default=0, init=False)

    def refusal(self) -> tuple[int, str] | None:
        """Return the status and text of a refusal if the limit is reached, else None."""
        if self.active >= self._limit:
            return 429, f"Too many {self._name} clients"
        return None

    @contextmanager
    def place(self) -> Iterator[None]:
        """Count one connection for the duration of the block."""
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    @asynccontextmanager
    async def following(self, stream: EventStream) -> AsyncIterator[EventStream]:
        """Close a stream after the block. If its client was too slow, count it as dropped."""
        try:
            yield stream
        finally:
            stream.close()
            if stream.has_overflowed:
                self._dropped()

    async def deliver(
        self,
        stream: EventStream,
        send: Callable[[Items], Awaitable[None]],
        silence: float = math.inf,
        pause: float = 0.0,
    ) -> NoReturn:
        """Send the items of a stream, with a `pause` in seconds after each send.

        After `silence` seconds without items, `send` is called with an empty list.

        Runs until the stream ends with an exception.
        """
        while True:
            items: list[Event | Resync] = []
            with trio.move_on_after(silence):
                items = [await stream.receive()]
            # Queued events are sent together, because many small sends would delay other clients.
            items += stream.take_waiting(SEND_TOGETHER - 1) if items else ()
            await send(items)
            for item in items:
                if not isinstance(item, Resync):
                    self._delivered()
            if items and pause:
                await trio.sleep(pause)


@frozen
class Query:
    """The parsed query string. A blank value is treated as missing."""

    wanted: EventFilter
    since: str | None = None
    subscriber: str | None = None


def read_query(query_string: bytes) -> Query:
    """Parse `types`, `tags`, `since` and `subscriber`. `types` and `tags` are comma-separated lists."""
    given = parse_qs(query_string.decode("latin-1"), errors="replace")
    types, tags = (
        [part for value in given.get(name, []) for part in value.split(",")] for name in ("types", "tags")
    )
    since, subscriber = (given.get(name, [""])[0].strip() or None for name in ("since", "subscriber"))
    return Query(EventFilter.of(types, tags), since, subscriber)
