"""Event streams: positions, filters, position changes, cancellation, and the end of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.reading.event_stream import (
    EventFilter,
    EventStream,
    EventStreams,
    Resync,
    StreamEnded,
    SubscriberOverflow,
)
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.values.events import Event, EventDraft
from tests.fakes import START, Gate

pytestmark = pytest.mark.autojump
ALL = EventFilter()


class House:
    """A journal with its broadcaster, and streams that read both."""

    def __init__(self, path: Path, ring: int = 500, queue: int = 100) -> None:
        self.store = CoordinationStore.open(path, START)
        self.gate = Gate()
        self.broadcaster = Broadcaster(ring, queue)
        self.broadcaster.head = self.store.next_seq() - 1
        self.streams = EventStreams(self.broadcaster, self.store, self.gate)

    def publish(self, count: int = 1, type: str = "note.created", tags: tuple[str, ...] = ()) -> list[int]:
        draft = EventDraft(type=type, agent="a", payload={}, tags=tags, timestamp=START)
        first = self.store.next_seq()
        events = [Event(seq=first + n, draft=draft) for n in range(count)]
        with self.store.transaction():
            self.store.append_events(events)
        self.broadcaster.publish(events)
        return [event.seq for event in events]

    def prune(self, keep: int) -> None:
        with self.store.transaction():
            self.store.prune_events(keep)

    async def open(self, since: int | str | None = None, wanted: EventFilter = ALL) -> EventStream:
        return await self.streams.open(None if since is None else str(since), wanted)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path / "coordination.db")
    yield house
    house.store.close()


async def take_all(stream: EventStream) -> list[int | Resync]:
    """Return all sequence numbers and notices that are available now."""
    taken: list[int | Resync] = []
    with trio.move_on_after(1):
        while True:
            item = await stream.receive()
            taken.append(item if isinstance(item, Resync) else item.seq)
    return taken


async def test_known_position_replays_only_later_events(house: House) -> None:
    """behaviours 132, 133: at the newest id, no event is replayed."""
    before = house.streams.head
    seqs = house.publish(3)
    for since, due in ((0, seqs), (before, seqs), (seqs[0], seqs[1:]), (seqs[2], [])):
        assert await take_all(await house.open(since)) == due


async def test_unknown_position_gets_resync_and_then_live_events(house: House) -> None:
    """behaviour 133"""
    house.publish(3)
    for since in ("17", "x", "-1", "", "99999999999999999999", "1.0", "٣", "9" * 400):
        stream = await house.open(since)
        (notice,) = await take_all(stream)
        assert isinstance(notice, Resync)
        assert (notice.reason, notice.since) == ("replay_gap", since[:100])
        assert await take_all(stream) == []
        later = house.publish(1)
        assert await take_all(stream) == later


async def test_pruned_position_gets_resync_unless_it_was_pruned_last(house: House) -> None:
    """behaviour 133"""
    seqs = house.publish(10)
    house.prune(4)
    assert await take_all(await house.open(seqs[5])) == seqs[6:]
    for since in (seqs[4], 0):
        assert [type(item) for item in await take_all(await house.open(since))] == [Resync]


@pytest.mark.parametrize("position", [None, 0])
async def test_filters_apply_to_replayed_and_live_events(house: House, position: int | None) -> None:
    """behaviours 131, 132: events without tags do not pass a tag filter."""

    def publish() -> dict[str, list[int]]:
        return {
            "plain": house.publish(1),
            "tagged": house.publish(1, tags=("x", "y")),
            "task": house.publish(1, "task.created"),
            "both": house.publish(1, "task.created", ("y", "z")),
        }

    wanted = {
        "": ("plain", "tagged", "task", "both"),
        "task.created": ("task", "both"),
        "task.created, note.created,": ("plain", "tagged", "task", "both"),
        "nothing.such": (),
        "|x": ("tagged",),
        "|z, x": ("tagged", "both"),
        "note.created|z": (),
        "note.created | y": ("tagged",),
    }
    filters = {text: EventFilter.of(*(part.split(",") for part in text.split("|"))) for text in wanted}
    streams = {text: await house.open(None, filter) for text, filter in filters.items()}
    seqs = publish()
    if position is not None:
        streams = {text: await house.open(position, filter) for text, filter in filters.items()}
    for text, names in wanted.items():
        assert await take_all(streams[text]) == [seq for name in names for seq in seqs[name]], text


async def test_replaced_filter_applies_to_all_later_events(house: House) -> None:
    """behaviour 188"""
    stream = await house.open(None, EventFilter.of(["task.created"]))
    async with trio.open_nursery() as nursery:
        got: list[int] = []

        async def receive() -> None:
            while True:
                item = await stream.receive()
                assert isinstance(item, Event)
                got.append(item.seq)

        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        due = house.publish(1, "task.created")
        house.publish(1)
        await wait_all_tasks_blocked()
        stream.wanted = ALL
        due += house.publish(1)
        await wait_all_tasks_blocked()
        assert got == due
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("reading", [False, True])
async def test_seek_moves_a_receiver_that_waits_or_reads(tmp_path: Path, reading: bool) -> None:
    """behaviour 188: no event from the old position follows."""
    house = House(tmp_path / "c.db", ring=1)
    seqs = house.publish(5)
    stream = await house.open(seqs[1] if reading else None)
    got: list[int] = []

    async def receive() -> None:
        while True:
            item = await stream.receive()
            assert isinstance(item, Event)
            got.append(item.seq)

    async with trio.open_nursery() as nursery:
        if reading:
            house.gate.shut()
        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        nursery.start_soon(stream.seek, str(seqs[2]))
        await wait_all_tasks_blocked()
        if reading:
            house.gate.let_newest()
            await wait_all_tasks_blocked()
            house.gate.open()
        await wait_all_tasks_blocked()
        assert got == seqs[3:]
        later = house.publish(2)
        await wait_all_tasks_blocked()
        assert got == seqs[3:] + later
        nursery.cancel_scope.cancel()
    house.store.close()


async def test_receive_cancelled_at_any_point_loses_no_event(tmp_path: Path) -> None:
    """behaviour 189"""
    house = House(tmp_path / "c.db", ring=2)
    due = house.publish(700)
    stream, got = await house.open(0), []
    for number in range(3000):
        with trio.CancelScope() as scope:
            if number % 3:
                scope.cancel()
            with trio.move_on_after(0.001):
                got.append((await stream.receive()).seq)
        if number % 300 == 0:
            due += house.publish(3)
    assert got == due
    house.store.close()


async def test_slow_subscriber_gets_queued_events_before_the_stream_ends(tmp_path: Path) -> None:
    """behaviours 129, 189: a client that resumes after its last event loses nothing."""
    house = House(tmp_path / "c.db", queue=3)
    stream = await house.open()
    assert await take_all(stream) == []
    due = house.publish(10)
    got = [(await stream.receive()).seq for _ in range(3)]
    assert stream.has_overflowed
    with pytest.raises(SubscriberOverflow):
        await stream.receive()
    stream.close()
    assert house.broadcaster.drops == 1
    assert got + await take_all(await house.open(got[-1])) == due
    house.store.close()


async def test_server_stop_ends_streams_after_the_queued_events(house: House) -> None:
    stream = await house.open()
    assert await take_all(stream) == []
    due = house.publish(2)
    house.broadcaster.close()
    assert [(await stream.receive()).seq for _ in due] == due
    for ended in (stream, await house.open()):
        with pytest.raises(StreamEnded):
            await ended.receive()
        assert not ended.has_overflowed


async def test_closed_stream_frees_its_slot(house: House) -> None:
    stream = await house.open()
    stream.close()
    assert await take_all(stream) == []
    stream.close()
    house.publish(1000)
    assert house.broadcaster.drops == 0
