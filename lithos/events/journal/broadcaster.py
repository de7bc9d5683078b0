"""The broadcaster: publish and subscribe for journalled events, with a ring buffer of recent ones.

It is a plain object and not a task: publishing never waits, so the coordinator calls it directly
after its commit. A subscriber that falls behind is disconnected (it resumes from the journal), never
silently skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import trio

from lithos.kernel.values.events import Event, event_size

#: Bytes of events that the ring keeps; usual ones take some 500 each.
RING_BYTES: Final = 8 * 1024 * 1024

Accepts = Callable[[Event], bool]


class Subscription:
    """One listener's queue; `overflowed` means that it was cut off because it was too slow."""

    def __init__(self, capacity: int, accepts: Accepts) -> None:
        self.capacity = capacity
        self.accepts = accepts
        self._send, self.events = trio.open_memory_channel[Event](capacity)
        self.overflowed = False

    @property
    def waiting(self) -> int:
        """How many events are queued."""
        return self._send.statistics().current_buffer_used

    def offer(self, event: Event) -> bool:
        """Queue an event; False when the listener is full and was cut off."""
        try:
            self._send.send_nowait(event)
        except trio.WouldBlock:
            self.overflowed = True
            self._send.close()
            return False
        except trio.BrokenResourceError:
            return True  # the listener has left and is about to unsubscribe: not slow
        return True

    def end(self) -> None:
        """End the subscription; queued events can still be read."""
        self._send.close()


class EventObserver(Protocol):
    """Keeps no events, only their effect, so that it can never fall behind."""

    def see(self, event: Event) -> None:
        """Take note of an event; must neither wait nor raise."""

    def end(self) -> None:
        """No more events."""


class Broadcaster:
    """The ring of recent events and one bounded queue per subscriber."""

    def __init__(self, ring: int, queue: int) -> None:
        self.recent: deque[Event] = deque(maxlen=ring)
        #: Of the events in the ring, so that each is sized once: not again when it leaves.
        self._sizes: deque[int] = deque(maxlen=ring)
        self._recent_size = 0
        self._queue = queue
        self._subscriptions: list[Subscription] = []
        self._watchers: list[EventObserver] = []  # bounded: fixed when the server starts
        self._is_closed = False
        #: The seq of the newest event delivered.
        self.head = 0
        #: Listeners cut off so far.
        self.drops = 0

    def publish(self, events: Sequence[Event]) -> int:
        """Deliver a committed batch, in order; returns its size in bytes."""
        size = 0
        for event in events:
            size += self._remember(event)
        if events:
            self.head = events[-1].seq
        for subscription in list(self._subscriptions):
            if not all(subscription.offer(event) for event in events if subscription.accepts(event)):
                self._subscriptions.remove(subscription)
                self.drops += 1
        for watcher in self._watchers:
            for event in events:
                watcher.see(event)
        return size

    def _remember(self, event: Event) -> int:
        """Add to the ring, which is limited by events and bytes; return the event's size."""
        size = event_size(event)
        if len(self._sizes) == self._sizes.maxlen:
            self._recent_size -= self._sizes[0]
        self.recent.append(event)
        self._sizes.append(size)
        self._recent_size += size
        while self._recent_size > RING_BYTES and len(self.recent) > 1:
            self.recent.popleft()
            self._recent_size -= self._sizes.popleft()
        return size

    def watch(self, watcher: EventObserver) -> None:
        """Show every event from now on to a watcher, for as long as the broadcaster lives."""
        self._watchers.append(watcher)

    def after(self, seq: int) -> list[Event] | None:
        """The events later than `seq`, when the ring reaches back that far; it spares a journal read."""
        if seq >= self.head:
            return []
        if not self.recent or self.recent[0].seq > seq:
            return None
        return [event for event in self.recent if event.seq > seq]

    def listen(self, accepts: Accepts = lambda _: True, capacity: int | None = None) -> Subscription:
        """Listen from now on, to what `accepts` wants; after `close` there is nothing to come.

        `capacity` is that of the queue, where it is not the configured one.
        """
        subscription = Subscription(self._queue if capacity is None else capacity, accepts)
        if self._is_closed:
            subscription.end()
        else:
            self._subscriptions.append(subscription)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        """Stop listening; doing it twice is harmless."""
        subscription.end()
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    @property
    def utilisation(self) -> float:
        """The fullest subscriber's share of its queue, 0..1."""
        return max((one.waiting / one.capacity for one in self._subscriptions), default=0.0)

    def close(self) -> None:
        """End every subscription, also those to come."""
        self._is_closed = True
        for subscription in self._subscriptions:
            subscription.end()
        self._subscriptions.clear()
        for watcher in self._watchers:
            watcher.end()
