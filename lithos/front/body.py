"""The request body: read whole and bounded before the application sees the request."""

from __future__ import annotations

import trio

from lithos.front.limits import BODY_PATIENCE
from lithos.front.ports import Message, Receive, Scope


class BodyTooLarge(Exception):
    """The body is larger than the limit."""


class BodyStalled(Exception):
    """The body paused for longer than `BODY_PATIENCE`."""


class BodyCutShort(Exception):
    """The client left in the middle of the body; nobody waits for an answer."""


def announces_body(scope: Scope) -> bool:
    """Whether the request head announces a body."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )


def announced_length(scope: Scope) -> int:
    """Return Content-Length, or 0 when the body is chunked."""
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(lengths[0]) if lengths and lengths[0].isdigit() else 0


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the whole body of at most `limit` bytes.

    Raises `BodyTooLarge` (as soon as it is known), `BodyStalled` or `BodyCutShort`.
    """
    if announced_length(scope) > limit:
        raise BodyTooLarge
    body = bytearray()
    while True:
        message = await _next_part(receive)
        body += message.get("body", b"")
        if len(body) > limit:
            raise BodyTooLarge
        if not message.get("more_body", False):
            return bytes(body)


async def _next_part(receive: Receive) -> Message:
    with trio.move_on_after(BODY_PATIENCE):
        message = await receive()
        if message["type"] != "http.request":
            raise BodyCutShort
        return message
    raise BodyStalled


def replaying(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives `body` as one message and then whatever the server sends."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
