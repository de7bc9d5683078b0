"""HTTP over raw connections: the access gate, partial requests, errors and keep-alive."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from functools import partial
from random import Random

import pytest
import trio
from quart import Response, websocket
from quart_trio import QuartTrio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, RejectConnection, Request, TextMessage

from lithos.imports import front_importing as importing
from lithos.imports.front_importing import add_import
from lithos.server.http import gate, ports
from lithos.server.http.connections import Connections, hypercorn_config
from lithos.server.http.ports import Receive, Scope, Send
from lithos.server.mcp import over_http as http
from lithos.server.mcp import tool_calls
from lithos.server.mcp.session import SdkTransports
from tests.server.running import Front, read_all, read_until, rpc, running_front

LOCAL = b"Host: localhost\r\n"
MCP = b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"


@pytest.fixture(autouse=True)
def _nothing_is_logged_as_an_error(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert [r for r in caplog.records if r.levelno >= logging.ERROR or r.exc_info] == []


def request(line: str, headers: bytes = LOCAL, body: bytes = b"") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return line.encode() + b" HTTP/1.1\r\n" + headers + length + b"\r\n" + body


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def body_of(answer: bytes) -> object:
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])


def call(name: str, **arguments: object) -> bytes:
    return json.dumps(rpc("tools/call", name=name, arguments=arguments)).encode()


async def test_health_needs_no_host_and_no_token() -> None:
    """behaviours 201, 202"""
    async with running_front(auth_token="secret") as front:
        answer = await front.exchange(request("GET /health", b"Host: evil.example\r\nOrigin: null\r\n"))
        assert status_of(answer) == 200
        assert body_of(answer) == {"status": "ok", "timestamp": "now", "version": "9.8.7", "components": {}}
        assert front.rejected == []


async def test_unknown_paths_and_wrong_methods_get_json_errors() -> None:
    async with running_front() as front:
        for line in ("GET /", "GET /nope", "GET /mcp/x", "POST /health/", "GET /%2e%2e/etc", "GET *"):
            answer = await front.exchange(request(line))
            assert (status_of(answer), body_of(answer)) == (404, {"error": "not_found"}), line
        answer = await front.exchange(request("POST /health", body=b"x"))
        assert (status_of(answer), body_of(answer)) == (405, {"error": "method_not_allowed"})
        assert b"allow: " in answer


async def test_every_path_except_health_needs_the_token() -> None:
    """behaviour 201"""
    async with running_front(auth_token="secret") as front:
        for path in ("/mcp", "/sse", "/messages/", "/events", "/metrics", "/audit"):
            for line in (f"GET {path}", f"POST {path}"):
                answer = await front.exchange(request(line))
                assert (status_of(answer), body_of(answer)) == (401, {"error": "unauthorized"}), line
                assert b"www-authenticate: Bearer" in answer
        right = request("POST /mcp", LOCAL + MCP + b"Authorization: Bearer secret\r\n", call("echo"))
        assert status_of(await front.exchange(right)) == 200


async def test_foreign_hosts_and_origins_are_refused_and_counted() -> None:
    """behaviour 202"""
    async with running_front() as front:
        host = await front.exchange(request("POST /mcp", b"Host: evil.example\r\n" + MCP, call("echo")))
        origin = await front.exchange(
            request("POST /mcp", LOCAL + b"Origin: https://evil.example\r\n" + MCP, call("echo"))
        )
        assert [status_of(host), status_of(origin)] == [403, 403]
        assert front.rejected == ["forbidden_host", "forbidden_origin"]
        assert front.tools.calls == []


async def test_missing_and_repeated_hosts_do_not_reach_the_application() -> None:
    """behaviour 202"""
    async with running_front() as front:
        assert status_of(await front.exchange(b"GET /mcp HTTP/1.0\r\n\r\n")) == 403
        assert status_of(await front.exchange(b"GET /mcp HTTP/1.1\r\n\r\n")) == 400
        assert status_of(await front.exchange(request("GET /mcp", LOCAL * 2))) == 400


async def test_known_origin_gets_cors_headers_and_a_preflight_answer() -> None:
    async with running_front(auth_token="secret", allowed_origins=("https://app.example",)) as front:
        origin = LOCAL + b"Origin: https://app.example\r\n"
        preflight = await front.exchange(
            request("OPTIONS /mcp", origin + b"Access-Control-Request-Method: POST\r\n")
        )
        assert status_of(preflight) == 204
        assert b"access-control-allow-origin: https://app.example" in preflight
        answer = await front.exchange(
            request("POST /mcp", origin + MCP + b"Authorization: Bearer secret\r\n", call("echo"))
        )
        assert status_of(answer) == 200
        assert b"access-control-allow-origin: https://app.example" in answer


async def test_body_with_a_declared_length_over_the_limit_is_refused() -> None:
    async with running_front() as front:
        stream = await front.connect()
        async with stream:
            size = 4_000_000
            await stream.send_all(
                b"POST /mcp HTTP/1.1\r\n" + LOCAL + MCP + b"Content-Length: %d\r\n\r\n" % size
            )
            for _ in range(size // 100_000):
                await stream.send_all(b" " * 100_000)
            answer = await read_until(stream, b"}")
        assert status_of(answer) == 413
        assert front.rejected == ["body_too_large"]


MANY = b"[" + b",".join([b"{}"] * 210_000) + b"]"
NAMES = b"{" + b",".join(b'"k%d":{}' % n for n in range(105_000)) + b"}"
HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{"experimental":%s},"clientInfo":{"name":"a","version":"1"}}}'
)


async def test_parsers_get_at_most_the_permitted_number_of_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A running parser blocks all other callers. Lithos therefore counts values in the raw bytes first."""

    def parse(*_: object, **__: object) -> object:
        raise AssertionError("it was parsed")

    bodies = {
        "objects": MANY, "names": NAMES, "hello": HELLO % NAMES, "deep": b"[" * 250_000,
        "call": call("echo")[:-2] + b',"x":' + MANY + b"}}",
    }  # fmt: skip
    async with running_front([partial(add_import, None)], max_body_bytes=9_000_000) as front:  # type: ignore[arg-type]
        monkeypatch.setattr(tool_calls, "from_json", parse)
        monkeypatch.setattr(http, "refuse_message", parse)
        monkeypatch.setattr(importing, "from_json", parse)
        for door in ("POST /mcp", "POST /messages/?session_id=1", "POST /import"):
            for name, body in bodies.items():
                answer = await front.exchange(request(door, LOCAL + MCP, body))
                assert status_of(answer) == 413, (door, name)
                told = body_of(answer)
                assert isinstance(told, dict)
                assert told["error"] == "body_too_large"
                assert "JSON values" in told["message"]
                assert "Split the" in told["message"]
        assert front.rejected == ["body_too_large"] * 15


