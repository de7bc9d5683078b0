"""Several complete servers on one port, and one console for all their vaults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import trio
from attrs import define, evolve

from lithos.access.files.tokens import Token, TokenStore, digest_of
from lithos.access.service.keyring import TokenRing
from lithos.kernel.parts import utc_now
from lithos.kernel.values.principals import Principal, Rights
from lithos.server.console.console import Console
from lithos.server.http import serve
from lithos.server.http.admissions import WrongTokens
from lithos.server.http.exchanges import Exchanges
from lithos.server.http.ports import AsgiApp, Receive, Scope, Send, VaultLink
from lithos.server.http.serve import serve_http
from lithos.server.service_state import ServerState
from lithos.server.tools.token_ports import Keyring
from lithos.vaults.console.overview import SeveralConsole
from lithos.vaults.console.visits import VaultState
from tests.server.console import visiting as visiting_module
from tests.server.console.prefixing import behind_prefix
from tests.server.console.visiting import Visitor, browser, visiting
from tests.server.running import SETTINGS

NAMES: Final = ("home", "secret", "work")
#: Rights of the tokens in each vault. In a vault that is not listed, tokens have the right `admin`.
RIGHTS: Final[Mapping[str, Rights]] = {"work": "write"}


@define
class View:
    """A vault as the multi-vault console sees it. Tests change its fields."""

    name: str
    ring: Keyring
    console: Console | None
    state: VaultState = "serving"
    reason: str = ""
    progress: float | None = None


@define
class House:
    """The vaults and their views by name, and the address that they share."""

    url: str
    vaults: Mapping[str, Visitor]
    views: dict[str, View]
    client: httpx2.AsyncClient


@asynccontextmanager
async def hosting(
    data: Path, tokens: Mapping[str, tuple[str, ...]] | None = None, names: tuple[str, ...] = NAMES
) -> AsyncIterator[House]:
    """Serve vaults with these names on one port. `tokens` maps each secret to the vaults that it opens."""
    apps: list[AsgiApp] = []
    consoles: list[Console] = []
    add_routes = Console.add_routes

    class Caught(Exchanges):
        def __init__(self, app: AsgiApp, *more: Any) -> None:
            apps.append(app)
            super().__init__(app, *more)

    def add(self: Console, app: Any) -> None:
        consoles.append(self)
        add_routes(self, app)

    views: dict[str, View] = {}
    async with AsyncExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(serve, "Exchanges", Caught)
        patch.setattr(Console, "add_routes", add)
        vaults: dict[str, Visitor] = {}
        for name in names:
            settings = evolve(SETTINGS, vaults=partial(_links, views, name))
            patch.setattr(visiting_module, "SETTINGS", settings)
            opening = [secret for secret, opened in (tokens or {}).items() if name in opened]
            _define(data / name, opening, RIGHTS.get(name, "admin"))
            vaults[name] = person = await stack.enter_async_context(visiting(data / name))
            await person.client.get("/console/login")  # the first page request builds the console
            views[name] = View(name, person.lithos.server.get(TokenRing), consoles[-1])
        inner = dict(zip(names, apps, strict=True))

        class Routed(Exchanges):
            def __init__(self, app: AsgiApp, *more: Any) -> None:
                for name, each in inner.items():
                    app = _choosing(f"/v/{name}/", behind_prefix(each, f"/v/{name}"), app)
                super().__init__(app, *more)

        patch.setattr(serve, "Exchanges", Routed)
        server = vaults[names[0]].lithos.server
        several = SeveralConsole(lambda: tuple(views.values()), "9.8.7", server.clock, WrongTokens())
        nursery = await stack.enter_async_context(trio.open_nursery())
        serving = partial(
            serve_http,
            evolve(SETTINGS, console=True),
            server.tools,
            server.get(ServerState),
            shutdown=trio.Event(),
            keyring=server.get(TokenRing),
            routes=[several.add_routes],
        )
        host, port = await nursery.start(serving)
        client = await stack.enter_async_context(browser(f"http://{host}:{port}"))
        yield House(f"http://{host}:{port}", vaults, views, client)
        nursery.cancel_scope.cancel()


def _define(data: Path, secrets: list[str], rights: Rights) -> None:
    """Define these tokens in a vault before the vault starts.

    Without tokens, all callers may use the vault.
    """
    if not secrets:
        return
    (data / ".lithos").mkdir(parents=True)
    given = {"rights": rights, "agent": None, "created_at": utc_now(), "expires_at": None}
    made = [Token(secret, digest_of(secret.encode()), **given) for secret in secrets]
    TokenStore(data / ".lithos").change(lambda known: ((*known, *made), None))


def _links(views: Mapping[str, View], current: str, principal: Principal) -> tuple[VaultLink, ...]:
    """Return the vaults that the vault switcher shows to the holder of this token."""
    allowed = (each for each in views.values() if each.ring.is_open or principal.mark in _marks_of(each.ring))
    return tuple(VaultLink(each.name, f"/v/{each.name}/console/", each.name == current) for each in allowed)


def _choosing(base: str, inside: AsgiApp, outside: AsgiApp) -> AsgiApp:
    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        await (inside if scope["path"].startswith(base) else outside)(scope, receive, send)

    return choose


def _marks_of(keyring: Keyring) -> set[str]:
    assert isinstance(keyring, TokenRing)
    return {token.principal.mark for token in keyring.named}
