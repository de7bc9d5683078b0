"""Metadata documents of clients.

Metadata documents are fetched from addresses that strangers chose (docs/spec/connectors.md §3).

Each address of the host is checked, and Lithos connects to a checked address. A name that later resolves to
another address therefore does no harm. Redirects and proxies are not used, and no response is decompressed.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import h11
import trio
from attrs import field, frozen

from lithos.access.model.addresses import is_public
from lithos.access.model.clients import OAuthClient, read_document
from lithos.access.model.requests import OAuthRefused
from lithos.kernel.log import get_logger
from lithos.kernel.values.limits import Newest

log = get_logger("lithos.oauth")

#: Limits for a document: seconds to fetch it, size in bytes, and period for which it is cached.
PATIENCE: Final = 5.0
LARGEST: Final = 64 * 1024
LONGEST_KEPT: Final = timedelta(hours=24)
#: Maximum number of cached documents.
MOST_KEPT: Final = 200
_MAX_AGE: Final = re.compile(r"(?:^|,)\s*max-age=\"?([0-9]{1,9})\"?\s*(?:,|$)", re.IGNORECASE)
_UNKEPT: Final = re.compile(r"(?:^|,)\s*(?:no-store|no-cache|private)\b", re.IGNORECASE)

#: Function that resolves a host and port to addresses (as texts).
Resolve = Callable[[str, int], Awaitable[list[str]]]
#: Function that opens a stream to an address and port. TLS is added on top of the stream.
Connect = Callable[[str, int], Awaitable[trio.abc.Stream]]
Secure = Callable[[trio.abc.Stream, str], trio.abc.Stream]


@frozen
class Fetched:
    """The body of a document, and the period for which it may be cached."""

    body: bytes = field(repr=False)
    kept: timedelta


class NotFetched(Exception):
    """Error for a document that could not be fetched.

    The message never contains text from the remote host.
    """


@frozen
class Fetcher:
    """Fetcher for documents over HTTPS."""

    resolve: Resolve
    connect: Connect
    secure: Secure

    @classmethod
    def of_this_machine(cls) -> Fetcher:
        """Return a fetcher with this machine's resolver, network and certificate authorities."""
        context = ssl.create_default_context()

        def secure(stream: trio.abc.Stream, name: str) -> trio.abc.Stream:
            return trio.SSLStream(stream, context, server_hostname=name, https_compatible=True)

        return cls(_resolve, trio.open_tcp_stream, secure)

    async def fetch(self, url: str) -> Fetched:
        """Return the document at an `https` address. Raises `NotFetched`."""
        try:
            with trio.fail_after(PATIENCE):
                return await self._fetch(url)
        except trio.TooSlowError:
            raise NotFetched(f"no answer came within {PATIENCE:g} seconds") from None
        except (OSError, trio.BrokenResourceError, ssl.SSLError, UnicodeError) as failure:
            raise NotFetched(f"its host cannot be reached ({type(failure).__name__})") from None
        except h11.RemoteProtocolError:
            raise NotFetched("its host does not answer in HTTP") from None

    async def _fetch(self, url: str) -> Fetched:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 443
        found = await self.resolve(host, port)
        if not found or not all(map(is_public, found)):
            raise NotFetched("its host is not public")
        stream = self.secure(await self.connect(found[0], port), host)
        try:
            await stream.send_all(_request(parts.netloc, parts.path))
            return await _read(stream)
        finally:
            await trio.aclose_forcefully(stream)


async def _resolve(host: str, port: int) -> list[str]:
    found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _request(host: str, path: str) -> bytes:
    head = (
        f"GET {path} HTTP/1.1",
        f"Host: {host}",
        "Accept: application/json",
        "Accept-Encoding: identity",
        "User-Agent: lithos",
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode("ascii")


async def _read(stream: trio.abc.Stream) -> Fetched:
    """Return the response. The sizes of its head and body are limited."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    connection.send(h11.EndOfMessage())
    body, kept, received = bytearray(), timedelta(0), 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            part = await stream.receive_some(16 * 1024)
            received += len(part)
            if received > 2 * LARGEST:
                raise NotFetched(f"the document is larger than {LARGEST} bytes")
            connection.receive_data(bytes(part))
        elif isinstance(event, h11.Response):
            if event.status_code != 200:
                raise NotFetched(f"its host answers with status {event.status_code}")
            kept = _kept(b",".join(value for name, value in event.headers if name == b"cache-control"))
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > LARGEST:
                raise NotFetched(f"the document is larger than {LARGEST} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return Fetched(bytes(body), kept)
        elif isinstance(event, h11.ConnectionClosed):
            raise NotFetched("the document is incomplete")


def _kept(header: bytes) -> timedelta:
    """Return the period for which the host allows the document to be cached."""
    text = header.decode("latin-1")
    found = _MAX_AGE.search(text)
    if found is None or _UNKEPT.search(text):
        return timedelta(0)
    return min(timedelta(seconds=int(found[1])), LONGEST_KEPT)


class Documents:
    """Clients that documents describe. A document is cached for as long as it allows."""

    def __init__(self, clock: Callable[[], datetime], fetcher: Fetcher | None = None) -> None:
        self._clock = clock
        self._fetcher = fetcher
        self._kept: Newest[str, tuple[datetime, OAuthClient]] = Newest(MOST_KEPT)

    async def find(self, client_id: str) -> OAuthClient:
        """Return the client with this address as its id. Raises `OAuthRefused`."""
        now = self._clock()
        end, client = self._kept.get(client_id, (now, None))
        if client is not None and timedelta(0) < end - now <= LONGEST_KEPT:
            return client
        if self._fetcher is None:
            self._fetcher = await trio.to_thread.run_sync(Fetcher.of_this_machine)
        host = urlsplit(client_id).netloc
        try:
            fetched = await self._fetcher.fetch(client_id)
            client = read_document(_parse(fetched.body), client_id, now)
        except NotFetched as failure:
            log.warning("client document refused", host=host, reason=str(failure))
            raise OAuthRefused(
                "invalid_client",
                f"The document of this client, from {host}, could not be fetched: {failure}.",
            ) from None
        self._kept.pop(client_id, None)
        if fetched.kept:
            self._kept[client_id] = now + fetched.kept, client
        return client


def _parse(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise NotFetched("the document is not valid JSON") from None
    if not isinstance(document, dict):
        raise NotFetched("the document is not a JSON object")
    return document
