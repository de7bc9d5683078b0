"""Event streams of a real server over raw connections, and commands that run during a test."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import trio
from attrs import define, field
from trio_websocket import WebSocketConnection

from tests.e2e.process import LITHOS, Lithos, clean_environment, read_line, until

BOUND = 60.0


@define
class Sse:
    """An open event stream."""

    connection: http.client.HTTPConnection
    response: http.client.HTTPResponse

    def frame(self) -> dict[str, str]:
        """Return the next frame. Return an empty dict at the end of the stream. Comments are skipped."""
        fields: dict[str, str] = {}
        while line := self.response.readline():
            text = line.decode().rstrip("\n")
            if not text and fields:
                return fields
            name, _, value = text.partition(": ")
            if name:
                fields[name] = value
        return {}

    def titles(self, count: int) -> list[str]:
        return [json.loads(self.frame()["data"])["title"] for _ in range(count)]


@contextmanager
def listening(server: Lithos, query: str = "", last_event_id: str | None = None) -> Iterator[Sse]:
    """Listen to `/events`."""
    connection = http.client.HTTPConnection(*server.address, timeout=BOUND)
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    try:
        connection.request("GET", f"/events?{query}", headers=headers)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        yield Sse(connection, response)
    finally:
        connection.close()


def call_tool(
    server: Lithos, tool: str, headers: Mapping[str, str] = MappingProxyType({}), **arguments: Any
) -> dict[str, Any]:
    """Call a tool and return its structured answer."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    answer = server.ask("POST", "/mcp", json.dumps(message), **headers)[1]
    return dict(json.loads(answer)["result"]["structuredContent"])


def write_notes(server: Lithos, titles: list[str]) -> None:
    for title in titles:
        answer = call_tool(server, "lithos_write", title=title, content="Text.", agent="ada")
        assert answer["status"] == "created", answer


def gauge(server: Lithos, name: str) -> float:
    """Return one value without labels from `/metrics`."""
    text = server.ask("GET", "/metrics")[1]
    (value,) = [line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(value)


def await_clients(server: Lithos, count: int) -> None:
    """Wait until this number of WebSocket clients is connected."""
    until(lambda: gauge(server, "lithos_ws_active_clients") == count)


@define
class Command:
    """A command that runs during a test."""

    process: subprocess.Popen[bytes]
    printed: list[Any] = field(factory=list)

    def line(self) -> Any:
        """Return the next printed line, parsed as JSON."""
        return json.loads(read_line(self.process, BOUND))

    def end(self, code: int) -> list[Any]:
        """Wait until the command ends with this exit code. Return the remaining output."""
        output, errors = self.process.communicate(timeout=BOUND)
        assert self.process.returncode == code, errors
        return [json.loads(line) for line in output.splitlines()]


@contextmanager
def command(data: Path, *arguments: str) -> Iterator[Command]:
    """Run a `lithos` command on `data`. If the command still runs at the end of the block, it is killed."""
    process = subprocess.Popen(
        [*LITHOS, "-d", str(data), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        cwd=data.parent,
    )
    try:
        yield Command(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=BOUND)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


async def receive(socket: WebSocketConnection) -> Any:
    """Return the next message of a WebSocket, parsed as JSON."""
    with trio.fail_after(BOUND):
        return json.loads(await socket.get_message())


def ws_url(server: Lithos, query: str) -> str:
    """Return the WebSocket address for events about created notes."""
    return f"{server.url.replace('http', 'ws')}/events/ws?types=note.created&{query}"
