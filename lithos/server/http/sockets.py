"""Listening sockets and their errors, and a client socket with a time limit for each send."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from typing import Final

import trio

from lithos.server.http.limits import REFUSED_BYTES, REFUSED_SECONDS, SEND_PATIENCE, SEND_PIECE

BACKLOG: Final = 128
MAX_RECEIVE: Final = 2**16


class CannotListen(Exception):
    """Lithos cannot listen on the address. The message says why and what to do."""


class PortInUse(CannotListen):
    """Another program already listens on the port."""


async def open_listeners(host: str, port: int) -> list[trio.SocketListener]:
    """Open listening sockets on every address of `host`. Raises `PortInUse` or `CannotListen`.

    If `port` is 0, a free port on the first address is used.
    """
    try:
        listeners = await trio.open_tcp_listeners(port, host=host or None, backlog=BACKLOG)
    except OSError as error:
        raise _explain(error, host, port) from error
    if port == 0:
        for further in listeners[1:]:
            await further.aclose()
        del listeners[1:]
    for listener in listeners:
        _notice_vanished_peers(listener.socket)
    return listeners


def _notice_vanished_peers(listener: trio.socket.SocketType) -> None:
    """Enable TCP keep-alive to end connections of clients that have vanished.

    Accepted sockets inherit this option.
    """
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SEND_PATIENCE * 1000))


def _explain(error: OSError, host: str, port: int) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        return PortInUse(
            f"Port {port} on {host} is already in use, perhaps by another Lithos. Use that server, or choose "
            "another port with --port or server.port (LITHOS_PORT)."
        )
    return CannotListen(
        f"Cannot listen on {host}, port {port}: {error.strerror or error}. Check --host and --port, or "
        "server.host and server.port."
    )


class PatientSocket:
    """Socket stream with a time limit for each send."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        #: Held while a send waits for the client.
        self.sending = trio.Lock()

    async def receive(self, max_bytes: int = MAX_RECEIVE) -> bytes:
        """Return the next bytes from the client. The result is empty if the client will send no more."""
        while True:
            # Wait for input before reading, because a Trio stream would first try to read without success.
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
        """Return the current file descriptor. After a close, another socket may soon have the same number."""
        number = self._stream.socket.fileno()
        if number < 0:
            raise trio.ClosedResourceError
        return number

    async def send(self, data: bytes) -> None:
        """Send all of `data`. If that fails, close the connection and raise `trio.BrokenResourceError`."""
        sent = 0
        if not self.sending.locked():
            with suppress(OSError):  # this usually succeeds, and then needs no switch to other tasks
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
        """Read and discard input for a moment.

        Closing with unread input would reset the connection and lose the last response.
        """
        trio.lowlevel.notify_closing(self._fileno())  # Wakes Hypercorn, which then stops reading.
        dropped = 0
        with trio.move_on_after(REFUSED_SECONDS):
            while dropped < REFUSED_BYTES and (part := await self.receive()):
                dropped += len(part)

    def abort(self) -> None:
        """Close the connection at once. A running send or receive raises `trio.ClosedResourceError`."""
        self._stream.socket.close()
