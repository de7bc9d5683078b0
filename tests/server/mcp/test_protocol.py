"""All protocol versions over all HTTP transports, as clients see them (behaviours 164, 173, 204)."""

from __future__ import annotations

import json
import logging
from base64 import b64decode
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest
import trio
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.types import TextContent

from lithos.server.mcp.server import INSTRUCTIONS, SERVER_TITLE
from tests.server.running import Front, rpc, running_front

HANDSHAKE = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
BOTH = {"Accept": "application/json, text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}


async def post(
    front: Front, message: Mapping[str, Any], path: str = "/mcp", **headers: str
) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=front.url) as client:
        lines = BOTH | {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.post(path, json=message, headers=lines)


async def post_modern(front: Front, method: str, meta: Any = META, **params: Any) -> httpx2.Response:
    headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method}
    if "name" in params:
        headers["Mcp_Name"] = params["name"]
    return await post(front, rpc(method, 1, _meta=meta, **params), **headers)


async def test_every_handshake_version_is_negotiated_without_a_session() -> None:
    """behaviour 204"""
    me = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    async with running_front() as front:
        for version in HANDSHAKE:
            answer = await post(front, rpc("initialize", protocolVersion=version, **me))
            result = answer.json()["result"]
            assert answer.headers["content-type"] == "application/json"
            assert "mcp-session-id" not in answer.headers
            assert result["protocolVersion"] == version
            server = result["serverInfo"]
            assert (server["name"], server["version"], server["title"]) == ("Lithos", "9.8.7", SERVER_TITLE)
            assert result["instructions"] == INSTRUCTIONS
            assert set(result["capabilities"]) == {"tools", "prompts"}
            ready = await post(front, rpc("notifications/initialized", None), MCP_Protocol_Version=version)
            assert ready.status_code == 202
            echo = rpc("tools/call", name="echo", arguments={"text": "ü"})
            assert (await post(front, echo, MCP_Protocol_Version=version)).json()["result"] == {
                "content": [{"type": "text", "text": '{"status":"ok","text":"ü","none":null}'}],
                "structuredContent": {"status": "ok", "text": "ü", "none": None},
                "isError": False,
            }
        unknown = await post(front, rpc("initialize", protocolVersion="1999-01-01", **me))
        assert unknown.json()["result"]["protocolVersion"] == "2025-11-25"


async def test_calls_work_without_an_initialize_request() -> None:
    async with running_front() as front:
        answer = await post(front, rpc("tools/call", name="nothing", arguments={}))
        assert answer.json()["result"] == {
            "content": [{"type": "text", "text": "null"}],
            "structuredContent": {"result": None},
            "isError": False,
        }


async def test_newest_protocol_version_needs_no_handshake() -> None:
    """behaviour 204"""
    async with running_front() as front:
        discovered = (await post_modern(front, "server/discover")).json()["result"]
        assert discovered["supportedVersions"] == [MODERN]
        assert discovered["resultType"] == "complete"
        listed = (await post_modern(front, "tools/list")).json()["result"]
        assert (listed["ttlMs"], listed["cacheScope"]) == (3_600_000, "public")
        assert listed["resultType"] == "complete"
        called = (await post_modern(front, "tools/call", name="echo", arguments={})).json()["result"]
        assert called["resultType"] == "complete"
        assert called["structuredContent"] == {"status": "ok", "text": None, "none": None}


