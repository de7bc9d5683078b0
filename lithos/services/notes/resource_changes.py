"""Resource subscriptions: which changed URIs each client is notified of (docs/spec/mcp.md §4).

A follower queues no events but keeps the set of URIs with a pending notification. So no change is lost to a
full queue, however slow its client: changes of one resource coalesce, and the last one is always sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import trio

from lithos.actors.coordinating.broadcaster import Broadcaster
from lithos.core.events import Event
from lithos.core.offers import Address, changed_by, changes_list
from lithos.services.tasks.event_stream import StreamEnded

#: Seconds between two notices about the same thing.
QUIET: Final = 1.0
#: Bounds of what one client can make the server remember; whoever needs more reads `/events`.
MOST_URIS: Final = 1_000
LONGEST_URI: Final = 2_000


class TooMuchFollowed(Exception):
    """The client already follows as much as one may, or the URI is too long; the message says so."""


class Follower:
    """The subscriptions of one client. One task awaits `next_change`; others may subscribe meanwhile."""

    def __init__(self) -> None:
        #: Whether changes of the list of resources are told.
        self.wants_list = False
        #: The spellings a client knows each resource by.
        self._followed: dict[str, dict[str, None]] = {}
        self._count = 0
        #: When each untold change may be told, and when each thing was last told. `None` is the list.
        self._due: dict[str | None, float] = {}
        self._told: dict[str | None, float] = {}
        self._woken = trio.Event()
        self._has_ended = False

    def follow(self, uri: str, address: Address) -> None:
        """Subscribe to a resource, notified by the URI as the client gave it. Raises `TooMuchFollowed`."""
        spellings = self._followed.get(address.uri, {})
        if uri in spellings:
            return
        if self._count >= MOST_URIS or len(uri) > LONGEST_URI:
            raise TooMuchFollowed(
                f"A client may follow {MOST_URIS} resources of {LONGEST_URI} characters each. "
                "Unsubscribe from some, or read the events at /events."
            )
        self._followed.setdefault(address.uri, {})[uri] = None
        self._count += 1

    def unfollow(self, uri: str, address: Address) -> None:
        """Unsubscribe from a resource; idempotent."""
        spellings = self._followed.get(address.uri, {})
        if uri in spellings:
            del spellings[uri]
            self._count -= 1
            self._due.pop(uri, None)
            self._told.pop(uri, None)
        if not spellings:
            self._followed.pop(address.uri, None)

    def see(self, changed: Sequence[str], *, of_list: bool) -> None:
        """Mark changed resources as pending notifications; `changed` are URIs as Lithos lists them."""
        for listed in changed:
            for uri in self._followed.get(listed, ()):
                self._mark(uri)
        if of_list and self.wants_list:
            self._mark(None)

    def end(self) -> None:
        """End the subscription."""
        self._has_ended = True
        self._wake()

    async def next_change(self) -> str | None:
        """The URI of a changed resource, or None for the list of them.

        Waits for a pending notification; at most one a second per resource. Raises `StreamEnded`.
        """
        while True:
            await trio.lowlevel.checkpoint()
            if self._has_ended:
                raise StreamEnded
            first = min(self._due, key=self._due.__getitem__, default=None)
            when = self._due.get(first, float("inf"))
            now = trio.current_time()
            if when <= now:
                del self._due[first]
                self._told[first] = now
                return first
            with trio.move_on_at(when):
                await self._woken.wait()

    def _mark(self, thing: str | None) -> None:
        if thing not in self._due:
            self._due[thing] = max(trio.current_time(), self._told.get(thing, float("-inf")) + QUIET)
            self._wake()

    def _wake(self) -> None:
        self._woken.set()
        self._woken = trio.Event()


class Changes:
    """Fans events out to the followers of all clients, without back-pressure on the publisher."""

    def __init__(self, broadcaster: Broadcaster) -> None:
        self._followers: set[Follower] = set()
        self._has_ended = False
        broadcaster.watch(self)

    @property
    def count(self) -> int:
        """The number of followers."""
        return len(self._followers)

    @contextmanager
    def followed(self) -> Iterator[Follower]:
        """A follower for the block, at first without subscriptions."""
        follower = Follower()
        if self._has_ended:
            follower.end()
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    def see(self, event: Event) -> None:
        """Pass an event on."""
        if self._followers:
            changed = [address.uri for address in changed_by(event.draft)]
            of_list = changes_list(event.draft)
            for follower in self._followers:
                follower.see(changed, of_list=of_list)

    def end(self) -> None:
        """End every follower, also those to come."""
        self._has_ended = True
        for follower in self._followers:
            follower.end()
