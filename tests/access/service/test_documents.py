"""Metadata documents of strangers: addresses, redirects, name changes, slow bodies and endless bodies."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
import trio
import trio.testing

from lithos.access.model.requests import OAuthRefused
from lithos.access.service.documents import LARGEST, PATIENCE, Documents, Fetcher, NotFetched
from tests.servers import Clock

URL = "https://client.example/c"
RIGHT = {"client_id": URL, "client_name": "C", "redirect_uris": ["https://client.example/cb"]}


class Host:
    """A fake network host that answers as the test chooses.

    `asked` lists the addresses that were connected.
    """

    def __init__(self, answer: Callable[[trio.abc.Stream], Awaitable[None]], *addresses: list[str]) -> None:
        self.answer = answer
        self.addresses = list(addresses) or [["93.184.215.14"]]
        self.asked: list[str] = []
        self.names: list[str] = []

    def fetcher(self, nursery: trio.Nursery) -> Fetcher:
        async def resolve(host: str, port: int) -> list[str]:
            return self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]

        async def connect(address: str, port: int) -> trio.abc.Stream:
            self.asked.append(address)
            ours, theirs = trio.testing.memory_stream_pair()

            async def serve() -> None:
                try:
                    await self.answer(theirs)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    return

            nursery.start_soon(serve)
            return ours

        def secure(stream: trio.abc.Stream, name: str) -> trio.abc.Stream:
            self.names.append(name)
            return stream

        return Fetcher(resolve, connect, secure)


def saying(
    body: bytes, status: str = "200 OK", *headers: str
) -> Callable[[trio.abc.Stream], Awaitable[None]]:
    async def answer(stream: trio.abc.Stream) -> None:
        head = "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""))
        await stream.send_all(head.encode() + body)
        await stream.aclose()

    return answer


async def fetch(host: Host) -> str:
    """Fetch the document. Return its body, or the reason for a refusal."""
    async with trio.open_nursery() as nursery:
        try:
            found = (await host.fetcher(nursery).fetch(URL)).body.decode()
        except NotFetched as failure:
            found = str(failure)
        nursery.cancel_scope.cancel()
    return found


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["::1"], ["::ffff:127.0.0.1"], ["fe80::1%1"],
     ["93.184.215.14", "127.0.0.1"], ["64:ff9b::7f00:1"], []],
)  # fmt: skip
async def test_private_addresses_are_never_connected(addresses: list[str]) -> None:
    """behaviour 274"""
    host = Host(saying(b"{}"), addresses)
    assert await fetch(host) == "its host is not public"
    assert host.asked == []


async def test_host_is_refused_when_its_address_becomes_private() -> None:
    """behaviour 274: prevents DNS rebinding.

    The connection uses the checked address, and TLS uses the host name.
    """
    host = Host(saying(b"{}"), ["93.184.215.14"], ["127.0.0.1"])
    assert await fetch(host) == "{}"
    assert (host.asked, host.names) == (["93.184.215.14"], ["client.example"])
    assert await fetch(host) == "its host is not public"


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "404 Not Found", "500 Oh"])
async def test_redirects_are_not_followed(status: str) -> None:
    """behaviour 274"""
    host = Host(saying(b"", status, "Location: https://127.0.0.1/"))
    assert await fetch(host) == f"its host answers with status {status[:3]}"
    assert len(host.asked) == 1


async def test_body_over_64_kib_is_refused() -> None:
    """behaviour 274"""
    assert len(await fetch(Host(saying(b"x" * LARGEST)))) == LARGEST
    assert await fetch(Host(saying(b"x" * (LARGEST + 1)))) == f"the document is larger than {LARGEST} bytes"

    async def endless(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await stream.send_all(b"1\r\nx\r\n" * 1_000)

    assert await fetch(Host(endless)) == f"the document is larger than {LARGEST} bytes"

    async def endless_head(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\n")
        while True:
            await stream.send_all(b"x: y\r\n" * 1_000)

    assert await fetch(Host(endless_head)) in (
        "its host does not answer in HTTP",
        f"the document is larger than {LARGEST} bytes",
    )


def test_slow_body_times_out() -> None:
    """behaviour 274: the download ends after 5 s, even if bytes keep arriving."""
    trio.run(_ask_a_slow_host, clock=trio.testing.MockClock(autojump_threshold=0))


async def _ask_a_slow_host() -> None:
    async def slow(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            await trio.sleep(1)
            await stream.send_all(b"x")

    began = trio.current_time()
    assert await fetch(Host(slow)) == "no answer came within 5 seconds"
    assert trio.current_time() - began == PATIENCE


async def test_invalid_http_and_truncated_body_are_refused() -> None:
    async def nonsense(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"SSH-2.0-OpenSSH\r\n\r\n")
        await stream.aclose()

    async def cut(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        await stream.aclose()

    assert await fetch(Host(nonsense)) == "its host does not answer in HTTP"
    assert await fetch(Host(cut)) == "its host does not answer in HTTP"


@pytest.mark.parametrize(
    "document",
    [
        {**RIGHT, "client_id": "https://client.example/other"}, {**RIGHT, "redirect_uris": []},
        {**RIGHT, "redirect_uris": ["http://evil.example/cb"]}, {**RIGHT, "client_secret": "x"},
        {**RIGHT, "token_endpoint_auth_method": "client_secret_post"}, [], "x", {},
    ],
)  # fmt: skip
async def test_document_must_describe_a_public_client_at_its_own_address(document: object) -> None:
    async with trio.open_nursery() as nursery:
        host = Host(saying(json.dumps(document).encode()))
        with pytest.raises(OAuthRefused):
            await Documents(Clock(), host.fetcher(nursery)).find(URL)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("control", "hours", "times"),
    [("max-age=7200", 1, 1), ("max-age=7200", 3, 2), ("max-age=9999999", 25, 2),
     ("no-store, max-age=99", 0, 2), ("x", 0, 2)],
)  # fmt: skip
async def test_document_cache_time_follows_the_header_up_to_one_day(
    control: str, hours: int, times: int
) -> None:
    clock = Clock()
    async with trio.open_nursery() as nursery:
        host = Host(saying(json.dumps(RIGHT).encode(), "200 OK", f"Cache-Control: {control}"))
        documents = Documents(clock, host.fetcher(nursery))
        assert (await documents.find(URL)).name == "C"
        clock.advance(**{"hours": hours} if hours else {"seconds": timedelta(seconds=1).seconds})
        assert (await documents.find(URL)).host == "client.example"
        assert len(host.asked) == times
        nursery.cancel_scope.cancel()
