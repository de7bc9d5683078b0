"""Interfaces of optional capabilities for `lithos serve`, and publication of the server's address."""

from __future__ import annotations

import os
import socket
from typing import Protocol

from lithos.kernel.databases.lock import OwnerLock, OwnerRecord
from lithos.kernel.parts import Parts, utc_now
from lithos.kernel.server_ports import OwnToken
from lithos.kernel.values.times import format_time
from lithos.server.settings import ServerConfig


class Backlog(Protocol):
    """Files other than notes that a server has still to read."""

    @property
    def waiting(self) -> int:
        """Return the number of unread files."""

    async def known(self) -> bool:
        """Wait until the number of unread files is known. Return False if the server reads no such files."""


class StartupNotice(Protocol):
    """Message that a server prints after its start."""

    @property
    def announcement(self) -> str | None:
        """Return the line to print for the operator, or None."""


def publish_address(server: Parts, url: str, *, private: bool = False) -> None:
    """Write a server's address into its lock file.

    The file also contains a token for commands of the same user.

    With `private`, only commands of this user may use the address.
    """
    own = server.find(OwnToken)
    token = None if own is None else own.own_token
    now, public_url = format_time(utc_now()), server.get(ServerConfig).public_url
    server.get(OwnerLock).publish(
        OwnerRecord(os.getpid(), socket.gethostname(), url, now, token, private, public_url)
    )