async def test_message_with_many_members_is_refused_without_validation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The SDK would check each member of such a message against every message type."""

    def validate(*_: object, **__: object) -> object:
        raise AssertionError("it was validated")

    bodies = b"[" + b"{}," * 30 + b"{}]", b"{" + b'"a%d":1,' * 30 % (*range(30),) + b'"b":1}'
    async with running_front() as front:
        monkeypatch.setattr(SdkTransports, "answer_post", validate)
        monkeypatch.setattr(SdkTransports, "take_message", validate)
        monkeypatch.setattr(ports, "REFUSED_BODY_SECONDS", 0.1)
        for door in ("POST /mcp", "POST /messages/?session_id=1"):
            for body in bodies:
                answer = await front.exchange(request(door, LOCAL + MCP, body))
                assert status_of(answer) == 400, (door, body[:9])
                assert b'"code":-32600' in answer


async def test_string_with_a_megabyte_of_commas_counts_as_one_value() -> None:
    async with running_front(max_body_bytes=9_000_000) as front:
        for text in (",{[" * 350_000, '","' * 350_000, "\\" * 500_000):
            answer = await front.exchange(request("POST /mcp", LOCAL + MCP, call("echo", text=text)))
            assert status_of(answer) == 200
            assert answer.count(b"isError") == 1


async def test_chunked_body_counts_towards_the_limit() -> None:
    async with running_front() as front:
        head = b"POST /mcp HTTP/1.1\r\n" + LOCAL + MCP + b"Transfer-Encoding: chunked\r\n\r\n"
        chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
        assert status_of(await front.exchange(head + chunk * 4 + b"0\r\n\r\n")) == 413
        message = call("echo")
        answer = await front.exchange(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(message), message))
        assert status_of(answer) == 200


HALF_WRITTEN = (
    (b"GARBAGE\r\n\r\n", 400),
    (b"POST /mcp HT", 400),
    (b"POST /mcp HTTP/1.1\r\nHost: local", 400),
    (b"POST /mcp HTTP/1.1\r\n" + LOCAL + MCP + b"Content-Length: 90\r\n\r\n{", 400),
    (b"POST /mcp HTTP/1.1\r\n" + LOCAL + MCP + b"Content-Length: x\r\n\r\n", 400),
    (b"POST /mcp HTTP/1.1\r\n" + LOCAL + MCP + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    (b"POST /messages/?session_id=1 HTTP/1.1\r\n" + LOCAL + MCP + b"Content-Length: 9\r\n\r\n{", 400),
    (b"GET /health HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n", 431),
    (b"GET /caf\xc3\xa9 HTTP/1.1\r\n" + LOCAL + b"\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
)


async def test_partial_or_invalid_http_gets_a_status_without_a_traceback(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with running_front() as front:
        for sent, status in HALF_WRITTEN:
            assert status_of(await front.exchange(sent)) == status, sent[:99]
            assert status_of(await front.exchange(request("GET /health"))) == 200
    assert "Traceback" not in capfd.readouterr().err


async def test_invalid_message_body_gets_400() -> None:
    bodies = {b"{": -32700, b"\xff\xfe": -32700, b"[]": -32600, b'{"jsonrpc":"2.0"}': -32600}
    async with running_front() as front:
        for body, code in (bodies | {b"[" * 9000: -32700}).items():
            answer = await front.exchange(request("POST /mcp", LOCAL + MCP, body))
            assert status_of(answer) == 400, body[:99]
            assert f'"code":{code}'.encode() in answer, body[:99]


async def test_unreadable_session_message_gets_400_without_a_traceback() -> None:
    async with running_front() as front:
        stream = await front.connect()
        async with stream:
            await stream.send_all(request("GET /sse"))
            opened = await read_until(stream, b"session_id=")
            opened += (
                await read_until(stream, b"\r\n\r\n") if b"\r\n\r\n" not in opened.split(b"id=")[1] else b""
            )
            session = opened.split(b"session_id=")[1][:32].decode()
            line = f"POST /messages/?session_id={session}"
            assert status_of(await front.exchange(request(line, LOCAL + MCP, b"{"))) == 400
            good = json.dumps(rpc("ping")).encode()
            assert status_of(await front.exchange(request(line, LOCAL + MCP, good))) == 202
            await read_until(stream, b'"result"')


async def test_messages_for_unknown_sessions_are_refused() -> None:
    body = json.dumps(rpc("ping")).encode()
    async with running_front() as front:
        for query, status in (("", 400), ("?session_id=zz", 400), (f"?session_id={'0' * 32}", 404)):
            answer = await front.exchange(request(f"POST /messages/{query}", LOCAL + MCP, body))
            assert status_of(answer) == status, query


async def test_client_that_disconnects_in_any_phase_leaves_no_trace(
    capfd: pytest.CaptureFixture[str],
) -> None:
    whole = request("POST /mcp", LOCAL + MCP, call("big", size=90_000))
    async with running_front() as front:
        for sent in (b"", b"PO", whole[:40], whole[:-5], whole, request("GET /sse"), request("GET /health")):
            for reset in (False, True):
                stream = await front.connect()
                await stream.send_all(sent)
                if reset:
                    stream.setsockopt(1, 13, b"\x01\0\0\0\0\0\0\0")  # SO_LINGER 0: closing sends RST
                await stream.aclose()
        assert status_of(await front.exchange(request("GET /health"))) == 200
    assert "Traceback" not in capfd.readouterr().err


async def test_request_is_answered_after_the_client_stops_sending() -> None:
    async with running_front() as front:
        stream = await front.connect()
        async with stream:
            await stream.send_all(request("POST /mcp", LOCAL + MCP, call("wait")))
            await stream.send_eof()
            await front.tools.waiting.wait()
            front.tools.release.set()
            assert b"waited" in await read_all(stream)


async def test_connection_serves_many_requests() -> None:
    """After a Quart response the connection must be reusable (quart-trio on Hypercorn's Trio worker)."""
    async with running_front() as front:
        stream = await front.connect()
        async with stream:
            for _ in range(3):
                await stream.send_all(request("GET /health"))
                assert status_of(await read_until(stream, b"{}}")) == 200
                await stream.send_all(request("POST /mcp", LOCAL + MCP, call("echo", text="hi")))
                assert status_of(await read_until(stream, b"}}}")) == 200
                await stream.send_all(request("GET /nope"))
                assert status_of(await read_until(stream, b"}")) == 404


async def test_connection_close_header_is_honoured() -> None:
    async with running_front() as front:
        stream = await front.connect()
        async with stream:
            await stream.send_all(request("GET /health", LOCAL + b"Connection: close\r\n"))
            assert status_of(await read_all(stream)) == 200


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with running_front() as front:
        answer = await front.exchange(
            request("GET /health") * 2 + request("GET /nope", LOCAL + b"Connection: close\r\n")
        )
        assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"404"]


