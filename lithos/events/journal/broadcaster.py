"""The broadcaster, which delivers journalled events to subscribers and keeps recent events in a ring buffer.

The broadcaster is a plain object, not a task. Publishing never waits, so the coordinator calls it directly
after a commit. A subscriber that falls behind is disconnected, and can resume from the journal. No subscriber
misses events silently.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import trio

from lithos.kernel.values.events import Event, event_size

#: Maximum total size in bytes of the events in the ring. A typical event takes some 500 bytes.
RING_BYTES: Final = 8 * 1024 * 1024

Accepts = Callable[[Event], bool]


class Subscription:
    """Event queue of one listener.

    `overflowed` is True if the listener was too slow and was therefore disconnected.
    """

    def __init__(self, capacity: int, accepts: Accepts) -> None:
        self.capacity = capacity
        self.accepts = accepts
        self._send, self.events = trio.open_memory_channel[Event](capacity)
        self.overflowed = False

    @property
    def waiting(self) -> int:
        """The number of queued events."""
        return self._send.statistics().current_buffer_used

    def offer(self, event: Event) -> bool:
        """Queue an event. If the queue is full, disconnect the listener and return False."""
        try:
            self._send.send_nowait(event)
        except trio.WouldBlock:
            self.overflowed = True
            self._send.close()
            return False
        except trio.BrokenResourceError:
            return True  # The listener is not slow. It is about to unsubscribe.
        return True

    def end(self) -> None:
        """End the subscription. Events that are already queued can still be read."""
        self._send.close()


class EventObserver(Protocol):
    """Observer that processes events at once and stores none, so that it cannot fall behind."""

    def see(self, event: Event) -> None:
        """Process an event. This method must neither wait nor raise."""

    def end(self) -> None:
        """Called after the last event."""


class Broadcaster:
    """Ring of recent events, with a bounded queue for each subscriber."""

    def __init__(self, ring: int, queue: int) -> None:
        self.recent: deque[Event] = deque(maxlen=ring)
        #: Sizes of the events in the ring, stored so that each event is measured only once.
        self._sizes: deque[int] = deque(maxlen=ring)
        self._recent_size = 0
        self._queue = queue
        self._subscriptions: list[Subscription] = []
        self._watchers: list[EventObserver] = []  # bounded: fixed when the server starts
        self._is_closed = False
        #: Seq of the newest delivered event.
        self.head = 0
        #: Number of listeners that were disconnected because they were too slow.
        self.drops = 0

    def publish(self, events: Sequence[Event]) -> int:
        """Deliver a committed batch of events in order. Return the size of the batch in bytes."""
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
        """Add an event to the ring.

        If the ring exceeds its limits (number and bytes), the oldest events are removed.

        Return the event's size in bytes.
        """
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
        """Pass every future event to a watcher, as long as the broadcaster exists."""
        self._watchers.append(watcher)

    def after(self, seq: int) -> list[Event] | None:
        """Return the events later than `seq`, or None if the ring does not reach back that far."""
        if seq >= self.head:
            return []
        if not self.recent or self.recent[0].seq > seq:
            return None
        return [event for event in self.recent if event.seq > seq]

    def listen(self, accepts: Accepts = lambda _: True, capacity: int | None = None) -> Subscription:
        """Return a subscription to all future events for which `accepts` returns True.

        After `close` was called, the returned subscription has already ended.

        `capacity` replaces the configured queue length.
        """
        subscription = Subscription(self._queue if capacity is None else capacity, accepts)
        if self._is_closed:
            subscription.end()
        else:
            self._subscriptions.append(subscription)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        """End a subscription. Calling this method twice is harmless."""
        subscription.end()
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    @property
    def utilisation(self) -> float:
        """Fill level (0..1) of the fullest subscriber queue."""
        return max((one.waiting / one.capacity for one in self._subscriptions), default=0.0)

    def close(self) -> None:
        """End all subscriptions. Future subscriptions end at once."""
        self._is_closed = True
        for subscription in self._subscriptions:
            subscription.end()
        self._subscriptions.clear()
        for watcher in self._watchers:
            watcher.end()
