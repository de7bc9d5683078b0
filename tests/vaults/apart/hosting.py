"""Helper that serves several vaults in the test process: `async with hosting({"work": config}) as hosted`.

The helper `alone` serves one of the vaults on a separate server with the same settings.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from attrs import define, evolve

import lithos.search.capability
import lithos.search.indexing.accurate_models
import lithos.vaults.hosting as composed
from lithos.access.files.tokens import Token, TokenStore, digest_of
from lithos.app.capabilities import holders
from lithos.app.front import front_parts, serve_front
from lithos.app.server import Server, running_server, running_vault
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.configuration.load import LoadedConfig
from lithos.kernel.parts import utc_now
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.principals import Rights
from lithos.server.settings import ServerConfig
from lithos.vaults.hosted import Starting
from lithos.vaults.hosting import Vaults, serve_vaults
from tests.server.running import SETTINGS, STOP_BOUND, rpc, tokens_known_soon
from tests.servers import load_once

#: Maximum waiting time in seconds. The value is generous for slow machines.
PATIENCE: Final = 120.0
VERSION: Final = "2025-06-18"
_CHUNKED: Final = re.compile(rb"^transfer-encoding: chunked\r\n", re.IGNORECASE | re.MULTILINE)
_LENGTH: Final = re.compile(rb"^content-length: (\d+)\r\n", re.IGNORECASE | re.MULTILINE)


def config_of(vault: Path, data: Path, **sections: Any) -> Config:
    """Return a configuration with the notes in `vault` and Lithos's own data in `data`."""
    storage = StorageConfig(data_dir=data, vault=vault)
    return Config(storage=storage, server=ServerConfig(watch_files=False), **sections)


def put(vault: Path, files: Mapping[str, str]) -> None:
    """Write notes as a person does, but always with the same modification times."""
    for number, (path, text) in enumerate(files.items()):
        file = vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (1_760_000_000 + number, 1_760_000_000 + number))


def let_in(
    data: Path, secret: str, rights: Rights = "admin", name: str = "", agent: str | None = None
) -> None:
    """Register a token in a vault, as `lithos token create` does. By default, the name equals the secret."""
    private = data / ".lithos"
    private.mkdir(parents=True, exist_ok=True)
    made = Token(
        name or secret,
        digest_of(secret.encode()),
        rights=rights,
        agent=agent,
        created_at=datetime.fromisoformat("2026-01-02T03:04:05+00:00"),
        expires_at=None,
    )
    TokenStore(private).insert(made)


@define(eq=False)
class Door:
    """Address of a server, with methods that send requests to it."""

    url: str
    #: Function that returns the server of a vault. With only one vault, the function ignores the name.
    server: Callable[[str], Server]

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port."""
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    async def exchange(
        self,
        path: str,
        token: str | None = None,
        method: str = "GET",
        body: bytes = b"",
        fields: Iterable[str] = (),
    ) -> bytes:
        """Send a request on a new connection. Return all bytes of the response."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *fields]
        lines += [f"Authorization: Bearer {token}"] if token is not None else []
        lines += [f"Content-Length: {len(body)}"] if body or method in ("POST", "PUT", "PATCH") else []
        with trio.fail_after(PATIENCE):
            async with await trio.open_tcp_stream(*self.address) as stream:
                await stream.send_all("\r\n".join([*lines, "", ""]).encode() + body)
                received = b""
                while not _is_whole(received, method):
                    part = await stream.receive_some()
                    if not part:
                        break
                    received += bytes(part)
                return received

    async def rpc(
        self, path: str, token: str | None, method: str, fields: Iterable[str] = (), **params: Any
    ) -> bytes:
        """Send an MCP request. Return all bytes of the response."""
        body = json.dumps(rpc(method, **params)).encode()
        fields = (
            *fields,
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
            f"MCP-Protocol-Version: {VERSION}",
        )
        return await self.exchange(path, token, "POST", body, fields)

    async def call(
        self, path: str, token: str | None, tool: str, /, fields: Iterable[str] = (), **arguments: Any
    ) -> bytes:
        """Call a tool. Return all bytes of the response."""
        return await self.rpc(path, token, "tools/call", fields, name=tool, arguments=arguments)

    async def ask(
        self, path: str, token: str | None, tool: str, /, fields: Iterable[str] = (), **arguments: Any
    ) -> dict[str, Any]:
        """Call a tool. Return its result, or its error envelope if the call fails."""
        return structured(await self.call(path, token, tool, fields, **arguments))


