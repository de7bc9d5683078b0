"""MCP sessions over a stream pair (stdio, SSE) with graceful shutdown, and the stdio server.

The SDK cancels running calls when its read stream ends. `run_session` therefore tracks the requests in flight
and passes the end of input on only when all have responses, or after `STOP_GRACE`. stdio runs on Trio without
threads, so that a blocked read cannot delay the exit. While serving, file descriptor 1 points at stderr, so
that only protocol messages reach the client, whatever a library prints; descriptor 0 reads as empty.
"""

from __future__ import annotations

import contextvars
from typing import Any, Final, cast

import anyio
import anyio.abc
import trio
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from lithos.front.bridge.wires import Lines, Output, claim_standard_streams
from lithos.front.mcp.server import build_mcp_server
from lithos.front.server.limits import STOP_FLUSH, STOP_GRACE
from lithos.front.server.ports import SharedToolBox
from lithos.services.notes.resources import Library
from lithos.telemetry import get_logger

Incoming = SessionMessage | Exception
#: Seconds that calls of a token that was revoked may still take.
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
    """Serve one client until it leaves, or `shutdown` or `ended` is set; closes both streams.

    `listens_after_end`: a client that ended its input still reads the answers to what it asked.
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
    """The requests in flight; `listening` to changes has no end of its own."""

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
            # A cancelled request is never answered.
            self._forget((message.params or {}).get("requestId"))

    def _forget(self, request_id: object) -> None:
        self._ids.discard(str(request_id))
        self._listening.discard(str(request_id))
        self._changed.set()
        self._changed = trio.Event()

    async def wait_none(self, grace: float, *, also_listening: bool) -> None:
        """Wait until no request is in flight, at most `grace` seconds."""
        with trio.move_on_after(grace):
            while self._ids or (also_listening and self._listening):
                await self._changed.wait()


class _Reading(anyio.abc.ObjectReceiveStream[Incoming]):
    """The SDK's read stream, its end delayed until all responses are sent or the grace is over."""

    def __init__(self, inner: ReadStream[Incoming], unanswered: _Unanswered, listens_after_end: bool) -> None:
        self._inner = inner
        self._unanswered = unanswered
        self._listens_after_end = listens_after_end
        self._stopping = False
        self._grace = STOP_GRACE
        self._waiting = trio.CancelScope()

    @property
    def last_context(self) -> contextvars.Context | None:
        """The context of the last sender, as the SDK looks for it."""
        return getattr(self._inner, "last_context", None)

    async def end_on(self, event: trio.Event, grace: float = STOP_GRACE) -> None:
        await event.wait()
        self._stopping, self._grace = True, min(grace, self._grace)
        self._waiting.cancel()

    async def receive(self) -> Incoming:
        item = None if self._stopping else await self._receive_until_stop()
        if item is None:
            if self._stopping or self._listens_after_end:
                # A stop ends the listening, with a goodbye; a client that leaves wants none.
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
    """The write stream for the SDK; it marks requests as answered."""

    def __init__(self, inner: WriteStream[SessionMessage], unanswered: _Unanswered) -> None:
        self._inner = inner
        self._unanswered = unanswered

    async def send(self, item: SessionMessage, /) -> None:
        try:
            await self._inner.send(item)
        finally:
            # What cannot be delivered any more is not waited for either.
            self._unanswered.note(item)

    async def aclose(self) -> None:
        await self._inner.aclose()


log = get_logger("lithos.front.stdio")


async def serve_stdio(
    toolbox: SharedToolBox, version: str, library: Library | None = None, *, shutdown: trio.Event
) -> None:
    """Serve one client until stdin closes, stdout breaks or `shutdown` is set.

    Running calls may finish for `STOP_GRACE`; a client that never reads is given up after that.
    """
    server = build_mcp_server(toolbox, version, library, keeps_sessions=True)
    with claim_standard_streams() as (wire_in, wire_out):
        async with trio.open_nursery() as nursery:
            output = Output(wire_out, nursery.cancel_scope)
            lines = Lines(wire_in, shutdown, output)
            nursery.start_soon(_give_up_after, shutdown, nursery.cancel_scope)
            try:
                async with stdio_server(cast(Any, lines), cast(Any, output)) as (reader, writer):
                    await run_session(server, reader, writer, shutdown, listens_after_end=True)
            except* anyio.BrokenResourceError:
                log.debug("a message arrived while stopping")
            nursery.cancel_scope.cancel()


async def _give_up_after(shutdown: trio.Event, scope: trio.CancelScope) -> None:
    await shutdown.wait()
    await trio.sleep(STOP_GRACE + STOP_FLUSH)
    log.warning("stdio client never read its answers")
    scope.cancel()
