"""Event stream of `GET /events`: frames, filters, positions, refusals, and the end of a stream."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.events.streams.sse import KEEPALIVE
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.server.http import serve
from tests.server.running import read_all, read_until
from tests.server.streaming import Station, broadcasting, open_sse, station_at

GET = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def test_frame_contains_id_event_and_data_but_no_origin(tmp_path: Path) -> None:
    """behaviour 130"""
    async with broadcasting(tmp_path) as (station, front):
        client = await open_sse(front)
        seq = await station.publish("note.created", ("a", "b"), id="x", title="Zwei\nZeilen", path="p.md")
        frame = await client.next()
        assert frame is not None
        assert list(frame.fields) == ["id", "event", "data"]
        assert (frame.seq, frame.fields["event"]) == (seq, "note.created")
        assert list(frame.data) == ["agent", "id", "title", "path", "tags", "timestamp"]
        assert frame.data["title"] == "Zwei\nZeilen"
        assert frame.data["tags"] == ["a", "b"]
        assert "secret" not in json.dumps(frame.data)
        await wait_all_tasks_blocked()
        assert station.counts.delivered == 1


async def test_envelope_keys_override_payload_keys(tmp_path: Path) -> None:
    """behaviour 130"""
    async with broadcasting(tmp_path) as (station, front):
        client = await open_sse(front)
        faked = {"timestamp": "never", "note": 1, "tags": "none", "agent": "nobody"}
        station.broadcast(1, **faked)
        frame = await client.next()
        assert frame is not None
        assert frame.data == {
            "agent": "ada", "timestamp": "2026-01-02T03:04:05.000006+00:00", "note": 1, "tags": [],
        }  # fmt: skip


async def test_response_has_the_headers_of_an_event_stream(tmp_path: Path) -> None:
    async with broadcasting(tmp_path) as (_, front):
        stream = await front.connect()
        await stream.send_all(GET)
        head = bytes(await stream.receive_some()).lower()
        for line in (
            b"content-type: text/event-stream",
            b"cache-control: no-cache",
            b"x-accel-buffering: no",
        ):
            assert line in head


async def test_filters_apply_to_replayed_and_live_events(tmp_path: Path) -> None:
    """behaviours 131, 132"""
    async with broadcasting(tmp_path) as (station, front):
        start = station.head

        async def publish() -> list[int]:
            await station.publish("note.created")
            await station.publish("task.created", ("x",))
            return [await station.publish("note.updated", (tag,)) for tag in ("x", "y")]

        due = await publish()
        query = f"since={start}&types=note.created,%20note.updated,&tags=x,y"
        client = await open_sse(front, query)
        assert await client.seqs(2) == due
        due = await publish()
        assert await client.seqs(2) == due


async def test_since_replays_later_events_and_last_event_id_overrides_it(tmp_path: Path) -> None:
    """behaviours 132, 133"""
    async with broadcasting(tmp_path) as (station, front):
        seqs = await station.publish_many(4)
        assert await (await open_sse(front, f"since={seqs[0]}")).seqs(3) == seqs[1:]
        client = await open_sse(front, f"since={seqs[0]}", f"Last-Event-ID: {seqs[2]}\r\n")
        assert await client.seqs(1) == seqs[3:]
        newest = await open_sse(front, f"since={seqs[-1]}")
        later = await station.publish()
        assert await newest.seqs(1) == [later]


async def test_unknown_id_gets_a_resync_and_then_live_events(tmp_path: Path) -> None:
    """behaviour 133"""
    async with broadcasting(tmp_path) as (station, front):
        await station.publish_many(2)
        for since in ("12", "nonsense"):
            client = await open_sse(front, headers=f"Last-Event-ID: {since}\r\n")
            frame = await client.next()
            assert frame is not None
            assert list(frame.fields) == ["event", "data"]
            assert frame.fields["event"] == "resync"
            assert list(frame.data) == ["reason", "since_id", "message"]
            assert (frame.data["reason"], frame.data["since_id"]) == ("replay_gap", since)
            later = await station.publish()
            assert await client.seqs(1) == [later]
        await wait_all_tasks_blocked()
        assert station.counts.delivered == 3  # The two SSE clients got the second event.


async def test_surplus_client_gets_429_until_another_client_leaves(tmp_path: Path) -> None:
    """behaviour 134"""
    async with broadcasting(tmp_path, limit=2) as (station, front):
        clients = [await open_sse(front) for _ in range(2)]
        answer = await front.exchange(GET)
        assert b" 429 " in answer
        assert answer.endswith(b"\r\n\r\nToo many SSE clients")
        await clients[0].stream.aclose()
        while station.sse_clients.active == 2:
            await trio.lowlevel.checkpoint()
        await open_sse(front)
        assert station.sse_clients.active == 2
        assert station.broadcaster.drops == 0


async def test_listener_without_a_token_is_refused(tmp_path: Path) -> None:
    """behaviours 134, 201"""
    async with broadcasting(tmp_path, auth_token="secret") as (_, front):
        assert b" 401 " in await front.exchange(GET)
        await open_sse(front, "access_token=secret")
        await open_sse(front, headers="Authorization: Bearer secret\r\n")


async def test_methods_other_than_get_are_refused(tmp_path: Path) -> None:
    async with broadcasting(tmp_path) as (station, front):
        for method in (b"POST", b"HEAD", b"DELETE"):
            answer = await front.exchange(GET.replace(b"GET", method))
            assert b" 405 " in answer, method
            assert b"allow: GET" in answer
        assert station.sse_clients.active == 0


async def test_slow_client_gets_queued_events_and_an_overflow_comment(tmp_path: Path) -> None:
    """behaviours 129, 189"""
    async with broadcasting(tmp_path, queue=5) as (station, front):
        client = await open_sse(front)
        await wait_all_tasks_blocked(0.01)
        first = station.head + 1
        station.broadcast(12)
        got = []
        while (frame := await client.next()) is not None and frame.fields:
            got.append(frame.seq)
        assert frame is not None
        assert frame.comment == "overflow"
        assert 5 <= len(got) < 12
        if not client.rest.endswith(b"0\r\r"):
            await read_until(client.stream, b"0\r\n\r\n")
        resumed = await open_sse(front, headers=f"Last-Event-ID: {got[-1]}\r\n")
        assert got + await resumed.seqs(12 - len(got)) == list(range(first, first + 12))
        while station.sse_clients.active > 1:
            await trio.lowlevel.checkpoint()
        assert station.counts.dropped == station.broadcaster.drops == 1


async def test_server_stop_ends_streams_cleanly_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "STOP_GRACE", 300.0)  # The grace period exceeds the time limit of the test.
    async with broadcasting(tmp_path) as (station, front):
        clients = [await open_sse(front) for _ in range(3)]
        front.shutdown.set()
        with trio.fail_after(60):
            for client in clients:
                assert (await read_all(client.stream)).endswith(b"0\r\n\r\n")
        assert station.counts.dropped == 0


async def test_end_of_the_event_source_ends_streams_cleanly(tmp_path: Path) -> None:
    async with broadcasting(tmp_path) as (station, front):
        client = await open_sse(front)
        station.broadcaster.close()
        await read_until(client.stream, b"0\r\n\r\n")


async def test_stream_that_fails_to_start_frees_its_slot(tmp_path: Path) -> None:
    """behaviour 134"""
    async with broadcasting(tmp_path) as (station, front):

        def fail(seq: int) -> bool:
            raise DatabaseFailed("disk I/O error")

        station.store.knows_position = fail  # type: ignore[method-assign]
        answer = await front.exchange(GET.replace(b"/events", b"/events?since=1"))
        assert b" 500 " in answer
        assert station.sse_clients.active == 0


class Plain:
    """Endpoint without a server. It collects its messages in a list."""

    def __init__(self, station: Station) -> None:
        self.station = station
        self.sent: list[bytes] = []
        self.gone = trio.Event()
        self.query = b""

    async def receive(self) -> dict[str, object]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, object]) -> None:
        await trio.lowlevel.checkpoint()
        if message["type"] == "http.response.body":
            self.sent.append(message["body"])  # type: ignore[arg-type]

    async def serve(self) -> None:
        scope: dict[str, object] = {"type": "http", "method": "GET", "path": "/events", "headers": []}
        scope["query_string"] = self.query
        await self.station.sse(scope, self.receive, self.send)  # type: ignore[arg-type]


@pytest.mark.autojump
async def test_idle_stream_sends_comments_regularly(tmp_path: Path) -> None:
    with station_at(tmp_path) as station:
        plain = Plain(station)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(plain.serve)
            await trio.sleep(3 * KEEPALIVE + 1)
            assert plain.sent == [b": keepalive\n\n"] * 3
            station.broadcast(1)
            await trio.sleep(KEEPALIVE - 1)
            assert len(plain.sent) == 4
            await trio.sleep(2)
            assert plain.sent[4:] == [b": keepalive\n\n"]
            plain.gone.set()
        assert station.sse_clients.active == 0
        assert station.counts.delivered == 1


@pytest.mark.autojump
async def test_cancellation_or_failure_at_any_point_frees_the_slot(tmp_path: Path) -> None:
    """behaviour 134"""
    with station_at(tmp_path) as station:
        for steps in range(12):
            plain = Plain(station)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(plain.serve)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            assert station.sse_clients.active == 0
        station.broadcast(200)
        assert station.broadcaster.drops == 0


@pytest.mark.autojump
async def test_only_events_and_resync_notices_contain_data(tmp_path: Path) -> None:
    """A block without data is a comment. Some clients treat a block with only an `id` as an empty message."""
    with station_at(tmp_path, queue=3) as station:
        first = Plain(station)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.serve)
            await trio.sleep(KEEPALIVE + 1)
            station.broadcast(2)
            await trio.sleep(1)
            station.broadcast(5)  # The queue is too short for these events.
            await trio.sleep(1)
        blocks = [block.split(b"\n") for block in b"".join(first.sent).split(b"\n\n") if block]
        comments = [block for block in blocks if block[0].startswith(b":")]
        messages = [block for block in blocks if block not in comments]
        assert [block[0] for block in comments] == [b": keepalive", b": overflow"]
        assert all(len(block) == 1 for block in comments)
        assert all(line.partition(b":")[0] in (b"id", b"event", b"data") for b in messages for line in b)
        assert all(any(line.startswith(b"data:") for line in block) for block in messages)
        positions = [int(block[0].removeprefix(b"id: ")) for block in messages]
        rest = Plain(station)
        rest.query = b"since=%d" % positions[-1]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rest.serve)
            await trio.sleep(1)
            rest.gone.set()
        resumed = re.findall(rb"^id: (\d+)$", b"".join(rest.sent), re.MULTILINE)
        assert [*positions, *map(int, resumed)] == list(range(positions[0], station.head + 1))
