"""Running HTTP server front with fake tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any, ClassVar

import httpcore2
import pytest
import trio
from attrs import define, evolve, field

from lithos.kernel.discovery import import_if_there
from lithos.kernel.values.principals import Principal
from lithos.server.http.application import NO_APPS
from lithos.server.http.ports import AsgiApp, FrontSettings
from lithos.server.http.quart_app import RouteModule
from lithos.server.http.serve import serve_http
from lithos.server.tools.arguments import ArgumentFault, ToolSpec, UnknownTool

# Cache the TLS context. No test uses TLS, but every client would load all certificates.
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)

SETTINGS = FrontSettings(host="127.0.0.1", port=0, version="9.8.7", max_body_bytes=100_000)
#: Maximum duration of a stop in seconds. This is a generous test timeout. `test_stop.py` tests the promised
#: limit.
STOP_BOUND = 60.0


@asynccontextmanager
async def tokens_known_soon() -> AsyncIterator[None]:
    """Let the server notice new and revoked tokens without the usual delay of half a second.

    `tests/access/service/test_keyring.py` tests the real check interval on a mock clock.
    """
    keyring = import_if_there("lithos.access", "service.keyring")
    with pytest.MonkeyPatch.context() as patch:
        if keyring is not None:
            patch.setattr(keyring, "EVERY", 0.05)
        yield


def spec(name: str, **hints: bool) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "any text"}},
        "additionalProperties": False,
    }
    given = {"read_only": True, "destructive": False, "idempotent": True} | hints
    return ToolSpec(name, name.title(), f"The tool {name}.", schema, **given)


@define
class FakeToolBox:
    """Fake tools `echo`, `nothing`, `refuse`, `crash`, `big` and `wait`, which waits for `release`."""

    told: ClassVar[str] = ""
    calls: list[str] = field(factory=list)
    waiting: trio.Event = field(factory=trio.Event)
    release: trio.Event = field(factory=trio.Event)
    cancelled: int = 0

    def acting_as(self, principal: Principal) -> FakeToolBox:
        return self

    def listed(self) -> Sequence[ToolSpec]:
        return [spec("zebra"), spec("echo", read_only=False, destructive=True, idempotent=False)]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        self.calls.append(name)
        match name:
            case "echo":
                if unknown := set(arguments) - {"text"}:
                    raise ArgumentFault(f"unknown argument: {min(unknown)}")
                return {"status": "ok", "text": arguments.get("text"), "none": None}
            case "nothing":
                return None
            case "refuse":
                return {"status": "error", "code": "doc_not_found", "message": "No such note."}
            case "crash":
                raise RuntimeError("the disk is on fire")
            case "big":
                return {"text": "x" * int(arguments["size"])}
            case "wait":
                return await self._wait()
        raise UnknownTool(name)

    async def _wait(self) -> Mapping[str, Any]:
        self.waiting.set()
        try:
            await self.release.wait()
        except trio.Cancelled:
            self.cancelled += 1
            raise
        return {"status": "waited"}


@define
class FakeHealth:
    status: int = 200

    async def report(self) -> tuple[int, Mapping[str, Any]]:
        return self.status, {"status": "ok", "timestamp": "now", "version": "9.8.7", "components": {}}


@define
class Front:
    host: str
    port: int
    tools: FakeToolBox
    shutdown: trio.Event
    rejected: list[str]
    streams: list[trio.SocketStream] = field(factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def connect(self) -> trio.SocketStream:
        stream = await trio.open_tcp_stream(self.host, self.port)
        self.streams.append(stream)
        return stream

    async def exchange(self, request: bytes) -> bytes:
        """Send bytes, close the sending side, and return the complete answer."""
        stream = await self.connect()
        async with stream:
            await stream.send_all(request)
            await stream.send_eof()
            return await read_all(stream)


async def read_all(stream: trio.SocketStream) -> bytes:
    received = b""
    try:
        async for part in stream:
            received += bytes(part)
    except trio.BrokenResourceError:
        pass
    return received


async def read_until(stream: trio.SocketStream, wanted: bytes) -> bytes:
    received = b""
    while wanted not in received:
        part = await stream.receive_some()
        assert part, received
        received += bytes(part)
    return received


@asynccontextmanager
async def running_front(
    routes: Iterable[RouteModule] = (), apps: Mapping[str, AsgiApp] = NO_APPS, **changes: Any
) -> AsyncIterator[Front]:
    """Run a front on a free port. When the block ends, the front must stop within `STOP_BOUND`."""
    tools, shutdown, rejected = FakeToolBox(), trio.Event(), []
    serve = partial(
        serve_http,
        evolve(SETTINGS, **changes),
        tools,
        FakeHealth(),
        shutdown=shutdown,
        routes=routes,
        apps=apps,
        rejected=rejected.append,
    )
    front: Front | None = None
    try:
        async with trio.open_nursery() as nursery:
            host, port = await nursery.start(serve)
            front = Front(host, port, tools, shutdown, rejected)
            yield front
            shutdown.set()
            nursery.cancel_scope.deadline = trio.current_time() + STOP_BOUND
        assert not nursery.cancel_scope.cancelled_caught, "the stop took too long"
    finally:
        for stream in front.streams if front else ():
            stream.socket.close()


def rpc(method: str, request_id: int | None = 1, **params: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return message if request_id is None else message | {"id": request_id}
