"""A stdio server that bridges to another: its start, its memory, its calls, and how long a take-over lasts.

`python -m bench.bridge --notes 1000`. The calls are `lithos_agent_info` of an unknown agent, the cheapest
there is, so that what is compared is the way to the owner.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.report import middle, print_report
from bench.server import PATIENCE, data_directory, installed_environment

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
NO_OP = {"name": "lithos_agent_info", "arguments": {"id": "nobody"}}


class Stdio:
    """One stdio server, greeted; `answered` is seconds from its start to the answer of a ping."""

    def __init__(self, process: subprocess.Popen[bytes], began: float) -> None:
        self.process = process
        self.request("ping", 1)
        self.answered = time.perf_counter() - began
        self.request("initialize", 2, **HELLO)
        self.greeted = time.perf_counter() - began
        self._send("notifications/initialized", None, {})

    def request(self, method: str, number: int, **params: Any) -> dict[str, Any]:
        self._send(method, number, params)
        return self._answer()

    def settle(self) -> None:
        """Wait until it has loaded everything: a search by meaning waits for the model."""
        search = {"query": "anything", "mode": "semantic"}
        self.request("tools/call", 3, name="lithos_search", arguments=search)

    def calls(self, count: int, at_once: int) -> float:
        """Calls a second with so many under way."""
        began, sent = time.perf_counter(), 0
        for answered in range(count):
            while sent < min(count, answered + at_once):
                self._send("tools/call", sent, NO_OP)
                sent += 1
            assert "result" in self._answer()
        return count / (time.perf_counter() - began)

    def memory(self) -> dict[str, float]:
        """MiB that are resident, and of these what no other process shares."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        private = sum(int(size) for size in re.findall(r"^Private_\w+: +(\d+)", rollup, re.MULTILINE))
        resident = int(re.findall(r"^Rss: +(\d+)", rollup, re.MULTILINE)[0])
        return {"resident_mib": round(resident / 1024, 1), "own_mib": round(private / 1024, 1)}

    def _send(self, method: str, number: int | None, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        assert self.process.stdin is not None
        self.process.stdin.write(
            json.dumps(message if number is None else {**message, "id": number}).encode()
        )
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        while True:
            message: dict[str, Any] = json.loads(self.process.stdout.readline())
            if "method" not in message:
                return message


@contextmanager
def started(data: Path, patience: float = PATIENCE) -> Iterator[Stdio]:
    """A stdio server on `data`, ended by the end of its input, or killed after `patience` seconds."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "lithos", "-d", str(data), "serve", "-t", "stdio"],
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bridge", description=__doc__)
    parser.add_argument("--notes", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rounds = [_measure(options.notes, options.calls) for _ in range(options.rounds)]
    figures = {name: middle([each[name] for each in rounds]) for name in rounds[0]}
    print_report("bridge", notes=options.notes, **figures)


def _measure(notes: int, calls: int) -> dict[str, float]:
    with data_directory(notes) as data, started(data) as owner, started(data) as bridge:
        figures = {"owner_greeted_s": owner.greeted}
        figures |= {"bridge_answered_s": bridge.answered, "bridge_greeted_s": bridge.greeted}
        for name, server in (("owner", owner), ("bridge", bridge)):
            for at_once in (1, 16):
                figures[f"{name}_calls_{at_once}"] = server.calls(calls, at_once)
            figures |= {f"{name}_{unit}": size for unit, size in server.memory().items()}
        os.kill(owner.process.pid, 9)
        owner.process.wait()
        killed = time.perf_counter()
        assert "result" in bridge.request("tools/call", 1, **NO_OP)
        figures["taken_over_s"] = time.perf_counter() - killed
    return figures


if __name__ == "__main__":
    main()
