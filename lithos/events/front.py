"""The HTTP endpoints of events: SSE, WebSocket, the console feed and the access log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.reading.agents import AccessLog, Cursors, NoteTitles
from lithos.events.reading.event_stream import EventStreams
from lithos.events.settings import EventsConfig
from lithos.events.streams.frames import Subscribers
from lithos.events.streams.sse import PATH, SseEndpoint
from lithos.kernel.metrics import Metrics
from lithos.kernel.parts import Parts
from lithos.server.console import sessions as feed
from lithos.server.http.front import Front

if TYPE_CHECKING:
    from quart_trio import QuartTrio


async def add_to(front: Front) -> None:
    """Add the event endpoints to the HTTP front."""
    limits, streams = front.parts.get(EventsConfig), front.parts.get(EventStreams)
    sse = _subscribers(front, "sse", "SSE", limits.max_sse_clients)
    websockets = _subscribers(front, "ws", "WebSocket", limits.max_ws_clients)
    front.apps[PATH] = SseEndpoint(streams, sse)
    if front.sessions is not None:
        calm = SseEndpoint(streams, sse, pause=feed.PAUSE, capacity=feed.CAPACITY)
        front.apps[feed.PATH] = feed.ConsoleFeed(calm, front.sessions, front.rejected)
    front.routes.append(partial(_add_routes, front.parts, websockets))
    front.nursery.start_soon(_end_streams, front)


def _add_routes(parts: Parts, websockets: Subscribers, app: QuartTrio) -> None:
    from lithos.events.streams.audit import add_audit  # noqa: PLC0415 - Quart loads late
    from lithos.events.streams.ws import WsEndpoint  # noqa: PLC0415

    add_audit(parts.get(AccessLog), parts.get(NoteTitles), app)
    WsEndpoint(parts.get(EventStreams), parts.get(Cursors), websockets).add_routes(app)


async def _end_streams(front: Front) -> None:
    await front.shutdown.wait()
    front.parts.get(Broadcaster).close()


def _subscribers(front: Front, kind: str, name: str, limit: int) -> Subscribers:
    """Return the connection limit for one kind of subscriber, with its counters and gauge."""
    count = front.parts.get(Metrics).count
    subscribers = Subscribers(
        name,
        limit=limit,
        delivered=partial(count, f"{kind}_events_delivered"),
        dropped=partial(count, "event_subscriber_drops", kind),
    )
    front.watch(f"{kind}_active_clients", lambda: subscribers.active)
    return subscribers
