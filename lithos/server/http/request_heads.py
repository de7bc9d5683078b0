"""Checks of request heads that h11 or Hypercorn would wrongly accept.

The checks prevent request smuggling (RFC 9112). h11 checks the size of a head only while it waits for more
bytes, prefers chunks when a length is sent too, and joins folded lines. A proxy that reads such a request
differently lets one client add bytes to another client's request. Hypercorn would also switch to HTTP/2, and
would unpack compressed WebSocket messages of any size.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

import h11

from lithos.server.http.limits import HEAD_BYTES
from lithos.server.http.ports import Scope

BAD_REQUEST, HEAD_TOO_LARGE, VERSION_NOT_SUPPORTED = 400, 431, 505
#: The end of a head, as h11 finds it.
HEAD_END: Final = re.compile(rb"\n\r?\n")
_FOLDED: Final = re.compile(rb"\n[ \t]")
_OTHER_VERSION: Final = re.compile(rb"[^\n]* HTTP/(?!1\.[01]\r?\n)[0-9]\.[0-9]\r?\n")
#: Handshake fields that make Hypercorn fail.
_UNREADABLE: Final = re.compile(rb"(?im)^(?:connection|sec-websocket-[a-z]*):[^\n]*[\x80-\xff]")
#: Field names of offers that the server ignores.
_OFFER: Final = re.compile(rb"(?im)^(?:upgrade(?=:[^\n]*h2c)|sec-websocket-extensions)(?=:)")
_ABSOLUTE: Final = re.compile(rb"(?i:https?)://(?P<host>[^/?#]+)(?P<path>/[^?#]*)?")


def fault_of(head: bytes) -> int | None:
    """Return the status that refuses a whole head, or None if Hypercorn may read the head."""
    if len(head) > HEAD_BYTES:
        return HEAD_TOO_LARGE
    if _OTHER_VERSION.match(head):
        return VERSION_NOT_SUPPORTED
    return BAD_REQUEST if _FOLDED.search(head) or _UNREADABLE.search(head) else None


def without_offers(head: bytes) -> bytes:
    """Return `head` without offers of HTTP/2 and compression, which servers may ignore."""
    return _OFFER.sub(b"x-ignored", head)


def correct_scope(scope: Scope) -> bool:
    """Remove the host from the path of `scope`. Return False if the request must be refused."""
    lengths = {name for name, _ in scope["headers"]} & {b"transfer-encoding", b"content-length"}
    if len(lengths) == 2 or (lengths and scope["type"] == "websocket"):
        return False
    if b"transfer-encoding" in lengths and scope["http_version"] == "1.0":
        return False
    raw_path: bytes = scope["raw_path"]
    if raw_path.startswith(b"/") or raw_path == b"*":
        return True
    # A target may also name the server (RFC 9112, 3.2.2); all later layers use only its path.
    absolute = _ABSOLUTE.fullmatch(raw_path)
    hosts = {value.lower() for name, value in scope["headers"] if name == b"host"}
    if absolute is None or absolute["host"].lower() not in hosts:
        return False
    scope["raw_path"] = absolute["path"] or b"/"
    scope["path"] = unquote(scope["raw_path"].decode("ascii"))
    return True


def body_length(scope: Scope) -> int | None:
    """Return the length of a request's body in bytes, or None if the body comes in chunks."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value)
        if name == b"transfer-encoding":
            return None
    return 0


class Chunks:
    """A body in chunks, whose end h11 finds."""

    def __init__(self) -> None:
        self._reader = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._reader.receive_data(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        self._reader.next_event()

    def surplus(self, data: bytes) -> int | None:
        """Return how many bytes of `data` follow the body, or None if the body continues."""
        self._reader.receive_data(data)
        while True:
            try:
                event = self._reader.next_event()
            except h11.RemoteProtocolError:
                return 0  # Hypercorn's h11 refuses the same bytes
            if isinstance(event, h11.EndOfMessage):
                return len(self._reader.trailing_data[0])
            if event is h11.NEED_DATA:
                return None
