"""Requests that are read without h11: h11 reads the same in them, and gets every other with all its bytes."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Callable
from math import inf
from random import Random

import h11
import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from quart import websocket
from quart_trio import QuartTrio
from wsproto import ConnectionType, WSConnection
from wsproto.events import Request

import lithos.front.server.plain
from lithos.front.server import connections, serve
from lithos.front.server.connections import Connection, _Idleness
from lithos.front.server.exchanges import FAULT, STOPPING, Exchanges
from lithos.front.server.limits import HEAD_BYTES, IDLE_PATIENCE
from lithos.front.server.plain import read_plain
from lithos.front.server.ports import compact_json
from lithos.front.server.upgrades import StrictConnection
from tests.front.mcp.test_direct import DATE
from tests.front.running import read_all, read_until, running_front
from tests.front.server.test_http import LOCAL, MCP, call, mutated, request, status_of

BODY = call("echo", text="hi")
LENGTH = b"content-length: %d\r\n" % len(BODY)
#: The heads of clients, as they come.
CLIENTS = (
    b"Host: 127.0.0.1:8765\r\nAccept: application/json, text/event-stream\r\n"
    b"Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nUser-Agent: python-httpx/0.28.1\r\n"
    b"content-type: application/json\r\nmcp-protocol-version: 2025-06-18\r\n"
    b"Authorization: Bearer a_b-c.d~e+f/g=\r\n",
    b"host: localhost:8765\r\nconnection: keep-alive\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\naccept-language: *\r\nsec-fetch-mode: cors\r\n"
    b"user-agent: node\r\naccept-encoding: gzip, deflate\r\n",
    b"Host:localhost\r\nUser-Agent:curl/8.5.0\r\nAccept:*/*\r\nContent-Type:application/json\r\n",
)


def plain(lines: bytes = LOCAL + MCP, body: bytes = BODY) -> bytes:
    return b"POST /mcp HTTP/1.1\r\n" + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


def leave_to_h11(data: bytes) -> None:
    """In place of `read_plain`."""


def answer_of(status: int, body: dict[str, str]) -> bytes:
    """As the server sends it, but for the date."""
    content = compact_json(body).encode()
    head = b"HTTP/1.1 %d \r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(content)) + content


def check_against_h11(data: bytes) -> bool:
    """Whether a request is plain; if it is, h11 must read the very same in the same bytes."""
    found = read_plain(data)
    if found is None:
        return False
    refused: list[int] = []
    strict = StrictConnection(refused.append, lambda: False)
    strict.receive_data(data)
    event = strict.next_event()
    assert isinstance(event, h11.Request)
    assert (event.method, event.target, event.http_version) == (b"POST", found.path.encode(), b"1.1")
    assert sorted(event.headers) == sorted(found.fields.items())
    assert not strict.they_are_waiting_for_100_continue
    body = b""
    while isinstance(event := strict.next_event(), h11.Data):
        body += event.data
    assert body == data[found.body_at : found.end]
    if len(data) < found.end:
        assert event is h11.NEED_DATA
    else:
        assert isinstance(event, h11.EndOfMessage)
        assert strict.their_state is h11.DONE, "the connection stays open"
        assert strict.trailing_data == (data[found.end :], False)
    assert refused == []
    return True


names = st.sampled_from((
    b"Host", b"host", b"Content-Length", b"content-length", b"Transfer-Encoding", b"Connection", b"Expect",
    b"Upgrade", b"Accept", b"X", b"x-\xe9", b"a b", b"", b"Cookie", b"Origin", b"Content-Length ", b" Host",
))  # fmt: skip
values = st.sampled_from((
    b"5", b"0", b"+5", b"05", b"5, 5", b"5,6", b"0x5", b"5 ", b"localhost", b"chunked", b"close",
    b"keep-alive", b"Keep-Alive, close", b"upgrade", b"100-continue", b"websocket", b"", b"a\x00b", b"a\x0bb",
    b"\xe9", b"a\tb", b"a  b", b"\xc2\xb2", b"9" * 30,
)) | st.binary(max_size=6)  # fmt: skip
lines = st.tuples(
    names, st.sampled_from((b": ", b":", b":  ", b" : ", b":\t", b"")), values,
    st.sampled_from((b"\r\n",) * 9 + (b"\n", b"\r", b" \r\n", b"\r\n ", b"\r\r\n", b"\x0b")),
).map(b"".join)  # fmt: skip
begins = st.tuples(
    st.sampled_from((b"POST",) * 8 + (b"GET", b"post", b"POST ", b"\r\nPOST")),
    st.sampled_from((b" /mcp",) * 8 + (b" /mcp?a", b" /", b" *", b" http://a/", b" /mcp ", b" /\xe9")),
    st.sampled_from((b" HTTP/1.1\r\n",) * 8 + (b" HTTP/1.0\r\n", b" HTTP/1.1\n", b" HTTP/2.0\r\n", b"\r\n")),
).map(b"".join)  # fmt: skip
lengths = (st.just(b"5") | values).map(lambda length: b"Content-Length: %s\r\n" % length)
usual = lengths.flatmap(lambda length: st.permutations((LOCAL, length, b"Accept: */*\r\n")))
#: Mostly what is usual, with something odd in it, or behind it.
fields = st.tuples(usual, st.lists(lines, max_size=2), st.integers(0, 3)).map(
    lambda given: b"".join((*given[0][: given[2]], *given[1], *given[0][given[2] :]))
)
ends = st.sampled_from((b"\r\n",) * 8 + (b"\n", b"", b"\r\n\r\n", b" \r\n"))
requests = st.tuples(begins, fields, ends, st.binary(max_size=12)).map(b"".join)


@given(requests)
@example(plain(LOCAL + b"Content-Length: 5\r\n"))
@example(plain(LOCAL + b"Transfer-Encoding: chunked\r\n"))
@example(plain(LOCAL * 2))
@example(plain(b"X: a\nTransfer-Encoding: chunked\r\n" + LOCAL))
@example(b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 0005\r\n\r\nhello")
@example(b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\nhello")
@example(b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloPOST ")
def test_whatever_is_plain_h11_reads_alike(data: bytes) -> None:
    check_against_h11(data)


@given(st.sampled_from(CLIENTS), st.integers(0, 2**32), st.binary(max_size=9))
def test_mutated_requests_are_read_alike_or_left_to_h11(client: bytes, seed: int, more: bytes) -> None:
    check_against_h11(mutated(Random(seed), plain(client)) + more)


def test_what_clients_send_is_plain() -> None:
    for client in CLIENTS:
        for size in (0, 1, len(BODY)):
            assert check_against_h11(plain(client)[: len(plain(client)) - size]), client


@pytest.mark.parametrize(
    "changed",
    [
        b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"Connection: upgrade\r\n",
        b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\n", b"Origin: http://localhost\r\n", LOCAL, LENGTH,
        b"X: a\r\n b\r\n", b"X : a\r\n", b"X: \xe9\r\n", b"X: a\x00\r\n", b"X: a\tb\r\n", b"X: a\n",
        b"X: a \r\n", b"X:\r\n", b"X: a\nY: b\r\n", b"X: " + b"a" * HEAD_BYTES + b"\r\n",
    ],
)  # fmt: skip
def test_what_is_unusual_is_left_to_h11(changed: bytes) -> None:
    assert read_plain(plain(LOCAL + MCP)) is not None
    assert read_plain(plain(LOCAL + MCP + changed)) is None


def test_no_length_is_read_that_no_plain_body_has() -> None:
    for length in (b"1234567", b"+5", b"5, 5", b"-1", b"0x5", b"5_0", b"\xb2"):
        assert read_plain(b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: %s\r\n\r\n" % length) is None


def test_a_head_that_is_not_whole_or_has_no_host_or_length_is_left_to_h11() -> None:
    head = plain()[: -len(BODY)]
    for end in range(len(head)):
        assert read_plain(head[:end]) is None
    assert read_plain(plain(MCP)) is None
    assert read_plain(b"POST /mcp HTTP/1.1\r\n" + LOCAL + b"\r\n") is None


async def test_a_plain_call_never_reaches_h11(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(connection: StrictConnection, data: bytes) -> None:
        assert not data, "h11 was asked"

    monkeypatch.setattr(StrictConnection, "receive_data", refuse)
    async with running_front(auth_token="secret") as front:
        for client in CLIENTS:
            lines = client.replace(b"a_b-c.d~e+f/g=", b"secret")
            if b"secret" not in lines:
                lines += b"Authorization: Bearer secret\r\n"
            wire = plain(lines)
            assert status_of(await front.exchange(wire)) == 200
            answer = await front.exchange(wire * 3)
            assert answer.count(b"HTTP/1.1 200 ") == 3, "one behind the other"
            stream = await front.connect()
            async with stream:
                for part in (wire[:-9], wire[-9:] + wire[:-20], wire[-20:-5], wire[-5:]):
                    await stream.send_all(part)
                    await trio.testing.wait_all_tasks_blocked()
                await stream.send_eof()
                assert (await read_all(stream)).count(b"HTTP/1.1 200 ") == 2


async def test_garbage_is_answered_alike_with_and_without_h11(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutated requests, two of them on a connection: status, fields and body are the same."""
    random = Random(20261124)
    async with running_front(auth_token="secret") as front:
        answers: list[bytes] = []
        for _ in range(120):
            client = random.choice(CLIENTS) + b"Authorization: Bearer secret\r\n"
            wire = mutated(random, plain(client.replace(b"a_b-c.d~e+f/g=", b"secret"))) + plain(client)
            answer = DATE.sub(b"", await front.exchange(wire))
            with monkeypatch.context() as patch:
                patch.setattr(lithos.front.server.plain, "read_plain", leave_to_h11)
                assert answer == DATE.sub(b"", await front.exchange(wire)), wire
            answers.append(answer)
        assert len({answer[:14] for answer in answers}) > 3, "of every kind"


