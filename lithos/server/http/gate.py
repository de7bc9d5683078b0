"""Gate in front of all endpoints.

The gate checks access, limits bodies and adds CORS headers, for HTTP and WebSocket.

The application sees a request only after the gate has read its whole body. The size of the body is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil
from typing import Final

import trio
from attrs import evolve

from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.limits import ValueCount
from lithos.kernel.values.principals import Principal
from lithos.kernel.values.projects import PROJECT_HEADER, SESSION_HEADER, normalise_project
from lithos.server.http.access import (
    AccessPolicy,
    AdmittedRequest,
    Refusal,
    RequestHead,
    RouteAccess,
    decide,
    is_host,
    presented_tokens,
    without_query_token,
)
from lithos.server.http.admissions import Admissions, WrongTokens
from lithos.server.http.limits import BODY_PATIENCE
from lithos.server.http.ports import AsgiApp, Header, Message, Receive, Scope, Send, answer, ignore_rejection

log = get_logger("lithos.front.gate")

_TOO_MANY: Final = (
    "The request contains more than {:,} JSON values (counted as commas and opening brackets "
    "outside strings). No call needs that many. Split the request; a string counts as one value."
)


class BodyTooLarge(Exception):
    """The body has more bytes or values than the address accepts. The message says what to do."""


class BodyStalled(Exception):
    """The client sent no part of the body for more than `BODY_PATIENCE` seconds."""


class BodyCutShort(Exception):
    """The client disconnected before the end of the body. No response can be sent."""


def announces_body(scope: Scope) -> bool:
    """Return whether the request head announces a request body."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )


def announced_length(scope: Scope) -> int:
    """Return the value of Content-Length, or 0 for a chunked body."""
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(lengths[0]) if lengths and lengths[0].isdigit() else 0


