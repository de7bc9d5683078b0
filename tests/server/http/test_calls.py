"""Tool calls over a raw connection: in sequence, in pieces, interrupted, and during shutdown."""

from __future__ import annotations

import logging
import socket
import struct

import pytest
import trio
from quart import websocket
from quart_trio import QuartTrio
from wsproto import ConnectionType, WSConnection
from wsproto.events import Request

from lithos.server.http import connections, serve
from lithos.server.http.exchanges import FAULT, STOPPING, Exchanges
from lithos.server.http.ports import compact_json
from lithos.server.http.stream import TIMED_OUT, Connection
from tests.server.http.test_http import LOCAL, MCP, call, request, status_of
from tests.server.mcp.test_direct import DATE
from tests.server.running import read_all, read_until, running_front

BODY = call("echo", text="hi")


def plain(lines: bytes = LOCAL + MCP, body: bytes = BODY) -> bytes:
    return b"POST /mcp HTTP/1.1\r\n" + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


def answer_of(status: int, body: dict[str, str]) -> bytes:
    """Return the expected response bytes without the date header."""
    content = compact_json(body).encode()
    head = b"HTTP/1.1 %d \r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(content)) + content


async def test_request_inside_a_request_body_is_not_executed() -> None:
    """Covers all ways to split the bytes into packets.

    If Lithos executed the inner request, a client could smuggle requests through a proxy.
    """
    hidden = plain()
    usual = b"POST /mcp HTTP/1.1\r\n" + LOCAL + MCP
    odd = usual + b"Expect: nothing\r\nContent-Length: %d\r\n\r\n" % len(hidden)
    chunks = usual + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(hidden)
    calls = plain(LOCAL + MCP + b"X: a\tb\r\n", call("wait"))
    async with running_front() as front:
        for begin, end in (
            (odd, b""), (chunks, b"\r\n0\r\n\r\n"), (odd[:-2], b""), (usual[:9], b""),
        ):  # fmt: skip
            stream = await front.connect()
            async with stream:
                await stream.send_all(begin)
                await trio.testing.wait_all_tasks_blocked()
                await stream.send_all(hidden + end)
                await stream.send_eof()
                answer = await read_all(stream)
            assert answer.count(b"HTTP/1.1 ") == 1, answer
            assert answer.startswith(b"HTTP/1.1 400 "), answer
            assert front.tools.calls == [], begin
        stream = await front.connect()
        async with stream:
            await stream.send_all(calls)
            await front.tools.waiting.wait()
            await stream.send_all(hidden)
            await trio.testing.wait_all_tasks_blocked()
            assert front.tools.calls == ["wait"], "they are answered one behind the other"
            front.tools.release.set()
            assert b"waited" in await read_until(stream, b'"hi"')


async def test_data_after_an_upgrade_is_not_executed_as_a_request() -> None:
    def greeting(app: QuartTrio) -> None:
        @app.websocket("/events/ws")
        async def events() -> None:
            await websocket.send(str(await websocket.receive()))

    async with running_front([greeting]) as front:
        client = WSConnection(ConnectionType.CLIENT)
        stream = await front.connect()
        async with stream:
            await stream.send_all(client.send(Request(host="localhost", target="/events/ws")))
            await read_until(stream, b"\r\n\r\n")
            await stream.send_all(plain())
            await stream.send_eof()
            assert b'"hi"' not in await read_all(stream)
        assert front.tools.calls == []


async def test_connection_serves_all_kinds_of_requests_in_turn() -> None:
    message = call("echo", text="c")
    chunked = b"POST /mcp HTTP/1.1\r\n" + LOCAL + MCP + b"Transfer-Encoding: chunked\r\n\r\n"
    chunked += b"%x\r\n%s\r\n0\r\n\r\n" % (len(message), message)
    turns = [
        (plain(), b'"hi"'), (request("GET /health"), b'"components"'), (chunked, b'"c"'),
        (plain(body=call("refuse")), b"doc_not_found"), (request("GET /nope"), b"not_found"),
        (plain(body=b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), b'"result":{'), (plain(), b'"hi"'),
        (plain(body=b"{"), b"-32700"), (plain(body=call("big", size=200_000)), b"xxx"), (plain(), b'"hi"'),
    ]  # fmt: skip
    async with running_front() as front:
        answer = await front.exchange(b"".join(wire for wire, _ in turns))
        parts = answer.split(b"HTTP/1.1 ")[1:]
        assert len(parts) == len(turns)
        for part, (wire, wanted) in zip(parts, turns, strict=True):
            assert wanted in part, wire
        stream = await front.connect()
        async with stream:
            for wire, wanted in turns * 2:
                await stream.send_all(wire)
                await read_until(stream, wanted)


async def test_refusals_are_made_only_by_the_gate() -> None:
    """Each refusal is counted once. A refused caller reaches no tool."""
    async with running_front(auth_token="secret", max_body_bytes=60) as front:
        wrong = LOCAL + MCP + b"Authorization: Bearer wrong\r\n"
        right = wrong.replace(b"wrong", b"secret")
        assert status_of(await front.exchange(plain())) == 401
        assert status_of(await front.exchange(plain(wrong))) == 401
        assert status_of(await front.exchange(plain(wrong.replace(b"localhost", b"evil.example")))) == 403
        assert status_of(await front.exchange(plain(right))) == 413
        assert front.rejected == ["unauthorized", "unauthorized", "forbidden_host", "body_too_large"]
        assert front.tools.calls == []


