"""Stdio transport. Each message is one line. Trio reads and writes without threads.

A blocked read cannot delay the exit. Only protocol messages reach the client.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from lithos.server.mcp.messages import LONGEST_LINE, refuse_long, refuse_message

READ_BYTES: Final = 64 * 1024
WRITE_BYTES: Final = 4096
"""Bytes that a writable pipe accepts without blocking (PIPE_BUF on Linux; POSIX guarantees 512)."""


@contextmanager
def claim_standard_streams() -> Iterator[tuple[int, int]]:
    """Yield private descriptors for stdin and stdout. The standard descriptors are restored at the end.

    During the block, descriptor 1 points to stderr and descriptor 0 is empty."""
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield wire_in, wire_out
    finally:
        sys.stdout.flush()
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)
        os.close(wire_in)
        os.close(wire_out)


class StdinMessages:
    """Iterator over the valid message lines of stdin, until stdin ends or the server stops.

    A line that is not a protocol message is not passed on. `output` gets an error response to it.
    """

    def __init__(self, descriptor: int, shutdown: trio.Event, output: Output) -> None:
        self._descriptor = descriptor
        self._shutdown = shutdown
        self._output = output
        self._buffer = bytearray()
        self._searched = 0
        self._ended = False
        #: Whether the rest of a line is skipped. The line was too long and has already been answered.
        self._is_skipping = False

    def __aiter__(self) -> StdinMessages:
        return self

    async def __anext__(self) -> str:
        while not self._shutdown.is_set():
            end = self._buffer.find(b"\n", self._searched)
            if end < 0 and not self._ended:
                self._searched = len(self._buffer)
                await self._skip_long()
                await self._fill()
                continue
            line = self._take(end + 1 if end >= 0 else len(self._buffer))
            if self._is_skipping:
                self._is_skipping = False
                continue
            if not line:
                break
            refusal = refuse_message(line) if line.strip() else b""
            if refusal is None:
                return line.decode()
            await self._output.write_bytes(refusal)
        raise StopAsyncIteration

    async def _skip_long(self) -> None:
        """Answer a line that is longer than the maximum, and discard the part that has been read."""
        if self._is_skipping:
            self._take(len(self._buffer))
        elif len(self._buffer) > LONGEST_LINE:
            self._is_skipping = True
            await self._output.write_bytes(refuse_long(self._take(len(self._buffer))))

    def _take(self, size: int) -> bytes:
        line = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._searched = 0
        return line

    async def _fill(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on, self._shutdown, nursery.cancel_scope)
            await _ready(trio.lowlevel.wait_readable, self._descriptor)
            data = os.read(self._descriptor, READ_BYTES)
            self._buffer += data
            self._ended = not data
            nursery.cancel_scope.cancel()


class Output:
    """Stdout of the protocol. If the client closes it, the server stops serving."""

    def __init__(self, descriptor: int, serving: trio.CancelScope) -> None:
        self._descriptor = descriptor
        self._serving = serving
        #: Makes tasks wait for each other, so that each answer is written in one piece.
        self._turn = trio.Lock()

    async def write(self, text: str) -> None:
        await self.write_bytes(text.encode("utf-8", "replace"))

    async def write_bytes(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            async with self._turn:
                while rest:
                    await _ready(trio.lowlevel.wait_writable, self._descriptor)
                    rest = rest[os.write(self._descriptor, rest[:WRITE_BYTES]) :]
        except BrokenPipeError:
            self._serving.cancel()
            await trio.lowlevel.checkpoint_if_cancelled()

    async def flush(self) -> None:
        """Do nothing, because the output is not buffered."""


async def _cancel_on(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    """Wait until the descriptor is ready. A regular file never blocks, so it needs no wait."""
    try:
        await wait(descriptor)
    except PermissionError:
        await trio.lowlevel.checkpoint()
