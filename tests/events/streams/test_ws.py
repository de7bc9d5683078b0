"""Event WebSocket `/events/ws`: hello, filters, cursors, invalid frames, refusals and connection end."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from trio_websocket import ConnectionClosed
from wsproto import ConnectionType, WSConnection
from wsproto.events import Request

from lithos.server.http import serve
from lithos.server.http import stream as wire
from lithos.server.http.limits import MESSAGE_BYTES
from tests.server.running import Front, read_all, read_until
from tests.server.streaming import Station, WsClient, broadcasting, open_ws


async def closing_code(client: WsClient, *, acknowledges: bool = False) -> int:
    """Read to the end. Return the close code that the server sent."""
    try:
        while True:
            frame = await client.next()
            if acknowledges:
                await client.send({"op": "ack", "seq": frame["seq"]})
    except ConnectionClosed as closed:
        return int(closed.reason.code) if closed.reason else 0


async def refused(front: Front, query: str = "", **headers: str) -> tuple[int, bytes]:
    """Send an upgrade request that must be refused. Return status and body."""
    stream = await front.connect()
    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    target = f"/events/ws?{query}"
    await stream.send_all(
        WSConnection(ConnectionType.CLIENT).send(
            Request(host="localhost", target=target, extra_headers=lines)
        )
    )
    head, _, body = (await read_all(stream)).partition(b"\r\n\r\n")
    return int(head.split()[1]), body


async def all_gone(station: Station) -> None:
    while station.ws_clients.active:
        await trio.sleep(0.001)


async def test_hello_message_precedes_all_events(tmp_path: Path) -> None:
    """behaviour 188"""
    async with broadcasting(tmp_path) as (station, front):
        before = await station.publish()
        async with open_ws(front) as (client, hello):
            assert hello == {"type": "hello", "head": before, "cursor": None}
            seq = await station.publish("task.created", ("t",), task_id="x")
            assert await client.next() == {
                "id": str(seq),
                "seq": seq,
                "type": "task.created",
                "agent": "ada",
                "payload": {"task_id": "x"},
                "tags": ["t"],
                "timestamp": "2026-01-02T03:04:05.000006+00:00",
            }
            await wait_all_tasks_blocked()
            assert station.counts.delivered == 1


async def test_query_sets_filters_and_since(tmp_path: Path) -> None:
    """behaviours 132, 188"""
    async with broadcasting(tmp_path) as (station, front):
        start = station.head
        await station.publish("note.created")
        due = [await station.publish("task.created", ("b",))]
        async with open_ws(front, f"since={start}&types=task.created&tags=a,b") as (client, hello):
            assert hello["head"] == due[0]
            await station.publish("task.created")
            due.append(await station.publish("task.created", ("a", "c")))
            assert await client.seqs(2) == due


async def test_subscribe_replaces_the_filter_and_replays_on_request(tmp_path: Path) -> None:
    """behaviour 188"""
    async with (
        broadcasting(tmp_path) as (station, front),
        open_ws(front, "types=task.created") as (client, _),
    ):
        note = await station.publish("note.created")
        task = await station.publish("task.created")
        assert await client.seqs(1) == [task]
        await client.send({"op": "subscribe", "types": ["note.created"], "since": str(note - 1)})
        assert await client.seqs(1) == [note]
        await client.send({"op": "subscribe", "since": note - 1})
        assert await client.seqs(2) == [note, task]
        await client.send({"op": "subscribe", "tags": ["x"], "since": "nonsense"})
        notice = await client.next()
        assert list(notice) == ["type", "reason", "since_id", "message"]
        assert (notice["type"], notice["since_id"]) == ("resync", "nonsense")
        await station.publish()
        tagged = await station.publish(tags=("x",))
        assert await client.seqs(1) == [tagged]


async def test_named_subscriber_resumes_after_its_last_acknowledged_event(tmp_path: Path) -> None:
    """behaviour 188: covers a restart of the server. A new name starts at the head."""
    async with broadcasting(tmp_path) as (station, front):
        await station.publish()
        start = station.head
        async with open_ws(front, "subscriber=ada") as (client, hello):
            assert hello == {"type": "hello", "head": start, "cursor": start}
            assert station.store.cursor("ada") == start
            seqs = await station.publish_many(4)
            assert await client.seqs(4) == seqs
            await client.send({"op": "ack", "seq": seqs[0]})
            await client.send({"op": "ack", "seq": seqs[1]})
        async with open_ws(front, "subscriber=ada") as (client, hello):
            assert hello["cursor"] == seqs[1]
            assert await client.seqs(2) == seqs[2:]
            await client.send({"op": "ack", "seq": start})
            await client.send({"op": "ack", "seq": seqs[2]})
    async with broadcasting(tmp_path) as (station, front):
        async with open_ws(front, "subscriber=ada") as (client, hello):
            assert hello["cursor"] == seqs[2]
            assert await client.seqs(1) == seqs[3:]
        async with open_ws(front, f"subscriber=ada&since={start}") as (client, hello):
            assert hello["cursor"] == seqs[2]
            assert await client.seqs(4) == seqs
        async with open_ws(front, f"subscriber=new&since={start}") as (client, hello):
            assert hello["cursor"] is None
            assert await client.seqs(4) == seqs


async def test_connections_with_one_name_share_the_cursor(tmp_path: Path) -> None:
    """behaviour 188"""
    async with (
        broadcasting(tmp_path) as (station, front),
        open_ws(front, "subscriber=ada") as (one, _),
        open_ws(front, "subscriber=ada") as (two, _),
    ):
        (seq,) = await station.publish_many(1)
        assert await one.seqs(1) == await two.seqs(1) == [seq]
        await one.send({"op": "ack", "seq": seq})
        while station.store.cursor("ada") != seq:
            await trio.sleep(0.001)
        async with open_ws(front, "subscriber=ada") as (_, hello):
            assert hello["cursor"] == seq


async def test_acknowledgement_above_the_last_sent_event_is_an_error(tmp_path: Path) -> None:
    """behaviour 188"""
    async with broadcasting(tmp_path) as (station, front):
        async with open_ws(front, "subscriber=ada&types=task.created") as (client, hello):
            seq = await station.publish("note.created")
            await client.send({"op": "ack", "seq": seq})
            error = await client.next()
            assert (error["type"], error["code"]) == ("error", "invalid_input")
            assert str(hello["head"]) in error["message"]
            await client.send({"op": "ack", "seq": 10**18})
            assert (await client.next())["type"] == "error"
        await all_gone(station)
        assert station.store.cursor("ada") == hello["head"]


async def test_lost_cursor_gets_resync_and_can_be_set_again(tmp_path: Path) -> None:
    async with broadcasting(tmp_path) as (station, front):
        async with open_ws(front, "subscriber=ada"):
            await station.publish_many(9)
        with station.store.transaction():
            station.store.prune_events(3)
        async with open_ws(front, "subscriber=ada") as (client, hello):
            assert (await client.next())["type"] == "resync"
            await client.send({"op": "ack", "seq": hello["head"]})
        async with open_ws(front, "subscriber=ada") as (_, again):
            assert again["cursor"] == hello["head"]


async def test_acknowledgements_are_ignored_without_a_subscriber_name(tmp_path: Path) -> None:
    """behaviour 188"""
    async with (
        broadcasting(tmp_path) as (station, front),
        open_ws(front, "subscriber=%20") as (client, hello),
    ):
        assert hello["cursor"] is None
        await client.send({"op": "ack", "seq": 10**18})
        seq = await station.publish()
        assert await client.seqs(1) == [seq]


BAD: list[Any] = [
    "", "x", "{", "[]", "null", "1", '"op"', "{}", b"{}", b"", "[" * 30_000, "9" * 60_000, "\x00",
    {"op": "fly"}, {"op": ["ack"]}, {"op": "ack"}, {"op": "ack", "seq": "1"}, {"op": "ack", "seq": True},
    {"op": "ack", "seq": 1.5}, {"op": "ack", "seq": None}, {"op": "subscribe", "types": "note.created"},
    {"op": "subscribe", "tags": [1]}, {"op": "subscribe", "since": 1.5}, {"op": "subscribe", "since": []},
]  # fmt: skip


async def test_invalid_frame_gets_an_error_without_closing_the_connection(tmp_path: Path) -> None:
    """behaviour 188"""
    async with broadcasting(tmp_path) as (station, front), open_ws(front, "subscriber=ada") as (client, _):
        for frame in BAD:
            await client.send(frame)
            error = await client.next()
            assert list(error) == ["type", "code", "message"], frame
            assert (error["type"], error["code"]) == ("error", "invalid_input")
            assert len(error["message"]) < 200
        seq = await station.publish()
        assert await client.seqs(1) == [seq]


async def test_invalid_positions_get_resync_or_an_error(tmp_path: Path) -> None:
    async with broadcasting(tmp_path) as (_, front), open_ws(front, "subscriber=ada") as (client, _):
        for since in ("-5", "9" * 5000):
            await client.send(f'{{"op":"subscribe","since":{since}}}')
            assert (await client.next())["type"] in ("resync", "error")
        await client.send('{"op":"ack","seq":-1}')
        await client.send(f'{{"op":"ack","seq":{"9" * 5000}}}')
        assert (await client.next())["type"] == "error"


@pytest.mark.slow
async def test_thousands_of_invalid_frames_do_not_disturb_other_clients(tmp_path: Path) -> None:
    """One client reads the answers to its frames. Another client never reads them."""
    async with broadcasting(tmp_path) as (station, front), open_ws(front) as (good, _):
        async with open_ws(front) as (client, _):
            async with trio.open_nursery() as nursery:

                async def read() -> None:
                    for _ in range(3_000):
                        assert (await client.next())["type"] == "error"

                nursery.start_soon(read)
                for _ in range(3_000):
                    await client.send("{")
            seq = await station.publish()
            assert await good.seqs(1) == await client.seqs(1) == [seq]
        deaf = WSConnection(ConnectionType.CLIENT)
        stream = await front.connect()
        await stream.send_all(deaf.send(Request(host="localhost", target="/events/ws")))
        await read_until(stream, b"hello")
        frame = b"\x81\x81\0\0\0\0{"
        await stream.send_all(frame * 10_000)
        seq = await station.publish()
        assert await good.seqs(1) == [seq]


async def test_message_that_is_too_large_closes_the_connection_with_1009(tmp_path: Path) -> None:
    async with broadcasting(tmp_path) as (station, front):
        async with open_ws(front) as (client, _):
            await client.send("x" * (MESSAGE_BYTES - 1))
            assert (await client.next())["type"] == "error"
            await client.send("x" * (MESSAGE_BYTES + 1))
            assert await closing_code(client) == 1009
        await all_gone(station)
        raw = WSConnection(ConnectionType.CLIENT)
        stream = await front.connect()
        await stream.send_all(raw.send(Request(host="localhost", target="/events/ws")))
        await read_until(stream, b"hello")
        header = b"\x81\xff" + (2**40).to_bytes(8, "big") + b"\0\0\0\0"
        await stream.send_all(header + b"x" * (40 * MESSAGE_BYTES))
        assert b"\x88" in await read_until(stream, b"\x88")


async def test_websocket_compression_is_not_offered(tmp_path: Path) -> None:
    async with broadcasting(tmp_path) as (_, front):
        headers = [("Sec-WebSocket-Extensions", "permessage-deflate")]
        async with open_ws(front, headers=headers) as (client, _):
            names = {name.lower() for name, _ in client.socket.handshake_headers}
            assert b"sec-websocket-extensions" not in names


async def test_surplus_client_gets_429_until_another_client_leaves(tmp_path: Path) -> None:
    """behaviour 134"""
    async with broadcasting(tmp_path, limit=1) as (station, front):
        async with open_ws(front):
            assert await refused(front) == (429, b"Too many WebSocket clients")
        await all_gone(station)
        async with open_ws(front):
            assert station.ws_clients.active == 1


async def test_gate_refuses_foreign_pages_and_requests_without_a_token(tmp_path: Path) -> None:
    """behaviours 201, 202"""
    async with broadcasting(tmp_path, auth_token="secret") as (_, front):
        assert (await refused(front))[0] == 401
        assert (await refused(front, "access_token=secret", Origin="https://evil.example"))[0] == 403
        async with open_ws(front, "access_token=secret"):
            pass


async def test_subscriber_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    async with broadcasting(tmp_path) as (station, front):
        assert (await refused(front, f"subscriber={'x' * 201}"))[0] == 400
        assert station.ws_clients.active == 0


async def test_full_queue_closes_with_1013_and_a_resume_loses_nothing(tmp_path: Path) -> None:
    """behaviours 129, 189"""
    async with broadcasting(tmp_path, queue=5) as (station, front):
        async with open_ws(front, "subscriber=ada") as (client, _):
            await wait_all_tasks_blocked(0.01)
            first = station.head + 1
            station.broadcast(12)
            assert await closing_code(client, acknowledges=True) == 1013
        await all_gone(station)
        assert station.counts.dropped == station.broadcaster.drops == 1
        async with open_ws(front, "subscriber=ada") as (client, hello):
            rest = await client.seqs(first + 11 - hello["cursor"])
            assert [*range(first, hello["cursor"] + 1), *rest] == list(range(first, first + 12))


async def test_client_that_does_not_read_is_disconnected(tmp_path: Path) -> None:
    """behaviour 189"""
    async with broadcasting(tmp_path, queue=5) as (station, front), open_ws(front) as (good, _):
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((front.host, front.port))
        deaf.sendall(WSConnection(ConnectionType.CLIENT).send(Request(host="localhost", target="/events/ws")))
        while station.ws_clients.active < 2:
            await trio.sleep(0.001)
        while not station.broadcaster.drops:
            seq = await station.publish(text="x" * 500_000)
            assert await good.seqs(1) == [seq]
        deaf.close()
        while station.ws_clients.active > 1:
            await trio.sleep(0.001)
        assert station.counts.dropped == 1


async def test_server_stop_closes_with_1001_and_keeps_confirmed_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "STOP_GRACE", 300.0)  # The grace period exceeds the time limit of the test.
    async with broadcasting(tmp_path) as (station, front), open_ws(front, "subscriber=ada") as (client, _):
        (seq,) = await station.publish_many(1)
        assert await client.seqs(1) == [seq]
        await client.send({"op": "ack", "seq": seq})
        await client.send({"op": "subscribe", "since": "x"})
        assert (await client.next())["type"] == "resync"
        front.shutdown.set()
        with trio.fail_after(60):
            assert await closing_code(client) == 1001
    async with broadcasting(tmp_path) as (station, _):
        assert station.store.cursor("ada") == seq


async def test_end_of_the_event_source_closes_with_1001(tmp_path: Path) -> None:
    async with broadcasting(tmp_path) as (station, front), open_ws(front) as (client, _):
        await wait_all_tasks_blocked(0.01)
        station.broadcaster.close()
        assert await closing_code(client) == 1001


async def test_client_that_does_not_answer_pings_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In this interval, a client on a busy machine can answer, and the test is still short.
    monkeypatch.setattr(wire, "PING_INTERVAL", 0.5)
    async with broadcasting(tmp_path) as (station, front), open_ws(front) as (alive, _):
        mute = WSConnection(ConnectionType.CLIENT)
        stream = await front.connect()
        await stream.send_all(mute.send(Request(host="localhost", target="/events/ws")))
        received = b""
        while part := await stream.receive_some():
            received += bytes(part)
        assert b"\x89\x00" in received
        while station.ws_clients.active > 1:
            await trio.sleep(0.001)
        seq = await station.publish()
        assert await alive.seqs(1) == [seq]
