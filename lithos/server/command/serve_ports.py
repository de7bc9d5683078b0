"""The parts of optional capabilities that `lithos serve` shows, and the place where it writes its address."""

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
    """Files that a server still reads once it has all notes."""

    @property
    def waiting(self) -> int:
        """How many have not been read yet."""

    async def known(self) -> bool:
        """Wait until it is known how many there are; False where none are read."""


class StartupNotice(Protocol):
    """A message that a server prints after its start."""

    @property
    def announcement(self) -> str | None:
        """Return a line for the operator, or None."""


def publish_address(server: Parts, url: str, *, private: bool = False) -> None:
    """Write a server's address to its lock file, with the token for commands of the same user.

    `private`: the address is for those commands alone.
    """
    own = server.find(OwnToken)
    token = None if own is None else own.own_token
    now, public_url = format_time(utc_now()), server.get(ServerConfig).public_url
    server.get(OwnerLock).publish(
        OwnerRecord(os.getpid(), socket.gethostname(), url, now, token, private, public_url)
    )
