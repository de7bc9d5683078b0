"""The floor under every tool call: the MCP SDK alone on Hypercorn and Trio, with one tool that does nothing.

`python -m bench.bare` serves on a free port of 127.0.0.1 and prints its address. The tool is named and
answers as `lithos_agent_info` of an unknown agent does, byte for byte, so that a client cannot tell.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

from bench.server import STOP_PATIENCE, Serving

NOOP = "lithos_agent_info"
_ID = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def build_server() -> Server[Any]:
    """A server with the one tool."""

    async def list_tools(ctx: object, params: object) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name=NOOP, input_schema=_ID)])

    async def call_tool(ctx: object, params: object) -> CallToolResult:
        text = TextContent(type="text", text="null")
        return CallToolResult(content=[text], structured_content={"result": None}, is_error=False)

    return Server("bare", version="0", on_list_tools=list_tools, on_call_tool=call_tool)


async def run_bare() -> None:
    """Serve until cancelled, and print the address first."""
    logging.getLogger("mcp").setLevel(logging.WARNING)
    manager = StreamableHTTPSessionManager(build_server(), stateless=True, json_response=True)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _answer_lifespan(receive, send)
        else:
            await manager.handle_request(scope, receive, send)

    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.accesslog = config.errorlog = None
    config.keep_alive_max_requests = 10_000_000
    async with manager.run(), trio.open_nursery() as nursery:
        (url,) = await nursery.start(serve, app, config)
        print(json.dumps({"url": url}), flush=True)


async def _answer_lifespan(receive: Any, send: Any) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


@contextmanager
def bare_serving() -> Iterator[Serving]:
    """The bare server in a process of its own until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.bare"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        url = urlsplit(json.loads(process.stdout.readline())["url"])
        assert url.hostname is not None
        assert url.port is not None
        yield Serving(process, url.hostname, url.port, 0.0, 0.0)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_PATIENCE)
        if process.stdout is not None:
            process.stdout.close()


if __name__ == "__main__":
    trio.run(run_bare)
