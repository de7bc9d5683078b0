"""A fake OTLP collector on a loopback port of the system's choice, in the test's own event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import h11
import trio
from attrs import define, field


@define(eq=False)
class Collector:
    """Keeps the bodies it gets and answers `status`, or never while `status` is None."""

    port: int = 0
    status: int | None = 200
    paths: list[str] = field(factory=list)
    _put: trio.MemorySendChannel[bytes] = field(init=False)
    _got: trio.MemoryReceiveChannel[bytes] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._put, self._got = trio.open_memory_channel[bytes](1_000)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def body(self) -> bytes:
        """The next body, waiting for it."""
        return await self._got.receive()

    async def serve(self, stream: trio.SocketStream) -> None:
        connection, body = h11.Connection(h11.SERVER), b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                try:
                    connection.receive_data(await stream.receive_some())
                except trio.BrokenResourceError:
                    return
            elif isinstance(event, h11.Request):
                self.paths.append(event.target.decode())
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                await self._answer(stream, connection, body)
                connection.start_next_cycle()
                body = b""
            else:
                return

    async def _answer(self, stream: trio.SocketStream, connection: h11.Connection, body: bytes) -> None:
        self._put.send_nowait(body)
        if self.status is None:
            await trio.sleep_forever()
        head = h11.Response(status_code=self.status or 200, headers=[("Content-Length", "0")])
        parts = (head, h11.EndOfMessage())
        await stream.send_all(b"".join(connection.send(part) or b"" for part in parts))


@asynccontextmanager
async def collecting(status: int | None = 200) -> AsyncIterator[Collector]:
    """A collector for the block."""
    collector = Collector(status=status)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(
            lambda **kw: trio.serve_tcp(collector.serve, 0, host="127.0.0.1", **kw)
        )
        collector.port = listeners[0].socket.getsockname()[1]
        yield collector
        nursery.cancel_scope.cancel()
