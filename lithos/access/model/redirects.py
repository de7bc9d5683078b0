"""Redirect URIs: the URIs that a client may register, and the match of a request with these URIs.

URIs are compared byte for byte (RFC 9700 §4.1). For loopback URIs the port is ignored (RFC 8252 §7.3),
because programs listen on any free port.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import SplitResult, urlencode, urlsplit

#: Maximum characters of a URI, and maximum number of URIs per client.
LONGEST_URI: Final = 1_000
MOST_URIS: Final = 10
#: Schemes that start no application on the machine of the browser.
_NO_APPLICATION: Final = frozenset({
    "about", "blob", "chrome", "data", "file", "filesystem", "ftp", "gopher", "http", "https", "intent",
    "javascript", "mailto", "sms", "tel", "vbscript", "view-source", "ws", "wss",
})  # fmt: skip
#: Allowed characters of a URI. Control characters, blanks, quotes, backslashes, angle brackets and fragments
#: are not allowed.
_TEXT: Final = re.compile(r"[a-z][a-z0-9+.-]*:[!$%&'()*+,./0-9:;=?@A-Z\[\]_a-z~-]+")
_LOOPBACK: Final = frozenset({"127.0.0.1", "[::1]", "localhost"})
_LOOPBACK_URI: Final = re.compile(
    r"(?P<host>http://(?:127\.0\.0\.1|\[::1\]|localhost))(?::[0-9]{1,5})?(?P<rest>(?:[/?].*)?)"
)
#: A host, with or without a port, that browsers and this program parse in the same way.
_AUTHORITY: Final = re.compile(
    r"(?P<host>[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[::1\])(?::[0-9]{1,5})?"
)


def check_redirect(uri: object) -> str:
    """Return a valid redirect URI. Raises `ValueError` with the reason, but without the URI."""
    if not isinstance(uri, str) or len(uri) > LONGEST_URI or not _TEXT.fullmatch(uri):
        raise ValueError(
            f"a redirect URI must be an absolute URI of at most {LONGEST_URI} ASCII characters "
            "without fragment, with its scheme in lower case"
        )
    parts = _split(uri)
    if parts.scheme in ("http", "https"):
        found = _AUTHORITY.fullmatch(parts.netloc)
        if found is None:
            raise ValueError("a redirect URI must name a host in lower case, without user or password")
        if parts.scheme == "http" and found["host"] not in _LOOPBACK:
            raise ValueError("a redirect URI must use https, except for 127.0.0.1, [::1] and localhost")
    elif parts.scheme in _NO_APPLICATION:
        raise ValueError(f"a redirect URI must not have the scheme {parts.scheme}")
    elif "@" in parts.netloc:
        raise ValueError("a redirect URI must not contain a user or password")
    return uri


def check_redirects(uris: object) -> tuple[str, ...]:
    """Return a client's valid redirect URIs. Raises `ValueError`."""
    if not isinstance(uris, list) or not 1 <= len(uris) <= MOST_URIS:
        raise ValueError(f"redirect_uris must be a list of 1 to {MOST_URIS} redirect URIs")
    return tuple(check_redirect(uri) for uri in uris)


def is_known(uri: str, known: Iterable[str]) -> bool:
    """Return whether a client with these `known` redirect URIs may get its response at `uri`."""
    asked = _without_port(uri)
    return any(uri == one or (asked is not None and asked == _without_port(one)) for one in known)


def with_answer(uri: str, answer: Mapping[str, str]) -> str:
    """Return the redirect URI with the parameters of the response."""
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(answer)}"


def place_of(uri: str) -> str:
    """Return the target of a response, for display to people and for the policy of a page.

    The target is an origin, or a scheme with a colon.
    """
    parts = _split(uri)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def _without_port(uri: str) -> str | None:
    """Return a loopback URI without its port, or None for any other URI."""
    found = _LOOPBACK_URI.fullmatch(uri) if _TEXT.fullmatch(uri) else None
    return None if found is None else f"{found['host']}{found['rest']}"


def _split(uri: str) -> SplitResult:
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        raise ValueError("a redirect URI must have a valid host and port") from None
    return parts
