"""JSON-RPC messages of the bridge: parsing, HTTP headers of requests, its own error responses; stdio.

Everything else of a message is passed through unchanged. The SDK offers the same, but takes a second to load.
The stdio transport (`Lines`, `Output`) has newline-delimited messages, on Trio without threads.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import trio
from attrs import frozen

from lithos.core.limits import JSON_VALUES, holds_more_values

READ_BYTES: Final = 64 * 1024
WRITE_BYTES: Final = 4096
"""What a writable pipe takes without blocking (PIPE_BUF on Linux; POSIX promises 512)."""


@contextmanager
def claim_standard_streams() -> Iterator[tuple[int, int]]:
    """Yield private descriptors of stdin and stdout; restore the standard ones afterwards.

    Meanwhile descriptor 1 is stderr and descriptor 0 reads as empty."""
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield wire_in, wire_out
    finally:
        sys.stdout.flush()
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)
        os.close(wire_in)
        os.close(wire_out)


class Lines:
    """The lines of stdin, ending with its end or with the stop.

    One that holds more than any call may is not passed on: a parser would stand still over it. It is answered
    on `output`.
    """

    def __init__(self, descriptor: int, shutdown: trio.Event, output: Output) -> None:
        self._descriptor = descriptor
        self._shutdown = shutdown
        self._output = output
        self._buffer = bytearray()
        self._searched = 0
        self._ended = False

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> str:
        while not self._shutdown.is_set():
            end = self._buffer.find(b"\n", self._searched)
            if end < 0 and not self._ended:
                self._searched = len(self._buffer)
                await self._fill()
                continue
            line = self._take(end + 1 if end >= 0 else len(self._buffer))
            if not line:
                break
            refusal = refuse_line(line)
            if refusal is None:
                return line.decode("utf-8", "replace")
            await self._output.write_bytes(refusal)
        raise StopAsyncIteration

    def _take(self, size: int) -> bytes:
        line = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._searched = 0
        return line

    async def _fill(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on, self._shutdown, nursery.cancel_scope)
            await _ready(trio.lowlevel.wait_readable, self._descriptor)
            data = os.read(self._descriptor, READ_BYTES)
            self._buffer += data
            self._ended = not data
            nursery.cancel_scope.cancel()


class Output:
    """The protocol's stdout; a client that closed it ends the serving."""

    def __init__(self, descriptor: int, serving: trio.CancelScope) -> None:
        self._descriptor = descriptor
        self._serving = serving
        #: Answers are written whole, whoever writes them.
        self._turn = trio.Lock()

    async def write(self, text: str) -> None:
        await self.write_bytes(text.encode("utf-8", "replace"))

    async def write_bytes(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            async with self._turn:
                while rest:
                    await _ready(trio.lowlevel.wait_writable, self._descriptor)
                    rest = rest[os.write(self._descriptor, rest[:WRITE_BYTES]) :]
        except BrokenPipeError:
            self._serving.cancel()
            await trio.lowlevel.checkpoint_if_cancelled()

    async def flush(self) -> None:
        """Nothing is buffered."""


async def _cancel_on(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    """Wait for it; regular files, which cannot be waited for, never block."""
    try:
        await wait(descriptor)
    except PermissionError:
        await trio.lowlevel.checkpoint()


RequestId = int | str

OUTCOME_UNKNOWN: Final = "outcome_unknown"
NOT_SENT: Final = "not_sent"
TOO_LARGE: Final = "too_large"
#: The code the SDKs use for a connection that closed before the answer.
CONNECTION_CLOSED: Final = -32000
INTERNAL_ERROR: Final = -32603
INVALID_REQUEST: Final = -32600

_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN: Final = re.compile(r"[\x20-\x7e]*")
_ENCODED: Final = re.compile(r"=\?base64\?.*\?=")


#: A scalar of the whole message before or after its long parts, where it can be found without parsing them.
_SCALAR: Final = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]{1,200}"'
_ID: Final = rb'"id"\s*:\s*(?P<id>-?[0-9]{1,18}|"[^"\\]{0,200}")'
_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _SCALAR + rb"\s*,\s*){0,2}" + _ID + rb"\s*,")
_LAST: Final = re.compile(rb",\s*" + _ID + rb"(?:\s*,\s*" + _SCALAR + rb"){0,2}\s*\}\s*\Z")
_ENDS: Final = 1_000


@frozen
class Request:
    """A request of the client; `version` is that of its envelope (2026-07-28 and later) or None."""

    id: RequestId
    method: str
    body: bytes
    version: str | None = None
    name: str | None = None

    @property
    def is_lasting(self) -> bool:
        """Whether the request opens a long-lived stream of notifications, whose response nobody waits for."""
        return self.method == "subscriptions/listen"

    @property
    def is_repeatable(self) -> bool:
        """Whether the request is safe to retry: everything but a tool call only reads."""
        return self.method != "tools/call"


@frozen
class Cancellation:
    """The client no longer waits for this request."""

    request_id: RequestId


def read_message(line: str) -> Request | Cancellation | None:
    """Parse a line of the client; None for notifications without effect and for unreadable lines.

    The owner's sessions are stateless, so other notifications would change nothing there.
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
    """The MCP headers of a request; `negotiated` is the protocol version that `initialize` negotiated."""
    if request.version is None:
        return {} if negotiated is None or request.method == "initialize" else _version_header(negotiated)
    headers = {**_version_header(request.version), "mcp-method": _encode_header(request.method)}
    return headers if request.name is None else {**headers, "mcp-name": _encode_header(request.name)}


def refuse_line(line: bytes) -> bytes | None:
    """The error response to a line that holds more than any call may; None for one that may be parsed.

    It has the id of the request where that stands before or after what is long.
    """
    if not holds_more_values(line, JSON_VALUES):
        return None
    found = _FIRST.match(line[:_ENDS]) or _LAST.search(line[-_ENDS:])
    message = (
        f"The message holds more than {JSON_VALUES:,} JSON values. No call takes as many. Send fewer at "
        "once; a text counts as one value."
    )
    return error_line(json.loads(found["id"]) if found else None, message, TOO_LARGE, INVALID_REQUEST)


def error_line(
    request_id: RequestId | None, message: str, reason: str, code: int = CONNECTION_CLOSED
) -> bytes:
    """An error response of the bridge itself; `data.reason` is a machine-readable word."""
    error = {"code": code, "message": message, "data": {"reason": reason}}
    return encode_line({"jsonrpc": "2.0", "id": request_id, "error": error})


def result_line(request_id: RequestId, result: dict[str, Any]) -> bytes:
    """A result response of the bridge itself."""
    return encode_line({"jsonrpc": "2.0", "id": request_id, "result": result})


def encode_line(message: dict[str, Any]) -> bytes:
    """A message as one line."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def read_answer(content: bytes) -> dict[str, Any] | None:
    """Parse a message of the owner; None when the bytes are no message."""
    try:
        message = json.loads(content)
    except (ValueError, RecursionError):
        return None
    is_message = isinstance(message, dict) and message.get("jsonrpc") == "2.0"
    return message if is_message and message.keys() & {"result", "error", "method"} else None


def negotiated_version(answer: dict[str, Any]) -> str | None:
    """The version in an answer to `initialize`; None when that was refused."""
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
    """As the protocol wants it: plain ASCII as it is, everything else in Base64."""
    if _PLAIN.fullmatch(value) and value == value.strip() and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _read_id(value: Any) -> RequestId | None:
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None
