"""Ambiguous requests, oversized requests and requests without a host.

Each gets one answer and no traceback.
"""

from __future__ import annotations

from itertools import product

import pytest
import trio

from lithos.server.http import ports
from lithos.server.http.limits import HEAD_BYTES
from tests.server.running import read_all, running_front

LOCAL = b"Host: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BODY = b"5\r\nhello\r\n0\r\n\r\n"


def post(lines: bytes, body: bytes = BODY, version: bytes = b"1.1") -> bytes:
    return b"POST /mcp HTTP/" + version + b"\r\n" + LOCAL + lines + b"\r\n" + body


def status_of(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:80]
    return int(answer[9:12])


NO_REQUESTS = (
    (post(b"Content-Length: 5\r\n" + CHUNKED), 400),
    (post(CHUNKED + b"Content-Length: 15\r\n"), 400),
    (post(b"Content-Length: 5\r\nContent-Length: 6\r\n"), 400),
    (post(b"Content-Length: 5, 6\r\n"), 400),
    (post(b"Content-Length: +5\r\n"), 400),
    (post(b"Content-Length: -5\r\n"), 400),
    (post(CHUNKED, version=b"1.0"), 400),
    (post(CHUNKED + CHUNKED), 501),
    (post(b"Transfer-Encoding: gzip, chunked\r\n"), 501),
    (post(b"Transfer-Encoding : chunked\r\n"), 400),
    (post(b"X: a\r\n b\r\n"), 400),
    (post(b"X: a\r\n\tb\r\n"), 400),
    (post(b"X: a\x00b\r\n"), 400),
    (post(b"X\x00: a\r\n"), 400),
    (post(b": a\r\n"), 400),
    (post(CHUNKED, b"-5\r\nhello\r\n0\r\n\r\n"), 400),
    (post(CHUNKED, b"0x5\r\nhello\r\n0\r\n\r\n"), 400),
    (post(CHUNKED, b"f" * 30 + b"\r\nhello"), 400),
    (post(CHUNKED, b"5\r\nhelloXX0\r\n\r\n"), 400),
    (post(b"Content-Length: 0\r\n", b"", version=b"2.0"), 505),
    (post(b"Content-Length: 0\r\n", b"", version=b"1.9"), 505),
    (b"GET ?x HTTP/1.1\r\n" + LOCAL + b"\r\n", 400),
    (b"GET http://[x/health HTTP/1.1\r\n" + LOCAL + b"\r\n", 400),
    (b"GET http://evil.example/health HTTP/1.1\r\n" + LOCAL + b"\r\n", 400),
)


