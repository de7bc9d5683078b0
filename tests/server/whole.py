"""Complete server behind its HTTP front, and clients of several protocol versions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import trio
from attrs import define, evolve, field

from lithos.app.front import serve_front
from tests.server.running import SETTINGS, STOP_BOUND, rpc, tokens_known_soon
from tests.servers import Lithos, serving

HANDSHAKE = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
VERSIONS = [*HANDSHAKE, MODERN]
#: Maximum seconds to wait for a notification. This is a test timeout, not a promise.
TOLD_BOUND = 60.0


@define
class Whole:
    """A running server and its address."""

    lithos: Lithos
    url: str
    shutdown: trio.Event

    async def ask(self, version: str, method: str, **params: Any) -> dict[str, Any]:
        """Send a request to `/mcp` and return the JSON-RPC answer."""
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
        if version == MODERN:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            }
            headers["Mcp-Method"] = method
            name = params.get("name") or params.get("uri")
            if name and method in ("prompts/get", "resources/read", "tools/call"):
                headers["Mcp-Name"] = name
        async with httpx2.AsyncClient(base_url=self.url) as client:
            return dict((await client.post("/mcp", json=rpc(method, **params), headers=headers)).json())

    async def result(self, version: str, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a request, which must succeed."""
        answer = await self.ask(version, method, **params)
        assert "result" in answer, answer
        return dict(answer["result"])

    async def error(self, version: str, method: str, **params: Any) -> dict[str, Any]:
        """Return the error of a request, which must fail."""
        answer = await self.ask(version, method, **params)
        assert "error" in answer, answer
        return dict(answer["error"])


@asynccontextmanager
async def whole_server(data: Path, **sections: Any) -> AsyncIterator[Whole]:
    """Run a server on `data`, with its front on a free port.

    When the block ends, the server and the front must stop within `STOP_BOUND`.
    """
    async with tokens_known_soon(), serving(data, **({"settled": False} | sections)) as lithos:
        shutdown = trio.Event()
        async with trio.open_nursery() as nursery:
            front = partial(serve_front, evolve(SETTINGS), lithos.server, shutdown)
            host, port = await nursery.start(front)
            yield Whole(lithos, f"http://{host}:{port}", shutdown)
            shutdown.set()
            nursery.cancel_scope.deadline = trio.current_time() + STOP_BOUND
        assert not nursery.cancel_scope.cancelled_caught, "the stop took too long"


@define
class SseSession:
    """A raw client of `/sse` that supports every protocol version."""

    client: httpx2.AsyncClient
    stream: trio.SocketStream
    endpoint: str = ""
    received: bytes = b""
    notices: list[dict[str, Any]] = field(factory=list)
    asked: int = 0

    @classmethod
    @asynccontextmanager
    async def open(cls, whole: Whole, header: str = "Accept: */*") -> AsyncIterator[SseSession]:
        """Open a session without a handshake. `header` is a line of the request."""
        host, _, port = whole.url.removeprefix("http://").rpartition(":")
        async with (
            httpx2.AsyncClient(base_url=whole.url) as client,
            await trio.open_tcp_stream(host, int(port)) as stream,
        ):
            await stream.send_all(f"GET /sse HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n".encode())
            session = cls(client, stream)
            session.endpoint = await session._data()
            yield session

    async def greet(self, version: str) -> dict[str, Any]:
        """Perform the handshake and return the server's capabilities."""
        me = {"name": "t", "version": "1"}
        hello = await self.ask("initialize", protocolVersion=version, capabilities={}, clientInfo=me)
        assert hello["result"]["protocolVersion"] == version
        await self.send(rpc("notifications/initialized", None))
        await self.ask("ping")  # the answer proves that the notification was processed
        return dict(hello["result"]["capabilities"])

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its answer. Notifications that arrive first are kept for later."""
        self.asked += 1
        await self.send(rpc(method, self.asked, **params))
        with trio.fail_after(TOLD_BOUND):
            while "id" not in (message := await self.message()):
                self.notices.append(message)
        assert message["id"] == self.asked
        return message

    async def notice(self) -> tuple[str, str | None]:
        """Return the method and the URI of the next notification."""
        with trio.fail_after(TOLD_BOUND):
            message = self.notices.pop(0) if self.notices else await self.message()
        assert "id" not in message, message
        return message["method"], message.get("params", {}).get("uri")

    async def send(self, message: dict[str, Any]) -> None:
        """Post a message."""
        assert (await self.client.post(self.endpoint, json=message)).status_code == 202

    async def message(self) -> dict[str, Any]:
        """Return the next message of any kind."""
        with trio.fail_after(TOLD_BOUND):
            return dict(json.loads(await self._data()))

    async def _data(self) -> str:
        while True:
            while b"\n" in self.received:
                line, _, self.received = self.received.partition(b"\n")
                if line.startswith(b"data: "):
                    return line.removeprefix(b"data: ").strip().decode()
            part = await self.stream.receive_some()
            assert part, "the stream ended"
            self.received += bytes(part)