async def open_websocket(front: Front, target: str, host: str = "localhost", **headers: str) -> object:
    """Send an upgrade request. Return the first event that wsproto reads."""
    client = WSConnection(ConnectionType.CLIENT)
    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    stream = await front.connect()
    async with stream:
        await stream.send_all(client.send(Request(host=host, target=target, extra_headers=lines)))
        while True:
            client.receive_data(bytes(await stream.receive_some()))
            for event in client.events():
                return event


def greeting(app: QuartTrio) -> None:
    @app.websocket("/events/ws")
    async def greet() -> None:
        await websocket.send(f"query={websocket.query_string.decode()}")


async def test_websocket_upgrades_are_refused_like_requests() -> None:
    """behaviours 201, 202"""
    token = {"Authorization": "Bearer secret"}
    async with running_front([greeting], auth_token="secret") as front:
        for target, host, headers, status in (
            ("/events/ws", "evil.example", {}, 403),
            ("/events/ws", "localhost", {"Origin": "https://evil.example"}, 403),
            ("/events/ws", "localhost", {}, 401),
            ("/events/ws?access_token=wrong", "localhost", {}, 401),
            ("/nope", "localhost", token, 404),
            ("/mcp", "localhost", token, 404),
        ):
            event = await open_websocket(front, target, host, **headers)
            assert isinstance(event, RejectConnection), (target, host)
            assert event.status_code == status, (target, host, headers)


