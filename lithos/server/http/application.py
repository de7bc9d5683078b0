"""ASGI application of one server. After access control it serves MCP, `/health` and the Quart pages.

`serve_http` listens for a single application. If several vaults share a port, each vault has its own
application (`vaults/http/vault_routes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.lifespan import Lifespan

from lithos.server.http.access import AccessPolicy
from lithos.server.http.admissions import WrongTokens
from lithos.server.http.gate import Gate
from lithos.server.http.ports import (
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
from lithos.server.mcp.over_http import McpEndpoints
from lithos.server.mcp.resource_pages import Library
from lithos.server.tools.token_ports import Keyring, OneToken

if TYPE_CHECKING:
    from lithos.server.http.quart_app import RouteModule

#: Seconds before the SDK is loaded without a client that needs it. Loading would slow down plain calls.
UNDISTURBED: Final = 2.0
HEALTH_PATH: Final = "/health"
NO_APPS: Final[Mapping[str, AsgiApp]] = MappingProxyType({})


class Application:
    """ASGI application of one server. It answers requests only while `run` is running.

    Plain tool calls, `/health` and `apps` are served at once. Other requests wait until their library is
    loaded. Quart is loaded at the first request for a page. The MCP SDK is loaded when the first client needs
    it and sets `wanted`, or after `UNDISTURBED` seconds. Then `on_loaded` is called. `rejected` is called
    with the reason of every refusal. `apps` are ASGI applications for single HTTP paths, which need no Quart.
    They include `/health` if `health` is None. `oauth` are such applications for clients without a token.
    `keyring` contains the valid tokens, by default only `settings.auth_token`. `wrong_tokens` counts wrong
    tokens.
    """

    def __init__(
        self,
        settings: FrontSettings,
        toolbox: SharedToolBox,
        health: HealthReport | None,
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
        on_loaded: Callable[[], None] = lambda: None,
    ) -> None:
        self.policy = AccessPolicy(
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
        self._wanted = trio.Event() if wanted is None else wanted
        self._on_loaded = on_loaded
        self._page_wanted, self._ended = trio.Event(), trio.Event()
        self._mcp = McpEndpoints(
            toolbox, library, settings.version, settings.max_body_bytes, shutdown, self._wanted
        )
        self._pages = Late(lambda: _create_pages(routes), self._page_wanted)
        told = {} if health is None else {HEALTH_PATH: _tell_health(health)}
        served = {**told, **self._mcp.routes, **apps, **oauth}
        dispatch = _by_path(served, self._pages)
        self.gate = Gate(dispatch, self.policy, settings.max_body_bytes, rejected, wrong_tokens)

    async def run(self, config: Config, ended: trio.Event) -> None:
        """Load the libraries and run the background tasks.

        Return after `ended` is set and the pages are closed.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._load_sdk, nursery)
            nursery.start_soon(self.gate.run)
            async with trio.open_nursery() as paging:
                paging.start_soon(self._serve_pages, config, nursery)
                await ended.wait()
                if not self._page_wanted.is_set():
                    paging.cancel_scope.cancel()
                self._ended.set()
            nursery.cancel_scope.cancel()

    async def _load_sdk(self, nursery: trio.Nursery) -> None:
        with trio.move_on_after(UNDISTURBED):
            await self._wanted.wait()
        await nursery.start(self._mcp.run)
        self._on_loaded()

    async def _serve_pages(self, config: Config, nursery: trio.Nursery) -> None:
        """Start Quart at the first request for a page, and run it until the server ends."""
        await self._page_wanted.wait()
        app = await self._pages.make()
        lifespan = Lifespan(ASGIWrapper(app), config, {})  # type: ignore[arg-type]
        await nursery.start(lifespan.handle_lifespan)
        await lifespan.wait_for_startup()
        self._pages.give(app)
        await self._ended.wait()
        await lifespan.wait_for_shutdown()


def _create_pages(routes: Iterable[RouteModule]) -> AsgiApp:
    from lithos.server.http.quart_app import create_app  # noqa: PLC0415 - Quart takes a while, when others are served

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


def _by_path(routes: dict[str, AsgiApp], pages: Late[AsgiApp]) -> AsgiApp:
    """Return an application that routes HTTP requests by exact path.

    Paths that are not in `routes` are served by Quart.
    """

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        app = routes.get(scope["path"]) if scope["type"] == "http" else None
        if app is None and scope.get("root_path"):
            scope = {**scope, "root_path": ""}  # Quart would treat root_path as part of the path
        await (app or await pages.get())(scope, receive, send)

    return dispatch
