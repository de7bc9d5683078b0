"""Broadcaster: a ring buffer of recent events, and one queue of limited length per listener."""

from __future__ import annotations

import pytest
import trio

from lithos.events.journal import broadcaster as module
from lithos.events.journal.broadcaster import Broadcaster
from lithos.kernel.values.events import Event, EventDraft, event_size
from tests.fakes import START, subscribed


def make_events(first: int, last: int) -> list[Event]:
    draft = EventDraft(type="note.created", agent="a", payload={}, timestamp=START)
    return [Event(seq=seq, draft=draft) for seq in range(first, last + 1)]


async def drain(subscription) -> list[int]:
    """Return the sequence numbers that are received until the subscription ends."""
    with trio.fail_after(60):
        return [event.seq async for event in subscription.events]


async def test_listener_gets_every_new_event_in_order():
    broadcaster = Broadcaster(ring=10, queue=10)
    broadcaster.publish(make_events(1, 2))
    with subscribed(broadcaster) as subscription:
        broadcaster.publish(make_events(3, 4))
        broadcaster.publish(make_events(5, 5))
    assert await drain(subscription) == [3, 4, 5]
    assert not subscription.overflowed


def test_ring_buffer_keeps_only_the_newest_events():
    """behaviour 129"""
    broadcaster = Broadcaster(ring=3, queue=1)
    broadcaster.publish(make_events(1, 2))
    broadcaster.publish(make_events(3, 5))
    assert [event.seq for event in broadcaster.recent] == [3, 4, 5]


def test_event_size_is_the_same_with_full_and_empty_ring(monkeypatch):
    """The size of each event is determined once.

    If event sizes were determined again, the cost of a call would depend on earlier writes.
    """
    sized = []
    monkeypatch.setattr(module, "event_size", lambda event: sized.append(event.seq) or event_size(event))
    broadcaster = Broadcaster(ring=3, queue=1)
    for seq in range(1, 9):
        assert broadcaster.publish(make_events(seq, seq)) == event_size(make_events(seq, seq)[0])
    assert sized == [*range(1, 9)]


def test_ring_buffer_is_limited_in_bytes_for_all_event_sizes(monkeypatch):
    """behaviour 129"""
    monkeypatch.setattr(module, "RING_BYTES", 1_000)
    broadcaster = Broadcaster(ring=4, queue=1)
    assert broadcaster.publish(make_events(1, 2)) == 600
    broadcaster.publish(make_events(3, 5))
    assert [event.seq for event in broadcaster.recent] == [3, 4, 5]
    large = EventDraft(type="note.created", agent="a", payload={"title": "x" * 600}, timestamp=START)
    broadcaster.publish([Event(seq=6, draft=large)])
    assert [event.seq for event in broadcaster.recent] == [6]
    broadcaster.publish(make_events(7, 12))
    assert [event.seq for event in broadcaster.recent] == [10, 11, 12]


async def test_only_the_slow_listener_is_cut_off_and_counted():
    """behaviours 128, 129: events that were already queued can still be read."""
    broadcaster = Broadcaster(ring=10, queue=2)
    with subscribed(broadcaster) as slow, subscribed(broadcaster) as quick:
        broadcaster.publish(make_events(1, 2))
        got = [(await quick.events.receive()).seq for _ in range(2)]
        broadcaster.publish(make_events(3, 4))
        broadcaster.publish([])
        assert slow.overflowed
        assert broadcaster.drops == 1
        assert await drain(slow) == [1, 2]
    assert got + await drain(quick) == [1, 2, 3, 4]
    assert not quick.overflowed


async def test_batch_larger_than_the_queue_cuts_a_listener_off_once():
    broadcaster = Broadcaster(ring=10, queue=2)
    with subscribed(broadcaster) as slow:
        broadcaster.publish(make_events(1, 9))
        broadcaster.publish(make_events(10, 12))
        assert await drain(slow) == [1, 2]
    assert broadcaster.drops == 1


async def test_subscriber_that_leaves_frees_its_slot_even_after_an_error():
    broadcaster = Broadcaster(ring=1, queue=1)
    with pytest.raises(KeyError), subscribed(broadcaster):
        raise KeyError
    broadcaster.publish(make_events(1, 5))
    assert broadcaster.drops == 0


async def test_closed_subscriber_does_not_count_as_slow():
    broadcaster = Broadcaster(ring=1, queue=1)
    with subscribed(broadcaster) as subscription:
        subscription.events.close()
        broadcaster.publish(make_events(1, 5))
        assert not subscription.overflowed
    assert broadcaster.drops == 0


async def test_close_ends_current_and_future_listeners():
    broadcaster = Broadcaster(ring=1, queue=5)
    with subscribed(broadcaster) as early:
        broadcaster.publish(make_events(1, 1))
        broadcaster.close()
        assert await drain(early) == [1]
        with subscribed(broadcaster) as late:
            assert await drain(late) == []
    broadcaster.publish(make_events(2, 2))
    assert broadcaster.drops == 0


async def test_waiting_listener_is_woken_by_events_and_by_close():
    broadcaster, got = Broadcaster(ring=1, queue=5), []

    async def listen(subscription) -> None:
        got.extend(await drain(subscription))

    async with trio.open_nursery() as nursery:
        with subscribed(broadcaster) as subscription:
            nursery.start_soon(listen, subscription)
            await trio.testing.wait_all_tasks_blocked()
            broadcaster.publish(make_events(1, 1))
            await trio.testing.wait_all_tasks_blocked()
            broadcaster.close()
    assert got == [1]
