"""Event subscriptions over SSE or WebSocket: connection limits, query parameters, and encoding of frames.

Events and resync notices are encoded as JSON objects, WebSocket frames and server-sent events.
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
#: The last comment of a stream whose token was revoked or has expired.
REVOKED_FRAME: Final = b": token ended\n\n"
_FINAL_TEXT: Final = 0x81
#: Events in one send at most: some 20 kB.
SEND_TOGETHER: Final = 64
Items = Sequence[Event | Resync]


def message_frames(items: Iterable[Event | Resync]) -> EncodedFrames:
    """Events and notices as one WebSocket message each, a JSON object; origins stay inside."""
    return EncodedFrames(b"".join(map(_message_frame, items)))


def _message_frame(item: Event | Resync) -> bytes:
    if isinstance(item, Resync):
        return _text_frame(compact_json(resync_record(item)))
    return _once(item, "message", lambda: _text_frame(compact_json(event_record(item))))


def _text_frame(text: str) -> bytes:
    """A whole text message of a server (RFC 6455, section 5.2): final, unmasked, uncompressed."""
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
    """The JSON object of an event."""
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
    """A resync notice as one object."""
    return {"type": "resync", **_resync_data(notice)}


def sse_frames(items: Iterable[Event | Resync]) -> bytes:
    """Events and notices as server-sent events."""
    return b"".join(map(_sse_frame, items))


def _sse_frame(item: Event | Resync) -> bytes:
    """One frame: id, event, data. Keys of the envelope win over those of the payload."""
    if isinstance(item, Resync):
        # Without id, so that the client's position stays what it was.
        return f"event: resync\ndata: {compact_json(_resync_data(item))}\n\n".encode()
    return _once(item, "frame", lambda: _make_frame(item).encode())


def _once(event: Event, form: str, encode: Callable[[], bytes]) -> bytes:
    """Encode an event once and cache the result for all subscribers."""
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
    """The connection limit and count of one kind of subscriber.

    `name` is used in refusals; `delivered` is called for sent events, `dropped` for each slow client cut off.
    """

    _name: str
    _limit: int = field(kw_only=True)
    _delivered: Callable[[], None] = field(default=lambda: None, kw_only=True)
    _dropped: Callable[[], None] = field(default=lambda: None, kw_only=True)
    #: Clients being served.
    active: int = field(default=0, init=False)

    def refusal(self) -> tuple[int, str] | None:
        """Status and text for a client that cannot be served now."""
        if self.active >= self._limit:
            return 429, f"Too many {self._name} clients"
        return None

    @contextmanager
    def place(self) -> Iterator[None]:
        """Count one connection for the block."""
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    @asynccontextmanager
    async def following(self, stream: EventStream) -> AsyncIterator[EventStream]:
        """Have a stream closed after the block, and counted where its client was too slow for it."""
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
        """Send what a stream brings, with a `pause` after it, and nothing after each `silence`.

        Raises as the stream ends.
        """
        while True:
            items: list[Event | Resync] = []
            with trio.move_on_after(silence):
                items = [await stream.receive()]
            # Events that wait already are included: one send for many events keeps a crowd on time.
            items += stream.take_waiting(SEND_TOGETHER - 1) if items else ()
            await send(items)
            for item in items:
                if not isinstance(item, Resync):
                    self._delivered()
            if items and pause:
                await trio.sleep(pause)


@frozen
class Query:
    """The parsed query string; a blank value counts as absent."""

    wanted: EventFilter
    since: str | None = None
    subscriber: str | None = None


def read_query(query_string: bytes) -> Query:
    """Read `types`, `tags`, `since` and `subscriber`; `types` and `tags` are comma lists."""
    given = parse_qs(query_string.decode("latin-1"), errors="replace")
    types, tags = (
        [part for value in given.get(name, []) for part in value.split(",")] for name in ("types", "tags")
    )
    since, subscriber = (given.get(name, [""])[0].strip() or None for name in ("since", "subscriber"))
    return Query(EventFilter.of(types, tags), since, subscriber)
