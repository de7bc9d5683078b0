"""Listening sockets and the errors of opening them."""

from __future__ import annotations

import errno
import socket

import trio
from hypercorn.config import Config

from lithos.front.limits import SEND_PATIENCE


class CannotListen(Exception):
    """The address cannot be listened on; the message says why and what to do."""


class PortInUse(CannotListen):
    """Another program listens on the port."""


def open_listeners(config: Config, host: str, port: int) -> list[trio.SocketListener]:
    """Bind and listen; raise `PortInUse` or `CannotListen`."""
    config.bind = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
    try:
        sockets = config.create_sockets().insecure_sockets
        for listener in sockets:
            listener.listen(config.backlog)
    except OSError as error:
        raise _explain(error, host, port) from error
    for listener in sockets:
        _set_options(listener)
    return [trio.SocketListener(trio.socket.from_stdlib_socket(listener)) for listener in sockets]


def _set_options(listener: socket.socket) -> None:
    """Accepted sockets inherit these: a peer that vanished without a word is noticed."""
    listener.set_inheritable(False)
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
