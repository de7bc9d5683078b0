"""Libraries that are loaded once the server listens: who needs them waits, a plain tool call does not."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
import trio
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from lithos.front.mcp import http, tool_calls
from lithos.front.mcp.http import McpEndpoints
from tests.front.running import Front, rpc, running_front

HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Holds the loading of the SDK back until it is set."""
    gate, load = threading.Event(), McpEndpoints._load_sdk

    def load_late(self: McpEndpoints) -> Any:
        assert gate.wait(30)
        return load(self)

    monkeypatch.setattr(McpEndpoints, "_load_sdk", load_late)
    return gate


def post(message: Any) -> bytes:
    body = json.dumps(message).encode()
    accept = b"Accept: application/json, text/event-stream\r\n"
    return HEAD + accept + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def test_a_plain_call_is_answered_before_the_sdk_is_there(gate: threading.Event) -> None:
    async with running_front() as front:
        call = rpc("tools/call", name="echo", arguments={"text": "early"})
        answer = await front.exchange(post(call))
        assert b"early" in answer
        gate.set()


async def test_what_needs_the_sdk_or_a_page_waits_for_it(gate: threading.Event) -> None:
    answers: dict[str, bytes] = {}

    async def ask(front: Front, name: str, request: bytes) -> None:
        answers[name] = await front.exchange(request)

    async with running_front() as front, trio.open_nursery() as asking:
        page = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        asking.start_soon(ask, front, "hello", post(rpc("initialize", **HELLO)))
        asking.start_soon(ask, front, "health", page)
        call = rpc("tools/call", name="echo", arguments={"text": "between"})
        assert b"between" in await front.exchange(post(call))
        assert not answers
        gate.set()
    assert b'"serverInfo"' in answers["hello"]
    assert b'"status":"ok"' in answers["health"]


async def test_a_stop_before_the_sdk_is_there_is_in_time(gate: threading.Event) -> None:
    async with running_front() as front:
        front.shutdown.set()
        gate.set()


def test_what_is_known_without_the_sdk_is_what_it_says() -> None:
    assert MCP_PROTOCOL_VERSION_HEADER.encode() == tool_calls.VERSION_HEADER
    assert {version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS} == tool_calls.VERSIONS
    assert http.INVALID_REQUEST == -32600
