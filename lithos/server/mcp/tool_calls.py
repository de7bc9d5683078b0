"""Tool calls: execution, JSON encoding of results, and a fast path for `/mcp` without the SDK.

For every POST, the SDK builds a transport, a dispatcher, three memory streams and two tasks, and checks each
result against a schema three times. This takes half a millisecond, or seconds for a long list. No other
request is served in that time. A plain `tools/call` in a handshake version of the protocol does not need this
work. Its response is byte for byte that of the SDK. The SDK handles all other requests (another method or
version, unusual headers, unknown parameters). Long lists are encoded in slices, so that other requests can be
served in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import trio
from attrs import frozen
from pydantic_core import from_json, to_json

from lithos.kernel.log import get_logger
from lithos.server.http.ports import Send, ToolBox, compact_json
from lithos.server.tools.arguments import ArgumentFault, UnknownTool
from lithos.server.tools.fitting import AnswerWithImage

#: Number of rows encoded at once. Rows of `lithos_list` take about two milliseconds.
SLICE: Final = 200


async def join_slices(value: Mapping[str, Any] | None, encode: Callable[[Any], str]) -> str:
    """Return `encode(value)`, the compact JSON of an object, as one text.

    Long lists are encoded in slices.
    """
    return "".join(await encode_slices(value, encode))


async def encode_slices(value: Mapping[str, Any] | None, encode: Callable[[Any], str]) -> list[str]:
    """Return `encode(value)` in parts. Other tasks may run between the slices of a long list."""
    if value is None or not any(_is_long(item) for item in value.values()):
        return [encode(value)]
    parts: list[str] = []
    for key, item in value.items():
        parts.append(f"{',' if parts else '{'}{encode(key)}:")
        parts += await _encode_member(item, encode)
    return [*parts, "}"]


async def _encode_member(item: Any, encode: Callable[[Any], str]) -> list[str]:
    if not _is_long(item):
        return [encode(item)]
    parts: list[str] = []
    for start in range(0, len(item), SLICE):
        parts.append(f"{',' if parts else '['}{encode(item[start : start + SLICE])[1:-1]}")
        await trio.lowlevel.checkpoint()
    return [*parts, "]"]


def _is_long(item: Any) -> bool:
    return isinstance(item, list) and len(item) > SLICE


log = get_logger("lithos.front.tool_calls")


async def call_tool_box(toolbox: ToolBox, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call a tool and return its encoded result. Errors are encoded too, and only cancellation is raised."""
    try:
        return await encode_result(await toolbox.call(name, arguments))
    except (ArgumentFault, UnknownTool) as fault:
        return encode_fault(fault.code, fault.message)
    except Exception as error:
        log.exception("tool failed", tool=name)
        return encode_fault("internal_error", f"Error calling tool '{name}': {error}")
    except BaseExceptionGroup as group:
        # A cancelled call may also raise other errors, but the server must see only the cancellation.
        cancelled, others = group.split(trio.Cancelled)
        if cancelled is None or (others is not None and not isinstance(others, ExceptionGroup)):
            raise
        if others is not None:
            log.error("tool failed during cancellation", exc=others, tool=name)
        raise cancelled from None


async def encode_result(result: Mapping[str, Any] | None) -> dict[str, Any]:
    """Encode the result of a tool as structured content, and as a text block with the same JSON."""
    structured = {"result": None} if result is None else result
    content: list[dict[str, Any]] = [{"type": "text", "text": await join_slices(result, _fast_json)}]
    if type(result) is AnswerWithImage:
        content.append(result.content())
    return {
        "content": content,
        "structuredContent": structured,
        "isError": False,
        "resultType": "complete",
    }


def _fast_json(value: Any) -> str:
    """Return `compact_json(value)` in a fifth of the time.

    NaN and Infinity are left to the slower function.
    """
    encoded = to_json(value)
    return compact_json(value) if b"NaN" in encoded or b"Infinity" in encoded else encoded.decode()


def encode_fault(code: str, message: str) -> dict[str, Any]:
    """Encode a protocol error of a tool call.

    A protocol error is an error object like a refusal, but `isError` is true.
    """
    envelope = {"status": "error", "code": code, "message": message}
    return {
        "content": [{"type": "text", "text": compact_json(envelope)}],
        "structuredContent": envelope,
        "isError": True,
        "resultType": "complete",
    }


