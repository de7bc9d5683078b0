"""A complete server with its console, and a person whose browser does not run scripts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import trio
from attrs import define, evolve

from lithos.app.front import serve_front
from lithos.kernel.values.principals import Rights
from tests.server.console.pages import Element, check
from tests.server.running import SETTINGS, STOP_BOUND, tokens_known_soon
from tests.servers import Lithos, serving

#: Maximum seconds until a running server notices a new or revoked token. This is a test timeout, not a
#: measurement.
PATIENCE = 60.0
_FORM = re.compile(r"<form\b[^>]*>.*?</form>", re.S)
_FIELD = re.compile(r"<(?:input|button)\b[^>]*>")
_ATTRIBUTE = re.compile(r'([a-z-]+)="([^"]*)"')


@define
class Visitor:
    """A person who visits the console of a running server."""

    lithos: Lithos
    url: str
    client: httpx2.AsyncClient
    shutdown: trio.Event

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        """Follow redirects and return the response for a page."""
        return await self.client.get(path, headers=headers, follow_redirects=True)

    async def page(self, path: str) -> str:
        """Return the HTML of a page, which must exist."""
        response = await self.get(path)
        assert response.status_code == 200, (response.status_code, response.text[:2000])
        assert response.headers["content-security-policy"].startswith("default-src 'self'")
        return str(response.text)

    async def look(self, path: str, status: int = 200) -> Element:
        """Return a parsed page. Fail unless it passes the safety and accessibility checks."""
        response = await self.get(path)
        assert response.status_code == status, (path, response.status_code, response.text[-2000:])
        return check(response.text, path)

    async def submit(self, path: str, action: str | None = None, **fields: str) -> httpx2.Response:
        """Fill in and submit a form of the page. The default is the first form.

        Return the response after redirects.
        """
        html = await self.page(path)
        target, hidden = form_of(html, action)
        return await self.post(target or path, **(hidden | fields))

    async def press(self, path: str, **fields: str) -> list[httpx2.Response]:
        """Submit the same fields three times at once, as an impatient person does.

        Return all three responses.
        """
        shown: list[httpx2.Response] = []

        async def press() -> None:
            shown.append(await self.post(path, **fields))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(press)
        return shown

    async def post(self, path: str, **fields: str) -> httpx2.Response:
        """Submit these fields. Return the response after redirects."""
        return await self.client.post(path, data=fields, follow_redirects=True)


async def make_token(
    person: Visitor,
    name: str,
    rights: Rights,
    agent: str | None = None,
    *,
    expires_at: datetime | None = None,
) -> str:
    """Create a named token and wait until the server knows it. Return its secret."""
    from lithos.access.files.tokens import TokenStore  # noqa: PLC0415 - may be left out
    from lithos.access.service.keyring import TokenRing  # noqa: PLC0415 - may be left out

    store = TokenStore(person.lithos.data / ".lithos")
    now = person.lithos.server.clock()
    _, secret = await trio.to_thread.run_sync(lambda: store.create(name, rights, agent, now, expires_at))
    keyring = person.lithos.server.get(TokenRing)
    with trio.fail_after(PATIENCE):
        while keyring.find(secret.encode()) is None:
            await trio.sleep(0.02)
    return secret


async def revoke_token(person: Visitor, name: str) -> None:
    """Revoke a token as `lithos token revoke` does. The server notices the change on its own."""
    from lithos.access.files.tokens import TokenStore  # noqa: PLC0415 - may be left out

    store = TokenStore(person.lithos.data / ".lithos")
    await trio.to_thread.run_sync(store.revoke, name)


def form_of(html: str, action: str | None = None, *, all_forms: bool = False) -> tuple[str, dict[str, Any]]:
    """Return address and fields of the page's first POST form, or of the form with this action.

    The result omits unticked boxes. A name that occurs several times has a list of values.
    """
    for form in _FORM.findall(html):
        attributes = dict(_ATTRIBUTE.findall(form.partition(">")[0]))
        if attributes.get("method", "").lower() != "post":
            continue
        if "logout" in attributes.get("action", "") and not all_forms:
            continue
        if action is not None and unescape(attributes.get("action", "")) != action:
            continue
        fields: dict[str, Any] = {}
        for field in _FIELD.findall(form):
            one = dict(_ATTRIBUTE.findall(field))
            if one.get("type") == "checkbox" and not field.rstrip("/> ").endswith(" checked"):
                continue
            if "name" in one:
                fields.setdefault(unescape(one["name"]), []).append(unescape(one.get("value", "")))
        single = {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
        return unescape(attributes.get("action", "")), single
    raise AssertionError(f"no form {action or ''} on the page: {html[:3000]}")


def browser(url: str) -> httpx2.AsyncClient:
    """Return an HTTP client with its own cookies. No test uses TLS, so the client loads no certificates."""
    return httpx2.AsyncClient(base_url=url, timeout=60, verify=False)


@asynccontextmanager
async def visiting(data: Path, *, token: str | None = None, **sections: Any) -> AsyncIterator[Visitor]:
    """Run a server on `data` with its console on a free port. Yield a visitor who has not logged in."""
    async with tokens_known_soon(), serving(data, **({"settled": False} | sections)) as lithos:
        shutdown = trio.Event()
        async with trio.open_nursery() as nursery:
            settings = evolve(SETTINGS, console=True, auth_token=token)
            host, port = await nursery.start(partial(serve_front, settings, lithos.server, shutdown))
            url = f"http://{host}:{port}"
            async with browser(url) as client:
                yield Visitor(lithos, url, client, shutdown)
            shutdown.set()
            nursery.cancel_scope.deadline = trio.current_time() + STOP_BOUND
        assert not nursery.cancel_scope.cancelled_caught, "the stop took too long"