async def test_invalid_request_gets_one_answer_and_ends_the_connection(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with running_front() as front:
        for sent, status in NO_REQUESTS:
            answer = await front.exchange(sent + b"GET /health HTTP/1.1\r\n" + LOCAL + b"\r\n")
            assert status_of(answer) == status, sent
            assert answer.count(b"HTTP/1.1 ") == 1, (sent, "what follows is no request of anybody")
        assert front.rejected == ["bad_request"] * len(NO_REQUESTS)
    assert "Traceback" not in capfd.readouterr().err


async def test_request_target_may_be_an_absolute_url() -> None:
    """RFC 9112, section 3.2.2: the server must accept this form."""
    async with running_front() as front:
        answer = await front.exchange(
            b"GET http://LOCALHOST/health?x HTTP/1.1\r\n" + LOCAL + b"Connection: close\r\n\r\n"
        )
        assert status_of(answer) == 200


def head(size: int, kind: str) -> bytes:
    """Return a request head of `size` bytes."""
    begun, end = b"GET /health HTTP/1.1\r\n" + LOCAL, b"Connection: close\r\n\r\n"
    left = size - len(begun) - len(end)
    match kind:
        case "target":
            return begun.replace(b"/health", b"/health?" + b"a" * (left - 1)) + end
        case "value":
            return begun + b"X: " + b"a" * (left - 5) + b"\r\n" + end
        case "blanks":
            return begun + b"X:" + b" " * (left - 5) + b"a\r\n" + end
    lines = b"a: b\r\n" * (left // 6 - 2)
    return begun + lines + b"X: " + b"a" * (left - len(lines) - 5) + b"\r\n" + end


async def test_request_head_size_is_limited_even_if_sent_in_pieces() -> None:
    async with running_front() as front:
        for size, kind, pieces in product(
            (HEAD_BYTES, HEAD_BYTES + 1, HEAD_BYTES + 8192, HEAD_BYTES * 20),
            ("target", "value", "blanks", "lines"),
            (1, 2, 40),
        ):
            status, sent = 200 if size == HEAD_BYTES else 431, head(size, kind)
            assert len(sent) == size
            stream = await front.connect()
            async with stream:
                step = -(-size // pieces)
                try:
                    for start in range(0, size, step):
                        await stream.send_all(sent[start : start + step])
                        await trio.lowlevel.checkpoint()
                except trio.BrokenResourceError:
                    assert status == 431
                assert status_of(await read_all(stream)) == status, (size, kind, pieces)
            assert front.rejected == ([] if status == 200 else ["head_too_large"])
            front.rejected.clear()


async def test_head_limit_applies_to_each_request_of_a_connection() -> None:
    async with running_front() as front:
        one = head(HEAD_BYTES - 100, "value").replace(b"Connection: close\r\n", b"")
        answer = await front.exchange(one * 3 + b"GET /health HTTP/1.1\r\n" + LOCAL + b"\r\n")
        assert answer.count(b"HTTP/1.1 200 ") == 4


NO_HOSTS = [
    b".localhost", b"..localhost", b"a..localhost", b"localhost..", b"x" * 64 + b".localhost",
    b"x" * 300 + b".localhost", b"\xe9.localhost", b"localhost,localhost", b"user@localhost", b"localhost:1a",
    b"localhost/", b"[::1", b"[.]", b"*", b"", b"\x01.localhost", b"127.0.0.256", b"[::1%25lo]",
]  # fmt: skip


async def test_request_with_an_invalid_host_is_refused_except_for_health(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """behaviour 145"""
    async with running_front() as front, running_front(allowed_hosts=("*",)) as open_front:
        for host in NO_HOSTS:
            lines = b" HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"
            for path in (b"/sse", b"/mcp", b"/events/ws"):
                assert status_of(await front.exchange(b"GET " + path + lines)) in (403, 400), host
            assert status_of(await front.exchange(b"GET /health" + lines)) in (200, 400), host
            assert status_of(await open_front.exchange(b"GET /nowhere" + lines)) in (404, 400), host
    assert "Traceback" not in capfd.readouterr().err


async def test_names_of_the_local_machine_are_admitted() -> None:
    async with running_front() as front:
        for host in (b"a.localhost", b"localhost.", b"A_b.LOCALHOST:1", b"[::1]:5", b"127.0.0.1"):
            lines = b"Host: " + host + b"\r\nConnection: close\r\n\r\n"
            assert status_of(await front.exchange(b"GET /mcp HTTP/1.1\r\n" + lines)) == 405, host


async def test_answer_is_completed_when_invalid_bytes_follow_the_last_request() -> None:
    lines = b" HTTP/1.1\r\n" + LOCAL + b"Connection: close\r\n\r\n"
    async with running_front() as front:
        for more in (b"hello", b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 100_000):
            for path in (b"/health", b"/nowhere"):
                answer = await front.exchange(b"POST " + path + lines + more)
                assert status_of(answer) in (404, 405, 400), (path, more[:9])


async def test_client_can_read_why_its_body_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ports, "REFUSED_BODY_SECONDS", 0.1)
    async with running_front() as front:
        answer = await front.exchange(post(b"Content-Length: 999999999\r\n", b"hello"))
        assert status_of(answer) in (413, 400)
