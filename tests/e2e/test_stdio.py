"""`lithos serve` over stdio.

Stdout has only protocol messages. The server ends with stdin and needs no stderr reader.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.process import LITHOS, START_BOUND, clean_environment
from tests.e2e.stdio import stdio_server
from tests.e2e.vault import make_vault


@pytest.mark.slow
def test_stdout_contains_only_protocol_messages_and_all_answers(tmp_path: Path) -> None:
    """behaviour 204"""
    make_vault(tmp_path / "data")
    with (
        (tmp_path / "stderr").open("w") as errors,
        stdio_server(tmp_path / "data", errors.fileno(), LITHOS_LOG_LEVEL="debug") as server,
    ):
        server.greet()
        server.send_line("this is no JSON")
        for number in range(1, 20):
            server.call(number, "lithos_write", title=f"Note {number}", content="text", agent="a")
        server.close_input()  # most calls are still running
        messages = [json.loads(line) for line in server.rest().splitlines()]
    answers = {message["id"]: message for message in messages if message.get("id") is not None}
    assert set(answers) == set(range(1, 20))
    assert all(answer["result"]["structuredContent"]["status"] == "created" for answer in answers.values())
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    log = (tmp_path / "stderr").read_text()
    assert "Starting MCP server (stdio transport)..." in log
    assert "Traceback" not in log
    assert len(list((tmp_path / "data" / "knowledge").glob("note-*.md"))) == 19


@pytest.mark.slow
def test_client_that_ignores_stderr_cannot_block_the_server(tmp_path: Path) -> None:
    """behaviours 176, 204"""
    folder = tmp_path / "data" / "knowledge"
    folder.mkdir(parents=True)
    for number in range(300):  # each file causes one warning at startup
        (folder / f"broken-{number}.md").write_bytes(b"---\nx: [\n---\n" if number % 2 else b"\x00\xff\xfe")
    reading, writing = os.pipe()
    try:
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 16384)
        with stdio_server(tmp_path / "data", writing, LITHOS_LOG_LEVEL="debug") as server:
            server.greet()
            for number in range(1, 30):
                server.call(number, "lithos_write", title=f"Note {number}", content="text", agent="a")
                assert server.answer()["id"] == number
            full = os.read(reading, 16384)
            server.call(30, "lithos_stats")
            assert server.answer()["id"] == 30
            server.process.send_signal(signal.SIGTERM)
            assert server.rest() == b""
        assert full.startswith(b"Initializing Lithos...\n")
        os.set_blocking(reading, False)
        assert b"lines were lost" in os.read(reading, 65536)
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGINT"])
def test_signal_ends_a_server_whose_stdin_is_open(ending: str, tmp_path: Path) -> None:
    with stdio_server(tmp_path / "data", subprocess.DEVNULL) as server:
        server.greet()
        server.process.send_signal(signal.Signals[ending])
        assert server.rest() == b""


@pytest.mark.slow
def test_lock_contains_the_address_of_a_stdio_server(tmp_path: Path) -> None:
    """behaviours 197, 201"""
    data = tmp_path / "data"
    with stdio_server(data, subprocess.DEVNULL) as server:
        server.greet()
        owner = json.loads((data / ".lithos" / "lock").read_bytes())
        assert owner["pid"] == server.process.pid
        assert owner["url"].startswith("http://127.0.0.1:")
        assert len(owner["token"]) >= 32
        asked = subprocess.run(
            [*LITHOS, "-d", str(data), "--json", "stats"],
            capture_output=True, timeout=START_BOUND, env=clean_environment(), check=True,
        )  # fmt: skip
        assert json.loads(asked.stdout)["documents"] == 0
        server.close_input()
        assert server.rest() == b""
    assert (data / ".lithos" / "lock").read_bytes() == b""
