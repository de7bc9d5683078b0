"""Event stream for pages: the first event comes at once, and later events come together after a pause."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import Any

import pytest
import trio

from lithos.events.reading.event_stream import StreamEnded
from lithos.events.streams.frames import Subscribers
from lithos.events.streams.sse import SseEndpoint
from lithos.kernel.values.events import Event, EventDraft


class FakeStream:
    """A stream of events that the test supplies. `None` ends the stream."""

    has_overflowed = False

    def __init__(self) -> None:
        self.put, self._events = trio.open_memory_channel[Event | None](100)
        self.capacities: deque[int | None] = deque(maxlen=9)

    async def open(self, since: str | None, wanted: object, capacity: int | None) -> FakeStream:
        self.capacities.append(capacity)
        return self

    async def receive(self) -> Event:
        event = await self._events.receive()
        if event is None:
            raise StreamEnded
        return event

    def take_waiting(self, most: int) -> list[Event]:
        taken: list[Event] = []
        while len(taken) < most and self._events.statistics().current_buffer_used:
            event = self._events.receive_nowait()
            assert event is not None
            taken.append(event)
        return taken

    def close(self) -> None:
        self.put.close()


def make_event(seq: int) -> Event:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Event(seq=seq, draft=EventDraft(type="task.ready", agent="a", payload={}, timestamp=at))


@pytest.mark.autojump
@pytest.mark.parametrize(
    ("pause", "sends"), [(1.0, [(0, 1), (1, 4), (2, 1)]), (0.0, [(0, 1), (0, 4), (1, 1)])]
)
async def test_events_during_the_pause_are_sent_together_afterwards(
    pause: float, sends: list[tuple[int, int]]
) -> None:
    stream, sent = FakeStream(), list[tuple[int, int]]()
    began = trio.current_time()

    async def send(message: Any) -> None:
        number = message.get("body", b"").count(b"event: ")
        if number:
            sent.append((round(trio.current_time() - began), number))
        await trio.lowlevel.checkpoint()

    one = Subscribers("SSE", limit=1)
    endpoint = SseEndpoint(stream, one, pause=pause, capacity=7)  # type: ignore[arg-type]
    scope = {"type": "http", "method": "GET", "query_string": b"", "headers": []}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(endpoint, scope, trio.sleep_forever, send)
        await stream.put.send(make_event(1))
        await trio.sleep(0.1)
        for seq in range(2, 6):
            stream.put.send_nowait(make_event(seq))
        await trio.sleep(1.1)
        stream.put.send_nowait(make_event(6))
        await trio.sleep(2)
        stream.put.send_nowait(None)
        with trio.move_on_after(5):
            await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert sent == sends
    assert list(stream.capacities) == [7]
