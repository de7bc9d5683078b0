"""Checks of the frames of WebSocket clients, made before Hypercorn reads the same bytes.

Hypercorn ends a connection without a word when a frame breaks the protocol, collects on after a message was
too large, and never checks for a pong.
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
    """The frames to pass on, the close frame to send as the last, and whether nothing more is read."""

    passed: bytes = b""
    close: bytes = b""
    is_over: bool = False


@define(eq=False)
class SocketFrames:
    """The frames of one client."""

    has_ponged: bool = True
    _frames: Connection = field(factory=lambda: Connection(ConnectionType.SERVER))
    _length: int = 0

    @property
    def is_open(self) -> bool:
        """Whether neither side has begun to close."""
        return self._frames.state is ConnectionState.OPEN

    @property
    def _is_closing(self) -> bool:
        """Whether the client began to close, whose frame Hypercorn answers."""
        return self._frames.state is ConnectionState.REMOTE_CLOSING

    def check(self, data: bytes) -> Checked:
        """Check what was received.

        After a message that was too large everything is dropped until the client closes.
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
                    checked.is_over = True  # the answer to a close frame, or not the client's: it sent none
                    checked.close = checked.close or (self._close(event.code) if self.is_open else b"")
                break
        return checked

    def _close(self, code: int) -> bytes:
        return self._frames.send(CloseConnection(code))
