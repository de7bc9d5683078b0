"""JSON-RPC messages of the bridge: parsing, HTTP headers for requests, and error responses.

All other parts of a message are passed on unchanged. The SDK has the same functions, but takes a second to
load. On every transport, `refuse_message` answers data that is not a protocol message.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Final

from attrs import frozen

from lithos.kernel.values.limits import JSON_VALUES, holds_more_values

#: Maximum size of one message on stdin in bytes. A note of the default maximum size needs only a small part
#: of it.
LONGEST_LINE: Final = 64 * 1024 * 1024
RequestId = int | str

OUTCOME_UNKNOWN: Final = "outcome_unknown"
NOT_SENT: Final = "not_sent"
TOO_LARGE: Final = "too_large"
#: Error code that SDKs use if a connection closes before the answer.
CONNECTION_CLOSED: Final = -32000
INTERNAL_ERROR: Final = -32603
INVALID_REQUEST: Final = -32600
PARSE_ERROR: Final = -32700
UNREADABLE: Final = "unreadable"
#: Maximum nesting depth of arrays and objects in a message. The parser of the SDK allows 200 levels.
DEEPEST: Final = 128
#: Maximum number of members of a message. The protocol defines four. Thousands of members would block the
#: SDK.
MOST_MEMBERS: Final = 20

_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN: Final = re.compile(r"[\x20-\x7e]*")
_ENCODED: Final = re.compile(r"=\?base64\?.*\?=")


#: Scalar member of a message, before or after the long parts. It can be found without parsing the message.
_SCALAR: Final = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]{1,200}"'
_ID: Final = rb'"id"\s*:\s*(?P<id>-?[0-9]{1,18}|"[^"\\]{0,200}")'
_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _SCALAR + rb"\s*,\s*){0,2}" + _ID + rb"\s*,")
_LAST: Final = re.compile(rb",\s*" + _ID + rb"(?:\s*,\s*" + _SCALAR + rb"){0,2}\s*\}\s*\Z")
_ENDS: Final = 1_000
#: Escape sequence of a surrogate, which is half a character. Two of them may form a character.
_SURROGATE: Final = re.compile(rb"\\u[dD][89abABcdefCDEF]")


@frozen
class Request:
    """Request of a client.

    `version` is the protocol version in its envelope (2026-07-28 and later), otherwise None.
    """

    id: RequestId
    method: str
    body: bytes
    version: str | None = None
    name: str | None = None

    @property
    def is_lasting(self) -> bool:
        """Return whether the request opens a stream of notifications.

        A request that opens a stream has no response to wait for.
        """
        return self.method == "subscriptions/listen"

    @property
    def is_repeatable(self) -> bool:
        """Return whether the request can be repeated safely. All requests except tool calls only read."""
        return self.method != "tools/call"


@frozen
class Cancellation:
    """Notice that the client no longer waits for a request."""

    request_id: RequestId


def read_message(line: str) -> Request | Cancellation | None:
    """Parse a line from the client.

    Return None if the line is unreadable or is a notification without effect.

    The owner's sessions are stateless, so other notifications would have no effect there.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return None
    method, given = message["method"], message.get("params")
    params: dict[str, Any] = given if isinstance(given, dict) else {}
    if "id" not in message:
        cancelled = _read_id(params.get("requestId"))
        if method != "notifications/cancelled" or cancelled is None:
            return None
        return Cancellation(cancelled)
    request_id = _read_id(message["id"])
    if request_id is None:
        return None
    name = params.get(_NAMED_BY.get(method, ""))
    return Request(
        id=request_id,
        method=method,
        body=line.strip().encode(),
        version=_version_of(params),
        name=name if isinstance(name, str) else None,
    )


def headers_of(request: Request, negotiated: str | None) -> dict[str, str]:
    """Return the MCP headers for a request. `negotiated` is the version that `initialize` negotiated."""
    if request.version is None:
        return {} if negotiated is None or request.method == "initialize" else _version_header(negotiated)
    headers = {**_version_header(request.version), "mcp-method": _encode_header(request.method)}
    return headers if request.name is None else {**headers, "mcp-name": _encode_header(request.name)}


