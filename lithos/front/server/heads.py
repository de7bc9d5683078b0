"""Strict request heads against request smuggling: what h11 accepts and this server does not (RFC 9112).

h11 looks at the length of a head only while it waits for more of it, prefers chunks where a length was
given too, and joins folded lines. Proxies that read such requests in another way than the server are
how one client gets its bytes into the request of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import h11

from lithos.front.server.limits import HEAD_BYTES

BAD_REQUEST, HEAD_TOO_LARGE, VERSION_NOT_SUPPORTED = 400, 431, 505
_FOLDED: Final = re.compile(rb"\n[ \t]")
_ABSOLUTE: Final = re.compile(rb"(?i:https?)://(?P<host>[^/?#]+)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?")
_VERSIONS: Final = frozenset({b"1.0", b"1.1"})


class StrictConnection(h11.Connection):
    """The server's side of a connection.

    `refused` is told once, with the status, what is not taken; `is_answering` says whether a request is
    still being served.
    """

    def __init__(self, refused: Callable[[int], None], is_answering: Callable[[], bool]) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._told = refused
        self._is_answering = is_answering
        self._fault: h11.RemoteProtocolError | None = None

    @property
    def has_refused(self) -> bool:
        """Whether the client was told that its request is wrong; nothing more is read from it."""
        return self._fault is not None

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next event of the client. Raises `h11.RemoteProtocolError`, then again and again."""
        if self._fault is not None:
            raise self._fault
        before = self.trailing_data[0] if self.their_state is h11.IDLE else b""
        try:
            event = super().next_event()
            if isinstance(event, h11.Request):
                _check(event, before[: len(before) - len(self.trailing_data[0])])
        except h11.RemoteProtocolError as fault:
            self._fault = fault
            if not self.trailing_data[1]:  # else the client just left
                self._told(fault.error_status_hint)
            if self._is_answering() and self.our_state is not h11.SEND_RESPONSE:
                return h11.PAUSED  # the answer on its way is finished first
            raise
        return event


def _check(request: h11.Request, head: bytes) -> None:
    """Raises `h11.RemoteProtocolError`."""
    if len(head) > HEAD_BYTES:
        raise h11.RemoteProtocolError("the head is too large", HEAD_TOO_LARGE)
    if request.http_version not in _VERSIONS:
        raise h11.RemoteProtocolError("no such version of HTTP/1", VERSION_NOT_SUPPORTED)
    if _FOLDED.search(head):
        raise h11.RemoteProtocolError("a folded line", BAD_REQUEST)
    lengths = {name for name, _ in request.headers} & {b"transfer-encoding", b"content-length"}
    if len(lengths) == 2 or (b"transfer-encoding" in lengths and request.http_version == b"1.0"):
        raise h11.RemoteProtocolError("two ways to tell the length of the body", BAD_REQUEST)
    if path_of(request) is None:
        raise h11.RemoteProtocolError("a target of no resource here", BAD_REQUEST)
    if asks_for_websocket(request) and (lengths or not _is_ascii(request)):
        raise h11.RemoteProtocolError("no handshake of a WebSocket", BAD_REQUEST)


def path_of(request: h11.Request) -> bytes | None:
    """The path and query that a request is for; None when its target is for another host, or for none."""
    target = request.target
    if target.startswith(b"/") or target == b"*":
        return target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None or absolute["host"].lower() not in {
        value.lower() for name, value in request.headers if name == b"host"
    }:
        return None
    return (absolute["path"] or b"/") + (absolute["query"] or b"")


def asks_for_websocket(request: h11.Request) -> bool:
    """Whether a request asks for an upgrade to WebSocket."""
    fields = {name: value.strip().lower() for name, value in request.headers}
    tokens = [token.strip() for token in fields.get(b"connection", b"").split(b",")]
    # Hypercorn takes a method in small letters for the same.
    return (
        request.method.upper() == b"GET" and b"upgrade" in tokens and fields.get(b"upgrade") == b"websocket"
    )


def _is_ascii(request: h11.Request) -> bool:
    """Whether the handshake fields are plain ASCII."""
    return all(
        value.isascii()
        for name, value in request.headers
        if name == b"connection" or name.startswith(b"sec-websocket-")
    )