async def test_errors_of_the_newest_version_have_their_http_status() -> None:
    """behaviour 204"""
    async with running_front() as front:
        no_meta = await post(front, rpc("tools/list"), MCP_Protocol_Version=MODERN, Mcp_Method="tools/list")
        mismatch = await post(
            front, rpc("tools/list", _meta=META), MCP_Protocol_Version=MODERN, Mcp_Method="tools/call"
        )
        unknown = await post(front, rpc("tools/list", _meta=META), MCP_Protocol_Version="2031-01-01")
        method = await post_modern(front, "no/such")
        listen = await post_modern(front, "subscriptions/listen", notifications={})
        answers = [
            (a.status_code, a.json()["error"]["code"]) for a in (no_meta, mismatch, unknown, method, listen)
        ]
        assert answers == [(400, -32602), (400, -32020), (400, -32020), (404, -32601), (404, -32601)]
        meta = META | {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        future = await post(
            front, rpc("tools/list", _meta=meta), MCP_Protocol_Version="2031-01-01", Mcp_Method="tools/list"
        )
        assert (future.status_code, future.json()["error"]["code"]) == (400, -32022)


async def test_tools_are_listed_in_order_with_their_hints() -> None:
    """behaviour 172"""
    async with running_front() as front:
        tools = (await post(front, rpc("tools/list"))).json()["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["zebra", "echo"]
    assert [tool["annotations"] for tool in tools] == [
        {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
        {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False},
    ]
    assert [tool["title"] for tool in tools] == ["Zebra", "Echo"]
    assert not any("outputSchema" in tool or "_meta" in tool for tool in tools)
    assert tools[0]["inputSchema"]["additionalProperties"] is False


async def test_server_introduces_itself_with_title_website_and_icon() -> None:
    """docs/spec/mcp.md: the icon is a data URI, so clients fetch nothing"""
    me = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    async with running_front() as front:
        asked = rpc("initialize", protocolVersion=HANDSHAKE[-1], **me)
        answer = (await post(front, asked)).json()["result"]
    server = answer["serverInfo"]
    assert (server["name"], server["title"]) == ("Lithos", SERVER_TITLE)
    assert server["websiteUrl"].startswith("https://")
    (icon,) = server["icons"]
    assert icon["mimeType"] == "image/svg+xml"
    assert b64decode(icon["src"].removeprefix("data:image/svg+xml;base64,")).startswith(b"<svg")


async def test_protocol_error_of_a_call_is_an_error_envelope(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """behaviour 173"""
    async with running_front() as front:
        answers = [
            (await post(front, rpc("tools/call", name=name, arguments=arguments))).json()["result"]
            for name, arguments in [("echo", {"bad": 1}), ("nope", {}), ("crash", {}), ("refuse", {})]
        ]
    texts = [answer["content"][0]["text"] for answer in answers]
    told = [
        ("invalid_input", "unknown argument: bad"),
        ("unknown_tool", "Unknown tool: 'nope'"),
        ("internal_error", "Error calling tool 'crash': the disk is on fire"),
    ]
    for answer, (code, message) in zip(answers, told, strict=False):
        assert answer["structuredContent"] == {"status": "error", "code": code, "message": message}
    assert [answer["isError"] for answer in answers] == [True, True, True, False]
    assert [json.loads(text) for text in texts] == [answer["structuredContent"] for answer in answers]
    (logged,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert logged.exc_info is not None


async def test_mcp_endpoint_accepts_only_post() -> None:
    """behaviour 164"""
    async with running_front() as front, httpx2.AsyncClient(base_url=front.url) as client:
        for method in ("GET", "DELETE", "PUT", "HEAD"):
            answer = await client.request(method, "/mcp", headers=BOTH)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST"), method
            modern = await client.request(method, "/mcp", headers=BOTH | {"MCP-Protocol-Version": MODERN})
            assert modern.status_code == 405, method


ACCEPTED = (
    "application/json, text/event-stream", "text/event-stream;q=0.5,application/json", "*/*",
    "application/json", "application/json;q=0.9", "application/json; charset=utf-8", "text/event-stream",
    "application/*, text/*", "application/*", "text/html, application/xhtml+xml, */*;q=0.8",
    "Application/JSON", "", ",", None,
)  # fmt: skip
REFUSED = ("text/html", "image/*", "application/json;q=0", "application/xml, text/event-stream; q=0.0")


async def test_every_accept_header_for_json_or_streams_is_served() -> None:
    """behaviour 392: the answer is always JSON."""
    async with running_front() as front, httpx2.AsyncClient(base_url=front.url) as client:
        for method, told in (("ping", 200), ("tools/list", 200), ("tools/call", 200)):
            for accept in (*ACCEPTED, *REFUSED):
                message = rpc(method, name="echo", arguments={"text": "x"})
                asked = client.build_request("POST", "/mcp", json=message, headers={"Accept": accept or ""})
                if accept is None:
                    del asked.headers["accept"]
                answer = await client.send(asked)
                assert answer.status_code == (406 if accept in REFUSED else told), (method, accept)
                assert answer.headers["content-type"] == "application/json", (method, accept)
        for accept in ("application/json", "*/*", ""):
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "ping", "Accept": accept}
            modern = await client.post("/mcp", json=rpc("ping", _meta=META), headers=headers)
            assert modern.status_code == 404, "the method, not the kind"


async def test_event_stream_opens_with_every_accept_header() -> None:
    """behaviour 392"""
    async with running_front() as front:
        for accept in (b"", b"Accept: application/json\r\n", b"Accept: */*\r\n"):
            async with await front.connect() as stream:
                await stream.send_all(b"GET /sse HTTP/1.1\r\nHost: localhost\r\n" + accept + b"\r\n")
                with trio.fail_after(10):
                    assert b" 200 " in await stream.receive_some(200)


async def test_trailing_slash_is_redirected_with_the_same_method() -> None:
    """behaviour 164"""
    async with running_front() as front:
        for path, target in (
            ("/mcp/", "/mcp"), ("/mcp/?a=b", "/mcp?a=b"),
            ("/messages?session_id=1", "/messages/?session_id=1"),
        ):  # fmt: skip
            answer = await post(front, rpc("ping"), path)
            assert (answer.status_code, answer.headers["location"]) == (307, target)


async def test_sse_endpoint_accepts_get_and_message_endpoint_accepts_post() -> None:
    """behaviour 164"""
    async with running_front() as front, httpx2.AsyncClient(base_url=front.url) as client:
        assert (await client.post("/sse", json=rpc("ping"))).status_code == 405
        assert (await client.get("/messages/")).status_code == 405


def transports(front: Front) -> list[AbstractAsyncContextManager[Any] | str]:
    return [f"{front.url}/mcp", sse_client(f"{front.url}/sse")]


async def test_official_client_works_over_http() -> None:
    """behaviours 164, 204"""
    async with running_front() as front:
        for transport in (0, 1):
            for mode, version in (("legacy", "2025-11-25"), ("auto", MODERN), (MODERN, MODERN)):
                async with Client(transports(front)[transport], mode=mode) as client:
                    assert client.protocol_version == version
                    tools = await client.list_tools()
                    assert [tool.name for tool in tools.tools] == ["zebra", "echo"]
                    answer = await client.call_tool("echo", {"text": "日本"})
                    assert answer.structured_content == {"status": "ok", "text": "日本", "none": None}
                    (block,) = answer.content
                    assert isinstance(block, TextContent)
                    assert json.loads(block.text) == answer.structured_content
                    assert (await client.call_tool("echo", {"bad": 1})).is_error


async def test_stop_ends_official_sse_clients_without_errors(caplog: pytest.LogCaptureFixture) -> None:
    async with running_front() as front, Client(transports(front)[1], mode="legacy") as client:
        await client.call_tool("echo", {})
        front.shutdown.set()
        await trio.testing.wait_all_tasks_blocked(0.01)
    assert [r for r in caplog.records if r.name.startswith(("lithos", "hypercorn")) and r.levelno >= 40] == []


@pytest.mark.parametrize("transport", [0, 1], ids=["streamable", "sse"])
async def test_client_that_disconnects_during_a_call_causes_no_error(
    transport: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_front() as front:
        with trio.CancelScope() as scope:
            async with (
                Client(transports(front)[transport], mode="legacy") as client,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(client.call_tool, "wait", {})
                await front.tools.waiting.wait()
                scope.cancel()
        assert scope.cancelled_caught
        await trio.testing.wait_all_tasks_blocked(0.01)
        front.tools.release.set()
        assert (await post(front, rpc("ping"))).status_code == 200
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_simultaneous_calls_of_one_session_are_all_answered() -> None:
    async with running_front() as front, Client(transports(front)[1], mode="legacy") as client:
        texts: list[str] = []

        async def ask(number: int) -> None:
            answer = await client.call_tool("echo", {"text": str(number)})
            assert answer.structured_content is not None
            texts.append(answer.structured_content["text"])

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(ask, number)
        assert sorted(map(int, texts)) == list(range(20))
