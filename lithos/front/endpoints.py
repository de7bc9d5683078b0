"""MCP over HTTP: `/mcp` (streamable HTTP, stateless) and `/sse` with `/messages/`, as plain ASGI."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import trio
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import INVALID_REQUEST, jsonrpc_message_adapter
from pydantic import ValidationError

from lithos.front.body import replaying
from lithos.front.direct import answer_directly, read_direct_call
from lithos.front.mcp import build_mcp_server, call_tool_box
from lithos.front.ports import AsgiApp, Receive, Scope, Send, ToolBox
from lithos.front.replies import answer
from lithos.front.session import run_session
from lithos.services.library import Library

MCP_PATH: Final = "/mcp"
SSE_PATH: Final = "/sse"
MESSAGES_PATH: Final = "/messages/"


class McpEndpoints:
    """The MCP paths of one server. `shutdown` ends the SSE sessions once their calls are answered."""

    def __init__(
        self,
        toolbox: ToolBox,
        library: Library | None,
        version: str,
        max_body_bytes: int,
        shutdown: trio.Event,
    ) -> None:
        self._server = build_mcp_server(toolbox, version, library, keeps_sessions=True)
        self._toolbox = toolbox
        self._shutdown = shutdown
        stateless = build_mcp_server(toolbox, version, library, keeps_sessions=False)
        self._streamable = StreamableHTTPSessionManager(
            stateless, stateless=True, json_response=True, max_request_body_size=max_body_bytes
        )
        self._sse = SseServerTransport(MESSAGES_PATH, max_request_body_size=max_body_bytes)
        self.routes: dict[str, AsgiApp] = {
            MCP_PATH: self._post_mcp,
            f"{MCP_PATH}/": _redirect_to(MCP_PATH),
            SSE_PATH: self._get_sse,
            MESSAGES_PATH: self._post_message,
            MESSAGES_PATH.rstrip("/"): _redirect_to(MESSAGES_PATH),
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hold the SDK's request tasks; leaving cancels them."""
        # The SDK tells of every request at INFO.
        logging.getLogger("mcp.server.streamable_http").setLevel(logging.WARNING)
        logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.WARNING)
        async with self._streamable.run():
            yield

    async def _post_mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            message = "Method Not Allowed: this server keeps no sessions; send POST"
            await answer(scope, receive, send, 405, _rpc_error(message), headers=[(b"allow", b"POST")])
        elif not _accepts_both(scope):
            message = "Not Acceptable: Client must accept both application/json and text/event-stream"
            await answer(scope, receive, send, 406, _rpc_error(message))
        else:
            body: bytes = (await receive()).get("body", b"")
            call = read_direct_call(scope, body)
            if call is None:
                await self._streamable.handle_request(scope, replaying(body, receive), send)
            else:
                result = await call_tool_box(self._toolbox, call.name, call.arguments)
                await answer_directly(send, call, result)

    async def _get_sse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            message = "Method Not Allowed: open the stream with GET, post to the endpoint it names"
            await answer(scope, receive, send, 405, _rpc_error(message), headers=[(b"allow", b"GET")])
            return
        async with self._sse.connect_sse(scope, receive, send) as (reader, writer):
            await run_session(self._server, reader, writer, self._shutdown, listens_after_end=False)

    async def _post_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a message to its session; the SDK would log an unreadable one with a traceback."""
        if scope["method"] == "POST":
            body: bytes = (await receive()).get("body", b"")
            receive = replaying(body, receive)
            if not _is_message(body):
                await answer(scope, receive, send, 400, _rpc_error("Could not parse message"))
                return
        await self._sse.handle_post_message(scope, receive, send)


def _redirect_to(path: str) -> AsgiApp:
    async def redirect(scope: Scope, receive: Receive, send: Send) -> None:
        query: bytes = scope["query_string"]
        target = path.encode() + (b"?" + query if query else b"")
        await answer(scope, receive, send, 307, headers=[(b"location", target)])

    return redirect


def _is_message(body: bytes) -> bool:
    try:
        jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError:
        return False
    return True


def _accepts_both(scope: Scope) -> bool:
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"accept"]
    kinds = {kind.split(";")[0].strip().lower() for line in lines for kind in line.split(",")}
    if "*/*" in kinds:
        return True
    return bool(kinds & {"application/json", "application/*"}) and bool(
        kinds & {"text/event-stream", "text/*"}
    )


def _rpc_error(message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": message}}
