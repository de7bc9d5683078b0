"""Interfaces of the HTTP front: tools, health, settings, ASGI types, responses, lazy loading.

`answer` sends a small complete response to an HTTP request or a rejected WebSocket upgrade. `Late` is a value
that is loaded while requests are already served. Loading the MCP SDK and Quart takes most of a second of
processor time, and a plain tool call needs neither.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import trio
from attrs import field, frozen

from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.values.principals import Principal
from lithos.server.http.limits import REFUSED_BODY_SECONDS
from lithos.server.tools.arguments import ToolSpec

log = get_logger("lithos.front.server")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]


class EncodedFrames(bytes):
    """Encoded WebSocket text frames, shared by all connections."""


class ToolBox(Protocol):
    """Tools of one server, shared by all transports."""

    def listed(self) -> Sequence[ToolSpec]:
        """Return the tools of `tools/list` in their fixed order."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Run one tool. Return its JSON object, or None if the tool returned null.

        Domain errors are returned as error objects. Raises `ArgumentFault` for unknown, missing or wrongly
        typed arguments, and `UnknownTool` for a name that no profile has.
        """
        ...


class SharedToolBox(ToolBox, Protocol):
    """Tools of one server, with a separate view for each caller."""

    @property
    def told(self) -> str:
        """Return the instructions for clients in addition to the usual instructions."""
        ...

    def acting_as(self, principal: Principal) -> ToolBox:
        """Return the tools as this caller sees them: with its rights and under its identity."""
        ...


class HealthReport(Protocol):
    """Source of the `/health` report."""

    async def report(self) -> tuple[int, Mapping[str, Any]]:
        """Return the HTTP status and the JSON body of `/health`."""
        ...


@frozen
class VaultLink:
    """A vault of this process that a user may switch to; `address` is the address of its console."""

    name: str
    address: str
    is_current: bool = False


#: Returns the vaults that this principal's token may use.
VaultsOf = Callable[[Principal], Sequence[VaultLink]]


def base_of(vault: str) -> str:
    """Return the path prefix of one vault among several: `/v/NAME`."""
    return f"/v/{vault}"


def path_in_vault(path: str) -> str:
    """Return a path without the prefix of its vault: `/mcp` for `/v/work/mcp`."""
    return f"/{path.split('/', 3)[-1]}" if path.startswith("/v/") else path


@frozen
class FrontSettings:
    """Settings that say where the HTTP front listens and which clients it admits.

    `port` 0 takes any free port. `max_body_bytes` limits each request body. `version` is the package version
    that clients see. `auth_token` is left out of every representation. `console` serves the console, which
    shows `sources` (the source of each setting, by key) and `warnings` about ignored settings. With
    `private`, every client needs a token, even if no token is defined. `public_url` is the address for remote
    clients, which use OAuth; None means a port without OAuth. `vaults` returns the vaults between which the
    console can switch; None means a process with one vault.
    """

    host: str
    port: int
    version: str
    max_body_bytes: int
    auth_token: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    console: bool = False
    private: bool = False
    public_url: str | None = None
    sources: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()
    vaults: VaultsOf | None = None


def ignore_rejection(reason: str) -> None:
    """Ignore a refusal; the default for `serve_http(rejected=...)`."""


def compact_json(value: Any) -> str:
    """Return `value` as compact JSON without escaping non-ASCII characters; raise an error on NaN."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


async def answer(
    scope: Scope,
    receive: Receive,
    send: Send,
    status: int,
    body: Mapping[str, Any] | None = None,
    *,
    headers: Iterable[Header] = (),
) -> None:
    """Send a response with `status` and a JSON body (None: empty), and discard the rest of the request body.

    Discarding matters: closing a connection with unread input resets it, and the client never sees the
    response.
    """
    content = b"" if body is None else compact_json(body).encode()
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    lines = [*headers] if body is None else [*headers, (b"content-type", b"application/json")]
    lines.append((b"content-length", b"%d" % len(content)))
    await send({"type": f"{kind}.start", "status": status, "headers": lines})
    if scope["type"] == "http":
        await send({"type": f"{kind}.body", "body": content, "more_body": True})
        await _drop_body(receive)
        content = b""
    await send({"type": f"{kind}.body", "body": content, "more_body": False})


async def _drop_body(receive: Receive) -> None:
    with trio.move_on_after(REFUSED_BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] != "http.request" or not message.get("more_body", False):
                return


async def cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    """Cancel `scope` once `event` is set."""
    await event.wait()
    scope.cancel()


T = TypeVar("T")
#: Seconds that a request waits for its application to load, far longer than any disk needs.
PATIENCE = 60.0
#: Seconds until a failed load is tried again.
LOADED_AGAIN = 1.0


class Late(Generic[T]):
    """A future whose value is created in a worker thread."""

    def __init__(self, make: Callable[[], T], wanted: trio.Event) -> None:
        """Create the future; `wanted` is set at the first wait for the value."""
        self._make = make
        self._wanted = wanted
        self._given: T | None = None
        self._is_given = trio.Event()

    async def make(self) -> T:
        """Create the value in a worker thread, repeatedly while one of its files cannot be opened.

        The server thus survives a process limit on open files and a failing disk. Any other exception
        propagates, for example for a module that is not installed.
        """
        while True:
            try:
                return await Threads().run(self._make)
            except ModuleNotFoundError:
                raise
            except (OSError, ImportError) as failure:
                log.error("application load failed", seconds=LOADED_AGAIN, reason=str(failure))
            await trio.sleep(LOADED_AGAIN)

    def give(self, made: T) -> None:
        """Set the value and wake all waiters."""
        self._given = made
        self._is_given.set()

    async def get(self) -> T:
        """Wait for the value; raises `trio.TooSlowError` at the deadline."""
        if self._given is None:
            self._wanted.set()
            with trio.fail_after(PATIENCE):
                await self._is_given.wait()
        assert self._given is not None
        return self._given
