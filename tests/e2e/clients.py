"""Clients of a running server: the official SDK with every transport, and a light client for heavy load."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h11
import trio
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.e2e.process import LITHOS


@asynccontextmanager
async def connected(
    transport: str, *, url: str = "", data: Path | None = None, token: str | None = None
) -> AsyncIterator[Client]:
    """Yield an SDK client, which uses the token if given. With `stdio`, a separate server runs on `data`."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if transport == "mcp":
        async with (
            create_mcp_http_client(headers=headers) as http_client,
            Client(streamable_http_client(f"{url}/mcp", http_client=http_client)) as client,
        ):
            yield client
    elif transport == "sse":
        async with Client(sse_client(f"{url}/sse", headers=headers), mode="legacy") as client:
            yield client
    else:
        assert data is not None
        parameters = StdioServerParameters(
            command=sys.executable, args=[*LITHOS[1:], "-d", str(data), "serve"], cwd=data.parent
        )
        with data.with_name(f"{data.name}.stdio-stderr").open("a") as errors:
            async with Client(stdio_client(parameters, errlog=errors)) as client:
                yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its structured answer."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert result.structured_content is not None
    assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
    return dict(result.structured_content)


class Gone(Exception):
    """Raised when the server ends before it answers."""


class WireClient:
    """A light client that calls tools through `/mcp` on one kept-alive connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.CLIENT)

    @classmethod
    @asynccontextmanager
    async def open(cls, address: tuple[str, int]) -> AsyncIterator[WireClient]:
        try:
            stream = await trio.open_tcp_stream(*address)
        except OSError as failure:
            raise Gone from failure
        try:
            yield cls(stream)
        finally:
            stream.socket.close()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured answer. Raise `Gone` if the server dies first."""
        params = {"name": tool, "arguments": arguments}
        status, body = await self.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        if status == 503:
            raise Gone
        assert status == 200, (status, body)
        result = json.loads(body)["result"]
        assert not result["isError"], result
        return dict(result["structuredContent"])

    async def settled_stats(self, within: float = 60.0) -> dict[str, Any]:
        """Wait until the full-text index matches the notes. Then return the answer of `lithos_stats`.

        The index may be incomplete after a start or after an external edit.
        """
        with trio.move_on_after(within):
            while (stats := await self.call("lithos_stats"))["index_drift_detected"]:
                await trio.sleep(0.05)
            return stats
        raise AssertionError(f"full text differs from the notes for {within} s: {stats}")

    async def post(self, message: Mapping[str, Any]) -> tuple[int, bytes]:
        body = json.dumps(message).encode()
        headers = [
            ("Host", "localhost"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Length", str(len(body))),
        ]
        request = h11.Request(method="POST", target="/mcp", headers=headers)
        parts = [self._http.send(event) for event in (request, h11.Data(data=body), h11.EndOfMessage())]
        try:
            await self._stream.send_all(b"".join(part for part in parts if part))
            return await self._read_response()
        except (trio.BrokenResourceError, h11.RemoteProtocolError) as failure:
            raise Gone from failure

    async def _read_response(self) -> tuple[int, bytes]:
        status, body = 0, b""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._stream.receive_some())
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
                    self._http.start_next_cycle()
                return status, body
            elif isinstance(event, h11.ConnectionClosed):
                raise Gone
