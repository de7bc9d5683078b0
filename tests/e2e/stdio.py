"""`lithos serve` with stdio, which a test controls with raw messages."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.process import LITHOS, START_BOUND, STOP_BOUND, clean_environment

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class StdioServer:
    """Stdio server that a test controls with raw messages."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._received = b""

    def send(self, method: str, number: int | None = None, **params: object) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.send_line(json.dumps(message if number is None else message | {"id": number}))

    def send_line(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def call(self, number: int, tool: str, **arguments: object) -> None:
        self.send("tools/call", number, name=tool, arguments=arguments)

    def greet(self) -> None:
        self.send("initialize", 0, **HELLO)
        assert self.answer()["id"] == 0
        self.send("notifications/initialized")

    def answer(self) -> dict[str, Any]:
        """Return the next answer. Notifications are skipped. Stdout may contain only protocol messages."""
        while "method" in (message := self.message()):
            pass
        return message

    def message(self) -> dict[str, Any]:
        """Return the next protocol message of any kind."""
        until = time.monotonic() + START_BOUND
        while b"\n" not in self._received:
            assert select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))[0], (
                "silence"
            )
            part = os.read(self.process.stdout.fileno(), 65536)  # type: ignore[union-attr]
            assert part, self._received
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def rest(self) -> bytes:
        """Return the rest of stdout. The process must exit with code 0."""
        assert self.process.stdout is not None
        rest = self._received + self.process.stdout.read()
        assert self.process.wait(STOP_BOUND) == 0
        return rest


@contextmanager
def stdio_server(data: Path, stderr: int, **env: str) -> Iterator[StdioServer]:
    """Run a server on `data` during the block. Kill it afterwards if it is still running."""
    with stdio_program([*LITHOS, "-d", data, "serve"], clean_environment(env), stderr=stderr) as server:
        yield server


@contextmanager
def stdio_program(
    words: Sequence[str | Path],
    env: Mapping[str, str],
    *,
    stderr: int = subprocess.DEVNULL,
    cwd: Path | None = None,
) -> Iterator[StdioServer]:
    """Run a program that starts a stdio server. Kill it after the block if it is still running."""
    with subprocess.Popen(
        list(map(str, words)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=dict(env),
        cwd=cwd,
    ) as process:
        try:
            yield StdioServer(process)
        finally:
            process.kill()