async def test_what_looks_like_a_plain_request_within_another_is_part_of_it() -> None:
    """However the bytes arrive: else a body would be how one client has another's proxy ask for it."""
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


async def test_what_follows_an_upgrade_is_no_request() -> None:
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


async def test_plain_requests_and_others_take_turns_on_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    at_h11: list[bytes] = []
    receive = StrictConnection.receive_data

    def noting(connection: StrictConnection, data: bytes) -> None:
        at_h11.append(data)
        receive(connection, data)

    monkeypatch.setattr(StrictConnection, "receive_data", noting)
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
        at_h11.clear()
        stream = await front.connect()
        async with stream:
            for wire, wanted in turns * 2:
                await stream.send_all(wire)
                await read_until(stream, wanted)
                await trio.testing.wait_all_tasks_blocked(0.001)
    others = [wire for wire, _ in turns if read_plain(wire) is None or b"tools/call" not in wire]
    assert at_h11 == [*others * 2, b""]


async def test_what_is_refused_is_refused_by_the_gate() -> None:
    """Once, and counted: whoever is not admitted is none of the plain requests."""
    async with running_front(auth_token="secret", max_body_bytes=60) as front:
        wrong = LOCAL + MCP + b"Authorization: Bearer wrong\r\n"
        right = wrong.replace(b"wrong", b"secret")
        assert status_of(await front.exchange(plain())) == 401
        assert status_of(await front.exchange(plain(wrong))) == 401
        assert status_of(await front.exchange(plain(wrong.replace(b"localhost", b"evil.example")))) == 403
        assert status_of(await front.exchange(plain(right))) == 413
        assert front.rejected == ["unauthorized", "unauthorized", "forbidden_host", "body_too_large"]
        assert front.tools.calls == []


