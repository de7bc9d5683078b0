"""Durable positions of named subscribers (events-http spec, section 4)."""

from __future__ import annotations

import trio

from lithos.actors.blocking import Blocking
from lithos.actors.coordinator import CoordinatorMailbox, MoveCursor
from lithos.actors.kit import ActorDown, ShuttingDown
from lithos.core.errors import StorageFailed
from lithos.stores.coordination import CoordinationStore
from lithos.telemetry import get_logger

log = get_logger("lithos.cursors")

#: Seconds for a cursor to be stored.
PATIENCE = 5.0


class Cursors:
    """How far each named subscriber has got; connections of one name share a cursor."""

    def __init__(self, mailbox: CoordinatorMailbox, store: CoordinationStore, reading: Blocking) -> None:
        self._mailbox = mailbox
        self._store = store
        self._reading = reading
        #: Acknowledged, but not stored yet.
        self._moving: dict[str, int] = {}

    async def find(self, subscriber: str) -> int | None:
        """Where a subscriber has got to; None for a new one."""
        stored = await self._reading.run(lambda: self._store.cursor(subscriber))
        known = [seq for seq in (stored, self._moving.get(subscriber)) if seq is not None]
        return max(known, default=None)

    async def start(self, subscriber: str) -> int:
        """The cursor of a subscriber; a new one begins at the head and is stored at once.

        Raises `StorageFailed`.
        """
        found = await self.find(subscriber)
        if found is not None:
            return found
        try:
            seq: int = await self._mailbox.ask(MoveCursor(subscriber), within=PATIENCE)
        except (ActorDown, ShuttingDown, trio.TooSlowError) as failure:
            raise StorageFailed(
                f"The cursor of {subscriber!r} could not be stored. Retry in a moment."
            ) from failure
        return seq

    def acknowledge(self, subscriber: str, seq: int) -> None:
        """Everything up to `seq` is processed: `find` knows it from now on, `store` makes it durable."""
        self._moving[subscriber] = max(seq, self._moving.get(subscriber, seq))

    async def store(self, subscriber: str) -> None:
        """Make what was acknowledged durable. One that cannot be stored is told of again later."""
        seq = self._moving.get(subscriber)
        if seq is None:
            return
        try:
            await self._mailbox.ask(MoveCursor(subscriber, seq), within=PATIENCE)
        except (StorageFailed, ActorDown, ShuttingDown, trio.TooSlowError) as failure:
            log.warning("cursor not stored", subscriber=subscriber, seq=seq, reason=str(failure))
        finally:
            if self._moving.get(subscriber) == seq:
                del self._moving[subscriber]
