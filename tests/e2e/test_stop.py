"""Stop of a real server by a signal. It exits with 0 within five seconds and keeps confirmed writes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from tests.e2e.clients import Gone, WireClient
from tests.e2e.process import (
    LITHOS,
    START_BOUND,
    STOP_BOUND,
    Lithos,
    clean_environment,
    read_line,
    running_lithos,
)

HEAD = b"Host: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
Connect = Callable[[], socket.socket]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Lithos]:
    with running_lithos(tmp_path / "data") as running:
        yield running
        assert "Traceback" not in running.log()
        assert '"exception"' not in running.log()


@pytest.fixture
def connect(server: Lithos) -> Iterator[Callable[[], socket.socket]]:
    """Yield a function that opens connections with a small receive buffer.

    The connections are closed after the test.
    """
    with ExitStack() as opened:

        def open_one() -> socket.socket:
            connection = opened.enter_context(socket.create_connection(server.address, timeout=STOP_BOUND))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            return connection

        yield open_one


def request(line: str, message: object = None) -> bytes:
    body = b"" if message is None else json.dumps(message).encode()
    return f"{line} HTTP/1.1\r\n".encode() + HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def read_until(connection: socket.socket, wanted: bytes) -> None:
    received = b""
    while wanted not in received:
        part = connection.recv(4096)
        assert part, received
        received += part


def call(tool: str, **arguments: object) -> dict[str, object]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


def read_to_end(connection: socket.socket) -> bytes:
    received = b""
    while part := connection.recv(65536):
        received += part
    return received


@pytest.mark.slow
def test_sigterm_ends_open_sse_streams_and_idle_connections(server: Lithos, connect: Connect) -> None:
    streams, idle = [connect() for _ in range(5)], [connect() for _ in range(3)]
    for stream in streams:
        stream.sendall(request("GET /sse"))
        read_until(stream, b"session_id=")
    assert server.stop() == 0
    assert all(read_to_end(stream).endswith(b"0\r\n\r\n") for stream in streams)
    assert [read_to_end(connection) for connection in idle] == [b"", b"", b""]


@pytest.mark.slow
async def test_writes_confirmed_at_the_start_of_a_stop_survive(tmp_path: Path) -> None:
    """behaviours 51, 193"""
    data = tmp_path / "data"
    acknowledged: dict[str, str] = {}
    enough = trio.Event()
    with running_lithos(data) as server:

        async def write(agent: int) -> None:
            try:
                async with WireClient.open(server.address) as client:
                    for number in range(100_000):
                        text = f"text {agent} {number}"
                        arguments = {"title": f"Note {agent} {number}", "content": text, "agent": f"a{agent}"}
                        answer = await client.call("lithos_write", **arguments)
                        if answer["status"] == "error":
                            assert answer["code"] == "internal_error"
                            return
                        acknowledged[answer["path"]] = text
                        if len(acknowledged) > 60:
                            enough.set()
            except Gone:
                return

        async with trio.open_nursery() as nursery:
            for agent in range(8):
                nursery.start_soon(write, agent)
            await enough.wait()
            server.process.send_signal(signal.SIGTERM)
            assert await trio.to_thread.run_sync(server.wait) == 0
        assert "Traceback" not in server.log()
        assert '"exception"' not in server.log()
    for path, text in acknowledged.items():
        assert text in (data / "knowledge" / path).read_text()
    assert not list((data / "knowledge").rglob(".lithos-*"))


@pytest.mark.slow
def test_sigterm_during_startup_ends_with_exit_code_0(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "knowledge"
    folder.mkdir(parents=True)
    for number in range(1500):
        (folder / f"note-{number}.md").write_text(f"# Note {number}\n\nText number {number}.\n" * 3)
    process = subprocess.Popen(
        [*LITHOS, "-d", str(folder.parent), "serve", "-t", "http", "-p", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    )
    try:
        assert read_line(process, START_BOUND) == b"Initializing Lithos...\n"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=STOP_BOUND)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors
    assert output == b""
    assert b"Traceback" not in errors
    assert len(list(folder.iterdir())) == 1500


@pytest.mark.slow
def test_signal_during_module_loading_ends_the_startup(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from lithos.app.main import main; from lithos.server.command import streams\n"
        "remember = streams.remember_signals\n"
        "def hasty():\n"
        "    received = remember()\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return received\n"
        "streams.remember_signals = hasty\n"
        f"sys.exit(main(['-d', {str(tmp_path / 'data')!r}, 'serve', '-t', 'http', '-p', '0']))\n"
    )
    ended = subprocess.run(
        [LITHOS[0], "-c", program], capture_output=True, env=clean_environment(), timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == b""
    assert not (tmp_path / "data").exists()
