"""Checks of the frames that WebSocket clients send. They run before Hypercorn reads the same bytes.

When a frame breaks the protocol, Hypercorn closes the connection without a message. It continues to collect a
message that is too large, and it never checks for a pong.
"""

from __future__ import annotations

from typing import Final

from attrs import define, field
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import CloseConnection, Message, Pong
from wsproto.frame_protocol import CloseReason

from lithos.server.http.limits import MESSAGE_BYTES

PING: Final = b"\x89\x00"


@define
class Checked:
    """Result of a check: frames to pass on, final close frame to send, and whether reading has ended."""

    passed: bytes = b""
    close: bytes = b""
    is_over: bool = False


@define(eq=False)
class SocketFrames:
    """Frame checker for one WebSocket client."""

    has_ponged: bool = True
    _frames: Connection = field(factory=lambda: Connection(ConnectionType.SERVER))
    _length: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether neither side has begun to close the WebSocket."""
        return self._frames.state is ConnectionState.OPEN

    @property
    def _is_closing(self) -> bool:
        """Return whether the client has begun to close the WebSocket. Hypercorn answers its close frame."""
        return self._frames.state is ConnectionState.REMOTE_CLOSING

    def check(self, data: bytes) -> Checked:
        """Check received bytes and return the frames to pass on.

        After a message that is too large, all further frames are discarded until the client closes.
        """
        checked = Checked(data if self.is_open else b"")
        if self._is_closing:
            return checked
        self._frames.receive_data(data)
        for event in self._frames.events():
            if isinstance(event, Pong):
                self.has_ponged = True
            elif isinstance(event, Message) and self.is_open:
                self._length += len(event.data)
                if self._length > MESSAGE_BYTES:
                    checked.close = self._close(CloseReason.MESSAGE_TOO_BIG)
                self._length = 0 if event.message_finished else self._length
            elif isinstance(event, CloseConnection):
                if not self._is_closing:
                    checked.is_over = True  # a reply to our close frame, or a protocol error
                    checked.close = checked.close or (self._close(event.code) if self.is_open else b"")
                break
        return checked

    def _close(self, code: int) -> bytes:
        return self._frames.send(CloseConnection(code))
