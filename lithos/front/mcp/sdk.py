"""The MCP SDK's HTTP transports: requests to `/mcp` that are no plain tool calls, and SSE sessions."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qs
from uuid import UUID

import trio
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

from lithos.front.mcp.server import Caller, Context, build_mcp_server
from lithos.front.mcp.session import run_session
from lithos.front.server.admissions import ENDED, PRINCIPAL, ended_of
from lithos.front.server.ports import Message, Receive, Scope, Send, SharedToolBox
from lithos.services.notes.resources import Library

#: The first event of an SSE session names it.
_SESSION: Final = re.compile(rb"session_id=([0-9a-f]{32})")


class SdkTransports:
    """The SDK's servers and transports for one toolbox."""

    def __init__(
        self,
        toolbox: SharedToolBox,
        library: Library | None,
        version: str,
        max_body_bytes: int,
        messages_path: str,
    ) -> None:
        self._server = build_mcp_server(toolbox, version, library, keeps_sessions=True, caller_of=caller_of)
        stateless = build_mcp_server(toolbox, version, library, keeps_sessions=False, caller_of=caller_of)
        self._streamable = StreamableHTTPSessionManager(
            stateless, stateless=True, json_response=True, max_request_body_size=max_body_bytes
        )
        self._sse = SseServerTransport(messages_path, max_request_body_size=max_body_bytes)
        #: Who opened the SSE sessions that are open.
        self._openers: dict[str, Caller] = {}

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

    async def keep_session(
        self, scope: Scope, receive: Receive, send: Send, shutdown: trio.Event, ended: trio.Event
    ) -> None:
        """Serve an SSE session until its client leaves, or one of the events is set."""
        session_id: str | None = None

        async def noting(message: Message) -> None:
            nonlocal session_id
            if session_id is None and (found := _SESSION.search(message.get("body", b""))):
                session_id = found[1].decode()
                self._openers[session_id] = Caller(scope[PRINCIPAL], ended)
            await send(message)

        try:
            async with self._sse.connect_sse(scope, receive, noting) as (reader, writer):
                await run_session(self._server, reader, writer, shutdown, ended, listens_after_end=False)
        finally:
            if session_id is not None:
                del self._openers[session_id]

    def may_post(self, scope: Scope) -> bool:
        """Whether a message comes from whoever opened its SSE session; also for a session that is none."""
        return all(opener.principal == scope[PRINCIPAL] for opener in self._openers_of(scope))

    def _openers_of(self, scope: Scope) -> list[Caller]:
        """Who opened the sessions that a message names, which is one unless somebody tries something."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("session_id", [])
        found = (self._openers.get(_spelled(session_id)) for session_id in given)
        return [opener for opener in found if opener is not None]

    async def take_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch a posted message to its SSE session, with which what it asks for ends."""
        for opener in self._openers_of(scope):
            scope[ENDED] = opener.ended
        await self._sse.handle_post_message(scope, receive, send)

    @staticmethod
    def is_message(body: bytes) -> bool:
        """Whether the body is a JSON-RPC message."""
        try:
            jsonrpc_message_adapter.validate_json(body, by_name=False)
        except ValidationError:
            return False
        return True


def _spelled(session_id: str) -> str:
    """A session's id as it was given out; the SDK takes every spelling of a UUID."""
    try:
        return UUID(hex=session_id).hex
    except ValueError:
        return ""


def caller_of(ctx: Context) -> Caller:
    """Who sent the request that is being answered. Raises `RuntimeError` where nobody was let in."""
    if ctx.request is None:
        raise RuntimeError("a request over HTTP without its head")
    scope: Scope = ctx.request.scope
    return Caller(scope[PRINCIPAL], ended_of(scope))
