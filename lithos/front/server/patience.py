"""A client's socket with a deadline for each send, which can be cut at once, and closed without a reset."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

import trio

from lithos.front.server.limits import REFUSED_BYTES, REFUSED_SECONDS, SEND_PATIENCE, SEND_PIECE

MAX_RECEIVE: Final = 2**16


class PatientSocket:
    """A socket stream with bounded sends."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        #: Held while a send waits for its client.
        self.sending = trio.Lock()

    async def receive(self, max_bytes: int = MAX_RECEIVE) -> bytes:
        """Return what the client sends next; empty when it will send no more."""
        while True:
            # Read once it says that there is something: a stream of Trio first tries in vain.
            await trio.lowlevel.wait_readable(self._fileno())
            try:
                data = os.read(self._fileno(), max_bytes)
            except BlockingIOError:
                continue
            except OSError as error:
                self.abort()
                raise trio.BrokenResourceError("the client left") from error
            return data

    def _fileno(self) -> int:
        """The socket's number, of this moment: a closed one is another's soon."""
        number = self._stream.socket.fileno()
        if number < 0:
            raise trio.ClosedResourceError
        return number

    async def send(self, data: bytes) -> None:
        """Send all of `data`, or cut the connection and raise `trio.BrokenResourceError`."""
        sent = 0
        if not self.sending.locked():
            with suppress(OSError):  # a socket takes most answers at once, without others running
                sent = os.write(self._fileno(), data[:SEND_PIECE])
        if sent == len(data):
            return
        async with self.sending:
            view = memoryview(data)
            for start in range(sent, len(view), SEND_PIECE):
                await self._send_piece(view[start : start + SEND_PIECE])

    async def _send_piece(self, piece: memoryview) -> None:
        with trio.move_on_after(SEND_PATIENCE) as patience:
            await self._stream.send_all(piece)
        if patience.cancelled_caught:
            self.abort()
            raise trio.BrokenResourceError("the client stopped reading")

    async def send_eof(self) -> None:
        """Close the sending side."""
        await self._stream.send_eof()

    async def drain(self) -> None:
        """Read and discard input for a moment: closing with unread input would reset the last response."""
        trio.lowlevel.notify_closing(self._fileno())  # Hypercorn reads no more
        dropped = 0
        with trio.move_on_after(REFUSED_SECONDS):
            while dropped < REFUSED_BYTES and (part := await self.receive()):
                dropped += len(part)

    def abort(self) -> None:
        """Close the connection at once; a running send or receive raises `trio.ClosedResourceError`."""
        self._stream.socket.close()
