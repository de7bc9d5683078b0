"""Parser for requests to the OAuth endpoints. A parameter may occur only once, and errors follow the RFCs."""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from attrs import field, frozen

from lithos.kernel.values.principals import REMOTE_RIGHTS, Rights

#: Maximum number of parameters in a request, and maximum characters of a parameter.
MOST_PARAMETERS: Final = 40
LONGEST_VALUE: Final = 2_000
#: Rights of a token, by the scope that a client requests.
SCOPES: Final = REMOTE_RIGHTS
#: Paths of token resources, relative to the server address. All of them stand for the whole server.
RESOURCE_PATHS: Final = ("", "/mcp", "/sse")
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class OAuthRefused(Exception):
    """Error for a refused request.

    `error` is the code in the RFC, and `description` never quotes a secret.
    """

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.status = status


@frozen
class AuthorizationRequest:
    """A request of a client for consent by a person. `scopes` are in the order of `SCOPES`."""

    client_id: str
    redirect_uri: str
    challenge: str
    scopes: tuple[Rights, ...]
    resource: str
    state: str | None = field(default=None, repr=False)


def read_parameters(text: str) -> dict[str, str]:
    """Return the parameters of a query or form. Empty parameters count as omitted (RFC 6749 §3.1).

    Raises `OAuthRefused` if a parameter is repeated or too long.
    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_PARAMETERS, errors="strict")
    except ValueError:
        raise OAuthRefused(
            "invalid_request", "The request has too many parameters, or is not valid UTF-8."
        ) from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise OAuthRefused("invalid_request", "A parameter is repeated.")
        if len(value) > LONGEST_VALUE:
            raise OAuthRefused("invalid_request", f"A parameter has more than {LONGEST_VALUE} characters.")
        found[name] = value
    return {name: value for name, value in found.items() if value}


def take(given: Mapping[str, str], name: str) -> str:
    """Return a required parameter. Raises `OAuthRefused`."""
    if name not in given:
        raise OAuthRefused("invalid_request", f"The parameter {name} is missing.")
    return given[name]


def read_authorization(given: Mapping[str, str], server: str) -> AuthorizationRequest:
    """Parse a request to `/oauth/authorize`. Its client and redirect URI must already be verified.

    `server` is the address of the server. Raises `OAuthRefused`, and the client gets that error.
    """
    if take(given, "response_type") != "code":
        raise OAuthRefused("unsupported_response_type", "The only supported response_type is code.")
    if given.get("code_challenge_method", "plain") != "S256":
        raise OAuthRefused("invalid_request", "PKCE is required, with code_challenge_method S256.")
    challenge = take(given, "code_challenge")
    if not _CHALLENGE.fullmatch(challenge):
        raise OAuthRefused("invalid_request", "The code_challenge is not an S256 challenge of 43 characters.")
    if "request" in given or "request_uri" in given:
        raise OAuthRefused(
            "request_not_supported", "Pass the parameters directly, without request or request_uri."
        )
    return AuthorizationRequest(
        given["client_id"],
        given["redirect_uri"],
        challenge,
        read_scopes(given.get("scope")),
        read_resource(given.get("resource"), server),
        given.get("state"),
    )


def read_scopes(text: str | None) -> tuple[Rights, ...]:
    """Return the requested scopes, or all scopes if the request names none. Unknown scopes are ignored.

    Raises `OAuthRefused` if the request contains only unknown scopes.
    """
    asked = SCOPES if text is None else tuple(text.split())
    found = tuple(scope for scope in SCOPES if scope in asked)
    if not found:
        raise OAuthRefused("invalid_scope", f"The supported scopes are {' and '.join(SCOPES)}.")
    return found


def read_resource(text: str | None, server: str) -> str:
    """Return the resource of the token (RFC 8707).

    Raises `OAuthRefused` if the resource is not on this server.
    """
    if text is None:
        return server
    if text.removesuffix("/") not in {f"{server}{path}" for path in RESOURCE_PATHS}:
        raise OAuthRefused("invalid_target", f"The resource of this server is {server}/mcp.")
    return text.removesuffix("/")


def is_verified(challenge: str, verifier: str) -> bool:
    """Return whether the sender of a code is the client that started the flow (RFC 7636 §4.6, S256)."""
    if not _VERIFIER.fullmatch(verifier):
        return False
    digest = hashlib.sha256(verifier.encode()).digest()
    return hmac.compare_digest(urlsafe_b64encode(digest).rstrip(b"=").decode(), challenge)


def scope_text(rights: Rights) -> str:
    """Return the scopes of a right for the token response. `write` includes `read`."""
    return " ".join(SCOPES[: SCOPES.index(rights) + 1]) if rights in SCOPES else ""


def most_of(scopes: Iterable[Rights]) -> Rights:
    """Return the smallest right that includes all of these scopes."""
    return max(scopes, key=SCOPES.index)
