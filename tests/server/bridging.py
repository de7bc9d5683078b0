"""Bridge between a scripted client and scripted owner servers.

The bridge uses no sockets and runs on a mock clock.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import trio
from attrs import define, field

from lithos.kernel.databases.lock import AlreadyOwned, OwnerLock, OwnerRecord
from lithos.server.mcp.bridge import Bridge
from lithos.server.mcp.link import OwnerLink, OwnerTrail, Sighting
from tests.server.running import rpc

VERSION = "2025-06-18"


@define(eq=False)
class FakeOwner:
    """A fake server for the bridge. Tool `wait` answers after `release`, tool `sleep` after `seconds`."""

    pid: int
    status: int = 200
    body: bytes | None = None
    hangs: bool = False
    dead: trio.Event = field(factory=trio.Event)
    release: trio.Event = field(factory=trio.Event)
    asked: list[dict[str, Any]] = field(factory=list)
    headers: list[dict[str, str]] = field(factory=list)
    at_once: int = 0
    most_at_once: int = 0

    @property
    def record(self) -> OwnerRecord:
        return OwnerRecord(self.pid, "here", f"http://127.0.0.1:{self.pid}", "then", f"token-{self.pid}")

    def names(self) -> list[str]:
        """Return the names of the called tools."""
        return [message["params"]["name"] for message in self.asked if message["method"] == "tools/call"]

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        if self.dead.is_set():
            raise httpx2.ConnectError("refused")
        message = json.loads(request.content)
        assert request.headers["authorization"] == f"Bearer token-{self.pid}"
        if message["id"] != "bridge":
            self.asked.append(message)
            self.headers.append(dict(request.headers))
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            return await self._respond_until_dead(message)
        finally:
            self.at_once -= 1

    async def _respond_until_dead(self, message: dict[str, Any]) -> httpx2.Response:
        responses: list[httpx2.Response] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on, self.dead, nursery.cancel_scope)
            responses.append(await self._respond(message))
            nursery.cancel_scope.cancel()
        if not responses:
            raise httpx2.ReadError("gone")
        return responses[0]

    async def _respond(self, message: dict[str, Any]) -> httpx2.Response:
        if self.hangs:
            await trio.sleep_forever()
        if self.body is not None or self.status != 200:
            return httpx2.Response(self.status, content=self.body or b"{}")
        if message["method"] == "subscriptions/listen":
            return httpx2.Response(
                200, headers={"content-type": "text/event-stream"}, content=self._events(message["id"])
            )
        result = await self._result(message)
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _result(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["method"], message.get("params", {}).get("name"):
            case "initialize", _:
                await trio.sleep(1)
                return {"protocolVersion": VERSION, "by": self.pid}
            case "tools/list", _:
                await trio.sleep(2)
            case _, "wait":
                await self.release.wait()
            case _, "sleep":
                await trio.sleep(message["params"]["arguments"]["seconds"])
        return {"by": self.pid}

    async def _events(self, request_id: int) -> AsyncIterator[bytes]:
        yield b": hello\n\n"
        yield b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\n\n'
        await self.release.wait()
        answer = json.dumps({"jsonrpc": "2.0", "id": request_id, "result": {"by": self.pid}})
        yield f"data: {answer}\n\n".encode()


async def _cancel_on(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


@define(eq=False)
class Client:
    """The client at the other end of the bridge's stdin and stdout."""

    lines: trio.MemorySendChannel[str]
    answers: list[dict[str, Any]] = field(factory=list)
    changed: trio.Event = field(factory=trio.Event)

    async def ask(self, request_id: int, method: str = "tools/call", **params: Any) -> None:
        await self.lines.send(json.dumps(rpc(method, request_id, **params)) + "\n")

    async def call(self, request_id: int, name: str = "echo", **arguments: Any) -> None:
        await self.ask(request_id, name=name, arguments=arguments)

    async def cancel(self, request_id: int) -> None:
        await self.lines.send(json.dumps(rpc("notifications/cancelled", None, requestId=request_id)))

    async def write_bytes(self, data: bytes) -> None:
        """Receive one complete line, which contains one message from the bridge."""
        assert data.endswith(b"\n")
        assert data.count(b"\n") == 1
        message = json.loads(data)
        assert message["jsonrpc"] == "2.0"
        self.answers.append(message)
        self.changed.set()
        self.changed = trio.Event()

    async def answer(self, request_id: int) -> dict[str, Any]:
        """Wait for the answer to a request and return it."""
        while True:
            for message in self.answers:
                if message.get("id") == request_id:
                    return message
            await self.changed.wait()

    async def reason(self, request_id: int) -> str:
        """Return the reason that the bridge gave for a failed request."""
        return str((await self.answer(request_id))["error"]["data"]["reason"])


@define(eq=False)
class House:
    """A fake data directory. It records the owner and whether another process may take the lock."""

    owner: FakeOwner | None = None
    successor: FakeOwner | None = None
    starting: bool = False
    owners: dict[str, FakeOwner] = field(factory=dict)
    taken_at: list[float] = field(factory=list)
    hosting: Callable[[], Any] | None = None

    def install(self, owner: FakeOwner | None) -> None:
        """Make `owner` the holder of the lock."""
        self.owner = owner
        if owner is not None:
            self.owners[owner.record.url or ""] = owner

    def kill(self) -> None:
        """Kill the owner as SIGKILL does."""
        assert self.owner is not None
        self.owner.dead.set()
        self.owner = None

    def look(self) -> Sighting:
        if self.owner is None:
            return Sighting(self.starting)
        return Sighting(True, self.owner.record)

    def connect(self, record: OwnerRecord) -> OwnerLink:
        transport = httpx2.MockTransport(self.owners[record.url or ""].answer)
        return OwnerLink(record, None, transport)

    async def take(self) -> OwnerLock:
        await trio.lowlevel.checkpoint()
        if self.owner is not None or self.starting:
            raise AlreadyOwned(Path("lock"), None)
        self.taken_at.append(trio.current_time())
        self.starting = True
        return OwnerLock(Path("lock"))

    async def host(self, lock: OwnerLock, ended: trio.Event) -> None:
        """Serve in the bridge process. The start takes two seconds."""
        await trio.sleep(2)
        if self.hosting is not None:
            self.hosting()
        self.starting = False
        self.install(FakeOwner(1000))
        await ended.wait()

    def trail(self) -> OwnerTrail:
        return OwnerTrail(self.look, self.connect, self.take, self.host)


def owned(**settings: Any) -> tuple[House, FakeOwner]:
    """Return a data directory and its owner. The owner is a fake server with these settings."""
    house, owner = House(), FakeOwner(7, **settings)
    house.install(owner)
    return house, owner


@asynccontextmanager
async def bridged(house: House, *, greet: bool = True) -> AsyncIterator[Client]:
    """Yield a client that a bridge connects to the owner. When the block ends, its input is closed."""
    sender, lines = trio.open_memory_channel[str](1000)
    trail = house.trail()
    client = Client(sender)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trail.follow)
        bridge = Bridge(trail, client)  # type: ignore[arg-type]
        done = trio.Event()
        nursery.start_soon(partial(_serve, bridge, lines, done))
        if greet:
            await client.ask(0, "initialize")
            await client.answer(0)
        yield client
        await sender.aclose()
        await done.wait()
        trail.close()


async def _serve(bridge: Bridge, lines: trio.MemoryReceiveChannel[str], done: trio.Event) -> None:
    await bridge.serve(lines)
    done.set()
