"""Libraries that are loaded after the server starts to listen. Plain calls do not wait for them."""

from __future__ import annotations

import errno
import json
import threading
from typing import Any

import pytest
import trio
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from lithos.server.http import application, ports
from lithos.server.mcp import over_http as http
from lithos.server.mcp import tool_calls
from lithos.server.mcp.over_http import McpEndpoints
from tests.server.running import Front, rpc, running_front

HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return an event that delays the loading of the SDK until a test sets it."""
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


async def test_plain_call_is_answered_before_the_sdk_is_loaded(gate: threading.Event) -> None:
    async with running_front() as front:
        call = rpc("tools/call", name="echo", arguments={"text": "early"})
        answer = await front.exchange(post(call))
        assert b"early" in answer
        gate.set()


@pytest.mark.parametrize("failure", [OSError(errno.EMFILE, "no more files"), ImportError("a library: EIO")])
async def test_failed_sdk_loading_is_repeated_while_the_server_runs(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 139, 193: a server that starts without free file descriptors keeps running."""
    monkeypatch.setattr(ports, "LOADED_AGAIN", 0.01)
    failures = {"_load_sdk": [failure] * 2, "_create_pages": [failure] * 2}

    def failing_twice(name: str, load: Any) -> Any:
        def fail_twice(*arguments: Any) -> Any:
            if failures[name]:
                raise failures[name].pop()
            return load(*arguments)

        return fail_twice

    for where, name in ((McpEndpoints, "_load_sdk"), (application, "_create_pages")):
        monkeypatch.setattr(where, name, failing_twice(name, getattr(where, name)))
    async with running_front() as front:
        assert b'"serverInfo"' in await front.exchange(post(rpc("initialize", **HELLO)))
        assert b" 404 " in await front.exchange(page(b"/audit"))
    assert failures == {"_load_sdk": [], "_create_pages": []}


async def test_server_ends_when_a_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(endpoints: McpEndpoints) -> Any:
        raise ModuleNotFoundError("No module named 'mcp'")

    monkeypatch.setattr(McpEndpoints, "_load_sdk", fail)
    monkeypatch.setattr(application, "UNDISTURBED", 0)
    with pytest.RaisesGroup(ModuleNotFoundError, flatten_subgroups=True):
        async with running_front():
            await trio.sleep_forever()


def page(path: bytes, method: bytes = b"GET") -> bytes:
    return method + b" " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


async def test_requests_wait_until_sdk_or_pages_are_loaded(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = application._create_pages

    def create_late(routes: Any) -> Any:
        assert gate.wait(30)
        return create(routes)

    monkeypatch.setattr(application, "_create_pages", create_late)
    answers: dict[str, bytes] = {}

    async def ask(front: Front, name: str, request: bytes) -> None:
        answers[name] = await front.exchange(request)

    async with running_front() as front, trio.open_nursery() as asking:
        asking.start_soon(ask, front, "hello", post(rpc("initialize", **HELLO)))
        asking.start_soon(ask, front, "page", page(b"/audit"))
        call = rpc("tools/call", name="echo", arguments={"text": "between"})
        assert b"between" in await front.exchange(post(call))
        assert not answers
        gate.set()
    assert b'"serverInfo"' in answers["hello"]
    assert answers["page"].endswith(b'{"error":"not_found"}')


async def test_health_and_plain_calls_load_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without sessions, the server loads the SDK some time after its start.

    The server loads Quart for the first page.
    """
    loaded: list[str] = []
    create, load = application._create_pages, McpEndpoints._load_sdk

    def create_pages(routes: Any) -> Any:
        loaded.append("pages")
        return create(routes)

    def load_sdk(self: McpEndpoints) -> Any:
        loaded.append("sdk")
        return load(self)

    monkeypatch.setattr(application, "_create_pages", create_pages)
    monkeypatch.setattr(McpEndpoints, "_load_sdk", load_sdk)
    monkeypatch.setattr(application, "UNDISTURBED", 3600.0)
    async with running_front() as front:
        health = await front.exchange(page(b"/health"))
        assert health.startswith(b"HTTP/1.1 200")
        assert b"cache-control: no-store" in health
        assert b'"status":"ok"' in health
        only_head = await front.exchange(page(b"/health", b"HEAD"))
        assert only_head.startswith(b"HTTP/1.1 200")
        assert only_head.endswith(b"\r\n\r\n")
        assert (await front.exchange(page(b"/health", b"DELETE"))).startswith(b"HTTP/1.1 405")
        call = rpc("tools/call", name="echo", arguments={"text": "plain"})
        assert b"plain" in await front.exchange(post(call))
        assert loaded == []
        await front.exchange(page(b"/audit"))
        assert loaded == ["pages"]
        assert b'"serverInfo"' in await front.exchange(post(rpc("initialize", **HELLO)))
        assert loaded == ["pages", "sdk"]


async def test_shutdown_during_sdk_loading_is_in_time(gate: threading.Event) -> None:
    async with running_front() as front:
        front.shutdown.set()
        gate.set()


def test_copied_constants_match_the_sdk() -> None:
    assert MCP_PROTOCOL_VERSION_HEADER.encode() == tool_calls.VERSION_HEADER
    assert {version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS} == tool_calls.VERSIONS
    assert http.INVALID_REQUEST == -32600
