"""Composition of the HTTP front, which connects the endpoints of all capabilities to a running server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import trio

from lithos.app.capabilities import background, fronts, pages
from lithos.kernel.actors.front_signals import FrontSignals
from lithos.kernel.metrics import Metrics
from lithos.kernel.parts import Parts
from lithos.server.console.sessions import Sessions
from lithos.server.http.admissions import WrongTokens
from lithos.server.http.front import Front, FrontParts
from lithos.server.http.ports import FrontSettings
from lithos.server.http.serve import serve_http
from lithos.server.mcp.resource_pages import Library
from lithos.server.service_state import Gauges, ServerState
from lithos.server.settings import ServerConfig
from lithos.server.tools.registry import Tools
from lithos.server.tools.token_ports import Keyring, OneToken

if TYPE_CHECKING:
    from quart_trio import QuartTrio

    from lithos.server.console.console import Console


async def serve_front(
    settings: FrontSettings,
    server: Parts,
    shutdown: trio.Event,
    *,
    task_status: trio.TaskStatus[tuple[str, int]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `shutdown` is set. Event streams end first. `started()` gets the actual host and port."""
    async with trio.open_nursery() as nursery:
        parts = await front_parts(settings, server, shutdown, nursery)
        await serve_http(
            settings,
            server.get(Tools),
            server.get(ServerState),
            on_listening=server.get(FrontSignals).listens.set,
            task_status=task_status,
            **parts.application,
        )
        nursery.cancel_scope.cancel()


async def front_parts(
    settings: FrontSettings,
    server: Parts,
    shutdown: trio.Event,
    nursery: trio.Nursery,
    *,
    wrong_tokens: WrongTokens | None = None,
    keyring_runs: bool = True,
) -> FrontParts:
    """Return the HTTP front parts for a server. Their tasks are started in `nursery`."""
    keyring: Keyring = server.find(Keyring) or OneToken(settings.auth_token)
    agent = server.get(ServerConfig).console_agent
    front = Front(
        parts=server,
        settings=settings,
        nursery=nursery,
        shutdown=shutdown,
        wrong_tokens=WrongTokens() if wrong_tokens is None else wrong_tokens,
        rejected=partial(server.get(Metrics).count, "http_rejected"),
        watch=server.get(Gauges).watch,
        sessions=Sessions(server.clock, agent, keyring) if settings.console else None,
        keyring_runs=keyring_runs,
    )
    for module in fronts():
        await import_module(module).add_to(front)
    make_console: Callable[[], Console] | None = None
    if front.sessions is not None:
        for each in background(of_front=True):
            nursery.start_soon(each.run, server.get(each.kind))
        make_console = cache(partial(_new_console, server, settings, front.sessions, front.wrong_tokens))
        front.routes.append(partial(_add_console, make_console))
    return FrontParts(_application_of(front, keyring), front.sessions, make_console)


def _application_of(front: Front, keyring: Keyring) -> Mapping[str, Any]:
    signals = front.parts.get(FrontSignals)
    return {
        "shutdown": front.shutdown,
        "keyring": keyring,
        "wrong_tokens": front.wrong_tokens,
        "library": front.parts.get(Library),
        "apps": front.apps,
        "oauth": front.oauth,
        "routes": front.routes,
        "rejected": front.rejected,
        "wanted": signals.wanted,
        "on_loaded": signals.loaded.set,
    }


def _add_console(make_console: Callable[[], Console], app: QuartTrio) -> None:
    make_console().add_routes(app)


def _new_console(
    server: Parts, settings: FrontSettings, sessions: Sessions, wrong_tokens: WrongTokens
) -> Console:
    """Return the console. Its libraries are loaded only after the server has begun to listen."""
    from lithos.server.console.console import Console

    return Console(server, server.get(Tools), settings, sessions, wrong_tokens, pages())
