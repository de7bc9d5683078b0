"""Benchmark of events: delivery to many subscribers while writes run, and replay.

Run `python -m bench.events`. *delivery*: writers change notes at a steady rate while SSE and WebSocket
clients listen. The delay of an event is the time from its timestamp to its arrival. The timestamp is the time
at which the change was decided, on the same clock. *replay*: a client reads a journal from the beginning over
SSE.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from statistics import median, quantiles

import trio
from attrs import define, field

import lithos.app.capabilities  # noqa: F401 - the tables of coordination.db
from bench.client import RawClient
from bench.report import middle, print_report
from bench.server import Serving, data_directory, serving
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.values.events import Event, EventDraft

_TEXT, _CLOSE, _PING = 1, 8, 9
_UPGRADE = (
    "GET /events/ws HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@define
class Delays:
    """The delays in seconds from change to arrival, for all events and all subscribers."""

    taken: list[float] = field(factory=list)
    cut_off: int = 0

    def note(self, timestamp: str) -> None:
        self.taken.append((datetime.now(UTC) - datetime.fromisoformat(timestamp)).total_seconds())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.events", description=__doc__)
    parser.add_argument("--subscribers", type=int, default=50, help="number of clients of each kind")
    parser.add_argument("--rate", type=float, default=200.0, help="changes a second")
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds of load in one round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--events", type=int, default=100_000, help="to replay")
    options = parser.parse_args()
    with data_directory(200) as data, serving(data) as server:
        trio.run(_measure_delivery, server, options)
    _measure_replay(options)


async def _measure_delivery(server: Serving, options: argparse.Namespace) -> None:
    rounds = [await _deliver(server, options) for _ in range(options.rounds)]
    print_report(
        "events.delivery",
        subscribers={"sse": options.subscribers, "websocket": options.subscribers},
        asked_rate=options.rate,
        changes_per_second=middle([one["changes"] for one in rounds], 1),
        deliveries_per_second=middle([one["deliveries"] for one in rounds], 0),
        delay_ms={name: middle([one[name] for one in rounds], 1) for name in ("p50", "p95", "p99")},
        cut_off=sum(one["cut_off"] for one in rounds),
        rounds=options.rounds,
    )


async def _deliver(server: Serving, options: argparse.Namespace) -> dict[str, float]:
    delays, changes = Delays(), [0]
    async with trio.open_nursery() as nursery:
        for _ in range(options.subscribers):
            await nursery.start(listen_sse, server, delays)
            await nursery.start(listen_websocket, server, delays)
        began = time.perf_counter()
        async with trio.open_nursery() as writers:
            for number in range(16):
                writers.start_soon(_write_steadily, server, number, options, changes)
        seconds = time.perf_counter() - began
        await trio.sleep(0.5)  # wait for the last events
        nursery.cancel_scope.cancel()
    cuts = quantiles(delays.taken, n=100)
    rates = {"changes": changes[0] / seconds, "deliveries": len(delays.taken) / seconds}
    return rates | {f"p{n}": cuts[n - 1] * 1000 for n in (50, 95, 99)} | {"cut_off": delays.cut_off}


async def _write_steadily(
    server: Serving, number: int, options: argparse.Namespace, changes: list[int]
) -> None:
    """Post findings to a separate task at a steady rate, as one of 16 agents."""
    pause = 16 / options.rate
    async with RawClient(server.host, server.port) as client:
        body = await client.exchange("lithos_task_create", {"title": f"Load {number}", "agent": "bench"})
        task = json.loads(body)["result"]["structuredContent"]["task_id"]
        ends = trio.current_time() + options.seconds
        due = trio.current_time() + pause * number / 16
        while due < ends:
            await trio.sleep_until(due)
            await client.call(
                "lithos_finding_post", {"task_id": task, "agent": "bench", "summary": "a step further"}
            )
            changes[0] += 1
            due += pause


async def listen_sse(
    server: Serving, delays: Delays, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    stream = await trio.open_tcp_stream(server.host, server.port)
    async with stream:
        await stream.send_all(f"GET /events HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n\r\n".encode())
        buffer = await stream.receive_some(65536)
        task_status.started()
        while True:
            *frames, buffer = buffer.split(b"\n\n")
            for frame in frames:
                if b"\ndata: " in frame:
                    delays.note(_timestamp(frame.decode()))
                elif b": overflow" in frame:
                    delays.cut_off += 1
            data = await stream.receive_some(65536)
            if not data:
                return
            buffer += data


def _timestamp(text: str) -> str:
    """Return an event's timestamp without parsing the event, which would measure the subscribers."""
    return text.rpartition('"timestamp":"')[2][:32]


