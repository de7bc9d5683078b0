"""A stdio server. It is started as a client would start it, and queried line by line."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.server import LITHOS, PATIENCE, installed_environment

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Stdio:
    """One stdio server. `greeted` is the number of seconds from its start to the answer to `initialize`."""

    def __init__(self, process: subprocess.Popen[bytes], began: float) -> None:
        self.process = process
        self.request("initialize", 1, **HELLO)
        self.greeted = time.perf_counter() - began
        self._send("notifications/initialized", None, {})

    def request(self, method: str, number: int, **params: Any) -> dict[str, Any]:
        """Send a request and return its answer."""
        self._send(method, number, params)
        assert self.process.stdout is not None
        while True:
            message: dict[str, Any] = json.loads(self.process.stdout.readline())
            if "method" not in message:
                return message

    def settle(self) -> None:
        """Wait until all data is loaded. To do so, run a semantic search, which waits for the model."""
        search = {"query": "anything", "mode": "semantic"}
        self.request("tools/call", 2, name="lithos_search", arguments=search)

    def own_mib(self) -> float:
        """Return the memory in MiB that the process does not share with other processes."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        private = re.findall(r"^Private_\w+: +(\d+)", rollup, re.MULTILINE)
        return sum(map(int, private)) / 1024

    def _send(self, method: str, number: int | None, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        assert self.process.stdin is not None
        line = json.dumps(message if number is None else {**message, "id": number})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()


@contextmanager
def started(data: Path, patience: float = PATIENCE) -> Iterator[Stdio]:
    """Start a stdio server on `data`. It ends with its input. After `patience` seconds, it is killed."""
    began = time.perf_counter()
    with subprocess.Popen(
        [*LITHOS, "-d", str(data), "serve", "-t", "stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=installed_environment(),
    ) as process:
        too_late = threading.Timer(patience, process.kill)
        too_late.daemon = True
        too_late.start()
        try:
            yield Stdio(process, began)
        finally:
            too_late.cancel()
