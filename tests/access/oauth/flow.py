"""A server at a public address, a person in its console, and an OAuth client without an SDK."""

from __future__ import annotations

import hashlib
import secrets
import socket
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import trio
from attrs import define, evolve, field

from lithos.access.files.login_links import LoginLinks
from lithos.access.service.authorization import AuthorizationServer
from lithos.app.front import serve_front
from tests.server.console.visiting import browser, form_of
from tests.server.running import SETTINGS, STOP_BOUND, rpc, tokens_known_soon
from tests.servers import Lithos, serving

CALLBACK = "https://client.example/callback"
Answer = dict[str, str]


@define
class Public:
    """A running server at its public address. `person` is logged in to its console."""

    lithos: Lithos
    url: str
    http: httpx2.AsyncClient
    person: httpx2.AsyncClient

    @property
    def server(self) -> AuthorizationServer:
        found = self.lithos.server.find(AuthorizationServer)
        assert found is not None
        return found

    async def call(self, token: str | None, method: str = "tools/list", **params: Any) -> httpx2.Response:
        """Send a request to `/mcp` and return the response."""
        headers = {"Accept": "application/json, text/event-stream"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return await self.http.post("/mcp", json=rpc(method, **params), headers=headers)

    async def tool(self, token: str, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured answer."""
        answer = await self.call(token, "tools/call", name=name, arguments=arguments)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["result"]["structuredContent"]
        return found

    async def register(self, **more: Any) -> httpx2.Response:
        given = {"redirect_uris": [CALLBACK], "client_name": "A client", **more}
        return await self.http.post("/oauth/register", json=given)

    async def log_in(self) -> None:
        """Log in as the operator with a login link."""
        links = LoginLinks(self.lithos.data / ".lithos")
        key = await trio.to_thread.run_sync(links.make, self.lithos.server.clock())
        answer = await self.person.post("/console/link", data={"key": key})
        assert answer.status_code == 303, answer.text

    async def begin(self, **more: Any) -> Flow:
        """Register a client and return its flow."""
        client = (await self.register()).json()["client_id"]
        return Flow(self, client, **more)


@define
class Flow:
    """A client that asks for access."""

    public: Public
    client_id: str
    redirect_uri: str = CALLBACK
    scope: str | None = "read write"
    verifier: str = field(factory=lambda: secrets.token_urlsafe(48))
    state: str = "a-state"

    @property
    def query(self) -> Answer:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "state": self.state,
            "resource": f"{self.public.url}/mcp",
        }
        return asked if self.scope is None else {**asked, "scope": self.scope}

    async def open(self, **other: str | None) -> httpx2.Response:
        """Open the consent address. Return the consent page, the error page or the redirection."""
        given = {name: value for name, value in {**self.query, **other}.items() if value is not None}
        return await self.public.person.get(f"/console/consent?{urlencode(given)}")

    async def allow(self, **chosen: str) -> httpx2.Response:
        """Allow the request as the person. Return the browser's answer."""
        page = await self.open()
        assert page.status_code == 200, page.text
        action, fields = form_of(page.text)
        fields = {**fields, "rights": "write", "days": "30", "answer": "allow", **chosen}
        return await self.public.person.post(action, data=fields)

    async def code(self, **chosen: str) -> str:
        return told(await self.allow(**chosen))["code"]

    async def exchange(self, code: str, /, **other: str | None) -> httpx2.Response:
        given = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
            **other,
        }
        return await self.post("/oauth/token", given)

    async def refresh(self, token: str, **other: str | None) -> httpx2.Response:
        given = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id, **other}
        return await self.post("/oauth/token", given)

    async def revoke(self, token: str, **other: str | None) -> httpx2.Response:
        return await self.post("/oauth/revoke", {"token": token, "client_id": self.client_id, **other})

    async def post(self, path: str, given: dict[str, str | None]) -> httpx2.Response:
        kept = {name: value for name, value in given.items() if value is not None}
        return await self.public.http.post(path, data=kept)

    async def tokens(self, **chosen: str) -> dict[str, Any]:
        """Exchange a new code for tokens and return the answer."""
        answer = await self.exchange(await self.code(**chosen))
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


def told(answer: httpx2.Response) -> Answer:
    """Return the parameters that a client gets at its redirect URI."""
    assert answer.status_code == 303, answer.text
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@asynccontextmanager
async def public_server(data: Path, *, is_logged_in: bool = True, **sections: Any) -> AsyncIterator[Public]:
    """Run a server whose public address is the address at which it listens."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = {"public_url": url, **sections.pop("server", {})}
    async with tokens_known_soon(), serving(data, **({"settled": False} | sections), server=server) as lithos:
        shutdown = trio.Event()
        async with trio.open_nursery() as nursery:
            settings = evolve(SETTINGS, console=True, public_url=url, port=port)
            await nursery.start(partial(serve_front, settings, lithos.server, shutdown))
            async with browser(url) as http, browser(url) as person:
                public = Public(lithos, url, http, person)
                if is_logged_in:
                    await public.log_in()
                yield public
            shutdown.set()
            nursery.cancel_scope.deadline = trio.current_time() + STOP_BOUND
        assert not nursery.cancel_scope.cancelled_caught, "the stop took too long"
