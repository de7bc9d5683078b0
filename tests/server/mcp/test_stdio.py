"""Stdio transport in a separate process (behaviour 204)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.server.running import rpc

SERVER = """
import os, signal, sys, threading, trio
from lithos.server.mcp import session
from lithos.server.mcp.session import serve_stdio
from tests.server.running import FakeToolBox

class Noisy(FakeToolBox):
    async def call(self, name, arguments):
        print("stray print")
        os.system("echo stray child; cat")
        return await super().call(name, arguments)

if "--hasty" in sys.argv:
    session.STOP_GRACE = 0.2

async def main():
    shutdown = trio.Event()
    async with trio.open_nursery() as nursery:
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            nursery.start_soon(stop_on, signals, shutdown)
            await serve_stdio(Noisy(), "9.8.7", shutdown=shutdown)
            nursery.cancel_scope.cancel()
    if "--farewell" in sys.argv:
        print("after the wire", flush=True)

async def stop_on(signals, shutdown):
    async for _ in signals:
        shutdown.set()

trio.run(main)
"""
COMMAND = [sys.executable, "-c", SERVER]
ROOT = Path(__file__).parents[3]
BOUND = 60.0


@asynccontextmanager
async def running_server(*arguments: str, **options: object) -> AsyncIterator[trio.Process]:
    """Run the server. After the block, the server must exit with code 0 within `BOUND` seconds."""
    settings = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(
            lambda task_status: trio.run_process(
                [*COMMAND, *arguments], cwd=ROOT, check=False, task_status=task_status, **settings
            )
        )
        try:
            yield process
            with trio.fail_after(BOUND):
                assert await process.wait() == 0
        finally:
            nursery.cancel_scope.cancel()


def line(message: dict[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def hello() -> bytes:
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    return line(rpc("initialize", 0, **client)) + line(rpc("notifications/initialized", None))


async def read_lines(stream: trio.abc.ReceiveStream, count: int) -> list[dict[str, object]]:
    received = b""
    while received.count(b"\n") < count:
        part = await stream.receive_some()
        assert part, received
        received += bytes(part)
    return [json.loads(text) for text in received.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]
)
async def test_official_client_works_when_tools_print_output(mode: str, version: str, tmp_path: Path) -> None:
    """behaviour 204"""
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], cwd=ROOT)
    with (tmp_path / "stderr").open("w+") as errors:
        async with Client(stdio_client(parameters, errlog=errors), mode=mode) as client:
            assert client.protocol_version == version
            answer = await client.call_tool("echo", {"text": "日本" * 50_000})
            assert answer.structured_content is not None
            assert answer.structured_content["text"] == "日本" * 50_000
        errors.seek(0)
        printed = errors.read()
    assert "stray print" in printed
    assert "stray child" in printed
    assert "Traceback" not in printed


@pytest.mark.slow
async def test_requests_before_the_end_of_input_are_answered() -> None:
    async with running_server() as process:
        calls = [line(rpc("tools/call", n, name="echo", arguments={"text": str(n)})) for n in (1, 2, 3)]
        await process.stdin.send_all(hello() + b"".join(calls) + b"not json\n")
        await process.stdin.aclose()
        answers = await read_lines(process.stdout, 5)
        assert sorted(str(answer.get("id")) for answer in answers) == ["0", "1", "2", "3", "None"]


@pytest.mark.slow
async def test_oversized_line_gets_an_error_and_next_line_is_served() -> None:
    """The error contains the request id, whether the id precedes or follows the long value."""
    many = "[" + ",".join(["{}"] * 60_000) + "]"
    first = f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{many}}}\n'
    last = f'{{"method":"tools/call","params":{many},"jsonrpc":"2.0","id":"a-8"}}\n'
    async with running_server() as process:
        call = line(rpc("tools/call", 9, name="echo", arguments={"text": ",[{" * 100_000}))
        await process.stdin.send_all(hello() + first.encode() + last.encode() + many.encode() + b"\n" + call)
        answers = {str(answer["id"]): answer for answer in await read_lines(process.stdout, 5)}
        await process.stdin.aclose()
        assert set(answers) == {"0", "7", "a-8", "None", "9"}
        for refused in ("7", "a-8", "None"):
            assert "more than 40,000 JSON values" in answers[refused]["error"]["message"]
        assert answers["9"]["result"]["isError"] is False


@pytest.mark.slow
async def test_stdout_contains_only_protocol_messages() -> None:
    """behaviour 204"""
    async with running_server("--farewell") as process:
        await process.stdin.send_all(hello() + line(rpc("tools/call", 1, name="nothing", arguments={})))
        answers = await read_lines(process.stdout, 2)
        assert [answer["jsonrpc"] for answer in answers] == ["2.0", "2.0"]
        await process.stdin.aclose()
        assert b"".join([bytes(part) async for part in process.stdout]) == b"after the wire\n"


@pytest.mark.slow
async def test_idle_process_ends_on_sigterm_while_stdin_is_open() -> None:
    async with running_server() as process:
        await process.stdin.send_all(hello())
        await read_lines(process.stdout, 1)
        process.send_signal(signal.SIGTERM)


@pytest.mark.slow
async def test_client_that_never_reads_cannot_delay_the_stop() -> None:
    async with running_server("--hasty") as process:
        calls = [line(rpc("tools/call", n, name="big", arguments={"size": 900_000})) for n in range(3)]
        await process.stdin.send_all(hello() + b"".join(calls))
        await read_lines(process.stdout, 1)
        process.send_signal(signal.SIGTERM)


@pytest.mark.slow
async def test_process_ends_when_the_client_closes_stdout() -> None:
    async with running_server() as process:
        await process.stdin.send_all(hello())
        await read_lines(process.stdout, 1)
        await process.stdout.aclose()
        await process.stdin.send_all(line(rpc("ping", 5)))


@pytest.mark.slow
async def test_regular_files_work_as_stdin_and_stdout(tmp_path: Path) -> None:
    asked, answered = tmp_path / "in", tmp_path / "out"
    asked.write_bytes(hello() + line(rpc("ping", 4)).rstrip())
    with asked.open() as stdin, answered.open("w") as stdout:
        async with running_server(stdin=stdin, stdout=stdout):
            pass
    answers = [json.loads(text) for text in answered.read_text().splitlines()]
    assert [answer["id"] for answer in answers] == [0, 4]


def test_platform_writes_512_bytes_to_a_pipe_atomically() -> None:
    read, write = os.pipe()
    try:
        assert os.fpathconf(write, "PC_PIPE_BUF") >= 512
    finally:
        os.close(read)
        os.close(write)
