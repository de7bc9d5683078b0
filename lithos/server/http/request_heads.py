"""Checks of request heads that h11 or Hypercorn would wrongly accept.

The checks prevent request smuggling (RFC 9112). h11 checks the size of a head only while it waits for more
bytes. If a request has both a length and chunks, h11 uses the chunks, and it joins folded lines. If a proxy
reads such a request differently, one client can add bytes to the request of another client. Hypercorn would
also switch to HTTP/2, and it would unpack compressed WebSocket messages of any size.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

import h11

from lithos.server.http.limits import HEAD_BYTES
from lithos.server.http.ports import Scope

BAD_REQUEST, HEAD_TOO_LARGE, VERSION_NOT_SUPPORTED = 400, 431, 505
#: End of a request head, defined as in h11.
HEAD_END: Final = re.compile(rb"\n\r?\n")
_FOLDED: Final = re.compile(rb"\n[ \t]")
_OTHER_VERSION: Final = re.compile(rb"[^\n]* HTTP/(?!1\.[01]\r?\n)[0-9]\.[0-9]\r?\n")
#: Handshake fields with bytes that Hypercorn cannot process.
_UNREADABLE: Final = re.compile(rb"(?im)^(?:connection|sec-websocket-[a-z]*):[^\n]*[\x80-\xff]")
#: Names of header fields with offers that the server ignores.
_OFFER: Final = re.compile(rb"(?im)^(?:upgrade(?=:[^\n]*h2c)|sec-websocket-extensions)(?=:)")
_ABSOLUTE: Final = re.compile(rb"(?i:https?)://(?P<host>[^/?#]+)(?P<path>/[^?#]*)?")


def fault_of(head: bytes) -> int | None:
    """Return the status with which a complete head is refused, or None if Hypercorn may read the head."""
    if len(head) > HEAD_BYTES:
        return HEAD_TOO_LARGE
    if _OTHER_VERSION.match(head):
        return VERSION_NOT_SUPPORTED
    return BAD_REQUEST if _FOLDED.search(head) or _UNREADABLE.search(head) else None


def without_offers(head: bytes) -> bytes:
    """Return `head` without offers of HTTP/2 and compression. A server may ignore such offers."""
    return _OFFER.sub(b"x-ignored", head)


def correct_scope(scope: Scope) -> bool:
    """Remove the host from the path in `scope`, if the path has one.

    Return False if the request must be refused.
    """
    lengths = {name for name, _ in scope["headers"]} & {b"transfer-encoding", b"content-length"}
    if len(lengths) == 2 or (lengths and scope["type"] == "websocket"):
        return False
    if b"transfer-encoding" in lengths and scope["http_version"] == "1.0":
        return False
    raw_path: bytes = scope["raw_path"]
    if raw_path.startswith(b"/") or raw_path == b"*":
        return True
    # A request target may also contain the host (RFC 9112, 3.2.2). All later layers use only its path.
    absolute = _ABSOLUTE.fullmatch(raw_path)
    hosts = {value.lower() for name, value in scope["headers"] if name == b"host"}
    if absolute is None or absolute["host"].lower() not in hosts:
        return False
    scope["raw_path"] = absolute["path"] or b"/"
    scope["path"] = unquote(scope["raw_path"].decode("ascii"))
    return True


def body_length(scope: Scope) -> int | None:
    """Return the length of a request body in bytes, or None for a chunked body."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value)
        if name == b"transfer-encoding":
            return None
    return 0


class Chunks:
    """Chunked body. h11 finds its end."""

    def __init__(self) -> None:
        self._reader = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._reader.receive_data(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        self._reader.next_event()

    def surplus(self, data: bytes) -> int | None:
        """Return the number of bytes in `data` after the end of the body, or None if the body continues."""
        self._reader.receive_data(data)
        while True:
            try:
                event = self._reader.next_event()
            except h11.RemoteProtocolError:
                return 0  # h11 within Hypercorn refuses the same bytes
            if isinstance(event, h11.EndOfMessage):
                return len(self._reader.trailing_data[0])
            if event is h11.NEED_DATA:
                return None