# `VERSION_HEADER` and `VERSIONS` are copies of the SDK's `MCP_PROTOCOL_VERSION_HEADER` and
# `HANDSHAKE_PROTOCOL_VERSIONS`. Loading the SDK would take half a second.
VERSION_HEADER: Final = b"mcp-protocol-version"
VERSIONS: Final = frozenset((b"2024-11-05", b"2025-03-26", b"2025-06-18", b"2025-11-25"))
_CONTENT_TYPES: Final = frozenset((b"application/json", b"application/json; charset=utf-8"))
#: Number of characters encoded in one turn of the event loop. They take about two milliseconds.
TEXT_SLICE: Final = 256 * 1024
SENT_AT_ONCE: Final = 64 * 1024
#: Text block for a tool that returns None. The structured content is still an object.
_NULL: Final = "null"
_MESSAGE_KEYS: Final = {"jsonrpc", "id", "method", "params"}
_PARAMETER_KEYS: Final = {"name", "arguments", "_meta"}


@frozen
class DirectCall:
    """Plain `tools/call` request."""

    request_id: int | str
    name: str
    arguments: Mapping[str, Any]


def read_direct_call(fields: Mapping[bytes, bytes], body: bytes) -> DirectCall | None:
    """Parse a plain tool call that was posted to `/mcp`. Return None if the SDK must handle the request.

    A header that was sent twice has an empty value in `fields`.
    """
    if not _has_plain_head(fields):
        return None
    try:
        message = from_json(body)
    except ValueError:
        return None
    if not isinstance(message, dict) or message.keys() != _MESSAGE_KEYS:
        return None
    request_id, params = message["id"], message["params"]
    is_call = message["jsonrpc"] == "2.0" and message["method"] == "tools/call"
    if not is_call or type(request_id) not in (int, str) or not _is_plain(params):
        return None
    return DirectCall(request_id, params["name"], params.get("arguments") or {})


def _has_plain_head(fields: Mapping[bytes, bytes]) -> bool:
    return (
        fields.get(b"accept") != b""
        and fields.get(b"content-type") in _CONTENT_TYPES
        and (VERSION_HEADER not in fields or fields[VERSION_HEADER] in VERSIONS)
    )


def _is_plain(params: Any) -> bool:
    if not isinstance(params, dict) or not params.keys() <= _PARAMETER_KEYS:
        return False
    meta = params.get("_meta", {})
    return (
        isinstance(params.get("name"), str)
        and isinstance(params.get("arguments", {}), dict)
        and isinstance(meta, dict)
        and type(meta.get("progressToken", 0)) in (int, str)
    )


async def answer_directly(send: Send, parts: list[bytes]) -> None:
    """Send an answer in the same form as the SDK. A long answer is sent in chunks."""
    length = sum(map(len, parts))
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if length > SENT_AT_ONCE:
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        parts = []
    await send({"type": "http.response.body", "body": b"".join(parts), "more_body": False})


async def encode_answer(call: DirectCall, result: Mapping[str, Any]) -> list[bytes]:
    """Return the encoded answer to a call in parts. `result` is an encoded tool result."""
    block, *others = result["content"]
    parts = [
        b'{"jsonrpc":"2.0","id":',
        to_json(call.request_id),
        b',"result":{"content":[{"text":"',
        *await _in_slices(block["text"], lambda part: to_json(part)[1:-1]),
        b'","type":"text"}',
        *(b"," + to_json(other) for other in others),
        b'],"isError":',
        to_json(result["isError"]),
    ]
    if "structuredContent" in result:
        parts.append(b',"structuredContent":')
        parts += await _encode_structured(block["text"], result["structuredContent"])
    return [*parts, b"}}"]


async def _encode_structured(text: str, structured: Mapping[str, Any]) -> list[bytes]:
    """Return the encoded structured content. It is usually the same JSON as the text block."""
    if text == _NULL or "NaN" in text or "Infinity" in text:
        slices = await encode_slices(structured, lambda part: to_json(part).decode())
        return [part.encode() for part in slices]
    return await _in_slices(text, str.encode)


async def _in_slices(text: str, encode: Callable[[str], bytes]) -> list[bytes]:
    """Return a text encoded in parts. Other tasks may run between the parts of a long text."""
    parts = [encode(text[:TEXT_SLICE])]
    for start in range(TEXT_SLICE, len(text), TEXT_SLICE):
        await trio.lowlevel.checkpoint()
        parts.append(encode(text[start : start + TEXT_SLICE]))
    return parts