async def test_websocket_upgrade_accepts_and_removes_a_query_token() -> None:
    """behaviours 201, 202"""
    async with running_front([greeting], auth_token="secret") as front:
        client = WSConnection(ConnectionType.CLIENT)
        stream = await front.connect()
        async with stream:
            target = "/events/ws?since=1&access_token=secret"
            await stream.send_all(client.send(Request(host="localhost:1", target=target)))
            events: list[object] = []
            while not any(isinstance(event, TextMessage) for event in events):
                client.receive_data(bytes(await stream.receive_some()))
                events += client.events()
        assert isinstance(events[0], AcceptConnection)
        assert [event.data for event in events if isinstance(event, TextMessage)] == ["query=since=1"]


async def test_body_that_stops_arriving_gets_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "BODY_PATIENCE", 0.01)
    whole = request("POST /mcp", LOCAL + MCP, call("echo"))
    async with running_front() as front:
        for sent in (whole[:-60], whole[:-1]):
            stream = await front.connect()
            async with stream:
                await stream.send_all(sent)
                assert status_of(await read_until(stream, b"}")) == 408
        assert front.rejected == ["body_stalled"] * 2
        assert front.tools.calls == []


async def test_added_routes_may_stream_without_a_time_limit() -> None:
    def ticking(app: QuartTrio) -> None:
        @app.get("/events")
        async def ticks() -> Response:
            assert app.config["RESPONSE_TIMEOUT"] is None
            return Response(_ticks(), content_type="text/event-stream")

    async def _ticks() -> object:
        yield b"tick\n"
        yield b"tock\n"

    async with running_front([ticking]) as front:
        answer = await front.exchange(request("GET /events", LOCAL + b"Connection: close\r\n"))
        assert b"tick" in answer
        assert answer.endswith(b"0\r\n\r\n")


async def test_http2_upgrade_offer_is_ignored() -> None:
    async with running_front() as front:
        offer = b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n"
        assert status_of(await front.exchange(request("GET /health", LOCAL + offer))) == 200
        assert status_of(await front.exchange(request("GET /mcp", b"Host: evil.example\r\n" + offer))) == 403
        preface = await front.exchange(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert status_of(preface) == 505


async def test_random_bytes_cause_no_error_and_do_not_stop_service() -> None:
    """Sends altered requests, half of which are truncated.

    The log fixture checks that Lithos logs no request as an error.
    """
    random = Random(20260728)
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    seeds = [
        request("POST /mcp", LOCAL + MCP, call("echo")),
        request("GET /sse"),
        request("GET /health"),
        request("GET /events/ws", LOCAL + upgrade + b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    ]
    async with running_front() as front:
        for _ in range(200):
            stream = await front.connect()
            try:
                await stream.send_all(mutated(random, random.choice(seeds)))
                await stream.send_eof()
                with trio.move_on_after(0.002):
                    await read_all(stream)
            except trio.BrokenResourceError:
                continue
        assert status_of(await front.exchange(request("GET /health"))) == 200


def mutated(random: Random, seed: bytes) -> bytes:
    data = bytearray(seed)
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(data))
        match random.randrange(3):
            case 0:
                data[place] = random.randrange(256)
            case 1:
                data[place:place] = random.randbytes(random.randint(1, 9))
            case _:
                del data[place + 1 :]
    return bytes(data)


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HT", request("GET /health")])
async def test_connection_of_a_disconnected_client_is_closed_at_once(sent: bytes) -> None:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    near, far = trio.socket.socketpair()
    client = trio.SocketStream(far)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Connections(answer, hypercorn_config()).serve, trio.SocketStream(near))
        await client.send_all(sent)
        await trio.testing.wait_all_tasks_blocked()
        await client.aclose()
        nursery.cancel_scope.deadline = trio.current_time() + 5
    assert not nursery.cancel_scope.cancelled_caught
