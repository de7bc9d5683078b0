"""The HTTP server on one port: MCP, the Quart-Trio application, access control; start and shutdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.trio.lifespan import Lifespan

from lithos.front.mcp.http import MCP_PATH, SSE_PATH, McpEndpoints
from lithos.front.server.access import AccessPolicy, open_bind_warning
from lithos.front.server.admissions import WrongTokens
from lithos.front.server.connections import Connections, hypercorn_config
from lithos.front.server.exchanges import Exchanges
from lithos.front.server.gate import Gate
from lithos.front.server.limits import STOP_FLUSH, STOP_GRACE
from lithos.front.server.plain import PlainPath
from lithos.front.server.ports import (
    AsgiApp,
    FrontSettings,
    HealthReport,
    Late,
    Receive,
    Scope,
    Send,
    SharedToolBox,
    answer,
    ignore_rejection,
)
from lithos.front.server.sockets import open_listeners
from lithos.services.keyring import Keyring, OneToken
from lithos.services.notes.resources import Library
from lithos.telemetry import get_logger

if TYPE_CHECKING:
    from lithos.front.events.monitoring import RouteModule

log = get_logger("lithos.front.serve")

#: Seconds that plain calls have the interpreter for themselves, while nobody asks for the SDK.
UNDISTURBED: Final = 2.0
HEALTH_PATH: Final = "/health"
NO_APPS: Final[Mapping[str, AsgiApp]] = MappingProxyType({})


async def serve_http(
    settings: FrontSettings,
    toolbox: SharedToolBox,
    health: HealthReport,
    *,
    shutdown: trio.Event,
    keyring: Keyring | None = None,
    wrong_tokens: WrongTokens | None = None,
    library: Library | None = None,
    routes: Iterable[RouteModule] = (),
    apps: Mapping[str, AsgiApp] = NO_APPS,
    oauth: Mapping[str, AsgiApp] = NO_APPS,
    rejected: Callable[[str], None] = ignore_rejection,
    wanted: trio.Event | None = None,
    on_listening: Callable[[], None] = lambda: None,
    on_loaded: Callable[[], None] = lambda: None,
    task_status: trio.TaskStatus[tuple[str, int]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `shutdown` is set; `started()` gives the real `(host, port)`.

    The stop ends event streams at once and lets running calls finish for `STOP_GRACE`; it is over
    within `STOP_GRACE`, twice `STOP_FLUSH` and a moment, whatever the clients do. The libraries behind all
    but plain tool calls, `/health` and `apps` are loaded while it listens, and requests wait for them: Quart
    at the first request for a page, the MCP SDK once `wanted` is set, as the first client that needs it
    does, and otherwise after `UNDISTURBED`; `on_loaded` is told then, `on_listening` before. Raises
    `PortInUse` or `CannotListen` before it starts. `rejected` is told the reason of every refusal. `apps`
    serve single paths over HTTP, past Quart, those of `oauth` to whoever has no token yet. `keyring` has the
    tokens that are valid; without one it is `settings.auth_token` alone. `wrong_tokens` counts the others.
    """
    config = hypercorn_config()
    listeners = await open_listeners(settings.host, settings.port)
    policy = AccessPolicy(
        settings.host,
        settings.auth_token,
        settings.allowed_hosts,
        settings.allowed_origins,
        settings.console,
        keyring or OneToken(settings.auth_token),
        settings.private,
        settings.public_url,
        frozenset(oauth),
    )
    if wanted is None:
        wanted = trio.Event()
    page_wanted, ended = trio.Event(), trio.Event()
    mcp = McpEndpoints(toolbox, library, settings.version, settings.max_body_bytes, shutdown, wanted)
    pages = Late(lambda: _create_pages(routes), page_wanted)
    dispatch = _by_path({**mcp.routes, **apps, **oauth, HEALTH_PATH: _tell_health(health)}, pages)
    gate = Gate(dispatch, policy, settings.max_body_bytes, rejected, wrong_tokens)
    exchanges = Exchanges(gate, {SSE_PATH, MCP_PATH})
    plain = PlainPath({MCP_PATH: mcp.answer_plain}, gate.admit_plain, exchanges)
    connections = Connections(exchanges, config, rejected, plain)
    if warning := open_bind_warning(policy):
        log.warning(warning)

    async def load_sdk(wanted: trio.Event) -> None:
        with trio.move_on_after(UNDISTURBED):
            await wanted.wait()
        await nursery.start(mcp.run)
        on_loaded()

    async def serve_pages() -> None:
        """Bring Quart up for the first who wants a page, until `ended`."""
        await page_wanted.wait()
        app = await pages.make()
        lifespan = Lifespan(ASGIWrapper(app), config, {})  # type: ignore[arg-type]
        await nursery.start(lifespan.handle_lifespan)
        await lifespan.wait_for_startup()
        pages.give(app)
        await ended.wait()
        await lifespan.wait_for_shutdown()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(load_sdk, wanted)
        nursery.start_soon(gate.run)
        async with trio.open_nursery() as paging:
            paging.start_soon(serve_pages)
            on_listening()
            await _accept_until(shutdown, listeners, connections, exchanges, task_status)
            if not page_wanted.is_set():
                paging.cancel_scope.cancel()
            ended.set()
        nursery.cancel_scope.cancel()


def _create_pages(routes: Iterable[RouteModule]) -> AsgiApp:
    from lithos.front.events.monitoring import create_app  # noqa: PLC0415 - Quart takes a while, when others are served

    return cast(AsgiApp, create_app(routes))


def _tell_health(health: HealthReport) -> AsgiApp:
    unkept = b"cache-control", b"no-store"

    async def tell(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in {"GET", "HEAD"}:
            status, body = await health.report()
            await answer(scope, receive, send, status, body, headers=[unkept])
        else:
            refusal = {"error": "method_not_allowed"}
            await answer(scope, receive, send, 405, refusal, headers=[(b"allow", b"GET, HEAD"), unkept])

    return tell


async def _accept_until(
    shutdown: trio.Event,
    listeners: list[trio.SocketListener],
    connections: Connections,
    exchanges: Exchanges,
    task_status: trio.TaskStatus[tuple[str, int]],
) -> None:
    async with trio.open_nursery() as clients:
        async with trio.open_nursery() as accepting:
            serve = partial(trio.serve_listeners, connections.serve, listeners, handler_nursery=clients)
            await accepting.start(serve)
            task_status.started(listeners[0].socket.getsockname()[:2])
            await shutdown.wait()
            accepting.cancel_scope.cancel()
        await _stop(connections, exchanges)
        clients.cancel_scope.cancel()


async def _stop(connections: Connections, exchanges: Exchanges) -> None:
    """Shut down: end gracefully what is open, then cancel and abort."""
    await connections.end_idle()
    exchanges.end_streams()
    with trio.move_on_after(STOP_GRACE):
        await exchanges.wait_empty()
    if exchanges.open_count:
        log.warning("calls cut by the stop", calls=exchanges.open_count)
        exchanges.cancel()
        with trio.move_on_after(STOP_FLUSH):
            await exchanges.wait_empty()
    with trio.move_on_after(STOP_FLUSH):
        await connections.wait_empty()
    connections.abort()


def _by_path(routes: dict[str, AsgiApp], pages: Late[AsgiApp]) -> AsgiApp:
    """Route HTTP requests by path, each of one spelling: `apps` serve theirs, Quart everything else."""

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        app = routes.get(scope["path"]) if scope["type"] == "http" else None
        await (app or await pages.get())(scope, receive, send)

    return dispatch
