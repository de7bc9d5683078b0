"""One MCP session over a stream pair (stdio, SSE), ended without losing answers.

The SDK cancels running calls when its read stream ends. A `Session` therefore notes which requests
are unanswered and lets the end of input through only when all are answered, or after `STOP_GRACE`.
"""

from __future__ import annotations

import contextvars
from types import TracebackType
from typing import Any, Self

import anyio
import trio
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from lithos.front.limits import STOP_GRACE

Incoming = SessionMessage | Exception


async def run_session(
    server: Server[Any],
    reader: ReadStream[Incoming],
    writer: WriteStream[SessionMessage],
    shutdown: trio.Event,
    *,
    listens_after_end: bool,
) -> None:
    """Serve one client until it leaves or `shutdown` is set; closes both streams.

    `listens_after_end`: a client that ended its input still reads the answers to what it asked.
    """
    unanswered = _Unanswered()
    incoming = _Reading(reader, unanswered, listens_after_end)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(incoming.end_on, shutdown)
        tells_changes = server.get_request_handler("resources/subscribe") is not None
        options = server.create_initialization_options(NotificationOptions(resources_changed=tells_changes))
        await server.run(incoming, _Writing(writer, unanswered), options)
        nursery.cancel_scope.cancel()


class _Unanswered:
    """The requests that were read and not yet answered; `listening` to changes has no end of its own."""

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

    async def wait_none(self, *, also_listening: bool) -> None:
        """Wait until all are answered, at most `STOP_GRACE`."""
        with trio.move_on_after(STOP_GRACE):
            while self._ids or (also_listening and self._listening):
                await self._changed.wait()


class _Reading:
    """The client's messages, ended late enough for all answers and early enough for a stop."""

    def __init__(self, inner: ReadStream[Incoming], unanswered: _Unanswered, listens_after_end: bool) -> None:
        self._inner = inner
        self._unanswered = unanswered
        self._listens_after_end = listens_after_end
        self._stopping = False
        self._waiting = trio.CancelScope()

    @property
    def last_context(self) -> contextvars.Context | None:
        """The context of the last sender, as the SDK looks for it."""
        return getattr(self._inner, "last_context", None)

    async def end_on(self, shutdown: trio.Event) -> None:
        await shutdown.wait()
        self._stopping = True
        self._waiting.cancel()

    async def receive(self) -> Incoming:
        item = None if self._stopping else await self._receive_until_stop()
        if item is None:
            if self._stopping or self._listens_after_end:
                # A stop ends the listening, with a goodbye; a client that leaves wants none.
                await self._unanswered.wait_none(also_listening=self._stopping)
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

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Writing:
    """The server's messages on their way out."""

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
