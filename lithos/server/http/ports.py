"""Interfaces of the front: tools, health report, settings, ASGI types; small responses; lazy loading.

`answer` sends small complete responses, to HTTP requests and rejected WebSocket upgrades alike. `Late` is a
value that is loaded while requests are served already: loading the MCP SDK and Quart takes most of a second
of processor time, and a plain tool call needs neither.
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
    """Encoded WebSocket frames (text messages), shared by all connections."""


class ToolBox(Protocol):
    """The tools of one server, shared by all transports."""

    def listed(self) -> Sequence[ToolSpec]:
        """Return the tools `tools/list` shows, in their fixed order."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Run one tool and return its JSON object, or `None` where the tool may answer null.

        Domain errors are envelopes already. Raises `ArgumentFault` for unknown, missing or wrongly
        typed arguments and `UnknownTool` for a name that no profile has.
        """
        ...


class SharedToolBox(ToolBox, Protocol):
    """The tools of one server, of which every caller has its own view."""

    @property
    def told(self) -> str:
        """Instructions for clients in addition to the usual ones."""
        ...

    def acting_as(self, principal: Principal) -> ToolBox:
        """Return the tools as this caller has them: with its rights, under its identity."""
        ...


class HealthReport(Protocol):
    """The source of the `/health` report."""

    async def report(self) -> tuple[int, Mapping[str, Any]]:
        """Return the HTTP status and the JSON body of `/health`."""
        ...


@frozen
class VaultLink:
    """A vault of this process that a person may switch to; `address` is the address of its console."""

    name: str
    address: str
    is_current: bool = False


#: The vaults that the token of this principal may use.
VaultsOf = Callable[[Principal], Sequence[VaultLink]]


def base_of(vault: str) -> str:
    """Return the prefix of the endpoints of one vault of several: `/v/NAME`."""
    return f"/v/{vault}"


def path_in_vault(path: str) -> str:
    """Return a path without the prefix of its vault: `/mcp` for `/v/work/mcp`."""
    return f"/{path.split('/', 3)[-1]}" if path.startswith("/v/") else path


@frozen
class FrontSettings:
    """How the HTTP front listens and whom it admits.

    `port` 0 takes any free port. `max_body_bytes` bounds each request body; `version` is the package
    version sent to clients. `auth_token` is left out of every representation. `console` serves the console,
    which shows the `sources` of settings by their keys, and the `warnings` about those that were ignored.
    `private`: no client is admitted without a token, even if none is defined. `public_url`: the address of
    the server for remote clients, which use OAuth; None for a port without OAuth. `vaults`: those of this
    process that the console of each offers to switch to; None for a process with one vault.
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
    """Count nothing: the default for `serve_http(rejected=...)`."""


def compact_json(value: Any) -> str:
    """Return `value` as JSON without needless spaces and with every script readable; NaN is an error."""
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
    """Answer with `status` and a JSON body (None: empty), dropping what is left of the request body.

    Dropping matters: a connection closed with unread input is reset, and the client never sees why.
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
#: Seconds that something may wait for its application: far more than any disk takes to load it.
PATIENCE = 60.0
#: Seconds until what could not be loaded is tried again.
LOADED_AGAIN = 1.0


class Late(Generic[T]):
    """A future whose value is made in a worker thread."""

    def __init__(self, make: Callable[[], T], wanted: trio.Event) -> None:
        """`wanted` is set at the first wait for the value."""
        self._make = make
        self._wanted = wanted
        self._given: T | None = None
        self._is_given = trio.Event()

    async def make(self) -> T:
        """Make the value in a worker thread, again and again while a file of it cannot be opened.

        The server survives a process limit on open files, and a disk that fails. Any other exception
        propagates, such as that of a module that is not installed.
        """
        while True:
            try:
                return await Threads().run(self._make)
            except ModuleNotFoundError:
                raise
            except (OSError, ImportError) as failure:
                log.error("loading waits", seconds=LOADED_AGAIN, reason=str(failure))
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
