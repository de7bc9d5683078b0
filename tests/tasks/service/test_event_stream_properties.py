"""Property tests: clients get each event once and in order, despite pruning, disconnects and restarts."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

import lithos.events.reading.event_stream as module
from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.reading.event_stream import (
    EventFilter,
    EventStream,
    EventStreams,
    Resync,
    SubscriberOverflow,
)
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.threads import Inline
from lithos.kernel.values.events import Event, EventDraft
from tests.fakes import START

RING, QUEUE, PAGE = 6, 4, 3
TYPES = ("a", "b", "c")


@define(eq=False)
class Journal(Inline):
    """Journal with a writer and a reader. The writer continues while the reader reads."""

    store: CoordinationStore
    broadcaster: Broadcaster = field(init=False)
    events: list[Event] = field(factory=list)
    meanwhile: list[Callable[[], None]] = field(factory=list)
    #: Events that are committed but not broadcast yet.
    late: list[Event] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.late = []
        self.broadcaster = Broadcaster(RING, QUEUE)
        self.broadcaster.head = self.store.next_seq() - 1

    def publish(self, types: list[str], *, late: bool = False) -> None:
        """Commit events, and then broadcast them.

        With `late`, a reader sees the commit before the broadcast.
        """
        self.broadcast()
        first = self.store.next_seq()
        events = [
            Event(seq=first + n, draft=EventDraft(type=t, agent="x", payload={}, timestamp=START))
            for n, t in enumerate(types)
        ]
        with self.store.transaction():
            self.store.append_events(events)
        self.events += events
        self.late = events
        if late:
            self.meanwhile.insert(0, self.broadcast)
        else:
            self.broadcast()

    def broadcast(self) -> None:
        self.broadcaster.publish(self.late)
        self.late = []

    def prune(self, keep: int) -> None:
        with self.store.transaction():
            self.store.prune_events(keep)

    async def run(self, call: Callable[[], Any]) -> Any:
        self._go_on()
        result = await super().run(call)
        self._go_on()
        return result

    def _go_on(self) -> None:
        if self.meanwhile:
            self.meanwhile.pop(0)()


@define
class Client:
    """Subscriber that resumes after its last event, and the events that it may see."""

    journal: Journal
    wanted: EventFilter
    #: The client has received all events up to this sequence number. Later events that pass its filter are
    #: due.
    start: int = 0
    got: list[int] = field(factory=list)
    stream: EventStream | None = None

    async def connect(self, since: str | None) -> None:
        self.disconnect()
        streams = EventStreams(self.journal.broadcaster, self.journal.store, self.journal)
        if since is None:
            self.start_over(streams.head)
        self.stream = await streams.open(since, self.wanted)

    def start_over(self, start: int) -> None:
        self.check()
        self.start, self.got = start, []

    async def receive(self, count: int) -> None:
        """Receive up to `count` events. A client that was disconnected resumes after its last event."""
        for _ in range(count):
            if self.stream is None:
                await self.connect(str(self.position))
            assert self.stream is not None
            with trio.move_on_after(1) as quiet:
                try:
                    item = await self.stream.receive()
                except SubscriberOverflow:
                    self.disconnect()
                    continue
            if quiet.cancelled_caught:
                return
            if isinstance(item, Resync):
                assert self.position < self.journal.store.pruned_through(), "a needless resync"
                self.start_over(self.stream.position)
            else:
                self.got.append(item.seq)

    @property
    def position(self) -> int:
        return self.got[-1] if self.got else self.start

    def disconnect(self) -> None:
        if self.stream is not None:
            self.stream.close()
        self.stream = None

    def check(self) -> int:
        """Assert that the received events are the first due events.

        Return the number of events that are still due.
        """
        due = [e.seq for e in self.journal.events if e.seq > self.start and self.wanted.passes(e)]
        assert due[: len(self.got)] == self.got
        return len(due) - len(self.got)


PUBLISH = st.tuples(st.just("publish"), st.lists(st.sampled_from(TYPES), min_size=1, max_size=7))
PRUNE = st.tuples(st.just("prune"), st.integers(0, 12))
LATE = st.tuples(st.just("late"), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
STEPS = st.one_of(
    PUBLISH,
    PUBLISH,
    PRUNE,
    st.tuples(st.just("receive"), st.integers(1, 12)),
    st.tuples(st.just("meanwhile"), st.one_of(PUBLISH, PRUNE, LATE)),
    st.just(("reconnect", None)),
    st.just(("restart", None)),
)


def act(journal: Journal, name: str, value: Any) -> None:
    if name == "publish":
        journal.publish(value)
    elif name == "late":
        journal.publish(value, late=True)
    elif name == "prune":
        journal.prune(value)


async def play(journal: Journal, wanted: EventFilter, steps: list[tuple[str, Any]]) -> None:
    client = Client(journal, wanted)
    await client.connect(None)
    for name, value in steps:
        if name == "receive":
            await client.receive(value)
        elif name == "meanwhile":
            journal.meanwhile.append(lambda value=value: act(journal, *value))
        elif name in ("reconnect", "restart"):
            client.disconnect()
            if name == "restart":
                journal.restart()
        else:
            act(journal, name, value)
    while journal.meanwhile:
        journal.meanwhile.pop(0)()
    journal.broadcast()
    await client.receive(10_000)
    assert client.check() == 0


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of an empty journal to copy."""
    path = tmp_path_factory.mktemp("journal") / "coordination.db"
    CoordinationStore.open(path, START).close()
    return path


@contextmanager
def journal_at(template: Path) -> Iterator[Journal]:
    path = template.with_name("used.db")
    shutil.copy(template, path)
    store = CoordinationStore.open(path, START)
    store._writer.execute("PRAGMA synchronous=OFF")
    try:
        yield Journal(store)
    finally:
        store.close()


@given(steps=st.lists(STEPS, max_size=25), types=st.sets(st.sampled_from(TYPES), max_size=2))
def test_events_arrive_once_and_in_order_without_loss(
    template: Path, steps: list[tuple[str, Any]], types: set[str]
) -> None:
    """behaviours 132, 133, 186, 189"""
    with pytest.MonkeyPatch.context() as patch, journal_at(template) as journal:
        patch.setattr(module, "PAGE", PAGE)
        trio.run(play, journal, EventFilter(frozenset(types)), steps, clock=MockClock(autojump_threshold=0))