def refuse_message(data: bytes) -> bytes | None:
    """Return the error response to an invalid message, or None if the message is valid.

    The response contains the id of the request if it can be found, because the client waits for a response
    with this id.
    """
    if holds_more_values(data, JSON_VALUES):
        return error_line(
            _id_within(data),
            f"The message contains more than {JSON_VALUES:,} JSON values. No call needs that many. "
            "Split the call; a string counts as one value.",
            TOO_LARGE,
            INVALID_REQUEST,
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as failure:
        problem = f"Parse error: the message is not UTF-8 (byte {failure.start}). Send JSON in UTF-8."
        return error_line(_id_within(data), problem, UNREADABLE, PARSE_ERROR)
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as failure:
        reason = "it is nested too deeply" if isinstance(failure, RecursionError) else str(failure)[:200]
        problem = f"Parse error: the message is not JSON ({reason}). Send one JSON object on one line."
        return error_line(None, problem, UNREADABLE, PARSE_ERROR)
    return _refuse_parsed(data, message)


def _refuse_parsed(data: bytes, message: Any) -> bytes | None:
    """Return the error response if parsed JSON is not a valid message, otherwise None."""
    request_id = _read_id(message.get("id")) if isinstance(message, dict) else None
    problem = _shape_problem(message)
    if problem is not None:
        return error_line(request_id, f"Invalid Request: {problem}.", UNREADABLE, INVALID_REQUEST)
    if data.count(b"[") + data.count(b"{") > DEEPEST and _is_deep(message):
        problem = (
            f"Invalid Request: the message has more than {DEEPEST} levels of nesting. Flatten the message."
        )
        return error_line(request_id, problem, UNREADABLE, INVALID_REQUEST)
    if _SURROGATE.search(data) is not None and not _is_text(message):
        problem = (
            "Parse error: the message contains half a character (a lone surrogate), perhaps from "
            "a text that was cut within an emoji. Nothing was changed. Send the text again in "
            "valid Unicode."
        )
        return error_line(request_id, problem, UNREADABLE, PARSE_ERROR)
    return None


def _shape_problem(message: Any) -> str | None:
    """Return why parsed JSON is not a JSON-RPC message.

    Return None for a request, notification or response.
    """
    if isinstance(message, list):
        return "batches are not supported; send each message separately"
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return 'send one JSON object with jsonrpc "2.0", id, method and params'
    if len(message) > MOST_MEMBERS:
        return f"a message has at most {MOST_MEMBERS} members"
    has_id = _read_id(message.get("id")) is not None
    if "method" not in message:
        is_response = isinstance(message.get("result"), dict) or isinstance(message.get("error"), dict)
        return None if is_response and (has_id or "error" in message) else "method is missing"
    if not isinstance(message["method"], str):
        return "method must be a string"
    if "result" in message or "error" in message:
        return "a message is a request or a response, not both"
    if "id" in message and not has_id:
        return "id must be an integer or a string"
    if not isinstance(message.get("params"), dict | None):
        return "params must be an object"
    return None


def refuse_long(line: bytes) -> bytes:
    """Return the error response to a line that is too long. `line` is the beginning of that line."""
    problem = f"The message is longer than {LONGEST_LINE:,} bytes. Send less at once."
    found = _FIRST.match(line[:_ENDS])
    return error_line(json.loads(found["id"]) if found else None, problem, TOO_LARGE, INVALID_REQUEST)


def _id_within(data: bytes) -> RequestId | None:
    """Return the id of a request that was not parsed, if the id is before or after the long part."""
    found = _FIRST.match(data[:_ENDS]) or _LAST.search(data[-_ENDS:])
    try:
        return None if found is None else _read_id(json.loads(found["id"]))
    except ValueError:
        return None


def _is_deep(message: Any) -> bool:
    """Return whether the message has more than `DEEPEST` levels of nesting."""
    level, depth = [message], 0
    while level:
        depth += 1
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
    return depth > DEEPEST


def _is_text(message: Any) -> bool:
    """Return whether all strings in the message can be encoded as UTF-8."""
    try:
        json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def error_line(
    request_id: RequestId | None, message: str, reason: str, code: int = CONNECTION_CLOSED
) -> bytes:
    """Return an error response that the bridge itself creates. `data.reason` is a machine-readable word."""
    error = {"code": code, "message": message, "data": {"reason": reason}}
    return encode_line({"jsonrpc": "2.0", "id": request_id, "error": error})


def result_line(request_id: RequestId, result: dict[str, Any]) -> bytes:
    """Return a successful response that the bridge itself creates."""
    return encode_line({"jsonrpc": "2.0", "id": request_id, "result": result})


def encode_line(message: dict[str, Any]) -> bytes:
    """Encode a message as one line."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def read_answer(content: bytes) -> dict[str, Any] | None:
    """Parse a message from the owner. Return None if the bytes are not a message."""
    try:
        message = json.loads(content)
    except (ValueError, RecursionError):
        return None
    is_message = isinstance(message, dict) and message.get("jsonrpc") == "2.0"
    return message if is_message and message.keys() & {"result", "error", "method"} else None


def negotiated_version(answer: dict[str, Any]) -> str | None:
    """Return the protocol version in an answer to `initialize`, or None if the answer is an error."""
    result = answer.get("result")
    version = result.get("protocolVersion") if isinstance(result, dict) else None
    return version if isinstance(version, str) else None


def _version_of(params: dict[str, Any]) -> str | None:
    meta = params.get("_meta")
    if not isinstance(meta, dict) or _VERSION_KEY not in meta:
        return None
    return str(meta[_VERSION_KEY])


def _version_header(version: str) -> dict[str, str]:
    return {"mcp-protocol-version": _encode_header(version)}


def _encode_header(value: str) -> str:
    """Encode a header value as the protocol requires.

    Plain ASCII is unchanged, and other text is encoded in Base64.
    """
    if _PLAIN.fullmatch(value) and value == value.strip() and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _read_id(value: Any) -> RequestId | None:
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None
