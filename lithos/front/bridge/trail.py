"""Service discovery and failover of the bridge: finds the owner of the data directory, or takes over.

The owner's address is in the lock file, polled every `POLL` seconds and whenever a call fails; an owner that
is gone for `TAKE_OVER_AFTER` seconds is replaced by whichever bridge acquires the lock.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio
from attrs import frozen

from lithos.front.bridge.link import OwnerLink
from lithos.stores.lock import AlreadyOwned, OwnerLock
from lithos.stores.owner_record import OwnerRecord
from lithos.stores.vault_lock import VaultOwned
from lithos.telemetry import get_logger

log = get_logger("lithos.front.bridge_trail")

POLL: Final = 0.5
TAKE_OVER_AFTER: Final = 5.0
#: Seconds that a request waits for an owner: the end of the old one, and a start with many notes.
OWNER_WAIT: Final = 60.0


class NoOwner(Exception):
    """Nobody serves the data directory; the message says what to do."""


@frozen
class Sighting:
    """The owner as read from the lock file; one that is starting has no address yet."""

    is_owned: bool
    record: OwnerRecord | None = None


class OwnerTrail:
    """Tracks the link to the current owner.

    `look` reads the lock, `connect` makes a link, `take` gets the lock or raises `AlreadyOwned`, and
    `host` serves the data directory with it in this process until the event is set.
    """

    def __init__(
        self,
        look: Callable[[], Sighting],
        connect: Callable[[OwnerRecord], OwnerLink],
        take: Callable[[], Awaitable[OwnerLock]],
        host: Callable[[OwnerLock, trio.Event], Awaitable[None]],
    ) -> None:
        self._look = look
        self._connect = connect
        self._take = take
        self._host = host
        self._link: OwnerLink | None = None
        self._found = trio.Event()
        self._doubted = trio.Event()
        self._closed = trio.Event()
        self._has_followed = False
        self._lost_for_good: str | None = None

    async def link(self) -> OwnerLink:
        """Wait for a link to an owner that is present. Raises `NoOwner` after `OWNER_WAIT`."""
        with trio.move_on_after(OWNER_WAIT):
            while self._lost_for_good is None:
                link = self._link
                # Something else may answer where a killed owner did, and must not get the request.
                if link is not None and self._look() == Sighting(True, link.record):
                    return link
                self.doubt()
                await self._found.wait()
        raise NoOwner(
            self._lost_for_good
            or f"No Lithos server answered for {OWNER_WAIT:.0f} s (it may be starting). Retry in a moment."
        )

    def doubt(self) -> None:
        """Poll the lock again soon: the owner did not respond as expected."""
        self._doubted.set()

    def abandon(self, reason: str) -> None:
        """Fail all waiting calls; there will be no owner here."""
        self._lost_for_good = reason
        self._found.set()

    def close(self) -> None:
        """Let `follow` end, and the server in this process with it."""
        self._closed.set()
        self.doubt()

    async def follow(self) -> None:
        """Track owners, take over when there is none, until `close`. Raises as `host`; `OwnerRefuses`."""
        async with trio.open_nursery() as nursery:
            while not self._closed.is_set():
                sighting = self._look()
                if sighting.is_owned:
                    await self._follow_one(sighting)
                else:
                    await self._wait_for_next(nursery)

    async def _follow_one(self, sighting: Sighting) -> None:
        """Use this owner until the lock file changes."""
        record = sighting.record
        if record is None or record.url is None:
            await self._pause()
            return
        self._has_followed = True
        log.info("bridging", pid=record.pid, url=record.url)
        async with self._connect(record) as link:
            self._link = link
            try:
                while not self._closed.is_set() and self._look() == sighting:
                    self._found.set()
                    self._found = trio.Event()
                    await link.check()
                    await self._pause()
            finally:
                self._link = None
        log.info("the server has gone", pid=record.pid)

    async def _wait_for_next(self, nursery: trio.Nursery) -> None:
        """Wait for another owner, and take over when there is none for `TAKE_OVER_AFTER`.

        What held the lock without ever serving, such as a query, has no successor to wait for.
        """
        until = trio.current_time() + (TAKE_OVER_AFTER if self._has_followed else 0)
        while not self._closed.is_set() and not self._look().is_owned:
            if trio.current_time() < until:
                await self._pause(until - trio.current_time())
                continue
            try:
                lock = await self._take()
            except VaultOwned:
                raise  # by another data directory: there is nothing to bridge to
            except AlreadyOwned:
                await self._pause()
                return
            log.info("taking over")
            nursery.start_soon(self._host, lock, self._closed)
            return

    async def _pause(self, longest: float = POLL) -> None:
        with trio.move_on_after(min(POLL, longest)):
            await self._doubted.wait()
        if self._doubted.is_set():
            self._doubted = trio.Event()
