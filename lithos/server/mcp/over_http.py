"""MCP over HTTP as plain ASGI: `/mcp` (streamable HTTP, stateless), and `/sse` with `/messages/`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import trio

from lithos.kernel.values.principals import COMMAND, OWN_CALL, OWNER, Principal
from lithos.server.http.admissions import PRINCIPAL, ended_of
from lithos.server.http.gate import replaying
from lithos.server.http.ports import AsgiApp, Late, Receive, Scope, Send, SharedToolBox, answer
from lithos.server.mcp.messages import refuse_message
from lithos.server.mcp.resource_pages import Library
from lithos.server.mcp.tool_calls import (
    DirectCall,
    answer_directly,
    call_tool_box,
    encode_answer,
    read_direct_call,
)

if TYPE_CHECKING:
    from lithos.server.mcp.session import SdkTransports

MCP_PATH: Final = "/mcp"
SSE_PATH: Final = "/sse"
MESSAGES_PATH: Final = "/messages/"
#: JSON-RPC error code for an invalid request.
INVALID_REQUEST: Final = -32600
_OWN_CALL: Final = OWN_CALL.encode()
#: The Accept header that most clients send. The protocol specification shows it.
_USUAL_ACCEPT: Final = b"application/json, text/event-stream"
_SERVED: Final = frozenset((b"application/json", b"application/*", b"text/event-stream", b"text/*", b"*/*"))
#: Quality value 0. With it, a client rejects a media type.
_NOTHING: Final = re.compile(rb"\s*q\s*=\s*0(?:\.0*)?\s*")


class McpEndpoints:
    """MCP endpoints of one server. After `shutdown` is set, SSE sessions end when their calls are answered.

    Plain tool calls are answered at once. All other requests set `wanted` and wait until `run` has loaded the
    SDK.
    """

    def __init__(
        self,
        toolbox: SharedToolBox,
        library: Library | None,
        version: str,
        max_body_bytes: int,
        shutdown: trio.Event,
        wanted: trio.Event,
    ) -> None:
        self._toolbox = toolbox
        self._library = library
        self._version = version
        self._max_body_bytes = max_body_bytes
        self._shutdown = shutdown
        self._sdk = Late(self._load_sdk, wanted)
        self.routes: dict[str, AsgiApp] = {
            MCP_PATH: self._post_mcp,
            f"{MCP_PATH}/": _redirect_to(MCP_PATH),
            SSE_PATH: self._get_sse,
            MESSAGES_PATH: self._post_message,
            MESSAGES_PATH.rstrip("/"): _redirect_to(MESSAGES_PATH),
        }

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Load the SDK and report `started`, then run its request tasks.

        The request tasks are cancelled together with `run`.
        """
        sdk = await self._sdk.make()
        async with sdk.running():
            self._sdk.give(sdk)
            task_status.started()
            await trio.sleep_forever()

    def _load_sdk(self) -> SdkTransports:
        from lithos.server.mcp.session import SdkTransports  # noqa: PLC0415 - half a second, when others are served

        return SdkTransports(self._toolbox, self._library, self._version, self._max_body_bytes, MESSAGES_PATH)

    async def _post_mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            message = "Method Not Allowed: this server has no sessions; send POST"
            await answer(scope, receive, send, 405, _rpc_error(message), headers=[(b"allow", b"POST")])
        elif not _is_accepted(value for name, value in scope["headers"] if name == b"accept"):
            message = "Not Acceptable: the answer is application/json; accept that, text/event-stream or */*"
            await answer(scope, receive, send, 406, _rpc_error(message))
        else:
            scope = _accepting(scope)
            body: bytes = (await receive()).get("body", b"")
            fields = _fields_of(scope)
            call = read_direct_call(fields, body)
            if call is None and (refusal := refuse_message(body)) is not None:
                await answer(scope, replaying(body, receive), send, 400, json.loads(refusal))
            elif call is None:
                sdk = await self._sdk.get()
                await sdk.answer_post(scope, replaying(body, receive), send)
            else:
                await answer_directly(send, await self._call(fields, scope[PRINCIPAL], call))

    async def _call(self, fields: Mapping[bytes, bytes], caller: Principal, call: DirectCall) -> list[bytes]:
        if caller == OWNER and _OWN_CALL in fields:
            caller = COMMAND.coming_from(caller)
        result = await call_tool_box(self._toolbox.acting_as(caller), call.name, call.arguments)
        return await encode_answer(call, result)

    async def _get_sse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            message = "Method Not Allowed: open the stream with GET, then post to the endpoint that it names"
            await answer(scope, receive, send, 405, _rpc_error(message), headers=[(b"allow", b"GET")])
            return
        sdk = await self._sdk.get()
        await sdk.keep_session(scope, receive, send, self._shutdown, ended_of(scope))

    async def _post_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a message on to its SSE session.

        An unreadable message is refused here, because the SDK would log it with a traceback.
        """
        sdk = await self._sdk.get()
        if not sdk.may_post(scope):
            message = "Forbidden: this session was opened with another token"
            await answer(scope, receive, send, 403, _rpc_error(message))
            return
        if scope["method"] == "POST":
            body: bytes = (await receive()).get("body", b"")
            receive = replaying(body, receive)
            if (refusal := refuse_message(body)) is not None:
                await answer(scope, receive, send, 400, json.loads(refusal))
                return
        await sdk.take_message(scope, receive, send)


def _redirect_to(path: str) -> AsgiApp:
    async def redirect(scope: Scope, receive: Receive, send: Send) -> None:
        query: bytes = scope["query_string"]
        target = f"{scope.get('root_path', '')}{path}".encode() + (b"?" + query if query else b"")
        await answer(scope, receive, send, 307, headers=[(b"location", target)])

    return redirect


def _fields_of(scope: Scope) -> dict[bytes, bytes]:
    """Return the header fields of a request. A field that is sent twice has an empty value."""
    fields: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        fields[name] = b"" if name in fields else value
    return fields


def _is_accepted(lines: Iterable[bytes]) -> bool:
    """Return whether a client accepts a JSON response.

    A client accepts JSON if its Accept header lists JSON or event streams, or if it sends no Accept header
    (RFC 9110). The response is always `application/json`, although the protocol requires clients to list both
    types.
    """
    asked = [kind.split(b";") for line in lines for kind in line.lower().split(b",") if kind.strip()]
    taken = {kind.strip() for kind, *rest in asked if not any(map(_NOTHING.fullmatch, rest))}
    return not asked or not taken.isdisjoint(_SERVED)


def _accepting(scope: Scope) -> Scope:
    """Return the request with the `Accept` header that the SDK requires."""
    others = [field for field in scope["headers"] if field[0] != b"accept"]
    return {**scope, "headers": [*others, (b"accept", _USUAL_ACCEPT)]}


def _rpc_error(message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": message}}
