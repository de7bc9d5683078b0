"""One spelling per source address, so that a source is stored once (notes spec, section 8)."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from lithos.core.errors import InvalidInput

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_TRACKING_KEYS: Final = frozenset(
    {"utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "fbclid"}
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NOT_IN_HOST: Final = re.compile(r"[\s\\<>\"^`{|}]")
_SPACE: Final = re.compile(r"\s")


def normalise_url(url: str) -> str:
    """Return the stored form of an `http` or `https` address; raise `InvalidInput` for anything else.

    Idempotent: a stored address is its own stored form.
    """
    try:
        parts = _split(url.strip())
        host, port = _host(parts), parts.port
    except ValueError:
        raise InvalidInput(
            f"source_url {url[:200]!r} is no http or https address; "
            "give one like 'https://example.org/page' or leave it out"
        ) from None
    address = f"{parts.scheme}://{host}"
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        address += f":{port}"
    query = _query(parts.query)
    return address + _path(parts.path) + (f"?{query}" if query else "")


def host_of(url: str) -> str:
    """Return the host of a stored address, without port and in lower case."""
    place = url.partition("://")[2].partition("/")[0].partition("?")[0].lower()
    return place.partition("]")[0] + "]" if place.startswith("[") else place.partition(":")[0]


def _split(url: str) -> SplitResult:
    url.encode()  # lone surrogates could not be stored
    if _CONTROL.search(url):
        raise ValueError("control character")
    parts = urlsplit(url)
    if parts.scheme not in _DEFAULT_PORTS:
        raise ValueError("scheme")
    return parts


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if "[" in parts.netloc.rpartition("@")[2]:
        IPv6Address(host)
        return f"[{host}]"
    if _NOT_IN_HOST.search(host) or not any(character.isalnum() for character in host):
        raise ValueError("host")
    return host


def _path(path: str) -> str:
    """Drop trailing slashes and `;params`; what follows a dropped one may end in another."""
    segments = path.split("/")
    while segments:
        last = segments[-1].partition(";")[0]
        if last:
            segments[-1] = last
            break
        segments.pop()
    return _SPACE.sub(lambda space: quote(space[0]), "/".join(segments))


def _query(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
    kept = sorted((pair for pair in pairs if pair[0] not in _TRACKING_KEYS), key=lambda pair: pair[0])
    return urlencode(kept, errors="surrogateescape")
