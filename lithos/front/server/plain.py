"""Plain requests, read past h11 and ASGI, which take some three thousand steps for whatever is asked.

A plain request is a POST as nearly all clients spell it: no query, each field once and on one line, a length,
nothing that changes how its body is read or what becomes of the connection. Nothing is refused here: what is
not plain is None, and h11 reads the same bytes. What is plain h11 takes for the same request
(`tests/front/server/test_plain.py` compares them).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from time import time
from typing import Final
from wsgiref.handlers import format_date_time

from attrs import frozen

from lithos.core.principals import Principal
from lithos.front.server.exchanges import Exchanges
from lithos.front.server.limits import HEAD_BYTES

_HEAD: Final = re.compile(
    rb"POST (/[a-z0-9/-]*) HTTP/1\.1\r\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]++: ?[!-~](?:[ -~]*[!-~])?\r\n)++)\r\n"
)
_FIELD: Final = re.compile(rb"([^:]++): ?([^\r]++)\r\n")
#: Fields of requests that are not plain; `origin`, as a page is answered with fields of its own.
_UNUSUAL: Final = frozenset((b"transfer-encoding", b"expect", b"upgrade", b"origin"))
_MOST_DIGITS: Final = 6
#: Answers a principal's request, given its body, with parts of JSON and 200; None where h11 has to look.
PlainApp = Callable[["PlainRequest", Principal, bytes], Awaitable[list[bytes] | None]]


@frozen
class PlainRequest:
    """The head of a plain request; its body is from `body_at` to `end` of the bytes that it begins."""

    path: str
    fields: Mapping[bytes, bytes]
    body_at: int
    end: int

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return self.end - self.body_at


def read_plain(data: bytes) -> PlainRequest | None:
    """The plain request whose head `data` begins with; None for another, and for a head that is not whole."""
    head = _HEAD.match(data)
    if head is None or head.end() > HEAD_BYTES:
        return None
    lines = _FIELD.findall(head[2])
    fields = {name.lower(): value for name, value in lines}
    length = fields.get(b"content-length", b"")
    if (
        len(fields) != len(lines)
        or b"host" not in fields
        or not length.isdigit()
        or len(length) > _MOST_DIGITS
        or not _UNUSUAL.isdisjoint(fields)
        or fields.get(b"connection", b"keep-alive").lower() != b"keep-alive"
    ):
        return None
    body_at = head.end()
    return PlainRequest(head[1].decode("ascii"), fields, body_at, body_at + int(length))


@frozen
class PlainPath:
    """The plain requests that are served past h11: those to `apps` of whom `admit` lets in.

    They are in flight among `exchanges`.
    """

    apps: Mapping[str, PlainApp]
    admit: Callable[[PlainRequest], Principal | None]
    exchanges: Exchanges

    def find(self, data: bytes) -> tuple[PlainRequest, Principal] | None:
        """The request that `data` begins with, and who sent it; None where h11 has to look."""
        request = read_plain(data)
        if request is None or request.path not in self.apps:
            return None
        principal = self.admit(request)
        return None if principal is None else (request, principal)


def head_of(status: int, length: int) -> bytes:
    """The head of an answer in JSON, as h11 writes those of other requests."""
    date = format_date_time(time()).encode()
    lines = b"content-type: application/json\r\ncontent-length: %d\r\ndate: %s\r\n" % (length, date)
    return b"HTTP/1.1 %d \r\n%s\r\n" % (status, lines)
