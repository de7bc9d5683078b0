"""Stdio bridge. It forwards a client's JSON-RPC requests to the owner's `/mcp` (docs/spec/lifecycle.md §2).

The bridge stores only the protocol version that `initialize` negotiated, so the owner may change within a
session (failover). Unsent requests and read-only requests are retried with the next owner. If the response to
a tool call is lost, its outcome is unknown, and the error response says so. `ping` and notifications are
handled locally. `/mcp` is stateless, so only cancellations have an effect: the bridge stops waiting for the
cancelled request.
"""

from __future__ import annotations

from collections.abc import AsyncIterable
from contextlib import suppress
from itertools import count
from typing import Final

import trio

from lithos.kernel.log import get_logger
from lithos.server.http.limits import STOP_FLUSH, STOP_GRACE
from lithos.server.mcp import messages
from lithos.server.mcp.link import AnswerLost, NeverSent, NoOwner, OwnerHangs, OwnerTrail
from lithos.server.mcp.messages import Cancellation, Request, RequestId
from lithos.server.mcp.stdio import Output, StdinMessages, claim_standard_streams

log = get_logger("lithos.front.bridge")

#: Maximum number of unanswered requests. At this limit, no line from the client is read until a request is
#: answered.
UNANSWERED: Final = 256
#: Maximum number of answers that wait until the client reads them. A client reads one answer at a time
#: anyway.
WRITTEN_AHEAD: Final = 16
#: Seconds to wait until a server in this process has stopped. A stop never takes this long.
HOST_STOP: Final = 60.0
#: Seconds before a request is sent again.
RETRY: Final = 0.1
#: Maximum number of times that a read-only request is repeated after its answer was lost.
REPEATS: Final = 5


class Bridge:
    """Session of one stdio client."""

    def __init__(self, trail: OwnerTrail, output: Output) -> None:
        self._trail = trail
        self._output = output
        self._places = trio.Semaphore(UNANSWERED)
        self._calls: dict[RequestId, trio.CancelScope] = {}
        self._awaited = 0
        self._answered = trio.Event()
        self._version: str | None = None
        self._negotiated = trio.Event()
        self._negotiated.set()
        self._sender, self._outgoing = trio.open_memory_channel[bytes](WRITTEN_AHEAD)

    async def serve(self, lines: AsyncIterable[str]) -> None:
        """Serve until `lines` ends. Running requests may then continue for `STOP_GRACE` seconds."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            async with self._sender, trio.open_nursery() as calls:
                async for line in lines:
                    await self._take(line, calls)
                with trio.move_on_after(STOP_GRACE):
                    await self._finish_calls()
                calls.cancel_scope.cancel()
            nursery.cancel_scope.deadline = trio.current_time() + STOP_FLUSH

    async def _take(self, line: str, calls: trio.Nursery) -> None:
        message = messages.read_message(line)
        if isinstance(message, Cancellation):
            if message.request_id in self._calls:
                self._calls[message.request_id].cancel()
        elif isinstance(message, Request):
            await self._places.acquire()
            if message.method == "initialize" and message.version is None:
                self._negotiated = trio.Event()
            scope = self._calls[message.id] = trio.CancelScope()
            self._awaited += not message.is_lasting
            calls.start_soon(self._answer, message, scope)

    async def _answer(self, request: Request, scope: trio.CancelScope) -> None:
        """Answer one request unless the client cancels it. If the session ends first, send an error."""
        settled = False
        try:
            with scope:
                await self._forward(request)
            settled = True
        finally:
            if not settled and not request.is_lasting:
                with trio.move_on_after(STOP_FLUSH, shield=True), suppress(trio.BrokenResourceError):
                    await self._sender.send(_lost_line(request, "this server stopped"))
            self._awaited -= not request.is_lasting
            if self._calls.get(request.id) is scope:
                del self._calls[request.id]
            if request.method == "initialize":
                self._negotiated.set()
            self._places.release()
            self._answered.set()
            self._answered = trio.Event()

    async def _forward(self, request: Request) -> None:
        if request.method == "ping" and request.version is None:
            await self._sender.send(messages.result_line(request.id, {}))
            return
        if request.method != "initialize" and request.version is None:
            await self._negotiated.wait()
        try:
            for attempt in count():
                if await self._try_owner(request, attempt):
                    return
                await trio.sleep(RETRY)
        except AnswerLost as loss:
            await self._sender.send(_lost_line(request, str(loss)))
        except NoOwner as none:
            await self._sender.send(
                messages.error_line(request.id, f"The request was not sent. {none}", messages.NOT_SENT)
            )

    async def _try_owner(self, request: Request, attempt: int) -> bool:
        """Forward a request to the current owner. Return False if the request should be sent again."""
        link = await self._trail.link()
        try:
            answer = await link.send(request, messages.headers_of(request, self._version), self._sender.send)
        except NeverSent:
            self._trail.doubt()
            return False
        except AnswerLost as loss:
            self._trail.doubt()
            if not request.is_repeatable or isinstance(loss, OwnerHangs) or attempt >= REPEATS:
                raise
            log.info("request repeated", method=request.method, reason=str(loss))
            return False
        if request.method == "initialize":
            self._version = messages.negotiated_version(answer) or self._version
        return True

    async def _finish_calls(self) -> None:
        while self._awaited:
            await self._answered.wait()

    async def _write(self) -> None:
        async for line in self._outgoing:
            await self._output.write_bytes(line)


def _lost_line(request: Request, reason: str) -> bytes:
    message = (
        f"The answer is lost: {reason}. Whether the call took effect is unknown. Read what it should have "
        "changed before you repeat it."
    )
    return messages.error_line(request.id, message, messages.OUTCOME_UNKNOWN)


async def serve_bridge(trail: OwnerTrail, shutdown: trio.Event) -> None:
    """Serve the client on stdin and stdout until it leaves, `shutdown` is set, or the trail ends.

    A server that this process hosts is then stopped gracefully. If an exception has ended the trail, it is
    raised after every request has been answered with an error.
    """
    failures: list[Exception] = []
    with claim_standard_streams() as (wire_in, wire_out):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_follow, trail, shutdown, failures)
            async with trio.open_nursery() as session:
                session.start_soon(_give_up_after, shutdown, session.cancel_scope)
                output = Output(wire_out, session.cancel_scope)
                await Bridge(trail, output).serve(StdinMessages(wire_in, shutdown, output))
                session.cancel_scope.cancel()
            trail.close()
            nursery.cancel_scope.deadline = trio.current_time() + HOST_STOP
    if failures:
        raise failures[0]


async def _follow(trail: OwnerTrail, shutdown: trio.Event, failures: list[Exception]) -> None:
    try:
        await trail.follow()
    except Exception as failure:  # noqa: BLE001 - the client is answered first, then it is raised
        failures.append(failure)
        trail.abandon("This server cannot take over as owner. The reason is in its stderr. Start it again.")
        shutdown.set()


async def _give_up_after(shutdown: trio.Event, scope: trio.CancelScope) -> None:
    """Cancel `scope` some time after `shutdown` is set.

    A client that never reads therefore cannot delay the exit.
    """
    await shutdown.wait()
    scope.deadline = trio.current_time() + STOP_GRACE + 3 * STOP_FLUSH