async def test_plain_call_must_accept_json() -> None:
    kind = LOCAL + b"Content-Type: application/json\r\n"
    async with running_front() as front:
        for accepted, status in (
            (b"", 200), (b"Accept: application/json\r\n", 200), (b"Accept: text/html\r\n", 406),
            (b"Accept: text/*, application/*\r\n", 200),
        ):  # fmt: skip
            assert status_of(await front.exchange(plain(kind + accepted))) == status
        assert front.tools.calls == ["echo"] * 3


async def test_body_that_arrives_slowly_is_read_completely() -> None:
    async with running_front() as front:
        stream = await front.connect()
        async with stream:
            padded = plain(body=BODY + b"  ")
            await stream.send_all(padded[:-1])
            await trio.testing.wait_all_tasks_blocked()
            await stream.send_all(padded[-1:])
            for byte in padded + plain():
                await stream.send_all(bytes((byte,)))
            await stream.send_eof()
            answers = await read_all(stream)
        assert answers.count(b"HTTP/1.1 200 ") == answers.count(b"HTTP/1.1 ") == 3
        assert front.tools.calls == ["echo"] * 3


async def test_unencodable_answer_becomes_an_error_without_closing_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_front() as front:
        stream = await front.connect()
        async with stream:
            with monkeypatch.context() as patch:
                patch.setattr("lithos.server.mcp.over_http.encode_answer", None)
                await stream.send_all(plain())
                assert DATE.sub(b"", await read_until(stream, b"}")) == answer_of(500, FAULT)
            await trio.testing.wait_all_tasks_blocked()
            await stream.send_all(plain())
            assert b" 200 " in await read_until(stream, b"}}}")
    assert caplog.text.count("request failed") == 1
    caplog.clear()


async def test_interrupted_call_gets_an_error_and_its_connection_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve, "STOP_GRACE", 0.05)
    async with running_front() as front:
        stream = await front.connect()
        await stream.send_all(plain(body=call("wait")) + plain())
        await front.tools.waiting.wait()
        front.shutdown.set()
        assert DATE.sub(b"", await read_all(stream)) == answer_of(503, STOPPING)
    assert (front.tools.calls, front.tools.cancelled) == (["wait"], 1)


async def test_connection_closes_after_its_last_call_during_shutdown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for bound in ("STOP_GRACE", "STOP_FLUSH"):
        monkeypatch.setattr(serve, bound, 60.0)
    async with running_front() as front:
        streams = [await front.connect(), await front.connect()]
        await streams[0].send_all(plain(body=call("wait")) + plain())
        await streams[1].send_all(plain(body=call("wait")))
        while len(front.tools.calls) < 2:
            await trio.lowlevel.checkpoint()
        front.shutdown.set()
        await trio.testing.wait_all_tasks_blocked()
        front.tools.release.set()
        with trio.fail_after(60):
            for stream in streams:
                assert (await read_all(stream)).count(b"HTTP/1.1 200 ") == 1
        assert front.tools.calls == ["wait", "wait"]


async def test_answer_being_sent_is_completed_during_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "STOP_GRACE", 0.05)
    monkeypatch.setattr(serve, "STOP_FLUSH", 30.0)
    cut = trio.Event()
    cancel = Exchanges.cancel
    monkeypatch.setattr(Exchanges, "cancel", lambda exchanges: (cancel(exchanges), cut.set()))
    async with running_front() as front:
        stream = await front.connect()
        await stream.send_all(plain(body=call("big", size=4_000_000)))  # the answer contains the text twice
        begin = bytes(await stream.receive_some())
        front.shutdown.set()
        await cut.wait()
        length = int(begin.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        assert len(begin + await read_all(stream)) == begin.index(b"\r\n\r\n") + 4 + length


async def test_call_is_finished_after_its_client_disconnects(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running_front() as front:
        stream = await front.connect()
        await stream.send_all(plain(body=call("wait")))
        await front.tools.waiting.wait()
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        front.tools.release.set()
        await trio.testing.wait_all_tasks_blocked()
        assert status_of(await front.exchange(plain())) == 200
    assert front.tools.cancelled == 0
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.autojump
async def test_server_waits_for_slow_clients_but_not_for_stalled_clients() -> None:
    near, far = trio.socket.socketpair()
    connection, client = Connection(trio.SocketStream(near)), trio.SocketStream(far)
    whole = b"x" * 3_000_000
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.send_all, whole)
        received = b""
        while len(received) < len(whole):
            await trio.sleep(1)
            received += bytes(await client.receive_some(500_000))
    with pytest.raises(trio.BrokenResourceError):
        await connection.send_all(whole)
    with pytest.raises(trio.ClosedResourceError):
        await connection.send_all(b"more")
    with pytest.raises(trio.ClosedResourceError):
        await connection.receive_some()
    await client.aclose()


async def test_idle_connections_are_closed_and_partial_heads_get_408(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slowly arriving bytes do not keep a connection open. A running call does."""
    monkeypatch.setattr(connections, "IDLE_PATIENCE", 0.2)
    async with running_front() as front:
        busy, idle, half = [await front.connect() for _ in range(3)]
        await busy.send_all(plain(body=call("wait")))
        await front.tools.waiting.wait()
        await idle.send_all(plain())
        await half.send_all(plain() + b"POST /mcp HTTP/1.1\r\nX")
        assert (await read_all(idle)).count(b"HTTP/1.1 ") == 1
        assert (await read_all(half)).endswith(TIMED_OUT)
        front.tools.release.set()
        assert b"waited" in await read_until(busy, b"}}}")
