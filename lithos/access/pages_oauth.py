"""OAuth over HTTP, as plain ASGI applications.

Each endpoint is one small function. Parsing and error handling are shared.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from html import escape
from math import ceil
from typing import Any, Final

import trio
from attrs import frozen

from lithos.access.model.requests import SCOPES, OAuthRefused, read_parameters
from lithos.access.service.authorization import AuthorizationServer
from lithos.kernel.log import get_logger
from lithos.server.http.access import ISSUER, RESOURCE
from lithos.server.http.admissions import WrongTokens
from lithos.server.http.ports import AsgiApp, Header, Message, Receive, Scope, Send, answer

log = get_logger("lithos.oauth")

_UNKEPT: Final[tuple[Header, ...]] = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))
_KEPT: Final[tuple[Header, ...]] = ((b"cache-control", b"max-age=300"),)
#: Headers of the page that forwards to consent. The page loads nothing, allows no frames, and sends no
#: referrer.
_LEADING: Final[tuple[Header, ...]] = (
    *_UNKEPT,
    (b"content-type", b"text/html; charset=utf-8"),
    (
        b"content-security-policy",
        b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
CONSENT: Final = "/console/consent"

#: Function that handles a request body from a client address. It returns None for an empty response.
Act = Callable[[bytes, str], Awaitable[tuple[int, Mapping[str, Any] | None]]]


def resource_apps(public_url: str, issuer: str) -> dict[str, AsgiApp]:
    """Return the endpoints with the metadata of the server as a resource (RFC 9728)."""
    return {
        f"{RESOURCE}{path}": _telling(
            {
                "resource": f"{public_url}{path}",
                "authorization_servers": [issuer],
                "scopes_supported": list(SCOPES),
                "bearer_methods_supported": ["header"],
                "resource_name": "Lithos",
            }
        )
        for path in ("", "/mcp", "/sse")
    }


def issuer_metadata(address: str) -> dict[str, Any]:
    """Return the metadata of the server as an authorization server (RFC 8414)."""
    return {
        "issuer": address,
        "authorization_endpoint": f"{address}/oauth/authorize",
        "token_endpoint": f"{address}/oauth/token",
        "registration_endpoint": f"{address}/oauth/register",
        "revocation_endpoint": f"{address}/oauth/revoke",
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }


@frozen
class OAuthEndpoints:
    """Endpoints of Lithos's own authorization server. `rejected` is called with one word for each refusal."""

    server: AuthorizationServer
    wrong_tokens: WrongTokens
    rejected: Callable[[str], None]

    @property
    def apps(self) -> dict[str, AsgiApp]:
        """Return the endpoints, by path."""
        return {
            ISSUER: _telling(issuer_metadata(self.server.address)),
            "/oauth/authorize": _lead_to_consent,
            "/oauth/register": self._taking(self._register, "application/json"),
            "/oauth/token": self._taking(self._issue, "application/x-www-form-urlencoded"),
            "/oauth/revoke": self._taking(self._revoke, "application/x-www-form-urlencoded"),
        }

    async def _register(self, body: bytes, address: str) -> tuple[int, Mapping[str, Any]]:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            raise OAuthRefused("invalid_client_metadata", "The body is not valid JSON.") from None
        return 201, await self.server.register(document, address)

    async def _issue(self, body: bytes, address: str) -> tuple[int, Mapping[str, Any]]:
        return 200, await self.server.issue(_form_of(body))

    async def _revoke(self, body: bytes, address: str) -> tuple[int, None]:
        await self.server.revoke(_form_of(body))
        return 200, None

    def _taking(self, act: Act, kind: str) -> AsgiApp:
        """Return an endpoint that accepts POST requests with one content type."""

        async def take(scope: Scope, receive: Receive, send: Send) -> None:
            address, *_ = scope.get("client") or ("",)
            headers, unread = _UNKEPT, receive
            try:
                body = await _body_of(scope, receive, kind)
                unread = _no_more
                status, told = await act(body, str(address))
            except OAuthRefused as refusal:
                status, more = self._weigh(refusal, str(address))
                told, headers = (
                    {"error": refusal.error, "error_description": refusal.description},
                    (*headers, *more),
                )
                self.rejected("oauth")
                log.warning(
                    "oauth refused", at=scope["path"], error=refusal.error, reason=refusal.description
                )
            await answer(scope, unread, send, status, told, headers=headers)

        return take

    def _weigh(self, refusal: OAuthRefused, address: str) -> tuple[int, tuple[Header, ...]]:
        """Return the status and headers for a refusal.

        The status is 429 if an address has sent too many wrong codes or tokens.
        """
        if refusal.status == 405:
            return 405, ((b"allow", b"POST"),)
        if refusal.status == 429:
            return 429, ((b"retry-after", b"3600"),)
        if refusal.error != "invalid_grant":
            return refusal.status, ()
        seconds = self.wrong_tokens.note(address, trio.current_time())
        return (429, ((b"retry-after", b"%d" % ceil(seconds)),)) if seconds else (refusal.status, ())


async def _body_of(scope: Scope, receive: Receive, kind: str) -> bytes:
    """Return the body of a POST. Raises `OAuthRefused`."""
    if scope["method"] != "POST":
        raise OAuthRefused("invalid_request", "Send POST.", 405)
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    if len(kinds) != 1 or kinds[0].decode("latin-1").partition(";")[0].strip().lower() != kind:
        raise OAuthRefused("invalid_request", f"Send the body as {kind}.")
    body: bytes = (await receive()).get("body", b"")
    return body


async def _no_more() -> Message:
    """End the request after its body was read. Waiting for further messages would delay the response."""
    return {"type": "http.request", "body": b"", "more_body": False}


def _form_of(body: bytes) -> dict[str, str]:
    try:
        return read_parameters(body.decode())
    except UnicodeDecodeError:
        raise OAuthRefused("invalid_request", "The form is not valid UTF-8.") from None


def _telling(document: Mapping[str, Any]) -> AsgiApp:
    """Return an endpoint that answers GET requests with a fixed document."""

    async def tell(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD"):
            await answer(scope, receive, send, 200, document, headers=_KEPT)
        else:
            refusal = {"error": "method_not_allowed"}
            await answer(scope, receive, send, 405, refusal, headers=[(b"allow", b"GET, HEAD")])

    return tell


async def _lead_to_consent(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve a page that forwards to the console, so that browsers send the session cookie.

    Browsers do not send the cookie if another site forwards to the console, even through a redirect.
    """
    if scope["method"] not in ("GET", "HEAD"):
        refusal = {"error": "method_not_allowed"}
        await answer(scope, receive, send, 405, refusal, headers=[(b"allow", b"GET, HEAD")])
        return
    query: bytes = scope["query_string"]
    place = escape(f"{CONSENT}?{query.decode('latin-1')}")
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Lithos</title>'
        f'<meta http-equiv="refresh" content="0; url={place}"></head>'
        f'<body><p><a href="{place}">Go on to the console of Lithos</a></p></body></html>'
    ).encode("ascii", "xmlcharrefreplace")
    head = [*_LEADING, (b"content-length", b"%d" % len(page))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else page})
