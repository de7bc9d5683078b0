"""Access control by address, Host, Origin and bearer token, in this order. Only the request head is read.

The Host check stops DNS rebinding attacks, in which a foreign page reaches a local port under its own host
name. The Origin check stops foreign pages. The token check stops foreign programs. This module does no I/O.

Each address has exactly one valid spelling. A request path with a double slash, an encoded letter, a dot
segment, different case or an extra trailing slash gets status 404 without a token check. Access control and
routing therefore always interpret a request in the same way. Only the paths listed in this module are served.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, unquote

from attrs import Factory, field, frozen

from lithos.kernel.values.limits import JSON_VALUES
from lithos.kernel.values.principals import ANYONE, REMOTE_RIGHTS, Principal, Rights
from lithos.server.http.limits import FORM_BYTES, FORM_FIELDS, IMPORT_VALUES, OAUTH_BYTES
from lithos.server.http.ports import Header
from lithos.server.tools.token_ports import Keyring, OneToken

#: A segment of the address of a page. Reserved characters must be encoded with capital letters. Letters and
#: digits must not be encoded.
_ENCODED: Final = r"%(?!2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])[0-9A-F]{2}"
_SEGMENT: Final = rf"/(?!\.\.?(?:/|\Z))(?:[^/\\%]++|{_ENCODED})++"
_PAGE: Final = re.compile(rf"/console(?:{_SEGMENT})++")


@frozen
class RouteAccess:
    """Access rules for one address.

    `needs` is the required right, or None if the path needs no token. The console checks the tokens for its
    own pages.
    """

    needs: Rights | None = "read"
    is_console: bool = False
    #: Whether the query string may contain the token. Browsers need this for streams, because they cannot set
    #: a header there.
    takes_query_token: bool = False
    #: Maximum size of a body in bytes. None means the general limit.
    most_bytes: int | None = None
    #: Maximum number of values in a body. These are JSON values, or the fields of a console form.
    most_values: int = JSON_VALUES
    #: Whether remote clients request this path before they have a token. Pages of any origin may request it.
    is_oauth: bool = False


_ADMIN: Final = RouteAccess("admin")
_STREAM: Final = RouteAccess(takes_query_token=True)
_CONSOLE: Final = RouteAccess(None, is_console=True, most_bytes=FORM_BYTES, most_values=FORM_FIELDS)
#: `/mcp` accepts every token with the right `read` and offers the tools that the token may call. The
#: console's pages check further rights themselves.
ADDRESSES: Final[Mapping[str, RouteAccess]] = MappingProxyType(
    {
        "/health": RouteAccess(None),
        "/mcp": RouteAccess(),
        "/mcp/": RouteAccess(),
        "/sse": RouteAccess(),
        "/messages": RouteAccess(),
        "/messages/": RouteAccess(),
        "/events": _STREAM,
        "/events/ws": _STREAM,
        "/metrics": RouteAccess("metrics"),
        "/audit": _ADMIN,
        "/reconcile": _ADMIN,
        "/import": RouteAccess("admin", most_values=IMPORT_VALUES),
        "/": _CONSOLE,
        "/console": _CONSOLE,
        "/console/": _CONSOLE,
    }
)


_OAUTH: Final = RouteAccess(None, most_bytes=OAUTH_BYTES, most_values=OAUTH_BYTES, is_oauth=True)
RESOURCE: Final = "/.well-known/oauth-protected-resource"
ISSUER: Final = "/.well-known/oauth-authorization-server"
#: Paths that exist only if `server.public_url` is set. `RESOURCE_ADDRESSES` describe the server as a
#: protected resource. With `OAUTH_ADDRESSES`, the server is its own authorization server.
RESOURCE_ADDRESSES: Final = (RESOURCE, f"{RESOURCE}/mcp", f"{RESOURCE}/sse")
OAUTH_ADDRESSES: Final = (ISSUER, "/oauth/authorize", "/oauth/token", "/oauth/register", "/oauth/revoke")


def find_address(path: str, *, console: bool, oauth: Collection[str] = ()) -> RouteAccess | None:
    """Return the access rules of a path, or None if the path is not an address.

    The path must match exactly as it was sent.

    `console` adds the console pages below `/console/`. `oauth` contains the OAuth paths of this server.
    """
    found = ADDRESSES.get(path)
    if found is None and path in oauth:
        return _OAUTH
    if found is None and console and _PAGE.fullmatch(path) and _is_utf8(path):
        return _CONSOLE
    return found if found is None or console or not found.is_console else None


def _is_utf8(path: str) -> bool:
    """Return whether the percent-encoded bytes of a path are valid UTF-8.

    If the bytes are not valid UTF-8, different bytes could decode to the same text.
    """
    try:
        unquote(path, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


#: Maximum number of cached host names. Clients use only a few names for this server.
MOST_NAMES: Final = 64
_WILDCARDS = frozenset({"", "*", "0.0.0.0", "::"})  # noqa: S104 - named to be recognised, not bound
_LABEL = "[a-z0-9_-]{1,63}"  # an empty or longer label is not valid in a host name
_AUTHORITY = re.compile(
    rf"(?P<name>\[[0-9a-f:.]+\]|{_LABEL}(?:\.{_LABEL})*\.?)(?::(?P<port>[0-9]{{0,5}}))?", re.IGNORECASE
)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@frozen
class AccessPolicy:
    """Settings of access control. `bound_host` is the configured listening address."""

    bound_host: str
    auth_token: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    #: Whether the console is served. Its login page checks the token.
    console: bool = False
    #: All valid tokens. By default this is only `auth_token`.
    keyring: Keyring = Factory(lambda self: OneToken(self.auth_token), takes_self=True)
    #: Whether every request needs a token even if no token is defined. Such a port is for commands of the
    #: same user.
    private: bool = False
    #: The setting `server.public_url`, and the OAuth paths that are served.
    public_url: str | None = None
    oauth: frozenset[str] = frozenset()

    @property
    def is_open(self) -> bool:
        """Return whether requests without a token are admitted."""
        return self.keyring.is_open and not self.private


@frozen
class RequestHead:
    """Parts of a request head that access control reads, in the form in which they were sent.

    A tuple has one entry per header line.
    """

    path: str
    method: str = "GET"
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    authorizations: tuple[str, ...] = field(default=(), repr=False)
    query: bytes = field(default=b"", repr=False)
    asks_method: str | None = None
    asks_headers: str | None = None
    asks_private_network: bool = False
    fetch_site: str | None = None


@frozen
class AdmittedRequest:
    """Admitted request. `headers` are the CORS headers for the response.

    `principal` is None if the path needs no token, the server requires tokens, and the request has no valid
    token.
    """

    address: RouteAccess
    headers: tuple[Header, ...] = ()
    principal: Principal | None = None


@frozen
class Refusal:
    """Refused request. `status` is the HTTP status of the response.

    `reason` is the metrics label. If `body` is None, the response is empty.
    """

    status: int
    reason: str
    body: dict[str, str] | None = None
    headers: tuple[Header, ...] = ()
    #: Whether the request contained a wrong token.
    guessed: bool = False


@frozen
class _Authority:
    name: str
    port: int | None


def decide(policy: AccessPolicy, head: RequestHead) -> AdmittedRequest | Refusal:
    """Admit or refuse one request.

    Requests to `/health` are admitted without Host, Origin and token checks. Console requests are admitted
    without a token check.
    """
    address = find_address(head.path, console=policy.console, oauth=policy.oauth)
    if address is None:
        return Refusal(404, "not_found", {"error": "not_found"})
    console = address.is_console
    open_to_all = address.needs is None and not console and not address.is_oauth
    if not open_to_all and not host_admitted(policy, head.hosts):
        return _forbidden_host(head)
    origin_known = address.is_oauth or all(origin_admitted(policy, origin) for origin in head.origins)
    own_page = console and is_own_page(head, policy.public_url)
    if not open_to_all and not origin_known and not own_page:
        return _forbidden_origin(head)
    cors = _cors_headers(head) if head.origins and origin_known else ()
    if cors and head.method == "OPTIONS" and head.asks_method is not None:
        return Refusal(204, "preflight", None, cors + _preflight_headers(head))
    given = presented_tokens(head, in_query=address.takes_query_token)
    principal = _principal_of(policy, given)
    if address.needs is None:
        return AdmittedRequest(address, cors, principal)
    if principal is None:
        lines = (*cors, (b"www-authenticate", _challenge(policy, head.path, is_wrong=any(given))))
        return Refusal(401, "unauthorized", {"error": "unauthorized"}, lines, guessed=any(given))
    if not principal.may(address.needs):
        if policy.public_url is not None:
            lacking = f'Bearer error="insufficient_scope", scope="{address.needs}"'
            cors = (*cors, (b"www-authenticate", lacking.encode()))
        return _forbidden(principal, address.needs, head.path, cors)
    return AdmittedRequest(address, cors, principal)


def _challenge(policy: AccessPolicy, path: str, *, is_wrong: bool) -> bytes:
    """Return the `WWW-Authenticate` value for a request without a valid token.

    With a public URL, it contains the address at which clients find out where to get a token (RFC 9728).
    """
    if policy.public_url is None:
        return b"Bearer"
    metadata = f"{RESOURCE}{path}"
    if metadata not in RESOURCE_ADDRESSES:
        metadata = RESOURCE
    error = 'error="invalid_token", ' if is_wrong else ""
    scope = " ".join(REMOTE_RIGHTS)
    return f'Bearer {error}resource_metadata="{policy.public_url}{metadata}", scope="{scope}"'.encode()


def is_own_page(head: RequestHead, public_url: str | None = None) -> bool:
    """Return whether a request comes from a page of this server's console.

    A request from a console page gets no CORS headers. The Host must have been admitted before.

    A page of `server.public_url` also belongs to the console, whatever Host a reverse proxy sends.

    A form on a page without a referrer sends the origin `null`, and so does an unknown page. Browsers send
    `Sec-Fetch-Site` with TLS and on this machine, which distinguishes the two cases. Without this header, the
    form's token does.
    """
    for origin in head.origins:
        if origin.strip() == "null":
            if head.fetch_site not in (None, "same-origin"):
                return False
        elif origin != public_url and not is_same_origin(origin, head.hosts):
            return False
    return True


def is_same_origin(origin: str, hosts: Iterable[str]) -> bool:
    """Return whether `origin` has the same host and port as the request."""
    scheme, separator, rest = origin.strip().partition("://")
    given = tuple(hosts)
    if not separator or scheme not in _DEFAULT_PORTS or len(given) != 1:
        return False
    page, asked = _parse_authority(rest), _parse_authority(given[0])
    if page is None or asked is None or page.name != asked.name:
        return False
    usual = _DEFAULT_PORTS[scheme]
    return (page.port or usual) == (asked.port or usual)


def host_admitted(policy: AccessPolicy, hosts: Iterable[str]) -> bool:
    """Return whether the request has exactly one valid Host that is admitted.

    Loopback, the bound address and allowed hosts are admitted.
    """
    if "*" in policy.allowed_hosts:
        return True
    given = tuple(hosts)
    asked = _parse_authority(given[0]) if len(given) == 1 else None
    if asked is None:
        return False
    if _is_loopback(asked.name) or asked.name == _bound_name(policy.bound_host):
        return True
    entries = policy.allowed_hosts
    if policy.public_url is not None:
        entries = (*entries, policy.public_url.partition("://")[2].partition(":")[0])
    allowed = (_parse_authority(entry) or _parse_authority(f"[{entry}]") for entry in entries)
    return any(a is not None and a.name == asked.name and a.port in {None, asked.port} for a in allowed)


def is_host(text: str) -> bool:
    """Return whether the text of a Host header is a valid name or address, with or without a port."""
    return _parse_authority(text) is not None


def origin_admitted(policy: AccessPolicy, origin: str) -> bool:
    """Return whether requests from pages of this origin are allowed.

    Loopback pages and `server.allowed_origins` are allowed.
    """
    if "*" in policy.allowed_origins:
        return True
    asked = _normal_origin(origin)
    if asked in {_normal_origin(entry) for entry in policy.allowed_origins}:
        return True
    scheme, separator, rest = asked.partition("://")
    authority = _parse_authority(rest) if separator and scheme in _DEFAULT_PORTS else None
    return authority is not None and _is_loopback(authority.name)


def _principal_of(policy: AccessPolicy, given: Iterable[bytes]) -> Principal | None:
    """Return the principal of the request's token.

    Without a valid token, return `ANYONE` if no token is needed, otherwise None.
    """
    found = [policy.keyring.find(token) for token in given]
    return next((each for each in found if each is not None), ANYONE if policy.is_open else None)


def open_bind_warning(policy: AccessPolicy) -> str | None:
    """Return a warning if any program on the network can reach the server without a token, otherwise None."""
    reached = policy.bound_host.strip("[]").lower()
    if not policy.is_open or _is_loopback(_normal_name(reached)):
        return None
    return (
        f"Lithos listens on {policy.bound_host or 'every address'} without a token: everyone who can reach "
        "this port can read and change all notes. Set server.auth_token (LITHOS_AUTH_TOKEN), create tokens "
        "(lithos token create), or listen on 127.0.0.1."
    )


def without_query_token(query: bytes) -> bytes:
    """Return the query string without `access_token`, so that the application cannot log the token."""
    if b"access_token" not in query and b"%" not in query:
        return query
    kept = [part for part in query.split(b"&") if not _is_token_parameter(part)]
    return b"&".join(kept)


def _is_token_parameter(part: bytes) -> bool:
    return any(
        name == "access_token" for name, _ in parse_qsl(part.decode("latin-1"), keep_blank_values=True)
    )


def presented_tokens(head: RequestHead, *, in_query: bool) -> list[bytes]:
    """Return the tokens of a request. With `in_query`, this includes tokens in the query string."""
    given: list[bytes] = []
    if len(head.authorizations) == 1:
        scheme, _, token = head.authorizations[0].strip().partition(" ")
        if scheme.lower() == "bearer":
            given.append(token.strip().encode("latin-1", "replace"))
    if in_query:
        pairs = parse_qsl(head.query.decode("latin-1"))
        given += [value.encode() for name, value in pairs if name == "access_token"]
    return given


def _parse_authority(text: str) -> _Authority | None:
    """Parse `name`, `name:port` or `[v6]:port`.

    Return None for any other text, for example one with user information.
    """
    found = _AUTHORITY.fullmatch(text.strip())
    if found is None:
        return None
    name = _normal_name(found["name"].strip("[]"))
    if found["name"].startswith("[") and ":" not in name:
        return None
    return _Authority(name, int(found["port"]) if found["port"] else None)


@lru_cache(MOST_NAMES)
def _normal_name(name: str) -> str:
    try:
        return ipaddress.ip_address(name).compressed
    except ValueError:
        return name.lower().removesuffix(".")


def _bound_name(bound_host: str) -> str | None:
    name = _normal_name(bound_host.strip("[]"))
    return None if name in _WILDCARDS else name


@lru_cache(MOST_NAMES)
def _is_loopback(name: str) -> bool:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None


def _normal_origin(origin: str) -> str:
    scheme, separator, rest = origin.strip().removesuffix("/").partition("://")
    port = f":{_DEFAULT_PORTS.get(scheme.lower(), '')}"
    return f"{scheme}{separator}{rest.removesuffix(port) if len(port) > 1 else rest}".lower()


def _cors_headers(head: RequestHead) -> tuple[Header, ...]:
    return (
        (b"access-control-allow-origin", head.origins[0].encode("latin-1")),
        (b"access-control-expose-headers", b"WWW-Authenticate"),
        (b"vary", b"Origin"),
    )


def _preflight_headers(head: RequestHead) -> tuple[Header, ...]:
    asked = head.asks_headers or "Authorization, Content-Type"
    headers = (
        (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
        (b"access-control-allow-headers", asked.encode("latin-1")),
        (b"access-control-max-age", b"600"),
    )
    if head.asks_private_network:
        return (*headers, (b"access-control-allow-private-network", b"true"))
    return headers


def _forbidden(principal: Principal, needed: Rights, path: str, cors: tuple[Header, ...]) -> Refusal:
    message = (
        f"The token '{principal.name}' has the right {principal.rights}, but {path} needs "
        f"{needed}. Use a token that has this right, or ask for one (lithos token create --rights "
        f"{needed})."
    )
    return Refusal(403, "forbidden", {"error": "forbidden", "message": message}, cors)


def _forbidden_host(head: RequestHead) -> Refusal:
    asked = ", ".join(head.hosts) or "(none)"
    message = (
        f"This server does not accept the host name {asked}. If the name is right, add it to "
        "server.allowed_hosts (LITHOS_SERVER__ALLOWED_HOSTS)."
    )
    return Refusal(403, "forbidden_host", {"error": "forbidden_host", "message": message})


def _forbidden_origin(head: RequestHead) -> Refusal:
    asked = ", ".join(head.origins) or "(empty)"
    message = (
        f"Pages of {asked} may not use this server. To allow them, add this origin to "
        "server.allowed_origins (LITHOS_SERVER__ALLOWED_ORIGINS)."
    )
    return Refusal(403, "forbidden_origin", {"error": "forbidden_origin", "message": message})
