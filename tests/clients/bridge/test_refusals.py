"""Invalid messages, which get an error answer over every transport (behaviour 391)."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx2
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.types import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from lithos.server.mcp import stdio
from lithos.server.mcp.messages import refuse_message
from lithos.server.mcp.stdio import Output, StdinMessages
from tests.server.running import running_front

CALL = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":%s}}'
MANY = b",".join(b'"b%d":1' % number for number in range(30))
PARSE, INVALID = -32700, -32600
REFUSED: dict[str, tuple[bytes, int, object]] = {
    "cut": (b'{"jsonrpc":"2.0","id":4,"method":"ping"', PARSE, None),
    "text": (b"hello", PARSE, None),
    "two": (b'{"jsonrpc":"2.0","id":4,"method":"ping"}{}', PARSE, None),
    "control": (b'{"jsonrpc":"2.0","id":4,"method":"pi\x00ng"}', PARSE, None),
    "latin-1": (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"a":"caf\xe9"}}', PARSE, 4),
    "utf-16": ('{"jsonrpc":"2.0","id":4,"method":"ping"}'.encode("utf-16-le"), PARSE, None),
    "half": (CALL % b'{"text":"half an emoji \\ud83d"}', PARSE, 3),
    "other half": (CALL % b'{"text":"\\uDE00 x"}', PARSE, 3),
    "half key": (CALL % b'{"\\ud83d":1}', PARSE, 3),
    "deep": (CALL % (b'{"a":' + b"[" * 150 + b"]" * 150 + b"}"), INVALID, 3),
    "very deep": (CALL % (b'{"a":' + b"[" * 9_000 + b"]" * 9_000 + b"}"), PARSE, None),
    "digits": (CALL % (b'{"a":' + b"9" * 5_000 + b"}"), PARSE, None),
    "batch": (b'[{"jsonrpc":"2.0","id":4,"method":"ping"}]', INVALID, None),
    "empty batch": (b"[]", INVALID, None),
    "number": (b"1", INVALID, None),
    "null": (b"null", INVALID, None),
    "version": (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', INVALID, "a"),
    "no version": (b'{"id":5,"method":"ping"}', INVALID, 5),
    "no method": (b'{"jsonrpc":"2.0","id":5}', INVALID, 5),
    "method": (b'{"jsonrpc":"2.0","id":5,"method":7}', INVALID, 5),
    "params": (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[1]}', INVALID, 5),
    "both": (b'{"jsonrpc":"2.0","id":5,"method":"ping","error":{"code":1,"message":"x"}}', INVALID, 5),
    "null id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID, None),
    "broken id": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID, None),
    "true id": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID, None),
    "members": (b'{"jsonrpc":"2.0","id":5,"method":"ping",%s}' % MANY, INVALID, 5),
}
SERVED = (
    CALL % b'{"text":"a whole emoji \\ud83d\\ude00 and \\\\ud83d as text"}',
    CALL % (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}"),
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","id":"x","method":"ping","params":null,"extra":[1]}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
)


@pytest.mark.parametrize("name", REFUSED)
def test_every_invalid_message_gets_an_error_answer(name: str) -> None:
    """behaviour 391"""
    data, code, request_id = REFUSED[name]
    for line in (data, data + b"\n", b"  " + data + b"\r\n"):
        refusal = refuse_message(line)
        assert refusal is not None
        answer = json.loads(refusal)
        assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", request_id, code)
        assert len(answer["error"]["message"]) < 500


@pytest.mark.parametrize("data", SERVED)
def test_valid_protocol_messages_are_accepted(data: bytes) -> None:
    assert refuse_message(data) is None


IDS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.none())
VALUES = st.recursive(
    IDS, lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=5
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "id": IDS,
        "method": st.sampled_from(["ping", "tools/call", 5, None]),
        "params": VALUES,
        "result": VALUES,
        "error": st.just({"code": 1, "message": "x"}) | VALUES,
    },
)


@settings(max_examples=300)
@given(MESSAGES | st.lists(MESSAGES, max_size=2) | VALUES)
def test_sdk_understands_every_accepted_request(message: Any) -> None:
    """The SDK would never answer a request that it cannot read or that it reads as a notification."""
    data = json.dumps(message).encode()
    if refuse_message(data) is not None or not isinstance(message, dict) or "method" not in message:
        return
    read = jsonrpc_message_adapter.validate_json(data, by_name=False)
    assert isinstance(read, JSONRPCRequest if "id" in message else JSONRPCNotification)


@given(MESSAGES)
def test_messages_that_the_sdk_refuses_are_refused(message: Any) -> None:
    data = json.dumps(message).encode()
    try:
        jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValidationError:
        assert refuse_message(data) is not None or "method" not in message


async def test_invalid_stdio_lines_get_an_error_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """behaviour 391: covers a line that never ends. Blank lines are ignored."""
    monkeypatch.setattr(stdio, "LONGEST_LINE", 100_000)
    long = b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":"' + b"x" * 400_000 + b'"}}\n'
    whole = b'{"jsonrpc":"2.0","id":9,"method":"ping"}'
    wire_in, into = os.pipe()
    answers, wire_out = os.pipe()
    passed: list[str] = []

    async def write() -> None:
        await trio.to_thread.run_sync(lambda: os.write(into, b"\n \r\ncut{\n" + long + whole))
        os.close(into)

    with trio.fail_after(30), trio.CancelScope() as serving:
        lines = StdinMessages(wire_in, trio.Event(), Output(wire_out, serving))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            passed += [line async for line in lines]
    told = [json.loads(line) for line in os.read(answers, 65_536).splitlines()]
    for descriptor in (wire_in, answers, wire_out):
        os.close(descriptor)
    assert passed == [whole.decode()]
    assert [(each["id"], each["error"]["code"]) for each in told] == [(None, PARSE), (8, INVALID)]
    assert "longer than" in told[1]["error"]["message"]


async def test_http_answers_invalid_messages_like_stdio() -> None:
    """behaviour 391"""
    async with running_front() as front, httpx2.AsyncClient(base_url=front.url) as client:
        for name, (data, code, request_id) in REFUSED.items():
            for path in ("/mcp", "/messages/?session_id=" + "0" * 32):
                if (name, path) == ("deep", "/mcp"):
                    continue  # On `/mcp`, `deep` is a plain call, which the tool itself refuses.
                answer = await client.post(path, content=data, headers={"Content-Type": "application/json"})
                assert answer.status_code == 400, (name, path)
                told = answer.json()
                assert (told["id"], told["error"]["code"]) == (request_id, code), (name, path)
