"""MCP sessions over a pair of streams (stdio, SSE), with graceful shutdown.

Also the stdio server and the HTTP transports.

The SDK cancels running calls when its input stream ends. `run_session` therefore tracks the running requests.
It reports the end of the input only when all requests are answered, or after `STOP_GRACE` seconds. stdio runs
on Trio without threads, so that a blocked read cannot delay the exit. While the server is running, file
descriptor 1 points to stderr and descriptor 0 is empty. If a library prints a text, it therefore cannot reach
the client. The HTTP transports (`SdkTransports`) serve SSE sessions, and requests to `/mcp` that are not
plain tool calls.
"""

from __future__ import annotations

import contextvars
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qs
from uuid import UUID

import anyio
import anyio.abc
import trio
from attrs import evolve
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.values.principals import OWNER
from lithos.server.http.admissions import ENDED, PRINCIPAL, ended_of
from lithos.server.http.limits import STOP_FLUSH, STOP_GRACE
from lithos.server.http.ports import Message, Receive, Scope, Send, SharedToolBox
from lithos.server.mcp.resource_pages import Library
from lithos.server.mcp.server import Caller, Context, build_mcp_server
from lithos.server.mcp.stdio import Output, StdinMessages, claim_standard_streams
from lithos.server.mcp.working_project import project_of

#: Session id in the first event of an SSE session.
_SESSION: Final = re.compile(rb"session_id=([0-9a-f]{32})")


