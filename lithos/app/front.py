"""Composition of the HTTP front: wires the endpoints (MCP, events, audit, metrics) to a running server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen

from lithos.actors.coordinating.broadcaster import Broadcaster
from lithos.actors.front_signals import FrontSignals
from lithos.app import Server
from lithos.app.capabilities import background
from lithos.catalogue.catalogue import Catalogue
from lithos.events.settings import EventsConfig
from lithos.front.console import sessions as feed
from lithos.front.console.sessions import Sessions
from lithos.front.events import sse as events
from lithos.front.events.frames import Subscribers
from lithos.front.oauth.endpoints import OAuthEndpoints, resource_apps
from lithos.front.server.admissions import WrongTokens
from lithos.front.server.ports import FrontSettings
from lithos.front.server.serve import serve_http
from lithos.metrics import Metrics
from lithos.server.settings import ServerConfig
from lithos.services.importing.importing import Importing
from lithos.services.keyring import TokenRing
from lithos.services.notes.resources import Library
from lithos.services.oauth.authorization import AuthorizationServer
from lithos.services.state import Gauges, ServerState
from lithos.services.tasks.agents import AccessLog, Cursors
from lithos.services.tasks.event_stream import EventStreams
from lithos.services.upkeep.checks import Patient

if TYPE_CHECKING:
    from quart import Blueprint
    from quart_trio import QuartTrio

    from lithos.front.console.console import Console
    from lithos.front.server.ports import AsgiApp


async def serve_front(
    settings: FrontSettings,
    server: Server,
    shutdown: trio.Event,
    *,
    task_status: trio.TaskStatus[tuple[str, int]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `shutdown`, which ends event streams first; `started()` gives the real host and port."""
    async with trio.open_nursery() as nursery:
        parts = await front_parts(settings, server, shutdown, nursery)
        await serve_http(
            settings,
            server.tools,
            server.get(ServerState),
            on_listening=server.get(FrontSignals).listens.set,
            task_status=task_status,
            **parts.application,
        )
        nursery.cancel_scope.cancel()


@frozen
class FrontParts:
    """What `Application` takes beside tools and state; of the console its sessions, and itself when asked."""

    application: Mapping[str, Any]
    sessions: Sessions | None
    make_console: Callable[[], Console] | None


async def front_parts(
    settings: FrontSettings,
    server: Server,
    shutdown: trio.Event,
    nursery: trio.Nursery,
    *,
    wrong_tokens: WrongTokens | None = None,
    keyring_runs: bool = True,
) -> FrontParts:
    """What serves a server; what that needs is started in `nursery`."""
    sessions: Sessions | None = None
    make_console: Callable[[], Console] | None = None
    config = server.get(EventsConfig)
    sse = _subscribers(server, "sse", "SSE", config.max_sse_clients)
    websockets = _subscribers(server, "ws", "WebSocket", config.max_ws_clients)
    stream = events.SseEndpoint(server.get(EventStreams), sse)
    apps: dict[str, AsgiApp] = {events.PATH: stream}
    routes = [partial(_add_routes, server, websockets)]
    wrong_tokens = WrongTokens() if wrong_tokens is None else wrong_tokens
    rejected = partial(server.get(Metrics).count, "http_rejected")
    if settings.auth_token is not None:
        server.get(TokenRing).accept(settings.auth_token)
    nursery.start_soon(_end_streams, server, shutdown)
    if keyring_runs:
        await nursery.start(server.get(TokenRing).run)
    if settings.console:
        sessions = Sessions(server.clock, server.get(ServerConfig).console_agent, server.get(TokenRing))
        calm = events.SseEndpoint(server.get(EventStreams), sse, pause=feed.PAUSE, capacity=feed.CAPACITY)
        apps[feed.PATH] = feed.ConsoleFeed(calm, sessions, rejected)
        for each in background(of_front=True):
            nursery.start_soon(each.run, server.get(each.kind))
        make_console = cache(lambda: _new_console(server, settings, sessions, wrong_tokens))
        routes.append(partial(_add_console, server, settings, make_console))
    parts = {
        "shutdown": shutdown,
        "keyring": server.get(TokenRing),
        "wrong_tokens": wrong_tokens,
        "library": server.get(Library),
        "apps": apps,
        "oauth": _make_oauth(server, settings, wrong_tokens, rejected),
        "routes": routes,
        "rejected": rejected,
        "wanted": server.get(FrontSignals).wanted,
        "on_loaded": server.get(FrontSignals).loaded.set,
    }
    return FrontParts(parts, sessions, make_console)


