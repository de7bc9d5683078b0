"""Tool calls over `/mcp` answered without the SDK's machinery, in the very bytes the SDK would send.

For every POST the SDK builds a transport, a dispatcher, three memory streams and two tasks, and checks
each result against a schema three times: half a millisecond, and seconds for a long list, during which
nobody else is served. A plain `tools/call` of a handshake version needs none of that. Whatever is
not plain (another method, another version, odd headers, unknown parameters) is left to the SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import trio
from attrs import frozen
from pydantic_core import from_json, to_json

from lithos.front.ports import Scope, Send
from lithos.front.slices import encode_slices

# The SDK's `MCP_PROTOCOL_VERSION_HEADER` and `HANDSHAKE_PROTOCOL_VERSIONS`: it takes half a second to load.
VERSION_HEADER: Final = b"mcp-protocol-version"
VERSIONS: Final = frozenset((b"2024-11-05", b"2025-03-26", b"2025-06-18", b"2025-11-25"))
_CONTENT_TYPES: Final = frozenset((b"application/json", b"application/json; charset=utf-8"))
#: Characters encoded in one turn of the event loop: about two milliseconds.
TEXT_SLICE: Final = 256 * 1024
SENT_AT_ONCE: Final = 64 * 1024
_MESSAGE_KEYS: Final = {"jsonrpc", "id", "method", "params"}
_PARAMETER_KEYS: Final = {"name", "arguments", "_meta"}


@frozen
class DirectCall:
    """A plain `tools/call`."""

    request_id: int | str
    name: str
    arguments: Mapping[str, Any]


def read_direct_call(scope: Scope, body: bytes) -> DirectCall | None:
    """The call in a POST to `/mcp`, or None when the SDK has to look at it."""
    if not _has_plain_head(scope):
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


def _has_plain_head(scope: Scope) -> bool:
    given: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        given.setdefault(name, []).append(value)
    versions = given.get(VERSION_HEADER, [])
    kinds = given.get(b"content-type", [])
    return (
        len(given.get(b"accept", [])) == 1
        and len(kinds) == 1
        and kinds[0] in _CONTENT_TYPES
        and (not versions or (len(versions) == 1 and versions[0] in VERSIONS))
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


async def answer_directly(send: Send, call: DirectCall, result: Mapping[str, Any]) -> None:
    """Send an encoded tool result as the SDK would, a long one in pieces."""
    parts = await _encode(call.request_id, result)
    length = sum(map(len, parts))
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if length > SENT_AT_ONCE:
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        parts = []
    await send({"type": "http.response.body", "body": b"".join(parts), "more_body": False})


async def _encode(request_id: int | str, result: Mapping[str, Any]) -> list[bytes]:
    """The parts of the body."""
    (block,) = result["content"]
    parts = [
        b'{"jsonrpc":"2.0","id":',
        to_json(request_id),
        b',"result":{"content":[{"text":"',
        *await _encode_text(block["text"]),
        b'","type":"text"}],"isError":',
        to_json(result["isError"]),
    ]
    if "structuredContent" in result:
        slices = await encode_slices(result["structuredContent"], lambda part: to_json(part).decode())
        parts += [b',"structuredContent":', *(part.encode() for part in slices)]
    return [*parts, b"}}"]


async def _encode_text(text: str) -> list[bytes]:
    """The inside of a JSON string; between the parts of a very long one others may run."""
    parts = [to_json(text[:TEXT_SLICE])[1:-1]]
    for start in range(TEXT_SLICE, len(text), TEXT_SLICE):
        await trio.lowlevel.checkpoint()
        parts.append(to_json(text[start : start + TEXT_SLICE])[1:-1])
    return parts
