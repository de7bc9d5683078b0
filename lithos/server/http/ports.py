"""Interfaces of the HTTP front: tools, health, settings and ASGI types. Also responses and lazy loading.

`answer` sends a small complete response to an HTTP request or to a rejected WebSocket upgrade. `Late` is a
value that is loaded while the server already answers requests. Loading the MCP SDK and Quart takes almost a
second of processor time, and a plain tool call needs neither of them.
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
    """Encoded WebSocket text frames. All connections send the same bytes."""


class ToolBox(Protocol):
    """Tools of one server. All transports use them."""

    def listed(self) -> Sequence[ToolSpec]:
        """Return the tools for `tools/list`, in fixed order."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Call a tool and return its JSON object, or None if the tool returned null.

        Domain errors are returned as error objects. Raises `ArgumentFault` if an argument is unknown, missing
        or of the wrong type, and `UnknownTool` if no profile contains the name.
        """
        ...


class SharedToolBox(ToolBox, Protocol):
    """Tools of one server. Each caller gets its own view of them."""

    @property
    def told(self) -> str:
        """Return additional instructions for clients, which follow the usual instructions."""
        ...

    def acting_as(self, principal: Principal) -> ToolBox:
        """Return the tools for a caller, limited by its rights. Calls are made under its identity."""
        ...


class HealthReport(Protocol):
    """Source of the `/health` report."""

    async def report(self) -> tuple[int, Mapping[str, Any]]:
        """Return the HTTP status and the JSON body of `/health`."""
        ...


@frozen
class VaultLink:
    """Vault of this process that a user may switch to. `address` is the address of its console."""

    name: str
    address: str
    is_current: bool = False


#: Function that returns the vaults that the principal's token may use.
VaultsOf = Callable[[Principal], Sequence[VaultLink]]


def base_of(vault: str) -> str:
    """Return the path prefix of one of several vaults: `/v/NAME`."""
    return f"/v/{vault}"


def path_in_vault(path: str) -> str:
    """Return a path without the prefix of the vault, for example `/mcp` for `/v/work/mcp`."""
    return f"/{path.split('/', 3)[-1]}" if path.startswith("/v/") else path


@frozen
class FrontSettings:
    """Settings of the HTTP front: its address, and the clients that it admits.

    If `port` is 0, any free port is used. `max_body_bytes` limits each request body. `version` is the package
    version that clients see. No representation contains `auth_token`. If `console` is true, the console is
    served. It shows `sources` (the source of each setting, by key) and `warnings` about ignored settings.
    With `private`, every client needs a token, even if no token is defined. `public_url` is the address for
    remote clients, which use OAuth. If it is None, the port has no OAuth. `vaults` returns the vaults that
    the console can switch to. If it is None, the process has one vault.
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
    """Do nothing. This is the default for `serve_http(rejected=...)`."""


def compact_json(value: Any) -> str:
    """Return `value` as compact JSON. Non-ASCII characters are not escaped. Raises `ValueError` for NaN."""
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
    """Send a response and discard the rest of the request body.

    `body` is sent as JSON, or left empty if it is None.

    The rest must be discarded. Closing a connection with unread input resets it, so the client would not see
    the response.
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
    """Cancel `scope` when `event` is set."""
    await event.wait()
    scope.cancel()


T = TypeVar("T")
#: Maximum seconds that a request waits for its application to load. Loading takes far less, even from a slow
#: disk.
PATIENCE = 60.0
#: Seconds before a failed load is tried again.
LOADED_AGAIN = 1.0


class Late(Generic[T]):
    """Value that a worker thread creates later. Tasks can wait for it."""

    def __init__(self, make: Callable[[], T], wanted: trio.Event) -> None:
        """Create the placeholder. `wanted` is set when a task first waits for the value."""
        self._make = make
        self._wanted = wanted
        self._given: T | None = None
        self._is_given = trio.Event()

    async def make(self) -> T:
        """Create the value in a worker thread. If a file cannot be opened, try again until it works.

        The server therefore survives a limit on open files and a failing disk. Any other exception is raised,
        for example if a module is not installed.
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
        """Set the value and wake all waiting tasks."""
        self._given = made
        self._is_given.set()

    async def get(self) -> T:
        """Return the value when it is available. Raises `trio.TooSlowError` after `PATIENCE` seconds."""
        if self._given is None:
            self._wanted.set()
            with trio.fail_after(PATIENCE):
                await self._is_given.wait()
        assert self._given is not None
        return self._given
