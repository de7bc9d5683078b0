"""Event streams.

A stream replays the journal from a position, then continues with live events, once and in order.

A subscriber first reads pages of the journal until only a few events remain, then listens and reads the rest.
A long replay therefore never fills the queue of live events (docs/spec/events-http.md §2). For people,
`Activity` returns journal pages with the newest events first. Recent events come from the ring of the
broadcaster, older events from the journal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final

import trio
from attrs import define, field, frozen

from lithos.events.journal.broadcaster import Broadcaster, Subscription
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.values.events import Event
from lithos.text.words.list_filters import has_tag

#: Maximum number of events that one backward scan reads.
LOOKED: Final = 5_000


@frozen
class EventSelection:
    """A filter for events by type, agent and tag. An empty `types` accepts all types.

    Events by the agents in `not_by` do not pass.

    If `agent` or `tag` is None, the filter ignores that field.
    """

    types: frozenset[str] = frozenset()
    agent: str | None = None
    tag: str | None = None
    not_by: frozenset[str] = frozenset()

    def passes(self, event: Event) -> bool:
        """Return whether an event passes the filter."""
        draft = event.draft
        return (
            (not self.types or draft.type in self.types)
            and (self.agent is None or draft.agent == self.agent)
            and draft.agent not in self.not_by
            and (self.tag is None or has_tag(draft.tags, self.tag))
        )


@frozen
class JournalPage:
    """A page of events, newest first.

    All events up to `head` were checked. If `is_cut` is True, more events may match.
    """

    events: tuple[Event, ...]
    head: int
    is_cut: bool


class Activity:
    """Read-only access to the journal, with the newest events first. Raises `DatabaseFailed`."""

    def __init__(self, broadcaster: Broadcaster, store: CoordinationStore, reading: Blocking) -> None:
        self._broadcaster = broadcaster
        self._store = store
        self._reading = reading

    @property
    def head(self) -> int:
        """The seq of the newest event."""
        return self._broadcaster.head

    async def page(self, wanted: EventSelection, most: int, after: int = 0) -> JournalPage:
        """Return the newest `most` events that pass the filter `wanted` and are later than `after`."""
        head, found, looked, oldest = self._broadcaster.head, list[Event](), 0, self._broadcaster.head + 1
        for event in islice(reversed(self._broadcaster.recent), LOOKED):
            looked, oldest = looked + 1, event.seq
            if event.seq <= after or len(found) == most:
                break
            if wanted.passes(event):
                found.append(event)
        while oldest - 1 > after and len(found) < most and looked < LOOKED:
            events = await self._reading.run(partial(self._store.events_before, oldest, PAGE))
            later = [event for event in events if event.seq > after]
            found += [event for event in later if wanted.passes(event)]
            looked += len(events)
            if not events or len(later) < len(events):
                return JournalPage(tuple(found[:most]), head, is_cut=len(found) > most)
            oldest = later[-1].seq
        is_cut = oldest - 1 > after and (len(found) >= most or looked >= LOOKED)
        return JournalPage(tuple(found[:most]), head, is_cut)

    async def journal_size(self) -> tuple[int, int]:
        """Return the number of events in the journal, and the newest seq that the retention deleted."""
        return await self._reading.run(lambda: (self._store.event_count(), self._store.pruned_through()))


def types_named(known: Sequence[str], name: str) -> frozenset[str]:
    """Return the event types for a name. The name is a single type, or a group such as `task`."""
    return frozenset(kind for kind in known if name in (kind, kind.partition(".")[0]))


#: Number of events per journal page, some 200 kB. A thread reads a page in a few milliseconds.
PAGE: Final = 500
#: Maximum characters of an unknown position that are quoted in the reply.
QUOTED: Final = 100


@frozen
class EventFilter:
    """A filter by `types` and by `tags`, including nested tags.

    An event needs one of each. An empty set does not filter.

    Events without tags do not pass a tag filter.
    """

    types: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    @classmethod
    def of(cls, types: Iterable[str] = (), tags: Iterable[str] = ()) -> EventFilter:
        """Return a filter from two lists. Values are trimmed, and empty values are ignored."""
        kept = [frozenset(filter(None, map(str.strip, values))) for values in (types, tags)]
        return cls(*kept)

    def passes(self, event: Event) -> bool:
        """Return whether an event passes the filter."""
        draft = event.draft
        return (not self.types or draft.type in self.types) and (
            not self.tags or any(has_tag(draft.tags, tag) for tag in self.tags)
        )


@frozen
class Resync:
    """Notice of a replay gap: the position is no longer in the journal, so events are lost.

    After the notice, live events follow.
    """

    since: str
    reason: str = "replay_gap"
    message: str = "The position is no longer in the journal. List or search to catch up."


class SubscriberOverflow(Exception):
    """Raised when a subscriber was disconnected because it was too slow.

    The subscriber can resume from its position without losing events.
    """


class StreamEnded(Exception):
    """Raised when the server shuts down. No more events follow."""


@define(eq=False)
class EventStream:
    """One subscription: a replay, then live events. Call `close` after use.

    Only one task calls `receive`. Other tasks may replace `wanted` or call `seek` meanwhile. If `receive` or
    `seek` is cancelled, no event is lost.
    """

    _broadcaster: Broadcaster
    _store: CoordinationStore
    _reading: Blocking
    #: Filter for all events that are received from now on.
    wanted: EventFilter
    #: Maximum number of queued live events. None means the configured number.
    _capacity: int | None = None
    #: Seq up to which all events are queued, were received, or are not needed.
    position: int = field(init=False)
    _pending: deque[Event | Resync] = field(factory=deque, init=False)
    _subscription: Subscription | None = field(default=None, init=False)
    _is_live: bool = field(default=False, init=False)
    _seeks: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.position = self._broadcaster.head

    async def seek(self, since: str) -> None:
        """Continue after the position `since`.

        After an unknown position, the stream continues with a `Resync` and live events.
        """
        known = await self._reading.run(partial(self._known_position, since))
        self.close()
        self._seeks += 1
        self._subscription, self._is_live = None, False
        self._pending.clear()
        if known is None:
            self._lose_track(since)
        else:
            self.position = known

    async def receive(self) -> Event | Resync:
        """Wait for the next event that passes the filter. Return this event.

        Raises `SubscriberOverflow` after the last event that was queued before the overflow, `StreamEnded` at
        shutdown, and `DatabaseFailed` if the journal cannot be read.
        """
        while True:
            if self._pending:
                item = self._pending.popleft()
                if isinstance(item, Resync) or self.wanted.passes(item):
                    return item
            elif self._subscription is None or not self._is_live:
                await self._read_on()
            else:
                await self._take_live(self._subscription)

    def take_waiting(self, most: int) -> list[Event | Resync]:
        """Return up to `most` items that are already available, without waiting."""
        items: list[Event | Resync] = []
        while len(items) < most:
            if not self._pending and not self._take_queued():
                break
            item = self._pending.popleft()
            if isinstance(item, Resync) or self.wanted.passes(item):
                items.append(item)
        return items

    @property
    def has_overflowed(self) -> bool:
        """True if the subscriber was disconnected because it was too slow."""
        return self._subscription is not None and self._subscription.overflowed

    def close(self) -> None:
        """Unsubscribe."""
        if self._subscription is not None:
            self._broadcaster.leave(self._subscription)

    def _take_queued(self) -> bool:
        """Move one queued live event to the pending events. Return whether an event is pending."""
        subscription = self._subscription
        if subscription is None or not self._is_live:
            return False
        try:
            event = subscription.events.receive_nowait()
        except (trio.WouldBlock, trio.EndOfChannel):
            return False
        self._accept(event)
        return bool(self._pending)

    async def _take_live(self, subscription: Subscription) -> None:
        try:
            event = await subscription.events.receive()
        except trio.EndOfChannel:
            if subscription is self._subscription:
                raise (SubscriberOverflow if subscription.overflowed else StreamEnded) from None
            return
        if subscription is self._subscription:
            self._accept(event)

    def _accept(self, event: Event) -> None:
        if event.seq > self.position:
            self.position = event.seq
            self._pending.append(event)

    async def _read_on(self) -> None:
        """Read the next page of the replay.

        Subscribe near the end of the journal. When no event is left to read, go live.
        """
        count = await self._take_page()
        if count is None:
            return
        if self._subscription is None:
            # A page of large events has fewer events. A short page is therefore only the last page if it is
            # empty or near the head.
            if not count or (count < PAGE and self.position >= self._broadcaster.head - PAGE):
                self._subscription = self._broadcaster.listen(self._accepts, self._capacity)
        elif not count:
            self._is_live = True

    def _accepts(self, event: Event) -> bool:
        return self.wanted.passes(event)

    async def _take_page(self) -> int | None:
        """Queue the next events and return their number. If `seek` was called meanwhile, return None."""
        await trio.lowlevel.checkpoint()
        position, seeks = self.position, self._seeks
        recent, pruned_through = self._broadcaster.after(position), 0
        events = recent or []
        if recent is None:
            events, pruned_through = await self._reading.run(partial(self._store.page_after, position, PAGE))
            if seeks != self._seeks:
                return None
        if pruned_through > position:
            # The retention deleted events that this reader had not read yet.
            self._lose_track(str(position))
        elif events:
            self.position = events[-1].seq
            self._pending.extend(events)
        return len(events)

    def _lose_track(self, since: str) -> None:
        self._pending.append(Resync(since[:QUOTED]))
        self.position = self._broadcaster.head

    def _known_position(self, since: str) -> int | None:
        """Return the seq for a position, or None if the journal lacks events after it."""
        seq = parse_position(since)
        return seq if seq is not None and self._store.knows_position(seq) else None


def parse_position(text: str) -> int | None:
    """Return the seq for a position, or None if the text is not a valid seq."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


@define(eq=False)
class EventStreams:
    """Factory for event streams, which combine the journal and the broadcaster."""

    _broadcaster: Broadcaster
    _store: CoordinationStore
    _reading: Blocking

    @property
    def head(self) -> int:
        """The seq of the newest delivered event."""
        return self._broadcaster.head

    async def find(self, kind: str, at: datetime, passes: Callable[[Event], bool]) -> Event | None:
        """Return the first event of a type around the time `at` for which `passes` returns True, or None."""
        return await self._reading.run(lambda: self._store.find_event(kind, at, passes))

    async def open(self, since: str | None, wanted: EventFilter, capacity: int | None = None) -> EventStream:
        """Return a stream that starts after `since`, or at the head."""
        stream = EventStream(self._broadcaster, self._store, self._reading, wanted, capacity)
        if since is not None:
            await stream.seek(since)
        return stream
