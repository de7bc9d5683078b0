"""The endpoint `GET /events`: past and live events as server-sent events (docs/spec/events-http.md §3).

The endpoint is a plain ASGI application, because it must detect that a client disconnects, and then free its
connection slot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import trio
from attrs import field, frozen

from lithos.events.reading.event_stream import EventStream, EventStreams, StreamEnded, SubscriberOverflow
from lithos.events.streams.frames import (
    KEEPALIVE_FRAME,
    OVERFLOW_FRAME,
    REVOKED_FRAME,
    Items,
    Subscribers,
    read_query,
    sse_frames,
)
from lithos.server.http.admissions import ended_of
from lithos.server.http.limits import STOP_FLUSH
from lithos.server.http.ports import Header, Receive, Scope, Send, cancel_when

PATH: Final = "/events"
#: Seconds without events after which a comment is sent to keep the connection alive.
KEEPALIVE: Final = 15.0
_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


@frozen(eq=False)
class SseEndpoint:
    """The SSE endpoint as an ASGI application.

    After each send, the endpoint pauses for `pause` seconds and then sends the events that arrived meanwhile
    together. Up to `capacity` events are queued. Clients that show events to people use this mode, so that
    many such clients do not slow down writers.
    """

    _streams: EventStreams
    _subscribers: Subscribers
    _pause: float = field(default=0.0, kw_only=True)
    _capacity: int | None = field(default=None, kw_only=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a client until it disconnects or is too slow, its token ends, or the server shuts down."""
        refusal = self._subscribers.refusal()
        if scope["method"] != "GET":
            await _refuse(send, 405, "Method Not Allowed: use GET", [(b"allow", b"GET")])
        elif refusal is not None:
            await _refuse(send, *refusal)
        else:
            with self._subscribers.place():
                await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = read_query(scope["query_string"])
        since = _last_event_id(scope) or query.since
        ended = ended_of(scope)
        stream = await self._streams.open(since, query.wanted, self._capacity)
        async with self._subscribers.following(stream):
            await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
                nursery.start_soon(cancel_when, ended, nursery.cancel_scope)
                await send({"type": "http.response.body", "body": await self._send_frames(stream, send)})
                nursery.cancel_scope.cancel()
            if ended.is_set():
                # A client that does not read misses the last frame, but its connection still ends.
                with trio.move_on_after(STOP_FLUSH):
                    await send({"type": "http.response.body", "body": REVOKED_FRAME})

    async def _send_frames(self, stream: EventStream, send: Send) -> bytes:
        """Send frames until the stream ends. Return the final frame."""

        async def send_items(items: Items) -> None:
            body = sse_frames(items) if items else KEEPALIVE_FRAME
            await send({"type": "http.response.body", "body": body, "more_body": True})

        try:
            await self._subscribers.deliver(stream, send_items, KEEPALIVE, self._pause)
        except SubscriberOverflow:
            return OVERFLOW_FRAME
        except StreamEnded:
            return b""


def _last_event_id(scope: Scope) -> str | None:
    values = (value for name, value in scope["headers"] if name == b"last-event-id")
    return next(values, b"").decode("latin-1").strip() or None


async def _cancel_when_gone(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    scope.cancel()


async def _refuse(send: Send, status: int, text: str, headers: Iterable[Header] = ()) -> None:
    body = text.encode()
    lines = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})
