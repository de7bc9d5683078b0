"""Server stop within a limited time: streams end at once, calls finish, and no client delays the stop."""

from __future__ import annotations

import json
import logging
import socket

import pytest
import trio
from quart import Response, websocket
from quart_trio import QuartTrio
from wsproto import ConnectionType, WSConnection
from wsproto.events import CloseConnection, Request, TextMessage

from lithos.server.http import serve as serve_module
from lithos.server.http.sockets import CannotListen, PortInUse
from lithos.server.http.stream import TIMED_OUT, Connection
from tests.server.http.test_http import LOCAL, MCP, call, request
from tests.server.running import SETTINGS, Front, read_all, read_until, rpc, running_front

#: Grace time in seconds, longer than every test timeout. A stop that ends in time therefore did not use it.
LONG = 300.0
PATIENCE = 60.0
#: Maximum duration of a stop in seconds: `STOP_GRACE`, twice `STOP_FLUSH`, and a margin.
REAL_BOUND = 5.0


@pytest.fixture(autouse=True)
def _long_grace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(serve_module, "STOP_GRACE", LONG)


async def open_sse(front: Front) -> tuple[trio.SocketStream, str]:
    """Open an MCP SSE session. Return its stream, and the request line for posts to the session."""
    stream = await front.connect()
    await stream.send_all(request("GET /sse"))
    opened = b""
    while not opened.endswith(b"\r\n\r\n\r\n"):
        opened += bytes(await stream.receive_some())
    return stream, f"POST /messages/?session_id={opened.split(b'session_id=')[1][:32].decode()}"


async def post(front: Front, line: str, message: dict[str, object]) -> None:
    answer = await front.exchange(request(line, LOCAL + MCP, json.dumps(message).encode()))
    assert b" 202 " in answer


async def initialize(front: Front, line: str) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    await post(front, line, rpc("initialize", 0, **hello))
    await post(front, line, rpc("notifications/initialized", None))


async def test_open_sse_sessions_end_cleanly_at_once_on_stop() -> None:
    async with running_front() as front:
        streams = [(await open_sse(front))[0] for _ in range(5)]
        front.shutdown.set()
        with trio.fail_after(PATIENCE):
            for stream in streams:
                assert (await read_all(stream)).endswith(b"0\r\n\r\n")


async def test_event_streams_of_other_routes_end_at_once_on_stop() -> None:
    def endless(app: QuartTrio) -> None:
        @app.get("/events")
        async def events() -> Response:
            return Response(ticks(), content_type="text/event-stream")

    async def ticks() -> object:
        yield ": hello\n\n"
        await trio.sleep_forever()

    async with running_front([endless]) as front:
        stream = await front.connect()
        await stream.send_all(request("GET /events"))
        await read_until(stream, b"hello")
        front.shutdown.set()
        with trio.fail_after(PATIENCE):
            assert (await read_all(stream)).endswith(b"0\r\n\r\n")


async def test_websockets_are_closed_with_1001_on_stop() -> None:
    def endless(app: QuartTrio) -> None:
        @app.websocket("/events/ws")
        async def events() -> None:
            await websocket.send("hello")
            await trio.sleep_forever()

    async with running_front([endless]) as front:
        client = WSConnection(ConnectionType.CLIENT)
        stream = await front.connect()
        await stream.send_all(client.send(Request(host="localhost", target="/events/ws")))
        events: list[object] = []
        with trio.fail_after(PATIENCE):
            while not any(isinstance(event, CloseConnection) for event in events):
                client.receive_data(bytes(await stream.receive_some()))
                events += client.events()
                if any(isinstance(event, TextMessage) for event in events):
                    front.shutdown.set()
        assert [event.code for event in events if isinstance(event, CloseConnection)] == [1001]


async def test_running_call_may_finish_during_a_stop() -> None:
    async with running_front() as front:
        stream = await front.connect()
        await stream.send_all(request("POST /mcp", LOCAL + MCP, call("wait")))
        await front.tools.waiting.wait()
        front.shutdown.set()
        await trio.testing.wait_all_tasks_blocked()
        front.tools.release.set()
        assert b"waited" in await read_all(stream)


async def test_answer_of_a_running_sse_call_is_delivered() -> None:
    async with running_front() as front:
        stream, line = await open_sse(front)
        await initialize(front, line)
        await post(front, line, rpc("tools/call", 7, name="wait", arguments={}))
        await front.tools.waiting.wait()
        front.shutdown.set()
        await trio.testing.wait_all_tasks_blocked()
        front.tools.release.set()
        with trio.fail_after(PATIENCE):
            received = await read_all(stream)
        assert b'"id":7' in received
        assert b"waited" in received
        assert received.endswith(b"0\r\n\r\n")


async def test_unfinished_call_is_cut_off_with_an_error_on_stop(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_module, "STOP_GRACE", 0.05)
    async with running_front() as front:
        stream = await front.connect()
        await stream.send_all(request("POST /mcp", LOCAL + MCP, call("wait")))
        await front.tools.waiting.wait()
        front.shutdown.set()
        answer = await read_all(stream)
        assert b" 503 " in answer
        assert b'"stopping"' in answer
    assert front.tools.cancelled == 1
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []


