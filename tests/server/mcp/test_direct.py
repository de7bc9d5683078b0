"""Direct answers to plain calls. They equal the answers of the SDK byte for byte."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic_core import to_json

import lithos.server.mcp.over_http
from lithos.server.http.ports import compact_json
from lithos.server.mcp.over_http import _fields_of
from lithos.server.mcp.tool_calls import SLICE, join_slices, read_direct_call
from tests.server.running import FakeToolBox, rpc, running_front

HEAD = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
DATE = re.compile(rb"date: [^\r]*\r\n")
CALLS: tuple[dict[str, Any], ...] = (
    {"name": "echo", "arguments": {"text": 'Zoë "x" \\ \u2028 \x7f \x01 日本 😀'}},
    {"name": "echo", "arguments": {"unknown": 1}},
    {"name": "echo", "arguments": None},
    {"name": "echo"},
    {"name": "echo", "arguments": {"text": "a"}, "_meta": {"progressToken": "p", "other/key": [1]}},
    {"name": "nothing", "arguments": {}},
    {"name": "refuse"},
    {"name": "crash"},
    {"name": "no such tool"},
    {"name": "numbers"},
    {"name": "rows"},
)
#: Invalid messages, and messages that are not plain calls. The SDK answers or refuses them.
OTHERS: tuple[Any, ...] = (
    rpc("tools/list"),
    rpc("tools/call", name="echo", task={"ttl": 1}),
    rpc("tools/call", name="echo", arguments=[]),
    rpc("tools/call", name=7),
    rpc("tools/call", name="echo", _meta={"progressToken": True}),
    rpc("tools/call", name="echo", _meta=5),
    rpc("tools/call"),
    rpc("tools/call", request_id=None, name="echo"),
    rpc("tools/call", name="echo") | {"id": True},
    rpc("tools/call", name="echo") | {"id": 1.5},
    rpc("tools/call", name="echo") | {"jsonrpc": "1.0"},
    rpc("tools/call", name="echo") | {"surplus": 1},
    [rpc("tools/call", name="echo")],
    "text",
)


def request(message: Any, version: str | None = None, **more: str) -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    lines = HEAD | {"Host": "localhost", "Content-Length": str(len(body))} | more
    if version is not None:
        lines["MCP-Protocol-Version"] = version
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST /mcp HTTP/1.1\r\n{text}\r\n".encode() + body


original_call = FakeToolBox.call


async def call(self: FakeToolBox, name: str, arguments: Any) -> Any:
    """Call a fake tool, or one of two additional tools whose values are hard to encode as JSON."""
    if name == "numbers":
        return {"a": [1e-7, 1e16, 0.1, -0.0, 1e300, 2**63, 2**70, 3.0], "b": {"c": None, "d": True}}
    if name == "rows":
        return {"items": [{"number": n, "text": f"é {n}" * 40} for n in range(5 * SLICE + 1)], "total": 7}
    return await original_call(self, name, arguments)


async def test_direct_answers_equal_sdk_answers_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeToolBox, "call", call)
    async with running_front() as front:
        for version, (number, params) in product((None, *HANDSHAKE_PROTOCOL_VERSIONS), enumerate(CALLS)):
            for request_id in (number, f"id-{number} é"):
                wire = request(rpc("tools/call", request_id=request_id, **params), version)
                direct = await front.exchange(wire)
                with monkeypatch.context() as patch:
                    patch.setattr(lithos.server.mcp.over_http, "read_direct_call", lambda fields, body: None)
                    through_sdk = await front.exchange(wire)
                assert DATE.sub(b"", direct) == DATE.sub(b"", through_sdk)
                assert b" 200 " in direct


async def test_sdk_handles_calls_with_a_repeated_header() -> None:
    whole = request(rpc("tools/call", name="echo"), "2025-06-18")
    twice = b"MCP-Protocol-Version: 1999-01-01\r\nContent-Length"
    async with running_front() as front:
        assert b" 200 " in await front.exchange(whole)
        assert b" 400 " in await front.exchange(whole.replace(b"Content-Length", twice))


@pytest.mark.parametrize("name", [b"accept", b"content-type", b"mcp-protocol-version", b"via"])
def test_only_relevant_headers_may_not_be_repeated(name: bytes) -> None:
    body = json.dumps(rpc("tools/call", name="echo")).encode()
    headers = [(given.lower().encode(), value.encode()) for given, value in HEAD.items()]
    headers += [(b"mcp-protocol-version", b"2025-06-18"), (b"via", b"a")]
    again = [pair for pair in headers if pair[0] == name]
    assert read_direct_call(_fields_of({"headers": headers}), body) is not None
    is_direct = read_direct_call(_fields_of({"headers": headers + again}), body) is not None
    assert is_direct == (name == b"via"), "as proxies add it"


def fields_of(**fields: str) -> dict[bytes, bytes]:
    return {name.replace("_", "-").encode(): value.encode() for name, value in fields.items()}


PLAIN = {"content_type": "application/json", "accept": "*/*"}


def test_sdk_handles_all_messages_except_plain_calls() -> None:
    plain = json.dumps(rpc("tools/call", name="echo")).encode()
    assert read_direct_call(fields_of(**PLAIN), plain) is not None
    broken = (b"", b"{", b"\xff", b'{"jsonrpc":"2.0","id":"\\ud800"}')
    for body in (*(json.dumps(message).encode() for message in OTHERS), *broken):
        assert read_direct_call(fields_of(**PLAIN), body) is None, body
    for headers in (
        {"mcp_protocol_version": "2026-07-28"},
        {"mcp_protocol_version": "1.0"},
        {"content_type": "text/plain"},
        {"content_type": "application/json, text/plain"},
    ):
        assert read_direct_call(fields_of(**(PLAIN | headers)), plain) is None, headers


texts = st.dictionaries(st.text(), st.lists(st.integers()) | st.text() | st.none(), max_size=3)


@given(texts, st.integers(0, 3 * SLICE))
def test_joined_slices_equal_the_complete_encoding(value: dict[str, Any], length: int) -> None:
    value["rows"] = [{"n": n, "é": str(n)} for n in range(length)]
    for encode in (compact_json, lambda part: to_json(part).decode()):
        assert trio.run(join_slices, value, encode) == encode(value)