def _new_console(
    server: Server, settings: FrontSettings, sessions: Sessions, wrong_tokens: WrongTokens
) -> Console:
    """The console; its libraries too are loaded only once the server listens."""
    from lithos.front.console.console import Console  # noqa: PLC0415

    return Console(server, server.tools, settings, sessions, wrong_tokens)


def _make_oauth(
    server: Server, settings: FrontSettings, wrong_tokens: WrongTokens, rejected: Callable[[str], None]
) -> dict[str, AsgiApp]:
    """The addresses for clients elsewhere; none without `server.public_url`."""
    if settings.public_url is None:
        return {}
    issuer = server.get(ServerConfig).oauth.issuer or settings.public_url
    resource = resource_apps(settings.public_url, issuer)
    authorization = server.find(AuthorizationServer)
    if authorization is None:  # somebody else's
        return resource
    server.get(Metrics).begin("http_rejected", "oauth")
    return {**resource, **OAuthEndpoints(authorization, wrong_tokens, rejected).apps}


def _add_routes(server: Server, websockets: Subscribers, app: QuartTrio) -> None:
    """Add what Quart serves; it is loaded only once the server listens."""
    from lithos.front.events.monitoring import add_audit, add_import, add_metrics, add_reconcile  # noqa: PLC0415 - Quart loads late
    from lithos.front.events.ws import WsEndpoint  # noqa: PLC0415

    add_metrics(server.get(Gauges).scrape, app)
    add_audit(server.get(AccessLog), server.get(Catalogue), app)
    add_reconcile(server.get(Patient), app)
    add_import(server.get(Importing), app)
    WsEndpoint(server.get(EventStreams), server.get(Cursors), websockets).add_routes(app)


def _add_console(
    server: Server, settings: FrontSettings, make_console: Callable[[], Console], app: QuartTrio
) -> None:
    """Add the pages of the console."""
    from lithos.front.console.pages import (  # noqa: PLC0415
        agents,
        care,
        files,
        graph,
        login,
        note,
        notes,
        overview,
        receipts,
        review,
        search,
        system,
        tasks,
        undo,
    )

    read = login, overview, search, notes, note, files, graph
    modules = *read, review, care, tasks, agents, undo, receipts, system
    pages: list[Callable[[Console, Blueprint], None]] = [module.add_routes for module in modules]
    authorization = server.find(AuthorizationServer)
    if settings.public_url is not None and authorization is not None:
        from lithos.front.console.pages import consent  # noqa: PLC0415 - most do without

        pages.append(partial(consent.add_routes, server=authorization))
    make_console().add_routes(app, tuple(pages))


async def _end_streams(server: Server, shutdown: trio.Event) -> None:
    await shutdown.wait()
    server.get(Broadcaster).close()


def _subscribers(server: Server, kind: str, name: str, limit: int) -> Subscribers:
    """The connection limit of one kind of subscriber, with its counters and its gauge."""
    count = server.get(Metrics).count
    subscribers = Subscribers(
        name,
        limit=limit,
        delivered=partial(count, f"{kind}_events_delivered"),
        dropped=partial(count, "event_subscriber_drops", kind),
    )
    server.get(Gauges).watch(f"{kind}_active_clients", lambda: subscribers.active)
    return subscribers
