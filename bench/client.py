"""MCP clients for measurements: a raw client with minimal overhead, and the client of the official SDK.

The raw client sends one `tools/call` on a keep-alive connection and reads the answer up to its
Content-Length. It parses the body only on request, so that the server is measured and not the client.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Self

import trio
from attrs import define, frozen
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from bench.server import Serving

VERSION = "2025-06-18"
_FAILURES = (b'"isError":true', b'"error":{', b'"structuredContent":{"status":"error"')


class ToolFailed(Exception):
    """Error for a tool call that does not succeed."""


class RawClient:
    """A JSON-RPC client on one socket, for the path `path` of a server."""

    def __init__(self, host: str, port: int, path: str = "/mcp") -> None:
        self._address = (host, port)
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {VERSION}\r\n"
            "Content-Length: "
        ).encode()
        self._buffer = bytearray()

    async def __aenter__(self) -> Self:
        self._stream = await trio.open_tcp_stream(*self._address)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await trio.aclose_forcefully(self._stream)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        body = await self.exchange(tool, arguments)
        # Parsing every answer would measure the client instead of the server.
        if any(mark in body for mark in _FAILURES):
            raise ToolFailed(body.decode())

    async def exchange(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        """Send a request and return the body of the response."""
        params = {"name": tool, "arguments": arguments}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        await self._stream.send_all(self._head + b"%d\r\n\r\n" % len(body) + body)
        end = await self._fill_until(lambda: self._buffer.find(b"\r\n\r\n"))
        head = bytes(self._buffer[:end]).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        total = end + 4 + length
        await self._fill_until(lambda: len(self._buffer) - total)
        answer = bytes(self._buffer[end + 4 : total])
        del self._buffer[:total]
        if not head.startswith(b"http/1.1 200"):
            raise ToolFailed((head + b"\n" + answer).decode())
        return answer

    async def _fill_until(self, position: Callable[[], int]) -> int:
        while (found := position()) < 0:
            data = await self._stream.receive_some(65536)
            if not data:
                raise ToolFailed("the server closed the connection")
            self._buffer += data
        return found


class SdkClient:
    """The official client, with its session and its schema checks."""

    def __init__(self, host: str, port: int) -> None:
        self._url = f"http://{host}:{port}/mcp"
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        streams = await self._stack.enter_async_context(streamable_http_client(self._url))
        self._session = await self._stack.enter_async_context(ClientSession(streams[0], streams[1]))
        await self._session.initialize()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        result = await self._session.call_tool(tool, dict(arguments))
        if result.is_error:
            raise ToolFailed(str(result.content))


@frozen
class Latencies:
    """Latencies of many calls in milliseconds, and the number of calls per second.

    `processor` is the processor time of the server per call, in milliseconds.
    """

    p50: float
    p95: float
    p99: float
    worst: float
    rate: float
    processor: float


@define
class _Progress:
    left: int
    taken: list[float]


Request = tuple[str, Mapping[str, Any]]


async def drive(server: Serving, clients: int, calls: int, request: Callable[[int], Request]) -> Latencies:
    """Make `calls` calls on `clients` connections.

    Each connection sends its next call after it gets an answer.

    `request` returns the call with a given number. The time to connect is not measured.
    """
    progress = _Progress(calls, [])
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(RawClient(server.host, server.port)) for _ in range(clients)
        ]
        began, processor_began = time.perf_counter(), server.processor_seconds()
        async with trio.open_nursery() as nursery:
            for client in opened:
                nursery.start_soon(_ask_in_turn, client, progress, request)
        seconds = time.perf_counter() - began
        processor = server.processor_seconds() - processor_began
    return summarise(progress.taken, seconds, processor)


async def _ask_in_turn(client: RawClient, progress: _Progress, request: Callable[[int], Request]) -> None:
    while progress.left:
        progress.left -= 1
        tool, arguments = request(progress.left)
        began = time.perf_counter()
        await client.call(tool, arguments)
        progress.taken.append(time.perf_counter() - began)


def summarise(seconds: list[float], elapsed: float, processor: float) -> Latencies:
    """Return percentiles in milliseconds. All arguments are in seconds."""
    ordered = sorted(1000 * second for second in seconds)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    count = len(ordered)
    return Latencies(
        p50=at(0.5),
        p95=at(0.95),
        p99=at(0.99),
        worst=round(ordered[-1], 3),
        rate=round(count / elapsed, 1),
        processor=round(1000 * processor / count, 3),
    )
