"""Listening sockets and the errors of opening them."""

from __future__ import annotations

import errno
import socket
from typing import Final

import trio

from lithos.front.server.limits import SEND_PATIENCE

BACKLOG: Final = 128


class CannotListen(Exception):
    """The address cannot be listened on; the message says why and what to do."""


class PortInUse(CannotListen):
    """Another program listens on the port."""


async def open_listeners(host: str, port: int) -> list[trio.SocketListener]:
    """Bind and listen on every address of `host`; raise `PortInUse` or `CannotListen`.

    Port 0 takes one free port on the first address.
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
    """Enable TCP keep-alive, which accepted sockets inherit: a vanished peer ends its connection."""
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