class SdkTransports:
    """Servers and transports of the SDK for one set of tools."""

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
        #: Callers that opened the current SSE sessions, by session id.
        self._openers: dict[str, Caller] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the request tasks of the SDK during the block. They are cancelled at its end."""
        # The SDK logs every request at INFO.
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
        """Serve an SSE session. It ends when the client leaves, or when `shutdown` or `ended` is set."""
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
        """Return whether the caller of a message opened its SSE session.

        True also if there is no such session.
        """
        return all(opener.principal == scope[PRINCIPAL] for opener in self._openers_of(scope))

    def _openers_of(self, scope: Scope) -> list[Caller]:
        """Return the callers that opened the sessions named in a message. There is normally one."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("session_id", [])
        found = (self._openers.get(_spelled(session_id)) for session_id in given)
        return [opener for opener in found if opener is not None]

    async def take_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a posted message on to its SSE session.

        Streams that the message opens end with the session. A message without a project has that of the
        session.
        """
        for opener in self._openers_of(scope):
            scope[ENDED] = opener.ended
            scope[PRINCIPAL] = scope[PRINCIPAL].coming_from(opener.principal)
        await self._sse.handle_post_message(scope, receive, send)


def _spelled(session_id: str) -> str:
    """Return a session id in the spelling of the server. The SDK accepts every spelling of a UUID."""
    try:
        return UUID(hex=session_id).hex
    except ValueError:
        return ""


def caller_of(ctx: Context) -> Caller:
    """Return the caller of the current request. Raises `RuntimeError` if the request has no HTTP head."""
    if ctx.request is None:
        raise RuntimeError("a request over HTTP without its head")
    scope: Scope = ctx.request.scope
    return Caller(scope[PRINCIPAL], ended_of(scope))


Incoming = SessionMessage | Exception
#: Seconds for which running calls of a revoked token may continue.
REVOKED_GRACE: Final = 1.0


async def run_session(
    server: Server[Any],
    reader: ReadStream[Incoming],
    writer: WriteStream[SessionMessage],
    shutdown: trio.Event,
    ended: trio.Event | None = None,
    *,
    listens_after_end: bool,
) -> None:
    """Serve one client until it leaves, or `shutdown` or `ended` is set. Then close both streams.

    `listens_after_end` says whether a client still reads answers after it has ended its input.
    """
    unanswered = _Unanswered()
    incoming = _Reading(reader, unanswered, listens_after_end)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(incoming.end_on, shutdown)
        if ended is not None:
            nursery.start_soon(incoming.end_on, ended, REVOKED_GRACE)
        tells_changes = server.get_request_handler("resources/subscribe") is not None
        options = server.create_initialization_options(NotificationOptions(resources_changed=tells_changes))
        await server.run(incoming, _Writing(writer, unanswered), options)
        nursery.cancel_scope.cancel()


class _Unanswered:
    """Requests without an answer. Requests in `_listening` wait for changes and never end on their own."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._listening: set[str] = set()
        self._changed = trio.Event()

    def note(self, item: Incoming) -> None:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCRequest):
            listens = message.method == "subscriptions/listen"
            (self._listening if listens else self._ids).add(str(message.id))
        elif isinstance(message, JSONRPCResponse | JSONRPCError):
            self._forget(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request gets no answer.
            self._forget((message.params or {}).get("requestId"))

    def _forget(self, request_id: object) -> None:
        self._ids.discard(str(request_id))
        self._listening.discard(str(request_id))
        self._changed.set()
        self._changed = trio.Event()

    async def wait_none(self, grace: float, *, also_listening: bool) -> None:
        """Wait until all requests are answered, but at most `grace` seconds."""
        with trio.move_on_after(grace):
            while self._ids or (also_listening and self._listening):
                await self._changed.wait()


class _Reading(anyio.abc.ObjectReceiveStream[Incoming]):
    """Read stream of the SDK. It ends when all requests are answered, or after the grace period."""

    def __init__(self, inner: ReadStream[Incoming], unanswered: _Unanswered, listens_after_end: bool) -> None:
        self._inner = inner
        self._unanswered = unanswered
        self._listens_after_end = listens_after_end
        self._stopping = False
        self._grace = STOP_GRACE
        self._waiting = trio.CancelScope()

    @property
    def last_context(self) -> contextvars.Context | None:
        """Return the context of the last sender. The SDK expects this property."""
        return getattr(self._inner, "last_context", None)

    async def end_on(self, event: trio.Event, grace: float = STOP_GRACE) -> None:
        await event.wait()
        self._stopping, self._grace = True, min(grace, self._grace)
        self._waiting.cancel()

    async def receive(self) -> Incoming:
        item = None if self._stopping else await self._receive_until_stop()
        if item is None:
            if self._stopping or self._listens_after_end:
                # When the server stops, it sends a goodbye to listening streams. A client that leaves does
                # not need a goodbye.
                await self._unanswered.wait_none(self._grace, also_listening=self._stopping)
            raise anyio.EndOfStream
        self._unanswered.note(item)
        return item

    async def _receive_until_stop(self) -> Incoming | None:
        with trio.CancelScope() as self._waiting:
            try:
                return await self._inner.receive()
            except anyio.EndOfStream:
                return None
        return None

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Writing(anyio.abc.ObjectSendStream[SessionMessage]):
    """Write stream of the SDK. It records which requests have been answered."""

    def __init__(self, inner: WriteStream[SessionMessage], unanswered: _Unanswered) -> None:
        self._inner = inner
        self._unanswered = unanswered

    async def send(self, item: SessionMessage, /) -> None:
        try:
            await self._inner.send(item)
        finally:
            # The request also counts as answered if its answer cannot be delivered, so that the server does
            # not wait for it.
            self._unanswered.note(item)

    async def aclose(self) -> None:
        await self._inner.aclose()


log = get_logger("lithos.front.stdio")


async def serve_stdio(
    toolbox: SharedToolBox, version: str, library: Library | None = None, *, shutdown: trio.Event
) -> None:
    """Serve one client until stdin is closed, stdout fails or `shutdown` is set.

    Running calls may then continue for `STOP_GRACE` seconds. A client that does not read its answers is then
    abandoned. The client is the user of this process, who works in its working directory.
    """
    caller = Caller(evolve(OWNER, project=await Threads().run(partial(project_of, Path()))))
    server = build_mcp_server(toolbox, version, library, keeps_sessions=True, caller_of=lambda ctx: caller)
    with claim_standard_streams() as (wire_in, wire_out):
        async with trio.open_nursery() as nursery:
            output = Output(wire_out, nursery.cancel_scope)
            lines = StdinMessages(wire_in, shutdown, output)
            nursery.start_soon(_give_up_after, shutdown, nursery.cancel_scope)
            try:
                async with stdio_server(cast(Any, lines), cast(Any, output)) as (reader, writer):
                    await run_session(server, reader, writer, shutdown, listens_after_end=True)
            except* anyio.BrokenResourceError:
                log.debug("message arrived during stop")
            nursery.cancel_scope.cancel()


async def _give_up_after(shutdown: trio.Event, scope: trio.CancelScope) -> None:
    await shutdown.wait()
    await trio.sleep(STOP_GRACE + STOP_FLUSH)
    log.warning("stdio client abandoned with unread answers")
    scope.cancel()
