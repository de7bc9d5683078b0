"""The gate in front of everything: access control, body limit, CORS headers, for HTTP and WebSocket."""

from __future__ import annotations

from collections.abc import Callable

from lithos.front.access import (
    AccessPolicy,
    Passage,
    Refusal,
    RequestHead,
    decide,
    without_query_token,
)
from lithos.front.body import (
    BodyCutShort,
    BodyStalled,
    BodyTooLarge,
    announces_body,
    read_body,
    replaying,
)
from lithos.front.ports import AsgiApp, Header, Message, Receive, Scope, Send, ignore_rejection
from lithos.front.replies import answer


class Gate:
    """An ASGI application that admits requests to `app` or refuses them.

    `rejected` is told one word for each refusal: `forbidden_host`, `forbidden_origin`, `unauthorized`,
    `body_too_large` or `body_stalled`.
    """

    def __init__(
        self,
        app: AsgiApp,
        policy: AccessPolicy,
        max_body_bytes: int,
        rejected: Callable[[str], None] = ignore_rejection,
    ) -> None:
        self._app = app
        self._policy = policy
        self._max_body_bytes = max_body_bytes
        self._rejected = rejected

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or WebSocket."""
        decision = decide(self._policy, read_head(scope))
        if isinstance(decision, Refusal):
            if decision.reason != "preflight":
                self._rejected(decision.reason)
            await answer(scope, receive, send, decision.status, decision.body, headers=decision.headers)
        else:
            await self._admit(decision, scope, receive, send)

    async def _admit(self, passage: Passage, scope: Scope, receive: Receive, send: Send) -> None:
        scope["query_string"] = without_query_token(scope["query_string"])
        send = _adding(passage.headers, send)
        if scope["type"] != "http" or not announces_body(scope):
            await self._app(scope, receive, send)
            return
        try:
            body = await read_body(scope, receive, self._max_body_bytes)
        except BodyTooLarge:
            await self._refuse_body(scope, receive, send)
        except BodyStalled:
            self._rejected("body_stalled")
            stalled = {
                "error": "request_timeout",
                "message": "The request body stopped arriving; send it again.",
            }
            await answer(scope, receive, send, 408, stalled)
        except BodyCutShort:
            return
        else:
            await self._app(scope, replaying(body, receive), send)

    async def _refuse_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._rejected("body_too_large")
        message = (
            f"The request body is larger than {self._max_body_bytes} bytes. Send less at once, or raise "
            "storage.max_content_size_bytes."
        )
        await answer(scope, receive, send, 413, {"error": "body_too_large", "message": message})


def read_head(scope: Scope) -> RequestHead:
    """Take the deciding parts from an ASGI scope."""

    def values(wanted: bytes) -> tuple[str, ...]:
        return tuple(value.decode("latin-1") for name, value in scope["headers"] if name == wanted)

    return RequestHead(
        path=scope["path"],
        method=scope.get("method", "GET"),
        hosts=values(b"host"),
        origins=values(b"origin"),
        authorizations=values(b"authorization"),
        query=scope["query_string"],
        asks_method=next(iter(values(b"access-control-request-method")), None),
        asks_headers=next(iter(values(b"access-control-request-headers")), None),
        asks_private_network=values(b"access-control-request-private-network") == ("true",),
    )


def _adding(headers: tuple[Header, ...], send: Send) -> Send:
    if not headers:
        return send

    async def adding(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return adding