@define(eq=False)
class Hosted(Door):
    """Several running vaults, and the address of the server."""

    vaults: Vaults
    shutdown: trio.Event

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds` returns true for the running vaults."""
        with trio.fail_after(PATIENCE):
            while not holds():
                await self.vaults.set.wait_changed()

    async def served(self, *names: str) -> None:
        """Wait until the named vaults (or all vaults) run and all their notes are indexed."""
        for name in names or self.vaults.hosted:
            await self.until(lambda name=name: self.vaults.hosted[name].server is not None)  # type: ignore[misc]
            with trio.fail_after(PATIENCE):
                await self.server(name).searchable()


@contextmanager
def _with_small_models(clock: Callable[[], datetime]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lithos.search.capability, "load_embedder", load_once)
        patch.setattr(lithos.search.indexing.accurate_models, "is_installed", lambda: False)
        patch.setattr(composed, "utc_now", clock)
        patch.setattr(composed, "RETRY", 0.01)
        patch.setattr(composed, "MOST_RETRY", 0.05)
        yield


@asynccontextmanager
async def hosting(
    configs: Mapping[str, Config | LoadedConfig],
    *,
    settled: bool = True,
    clock: Callable[[], datetime] = utc_now,
    default: str | None = None,
) -> AsyncIterator[Hosted]:
    """Serve vaults on one port. Unless `settled` is false, wait until all notes are indexed."""
    named = {
        name: each if isinstance(each, LoadedConfig) else LoadedConfig(config=each)
        for name, each in configs.items()
    }
    async with tokens_known_soon():
        with _with_small_models(clock):
            starting = Starting(partial(running_vault, clock=clock), front_parts, holders())
            vaults, shutdown = Vaults(named, default or next(iter(named)), starting), trio.Event()
            async with trio.open_nursery() as nursery:
                serve = partial(
                    serve_vaults, vaults, evolve(SETTINGS, console=True), shutdown, "http://{}:{}".format
                )
                host, port = await nursery.start(serve)
                hosted = Hosted(f"http://{host}:{port}", partial(_server_of, vaults), vaults, shutdown)
                if settled:
                    await hosted.served()
                yield hosted
                shutdown.set()
                nursery.cancel_scope.deadline = trio.current_time() + STOP_BOUND
            assert not nursery.cancel_scope.cancelled_caught, "the stop took too long"


@asynccontextmanager
async def alone(config: Config, *, clock: Callable[[], datetime] = utc_now) -> AsyncIterator[Door]:
    """Serve one vault on a separate server."""
    async with tokens_known_soon():
        with _with_small_models(clock):
            async with running_server(config, clock=clock, gets_front=True) as server:
                shutdown = trio.Event()
                async with trio.open_nursery() as nursery:
                    serve = partial(serve_front, evolve(SETTINGS, console=True), server, shutdown)
                    host, port = await nursery.start(serve)
                    await server.searchable()
                    yield Door(f"http://{host}:{port}", lambda name: server)
                    shutdown.set()
                    nursery.cancel_scope.deadline = trio.current_time() + STOP_BOUND
                assert not nursery.cancel_scope.cancelled_caught, "the stop took too long"


def _server_of(vaults: Vaults, name: str) -> Server:
    server = vaults.hosted[name].server
    assert isinstance(server, Server), vaults.hosted[name].reason
    return server


def _is_whole(received: bytes, method: str) -> bool:
    head, separator, body = received.partition(b"\r\n\r\n")
    if not separator:
        return False
    lines = head + b"\r\n"
    if method == "HEAD" or re.match(rb"HTTP/1\.1 (204|304)", head):
        return True
    if _CHUNKED.search(lines):
        return body.endswith(b"0\r\n\r\n")
    length = _LENGTH.search(lines)
    return length is not None and len(body) >= int(length[1])


def body_of(received: bytes) -> bytes:
    """Return the body of a response, with joined chunks."""
    head, _, body = received.partition(b"\r\n\r\n")
    if not _CHUNKED.search(head + b"\r\n"):
        return body
    pieces, rest = list[bytes](), body
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        pieces.append(rest[:length])
        rest = rest[length + 2 :]
    return b"".join(pieces)


def status_of(received: bytes) -> int:
    """Return the status code of a response."""
    return int(received.split(b" ", 2)[1])


def structured(received: bytes) -> dict[str, Any]:
    """Return a tool's result, parsed from the bytes of the response."""
    answer = json.loads(body_of(received))
    assert "result" in answer, answer
    told: dict[str, Any] = answer["result"]["structuredContent"]
    return told