async def listen_websocket(
    server: Serving, delays: Delays, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Listen without a client library, which would need more time per message than the server."""
    stream = await trio.open_tcp_stream(server.host, server.port)
    async with stream:
        await stream.send_all(_UPGRADE.format(host=server.host, port=server.port).encode())
        head, _, buffer = (await stream.receive_some(65536)).partition(b"\r\n\r\n")
        assert b" 101 " in head, head
        task_status.started()
        while data := await stream.receive_some(65536):
            buffer += data
            begin = 0
            while (frame := _frame_at(buffer, begin)) is not None:
                opcode, payload, begin = frame
                if opcode == _TEXT and b'"seq"' in payload:
                    delays.note(_timestamp(payload.decode()))
                elif opcode == _PING:
                    # A masked pong with a zero mask. The server closes connections that send no pong.
                    await stream.send_all(bytes((0x8A, 0x80 | len(payload), 0, 0, 0, 0)) + payload)
                elif opcode == _CLOSE:
                    delays.cut_off += 1
                    return
            buffer = buffer[begin:]


def _frame_at(buffer: bytes, begin: int) -> tuple[int, bytes, int] | None:
    """Return opcode, payload and end of the server frame that starts at `begin`.

    Return None if it is incomplete.
    """
    if len(buffer) < begin + 4:
        return None
    length, body = buffer[begin + 1], begin + 2
    if length == 126:
        length, body = int.from_bytes(buffer[begin + 2 : begin + 4]), begin + 4
    if len(buffer) < body + length:
        return None
    return buffer[begin] & 15, buffer[body : body + length], body + length


def _measure_replay(options: argparse.Namespace) -> None:
    with data_directory(10) as data:
        (data / ".lithos").mkdir()
        now = datetime.now(UTC)
        store = CoordinationStore.open(data / ".lithos" / "coordination.db", now)
        first = store.next_seq()
        payload = {"id": "00000000-0000-4000-8000-000000000000", "title": "A note", "path": "a-note.md"}
        draft = EventDraft(
            type="note.updated", agent="bench", payload=payload, timestamp=now, tags=("a", "b")
        )
        with store.transaction():
            store.append_events(Event(seq=first + n, draft=draft) for n in range(options.events))
        store.close()
        with serving(data) as server:
            rates = [trio.run(_replay, server, options.events, first) for _ in range(options.rounds)]
    print_report(
        "events.replay",
        events=options.events,
        seconds=round(options.events / median(rates), 2),
        events_per_second=middle(rates, 0),
        rounds=options.rounds,
    )


async def _replay(server: Serving, events: int, first: int) -> float:
    """Return the number of events per second, from the first event to the last event."""
    stream = await trio.open_tcp_stream(server.host, server.port)
    request = f"GET /events?since={first} HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n\r\n"
    began = time.perf_counter()
    async with stream:
        await stream.send_all(request.encode())
        seen, rest = 0, b""
        with trio.fail_after(300):
            while seen < events - 1:  # all events except the event at the start position
                *frames, rest = (rest + await stream.receive_some(1 << 18)).split(b"\n\n")
                seen += sum(b"event: note.updated" in frame for frame in frames)
    return events / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
