"""The broadcaster: hands each journalled batch of events to who listens.

It is a plain object and not a task: publishing never waits, so the coordinator calls it directly
after its commit. A listener that falls behind is cut off (it resumes from the journal), never
silently skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import trio

from lithos.core.events import Event


class Subscription:
    """One listener's queue; `overflowed` tells that it was cut off for being too slow."""

    def __init__(self, capacity: int) -> None:
        self._send, self.events = trio.open_memory_channel[Event](capacity)
        self.overflowed = False

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
        """No more events; what is queued can still be read."""
        self._send.close()


class Broadcaster:
    """The ring of recent events and one bounded queue per subscriber."""

    def __init__(self, ring: int, queue: int) -> None:
        self.recent: deque[Event] = deque(maxlen=ring)
        self._queue = queue
        self._subscriptions: list[Subscription] = []
        self._is_closed = False
        #: Listeners cut off so far.
        self.drops = 0

    def publish(self, events: Sequence[Event]) -> None:
        """Deliver a committed batch, in order."""
        self.recent.extend(events)
        for subscription in list(self._subscriptions):
            if not all(subscription.offer(event) for event in events):
                self._subscriptions.remove(subscription)
                self.drops += 1

    @contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        """Listen from now on; after `close` there is nothing to come."""
        subscription = Subscription(self._queue)
        if self._is_closed:
            subscription.end()
        else:
            self._subscriptions.append(subscription)
        try:
            yield subscription
        finally:
            subscription.end()
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def close(self) -> None:
        """End every subscription, also those to come."""
        self._is_closed = True
        for subscription in self._subscriptions:
            subscription.end()
        self._subscriptions.clear()
