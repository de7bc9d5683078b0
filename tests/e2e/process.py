"""Real `lithos` processes. Every wait has a time limit, and processes are ended by their pid."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

LITHOS = (sys.executable, "-m", "lithos")
#: Maximum start time in seconds. This test timeout is generous, because many tests start programs at the same
#: time.
START_BOUND = 120.0
#: Maximum stop time in seconds. On an idle machine, a stop takes at most 4 s unless the server hangs.
STOP_BOUND = 60.0
WHOLE_AND_STATIC = {
    "LITHOS_SEARCH__TIER": "static", "LITHOS_SERVER__MAX_ANSWER_CHARS": "0", "LITHOS_SERVER__ANSWERS": "full",
}  # fmt: skip


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this environment without Lithos settings, but with static embeddings.

    Answers are complete, because most tests compare whole answers. `tests/server/tools/test_affordable.py`
    tests the size limit.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LITHOS_", "OTEL_"))}
    return kept | WHOLE_AND_STATIC | dict(extra or {})


def run_lithos(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command until it ends."""
    return subprocess.run(
        [*LITHOS, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=clean_environment(env),
        cwd=cwd,
        timeout=START_BOUND,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@define(eq=False)
class Lithos:
    """A running `lithos serve`."""

    process: subprocess.Popen[bytes]
    url: str
    stderr: Path
    exit_code: int | None = field(default=None)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
        """Send one request on a new connection.

        Return status and text. In header names, `_` stands for `-`.
        """
        connection = http.client.HTTPConnection(*self.address, timeout=START_BOUND)
        given = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, given)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def health(self) -> tuple[int, dict[str, Any]]:
        """Return status and components of `/health`."""
        status, text = self.ask("GET", "/health")
        return status, dict(json.loads(text)["components"])

    def log(self) -> str:
        return self.stderr.read_text(errors="replace")

    def stop(self, number: int = signal.SIGTERM, within: float = STOP_BOUND) -> int:
        """Send the signal, wait for the end, and return the exit code.

        Raise `subprocess.TimeoutExpired` after `within` seconds.
        """
        self.process.send_signal(number)
        return self.wait(within)

    def wait(self, within: float = STOP_BOUND) -> int:
        self.exit_code = self.process.wait(within)
        return self.exit_code

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(STOP_BOUND)

    def close(self) -> None:
        """Kill the process if it is still running."""
        if self.process.poll() is None:
            self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()


def until(holds: Callable[[], object], told: Callable[[], object] = str) -> None:
    """Repeat the check until it succeeds. `told` describes the last state for the error message."""
    end = time.monotonic() + START_BOUND
    while not holds():
        assert time.monotonic() < end, told()
        time.sleep(0.02)


def wait_until_well(server: Lithos) -> None:
    """Wait until `/health` reports no component as degraded.

    A server answers requests before all its indexes are built.
    """
    until(lambda: json.loads(server.ask("GET", "/health")[1])["status"] == "ok", server.health)


def start_lithos(
    data: Path, *arguments: str, env: Mapping[str, str] | None = None, stderr: Path | None = None
) -> Lithos:
    """Start `lithos serve -t http` on a free port, and wait until it prints its address."""
    errors = stderr or data.with_name(f"{data.name}.stderr")
    with errors.open("ab") as sink:
        process = subprocess.Popen(
            [*LITHOS, "-d", str(data), "--json", "serve", "-t", "http", "-p", "0", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sink,
            env=clean_environment(env),
            cwd=data.parent,
        )
    try:
        line = read_line(process, START_BOUND)
        assert line, f"no address: exit {process.poll()}: {errors.read_text()}"
        return Lithos(process, json.loads(line)["url"], errors)
    except BaseException:
        Lithos(process, "", errors).close()
        raise


def kill_while_starting(data: Path) -> None:
    """Start a server and kill it as soon as it begins to open the data directory."""
    command = [*LITHOS, "-d", str(data), "serve", "-t", "http", "-p", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_environment()
    ) as process:
        try:
            assert read_line(process, START_BOUND)
        finally:
            process.kill()


def read_line(process: subprocess.Popen[bytes], within: float) -> bytes:
    """Return the first line of stdout. If the process ends before that, return all its output."""
    assert process.stdout is not None
    received, until = b"", time.monotonic() + within
    while not received.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
        assert ready, f"nothing came for {within} s"
        part = os.read(process.stdout.fileno(), 1)
        if not part:
            break
        received += part
    return received


@contextmanager
def running_lithos(
    data: Path, *arguments: str, env: Mapping[str, str] | None = None, stderr: Path | None = None
) -> Iterator[Lithos]:
    """Run a server during the block. If it is still running afterwards, stop it. It must exit with 0."""
    server = start_lithos(data, *arguments, env=env, stderr=stderr)
    try:
        yield server
        if server.process.poll() is None:
            assert server.stop() == 0
    finally:
        server.close()
