"""Following events from a position: the journal first, then live, each event once and in order.

A subscriber first reads pages of the journal until little is left, then subscribes and reads the
rest, so that a long replay never fills its live queue (events-http spec, section 2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import trio
from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.broadcaster import Broadcaster, Subscription
from lithos.core.events import Event
from lithos.stores.coordination import CoordinationStore

#: Events per journal page: some 200 kB, a few milliseconds in a thread.
PAGE = 500


@frozen
class EventFilter:
    """Any of `types` and any of `tags`; an empty set does not filter. Untagged events fail a tag filter."""

    types: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    @classmethod
    def of(cls, types: Iterable[str] = (), tags: Iterable[str] = ()) -> EventFilter:
        """From lists as they were given: trimmed, blanks ignored."""
        kept = [frozenset(filter(None, map(str.strip, values))) for values in (types, tags)]
        return cls(*kept)

    def passes(self, event: Event) -> bool:
        """Whether a subscriber wants this event."""
        draft = event.draft
        return (not self.types or draft.type in self.types) and (
            not self.tags or not self.tags.isdisjoint(draft.tags)
        )


@frozen
class Resync:
    """The position is not in the journal any more: what came before is lost, live events follow."""

    since: str
    reason: str = "replay_gap"
    message: str = "The position is not in the journal any more. List or search to catch up."


class SubscriberOverflow(Exception):
    """The subscriber was too slow and was cut off; it resumes from its position and loses nothing."""


class StreamEnded(Exception):
    """The server stops; no more events."""


class EventStream:
    """One subscriber's way through the events. Close it when done."""

    def __init__(
        self, broadcaster: Broadcaster, store: CoordinationStore, reading: Blocking, wanted: EventFilter
    ) -> None:
        self._broadcaster = broadcaster
        self._store = store
        self._reading = reading
        self._wanted = wanted
        self._position = broadcaster.head
        self._pending: deque[Event | Resync] = deque()
        self._subscription: Subscription | None = None

    async def seek(self, since: str | None) -> None:
        """Begin after `since`; None begins at the head. An unknown position yields a `Resync` first."""
        if since is None:
            return
        known = await self._reading.run(lambda: self._known_position(since))
        if known is None:
            self._pending.append(Resync(since))
        else:
            self._position = known

    async def receive(self) -> Event | Resync:
        """The next event that passes the filter.

        Raises `SubscriberOverflow` after the last event that was queued in time, `StreamEnded`.
        """
        while True:
            if self._pending:
                return self._pending.popleft()
            if self._subscription is None:
                await self._read_on()
                continue
            event = await self._next_live(self._subscription)
            if event.seq > self._position:
                self._position = event.seq
                return event

    def close(self) -> None:
        """Stop listening."""
        if self._subscription is not None:
            self._broadcaster.leave(self._subscription)

    async def _next_live(self, subscription: Subscription) -> Event:
        try:
            return await subscription.events.receive()
        except trio.EndOfChannel:
            raise (SubscriberOverflow if subscription.overflowed else StreamEnded) from None

    async def _read_on(self) -> None:
        """Take a page of the journal; at its end go live, then take what came meanwhile."""
        page = await self._page()
        if len(page) < PAGE:
            self._subscription = self._broadcaster.listen(self._wanted.passes)
            while await self._page():
                continue

    async def _page(self) -> list[Event]:
        """Queue the next events of the journal, or of the ring when it reaches back far enough."""
        recent = self._broadcaster.after(self._position)
        if recent is None:
            page = await self._reading.run(lambda: self._store.events_after(self._position, PAGE))
        else:
            page = recent
            await trio.lowlevel.checkpoint()
        if page:
            self._position = page[-1].seq
            self._pending.extend(event for event in page if self._wanted.passes(event))
        return page

    def _known_position(self, since: str) -> int | None:
        """The seq if the journal holds it or was pruned exactly through it."""
        text = since.strip()
        if not (text.isascii() and text.isdigit()) or len(text) > 18:
            return None
        seq = int(text)
        return seq if seq == self._store.pruned_through() or self._store.has_event(seq) else None


class EventStreams:
    """Opens streams over the journal and the broadcaster."""

    def __init__(self, broadcaster: Broadcaster, store: CoordinationStore, reading: Blocking) -> None:
        self._broadcaster = broadcaster
        self._store = store
        self._reading = reading

    @property
    def head(self) -> int:
        """The seq of the newest event that was delivered."""
        return self._broadcaster.head

    async def open(self, since: str | None, wanted: EventFilter) -> EventStream:
        """A stream after `since`, or from the head."""
        stream = EventStream(self._broadcaster, self._store, self._reading, wanted)
        await stream.seek(since)
        return stream
