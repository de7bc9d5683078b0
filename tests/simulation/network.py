"""Connection from agents to the server. It uses the ASGI applications of the front and may break."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import trio
from attrs import define, field, frozen

from lithos.app.server import Server
from lithos.events.reading.event_stream import EventStreams
from lithos.events.streams.frames import Subscribers
from lithos.events.streams.sse import SseEndpoint
from lithos.server.http.access import AccessPolicy
from lithos.server.http.exchanges import Exchanges
from lithos.server.http.gate import Gate
from lithos.server.http.ports import AsgiApp, Message, Receive, Scope, Send
from lithos.server.mcp.over_http import MCP_PATH, McpEndpoints
from lithos.server.mcp.resource_pages import Library
from tests.simulation.ledger import Broken

MAX_BODY = 4 * 1024 * 1024
_HEADERS = [
    (b"host", b"localhost"),
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", b"application/json"),
    (b"mcp-protocol-version", b"2025-11-25"),
]


class Gone(Exception):
    """Raised if no answer arrives. The result of the request is then unknown."""


@frozen
class Weather:
    """Maximum delay of a message in seconds, and the fractions of lost requests and lost answers."""

    delay: float = 0.01
    lost_requests: float = 0.0
    lost_answers: float = 0.0
    #: Fraction of calls that go directly to the tools, without the front.
    direct: float = 0.5
    #: Average duration of an event stream in seconds.
    stream_life: float = 120.0


def make_front(server: Server) -> AsgiApp:
    """Return the front's application with `/mcp` and `/events`. It has access control but no sockets."""
    mcp = McpEndpoints(server.tools, server.get(Library), "0", MAX_BODY, trio.Event(), trio.Event())
    events = SseEndpoint(server.get(EventStreams), Subscribers("SSE", limit=50))

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        await (events if scope["path"] == "/events" else mcp.routes[scope["path"]])(scope, receive, send)

    policy = AccessPolicy("127.0.0.1", None, (), (), False)
    return Exchanges(Gate(dispatch, policy, MAX_BODY), {MCP_PATH})


async def call_over_http(front: AsgiApp, tool: str, arguments: Mapping[str, Any]) -> Any:
    """Call a tool through `POST /mcp`. Return the structured answer."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": dict(arguments)},
    }
    body = json.dumps(message).encode()
    sent: list[Message] = []
    is_read = False

    async def receive() -> Message:
        nonlocal is_read
        if is_read:
            await trio.sleep_forever()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message)

    headers = [*_HEADERS, (b"content-length", b"%d" % len(body))]
    await front(_scope("POST", MCP_PATH, headers), receive, send)
    if not sent or sent[0]["status"] != 200:
        raise Broken(f"{tool} was answered {sent[:1]}")
    answer = json.loads(b"".join(part.get("body", b"") for part in sent[1:]))["result"]
    if answer["isError"]:
        raise Broken(f"{tool} {dict(arguments)} failed: {answer['content'][0]['text']}")
    return answer["structuredContent"]


def _scope(method: str, path: str, headers: list[tuple[bytes, bytes]], query: bytes = b"") -> Scope:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "scheme": "http",
        "http_version": "1.1",
    }


@define(eq=False)
class Listener:
    """A client of `/events`. Whenever the stream ends, it resumes after its last event."""

    random: Random
    weather: Weather
    #: Every event as (seq, type, data), in order of arrival.
    heard: list[tuple[int, str, dict[str, Any]]] = field(factory=list)
    resyncs: int = 0
    #: Function that is called with every event.
    on_event: Callable[[str, dict[str, Any]], None] = field(default=lambda *_: None)

    async def listen(self, front: AsgiApp) -> None:
        """Read one stream until the stream ends or breaks."""
        headers = list(_HEADERS[:2])
        query = b""
        if self.heard:
            headers.append((b"last-event-id", str(self.heard[-1][0]).encode()))
        else:
            query = b"since=0"
        left = trio.Event()
        pending = b""

        async def receive() -> Message:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal pending
            await trio.sleep(self.random.random() * self.weather.delay)
            if left.is_set():
                raise trio.BrokenResourceError
            pending += message.get("body", b"")
            while b"\n\n" in pending:
                frame, _, pending = pending.partition(b"\n\n")
                self._take(frame.decode())

        async with trio.open_nursery() as nursery:

            async def leave() -> None:
                await trio.sleep(self.random.expovariate(1 / self.weather.stream_life))
                left.set()

            nursery.start_soon(leave)
            await front(_scope("GET", "/events", headers, query), receive, send)
            nursery.cancel_scope.cancel()

    def _take(self, frame: str) -> None:
        lines = dict(line.split(": ", 1) for line in frame.splitlines() if not line.startswith(":"))
        if not lines:
            return
        if lines["event"] == "resync":
            self.resyncs += 1
            raise Broken(f"a listener was told to begin anew: {frame}")
        seq = int(lines["id"])
        if self.heard and seq <= self.heard[-1][0]:
            raise Broken(f"event {seq} ({lines['event']}) was delivered after {self.heard[-1][0]}")
        data = json.loads(lines["data"])
        self.heard.append((seq, lines["event"], data))
        self.on_event(lines["event"], data)
