"""`Server`: the running server's services with its tools, as the front and tests use them."""

from __future__ import annotations

import os
import socket

from lithos.actors.actors import Actors
from lithos.app.stores import utc_now
from lithos.core.times import format_time
from lithos.services.services import Services
from lithos.stores.owner_record import OwnerRecord
from lithos.tools.contract.registry import Tools


class Server(Services):
    """A running server as its front and tests see it."""

    def __init__(self, actors: Actors) -> None:
        super().__init__(actors)
        self.tools = Tools(self)

    def publish_address(self, url: str, *, private: bool = False) -> None:
        """Write this server's address to the lock file, with the token for commands of the same user.

        `private`: the address is for those commands alone.
        """
        token = self.keyring.own_token
        now = format_time(utc_now())
        self.actors.stores.lock.publish(
            OwnerRecord(os.getpid(), socket.gethostname(), url, now, token, private)
        )

    async def searchable(self) -> None:
        """Wait until full text and meaning cover every note (or there is no model)."""
        await self.opening.complete.wait()
        await self.actors.fulltext_indexer.converged()
        await self.semantic.settled.wait()
