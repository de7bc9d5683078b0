"""Every address of the server: the right that it needs, and what a body may hold that is sent to it.

An address has one spelling, byte for byte as it stands in the request: with a second slash, a letter encoded,
a dot segment, another case or a slash at the end it is none, and nobody is asked for a token (404). So what
is admitted and what serves cannot read one request in two ways. What is not listed here is not served.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from attrs import frozen

from lithos.core.limits import JSON_VALUES
from lithos.core.principals import Rights
from lithos.front.server.limits import FORM_BYTES, FORM_FIELDS, IMPORT_VALUES

#: A segment of a page's address: encoded is what may not stand as it is, in capitals, and no letter or digit.
_ENCODED: Final = r"%(?!2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])[0-9A-F]{2}"
_SEGMENT: Final = rf"/(?!\.\.?(?:/|\Z))(?:[^/\\%]++|{_ENCODED})++"
_PAGE: Final = re.compile(rf"/console(?:{_SEGMENT})++")


@frozen
class Address:
    """What is asked of a request for one address.

    `needs` is the right, None where no token is needed. The console asks for its token itself, by its pages.
    """

    needs: Rights | None = "read"
    is_console: bool = False
    #: Browsers give their token in the query, as they can set no header.
    takes_query_token: bool = False
    #: Bytes of a body; None for those of every body.
    most_bytes: int | None = None
    #: Values of JSON, of the console's forms fields, that a body may hold.
    most_values: int = JSON_VALUES


_ADMIN: Final = Address("admin")
_STREAM: Final = Address(takes_query_token=True)
_CONSOLE: Final = Address(None, is_console=True, most_bytes=FORM_BYTES, most_values=FORM_FIELDS)
#: MCP answers every token with the tools that it may call; the console's pages ask for more themselves.
ADDRESSES: Final[Mapping[str, Address]] = MappingProxyType(
    {
        "/health": Address(None),
        "/mcp": Address(),
        "/mcp/": Address(),
        "/sse": Address(),
        "/messages": Address(),
        "/messages/": Address(),
        "/events": _STREAM,
        "/events/ws": _STREAM,
        "/metrics": _ADMIN,
        "/audit": _ADMIN,
        "/reconcile": _ADMIN,
        "/import": Address("admin", most_values=IMPORT_VALUES),
        "/": _CONSOLE,
        "/console": _CONSOLE,
        "/console/": _CONSOLE,
    }
)


def find_address(path: str, *, console: bool) -> Address | None:
    """The address that a path is, as it was sent; None for what is no address, or no spelling of one.

    Which pages there are below `/console/` the console knows; without it there is none.
    """
    found = ADDRESSES.get(path)
    if found is None and console and _PAGE.fullmatch(path) and _is_utf8(path):
        return _CONSOLE
    return found if found is None or console or not found.is_console else None


def _is_utf8(path: str) -> bool:
    """Whether what is encoded is text; else different bytes would read as the same."""
    try:
        unquote(path, errors="strict")
    except UnicodeDecodeError:
        return False
    return True