async def stuffed_client(front: Front) -> socket.socket:
    """Return a client that requests more data than the buffers can store and never reads."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((front.host, front.port))
    client.sendall(request("POST /mcp", LOCAL + MCP, call("big", size=20_000_000)))
    while "big" not in front.tools.calls:
        await trio.lowlevel.checkpoint()
    return client


async def test_client_that_never_reads_cannot_delay_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stop must end, although Hypercorn sends data under a shield without a time limit."""
    monkeypatch.setattr(serve_module, "STOP_GRACE", 0.2)
    monkeypatch.setattr(serve_module, "STOP_FLUSH", 0.1)
    async with running_front() as front:
        client = await stuffed_client(front)
        with trio.fail_after(PATIENCE):
            assert b" 200 " in await front.exchange(request("GET /health"))
    client.close()


@pytest.mark.slow
async def test_stop_closes_unread_connections_and_open_streams() -> None:
    """At least one of three stops must be in time.

    A busy machine can delay single stops, but a hang would delay all three stops.
    """
    for _ in range(3):
        async with running_front() as front:
            client = await stuffed_client(front)
            for _ in range(3):
                await open_sse(front)
            await front.connect()
            half = await front.connect()
            await half.send_all(b"POST /mcp HTTP/1.1\r\nHo")
            began = trio.current_time()
        took = trio.current_time() - began
        client.close()
        if took < REAL_BOUND:
            return
    raise AssertionError(f"the last of three stops took {took:.1f} s")


async def test_idle_and_half_written_connections_end_at_once_on_stop() -> None:
    async with running_front() as front:
        idle, half = await front.connect(), await front.connect()
        await idle.send_all(request("GET /health"))
        await read_until(idle, b"{}}")
        await half.send_all(b"POST /mcp HTTP/1.1\r\nHo")
        await front.exchange(request("GET /health"))
        front.shutdown.set()
        with trio.fail_after(PATIENCE):
            assert await read_all(idle) == b""
            assert await read_all(half) == TIMED_OUT


async def test_new_connections_are_refused_after_the_stop() -> None:
    async with running_front() as front:
        stream = await front.connect()
        await stream.send_all(request("POST /mcp", LOCAL + MCP, call("wait")))
        await front.tools.waiting.wait()
        front.shutdown.set()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(OSError, match="connect"):
            await front.connect()
        front.tools.release.set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_cancellation_ends_the_server() -> None:
    with trio.fail_after(PATIENCE):
        with trio.CancelScope() as scope:
            async with running_front() as front:
                await open_sse(front)
                scope.cancel()
                await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught


async def test_error_for_an_occupied_port_says_what_to_do() -> None:
    async with running_front() as front:
        with pytest.raises(ExceptionGroup) as raised:
            async with running_front(port=front.port):
                raise AssertionError("two servers share a port")
        (error,) = raised.value.exceptions
        assert isinstance(error, PortInUse)
        assert str(front.port) in str(error)
        assert "--port" in str(error)


async def test_error_for_an_impossible_address_says_what_to_check() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        async with running_front(host="192.0.2.1"):
            raise AssertionError("an address of nobody was bound")
    (error,) = raised.value.exceptions
    assert isinstance(error, CannotListen)
    assert "server.host" in str(error)


async def test_open_bind_without_a_token_causes_a_warning_at_startup(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """behaviour 203"""
    async with running_front(host="0.0.0.0"):
        pass
    assert any("server.auth_token" in record.getMessage() for record in caplog.records)
    caplog.clear()
    async with running_front(host="0.0.0.0", auth_token="secret"):
        pass
    # Ignore log records from threads of other tests. These threads may still export traces without a
    # collector.
    assert [record for record in caplog.records if record.name.startswith("lithos")] == []
    assert "secret" not in repr(SETTINGS.__class__("h", 1, "v", 1, auth_token="secret"))


async def connection_pair() -> tuple[Connection, trio.SocketStream]:
    near, far = trio.socket.socketpair()
    return Connection(trio.SocketStream(near)), trio.SocketStream(far)


@pytest.mark.autojump
async def test_client_that_stops_reading_loses_its_connection() -> None:
    connection, client = await connection_pair()
    with pytest.raises(trio.BrokenResourceError):
        await connection.send_all(b"x" * 10_000_000)
    assert len(await read_all(client)) < 10_000_000
    await client.aclose()


async def test_unfinished_request_head_gets_408_on_close() -> None:
    connection, client = await connection_pair()
    await client.send_all(b"POST /mcp HT")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.receive_some)
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    await connection.aclose()
    assert await read_all(client) == TIMED_OUT
    await client.aclose()


async def test_answered_or_unused_connection_closes_without_further_data() -> None:
    for asks in (True, False):
        connection, client = await connection_pair()
        if asks:
            await client.send_all(b"GET / HTTP/1.1\r\n\r\n")
            await connection.receive_some()
            await connection.send_all(b"ok")
        await connection.aclose()
        assert await read_all(client) == (b"ok" if asks else b"")
        await client.aclose()
