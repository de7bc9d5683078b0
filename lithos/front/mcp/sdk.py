"""The MCP SDK's HTTP transports: requests to `/mcp` that are no plain tool calls, and SSE sessions."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

from lithos.front.mcp.server import build_mcp_server
from lithos.front.mcp.session import run_session
from lithos.front.server.ports import Receive, Scope, Send, ToolBox
from lithos.services.notes.resources import Library


class SdkTransports:
    """The SDK's servers and transports for one toolbox."""

    def __init__(
        self, toolbox: ToolBox, library: Library | None, version: str, max_body_bytes: int, messages_path: str
    ) -> None:
        self._server = build_mcp_server(toolbox, version, library, keeps_sessions=True)
        stateless = build_mcp_server(toolbox, version, library, keeps_sessions=False)
        self._streamable = StreamableHTTPSessionManager(
            stateless, stateless=True, json_response=True, max_request_body_size=max_body_bytes
        )
        self._sse = SseServerTransport(messages_path, max_request_body_size=max_body_bytes)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hold the SDK's request tasks; leaving cancels them."""
        # The SDK tells of every request at INFO.
        logging.getLogger("mcp.server.streamable_http").setLevel(logging.WARNING)
        logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.WARNING)
        async with self._streamable.run():
            yield

    async def answer_post(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a POST to `/mcp`."""
        await self._streamable.handle_request(scope, receive, send)

    async def keep_session(self, scope: Scope, receive: Receive, send: Send, shutdown: trio.Event) -> None:
        """Serve an SSE session until its client leaves or `shutdown` is set."""
        async with self._sse.connect_sse(scope, receive, send) as (reader, writer):
            await run_session(self._server, reader, writer, shutdown, listens_after_end=False)

    async def take_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch a posted message to its SSE session."""
        await self._sse.handle_post_message(scope, receive, send)

    @staticmethod
    def is_message(body: bytes) -> bool:
        """Whether the body is a JSON-RPC message."""
        try:
            jsonrpc_message_adapter.validate_json(body, by_name=False)
        except ValidationError:
            return False
        return True
