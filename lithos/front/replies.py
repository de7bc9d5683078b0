"""Small complete answers, for HTTP requests and for refused WebSocket upgrades alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import trio

from lithos.front.limits import REFUSED_BODY_SECONDS
from lithos.front.ports import Header, Receive, Scope, Send


def compact_json(value: Any) -> str:
    """Return `value` as JSON without needless spaces and with every script readable; NaN is an error."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


async def answer(
    scope: Scope,
    receive: Receive,
    send: Send,
    status: int,
    body: Mapping[str, Any] | None = None,
    *,
    headers: Iterable[Header] = (),
) -> None:
    """Answer with `status` and a JSON body (None: empty), dropping what is left of the request body.

    Dropping matters: a connection closed with unread input is reset, and the client never sees why.
    """
    content = b"" if body is None else compact_json(body).encode()
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    lines = [*headers, (b"content-length", b"%d" % len(content))]
    if body is not None:
        lines.append((b"content-type", b"application/json"))
    await send({"type": f"{kind}.start", "status": status, "headers": lines})
    if scope["type"] == "http":
        await send({"type": f"{kind}.body", "body": content, "more_body": True})
        await _drop_body(receive)
        content = b""
    await send({"type": f"{kind}.body", "body": content, "more_body": False})


async def _drop_body(receive: Receive) -> None:
    with trio.move_on_after(REFUSED_BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] != "http.request" or not message.get("more_body", False):
                return