async def test_a_plain_call_accepts_what_every_call_has_to() -> None:
    kind = LOCAL + b"Content-Type: application/json\r\n"
    async with running_front() as front:
        for accepted, status in (
            (b"", 200), (b"Accept: application/json\r\n", 200), (b"Accept: text/html\r\n", 406),
            (b"Accept: text/*, application/*\r\n", 200),
        ):  # fmt: skip
            assert status_of(await front.exchange(plain(kind + accepted))) == status
        assert front.tools.calls == ["echo"] * 3


async def test_a_body_in_slow_pieces_is_waited_for_by_h11(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PIECES_PATIENCE", 0.0)
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


async def test_an_answer_that_cannot_be_encoded_is_a_fault_and_the_connection_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_front() as front:
        for read in (read_plain, leave_to_h11):
            stream = await front.connect()
            async with stream:
                monkeypatch.setattr(lithos.front.server.plain, "read_plain", read)
                with monkeypatch.context() as patch:
                    patch.setattr("lithos.front.mcp.http.encode_answer", None)
                    await stream.send_all(plain())
                    assert DATE.sub(b"", await read_until(stream, b"}")) == answer_of(500, FAULT)
                await trio.testing.wait_all_tasks_blocked()
                await stream.send_all(plain())
                assert b" 200 " in await read_until(stream, b"}}}")
    assert caplog.text.count("request failed") == 2
    caplog.clear()


@pytest.mark.parametrize("read", [read_plain, leave_to_h11])
async def test_a_call_that_the_stop_cuts_is_told_so_and_nothing_behind_it_is_served(
    read: Callable[[bytes], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "STOP_GRACE", 0.05)
    monkeypatch.setattr(lithos.front.server.plain, "read_plain", read)
    async with running_front() as front:
        stream = await front.connect()
        await stream.send_all(plain(body=call("wait")) + plain())
        await front.tools.waiting.wait()
        front.shutdown.set()
        assert DATE.sub(b"", await read_all(stream)) == answer_of(503, STOPPING)
    assert (front.tools.calls, front.tools.cancelled) == (["wait"], 1)


async def test_after_the_call_that_a_stop_waits_for_its_connection_ends(
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


async def test_an_answer_on_its_way_is_not_cut_in_half_by_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "STOP_GRACE", 0.05)
    monkeypatch.setattr(serve, "STOP_FLUSH", 30.0)
    cut = trio.Event()
    cancel = Exchanges.cancel
    monkeypatch.setattr(Exchanges, "cancel", lambda exchanges: (cancel(exchanges), cut.set()))
    async with running_front() as front:
        stream = await front.connect()
        await stream.send_all(plain(body=call("big", size=4_000_000)))  # which is sent twice
        begin = bytes(await stream.receive_some())
        front.shutdown.set()
        await cut.wait()
        length = int(begin.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        assert len(begin + await read_all(stream)) == begin.index(b"\r\n\r\n") + 4 + length


async def test_a_call_whose_client_left_is_finished_and_leaves_nothing(
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
async def test_an_answer_waits_for_a_client_that_reads_slowly_and_no_longer() -> None:
    near, far = trio.socket.socketpair()
    connection, client = Connection(trio.SocketStream(near)), trio.SocketStream(far)
    whole = b"x" * 3_000_000
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.send_soon, whole)
        received = b""
        while len(received) < len(whole):
            await trio.sleep(1)
            received += bytes(await client.receive_some(500_000))
    with pytest.raises(trio.BrokenResourceError):
        await connection.send_soon(whole)
    with pytest.raises(trio.ClosedResourceError):
        await connection.send_soon(b"more")
    with pytest.raises(trio.ClosedResourceError):
        await connection.receive_some()
    await client.aclose()


@pytest.mark.parametrize("read", [read_plain, leave_to_h11])
async def test_a_connection_is_idle_but_for_its_calls(
    read: Callable[[bytes], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[_Idleness] = []

    class Noted(_Idleness):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr(connections, "_Idleness", Noted)
    monkeypatch.setattr(lithos.front.server.plain, "read_plain", read)
    async with running_front() as front:
        stream = await front.connect()
        await stream.send_all(plain())
        await read_until(stream, b"}}}")
        await trio.testing.wait_all_tasks_blocked()
        (idleness,) = made
        began = idleness.since
        assert began <= trio.current_time()
        await stream.send_all(plain(body=call("wait")))
        await front.tools.waiting.wait()
        assert idleness.since == inf
        front.tools.release.set()
        await read_until(stream, b"}}}")
        await trio.testing.wait_all_tasks_blocked()
        assert began < idleness.since <= trio.current_time()


@pytest.mark.autojump
async def test_one_timer_ends_a_connection_that_is_idle_and_none_that_is_in_use() -> None:
    idleness, ended, stop = _Idleness(), [], trio.Event()

    class Terminated:
        wait = staticmethod(stop.wait)
        is_set = staticmethod(stop.is_set)

    began = trio.current_time()

    async def watch() -> None:
        if await idleness.wait(IDLE_PATIENCE, Terminated()):  # type: ignore[arg-type]
            ended.append(round(trio.current_time() - began))

    async with trio.open_nursery() as nursery:
        idleness.since = began
        nursery.start_soon(watch)
        await trio.sleep(50)
        await idleness.stop()
        await trio.sleep(1_000)
        idleness.since = trio.current_time()
        await trio.sleep(70)
        idleness.since = trio.current_time()
    assert ended == [1_120 + IDLE_PATIENCE]
    stop.set()
    await watch()
    assert len(ended) == 2, "an idle one ends at the stop"
    await idleness.stop()
    await watch()
    assert len(ended) == 2, "one in use after its answer"