async def read_body(scope: Scope, receive: Receive, limit: int, address: RouteAccess) -> bytes:
    """Return the whole request body.

    `limit` is its maximum size in bytes, and `address` limits the number of values.

    Values are counted while the body arrives, because parsing too many values would block the event loop.
    Raises `BodyTooLarge` as early as possible. Also raises `BodyStalled` and `BodyCutShort`.
    """
    too_large = (
        f"The request body is larger than {limit} bytes. Send less at once. The size limit of notes is "
        "storage.max_content_size_bytes."
    )
    if announced_length(scope) > limit:
        raise BodyTooLarge(too_large)
    body, counted, most = bytearray(), 0, address.most_values
    values = ValueCount(most)
    while True:
        message = await _next_part(receive)
        body += message.get("body", b"")
        if len(body) > limit:
            raise BodyTooLarge(too_large)
        if address.is_console:
            if body.count(b"&") >= most:
                raise BodyTooLarge(
                    f"The form has more than {most:,} fields, which is more than any page has."
                )
        elif len(body) > most:  # a shorter body cannot contain too many values
            if values.exceeds(bytes(body[counted:])):
                raise BodyTooLarge(_TOO_MANY.format(most))
            counted = len(body)
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
    """Return a `receive` function that returns `body` as one message, then the server's messages."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class Gate:
    """ASGI application that admits requests to `app` or refuses them.

    The scope of an admitted request has a `Principal` under `lithos.principal`. It is None if no token was
    needed or sent (`/health`, the console). `rejected` is called with one word for each refusal:
    `forbidden_host`, `forbidden_origin`, `unauthorized`, `too_many_wrong_tokens`, `forbidden`,
    `body_too_large` or `body_stalled`.
    """

    def __init__(
        self,
        app: AsgiApp,
        policy: AccessPolicy,
        max_body_bytes: int,
        rejected: Callable[[str], None] = ignore_rejection,
        wrong_tokens: WrongTokens | None = None,
    ) -> None:
        """Create a gate. The console's login uses the same `wrong_tokens`."""
        self._app = app
        self._policy = policy
        self._max_body_bytes = max_body_bytes
        self._rejected = rejected
        self._admissions = Admissions(policy.keyring)
        self._wrong_tokens = WrongTokens() if wrong_tokens is None else wrong_tokens

    async def run(self) -> None:
        """End the streams of tokens that become invalid. Runs until cancelled."""
        await self._admissions.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or WebSocket."""
        head = read_head(scope)
        if (foreign := self._policy.keyring.foreign) is not None:
            for token in presented_tokens(head, in_query=False):
                await foreign.prepare(token)
        decision = decide(self._policy, head)
        if isinstance(decision, Refusal):
            decision = self._slow_down(decision, scope) if decision.guessed else decision
            if decision.reason not in ("preflight", "not_found"):
                self._rejected(decision.reason)
            await answer(scope, receive, send, decision.status, decision.body, headers=decision.headers)
        else:
            with self._admissions.entered(scope, _from_project(decision.principal, scope)):
                await self._admit(decision, scope, receive, send)

    def _slow_down(self, refusal: Refusal, scope: Scope) -> Refusal:
        """Return `refusal`, or a refusal with status 429 if the address has sent too many wrong tokens."""
        address, *_ = scope.get("client") or ("",)
        seconds = self._wrong_tokens.note(address, trio.current_time())
        if not seconds:
            return refusal
        message = (
            "Too many wrong tokens came from this address. Correct the token; a valid token always passes."
        )
        return evolve(
            refusal,
            status=429,
            reason="too_many_wrong_tokens",
            body={"error": "too_many_wrong_tokens", "message": message},
            headers=(*refusal.headers, (b"retry-after", b"%d" % ceil(seconds))),
        )

    async def _admit(self, passage: AdmittedRequest, scope: Scope, receive: Receive, send: Send) -> None:
        scope["headers"] = _with_readable_host(scope["headers"])
        scope["query_string"] = without_query_token(scope["query_string"])
        send = _adding(passage.headers, send)
        if scope["type"] != "http" or not announces_body(scope):
            await self._app(scope, receive, send)
            return
        address, most = passage.address, self._max_body_bytes
        try:
            body = await read_body(scope, receive, min(most, address.most_bytes or most), address)
        except BodyTooLarge as refusal:
            self._rejected("body_too_large")
            too_large = {"error": "body_too_large", "message": str(refusal)}
            await answer(scope, receive, send, 413, too_large)
        except BodyStalled:
            self._rejected("body_stalled")
            stalled = {
                "error": "request_timeout",
                "message": "The rest of the request body did not arrive in time. Send the request again.",
            }
            await answer(scope, receive, send, 408, stalled)
        except BodyCutShort:
            return
        else:
            await self._app(scope, replaying(body, receive), send)


def read_head(scope: Scope) -> RequestHead:
    """Return the parts of the request head that access control reads, from an ASGI scope."""

    def values(wanted: bytes) -> tuple[str, ...]:
        return tuple(value.decode("latin-1") for name, value in scope["headers"] if name == wanted)

    return RequestHead(
        path=scope["raw_path"].decode("ascii"),
        method=scope.get("method", "GET"),
        hosts=values(b"host"),
        origins=values(b"origin"),
        authorizations=values(b"authorization"),
        query=scope["query_string"],
        asks_method=next(iter(values(b"access-control-request-method")), None),
        asks_headers=next(iter(values(b"access-control-request-headers")), None),
        asks_private_network=values(b"access-control-request-private-network") == ("true",),
        fetch_site=next(iter(values(b"sec-fetch-site")), None),
    )


def _with_readable_host(headers: Iterable[Header]) -> list[Header]:
    """Return the headers with `localhost` in place of an invalid Host.

    The application could not read such a Host.
    """
    return [
        (name, value if name != b"host" or is_host(value.decode("latin-1")) else b"localhost")
        for name, value in headers
    ]


def _adding(headers: tuple[Header, ...], send: Send) -> Send:
    if not headers:
        return send

    async def adding(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return adding


#: Maximum number of characters of a session id.
_LONGEST_SESSION: Final = 1_000


def _from_project(principal: Principal | None, scope: Scope) -> Principal | None:
    """Return the principal with the project and the session that the request names.

    A header that names no project is ignored, because a hook or a proxy must not make a call fail.
    """
    if principal is None:
        return None
    given = {name: value.decode("utf-8", "replace") for name, value in scope["headers"] if name in _TOLD}
    if not given:
        return principal
    session = given.get(SESSION_HEADER, "").strip()
    project = None
    try:
        project = normalise_project(given.get(PROJECT_HEADER, ""))
    except InvalidInput as problem:
        log.debug("header ignored", header="Lithos-Project", reason=problem.message)
    return evolve(principal, project=project, session=session[:_LONGEST_SESSION] or None)


_TOLD: Final = frozenset((PROJECT_HEADER, SESSION_HEADER))
