"""Several stdio servers on one data directory: an owner, bridges to the owner, and a later owner."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from lithos.kernel.databases.lock import OwnerLock, OwnerRecord
from lithos.server.http.limits import STOP_GRACE
from tests.e2e.process import LITHOS, clean_environment, run_lithos, running_lithos, until
from tests.e2e.stdio import StdioServer, stdio_server
from tests.e2e.test_changes import META, new_note, notice

#: Libraries that only an owner loads. Their names appear in the memory map.
HEAVY = ("tantivy", "usearch", "numpy", "tokenizers", "rustworkx", "pydantic_core")
#: Maximum private memory of a bridge in MiB. An owner needs several times this amount.
BRIDGE_MEMORY = 48
PARENT = """
import subprocess, sys, time
subprocess.Popen([*sys.argv[1:]], stdout=sys.stderr)
time.sleep(600)
"""


@pytest.fixture
def errors(tmp_path: Path) -> Iterator[int]:
    with (tmp_path / "stderr").open("ab") as sink:
        yield sink.fileno()


def loaded(server: StdioServer) -> set[str]:
    """Return the heavy libraries in the memory of a server."""
    maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    return {name for name in HEAVY if name in maps}


def own_memory(server: StdioServer) -> float:
    """Return the memory in MiB that the process does not share with another process."""
    rollup = Path(f"/proc/{server.process.pid}/smaps_rollup").read_text()
    return sum(int(size) for size in re.findall(r"^Private_\w+: +(\d+) kB", rollup, re.MULTILINE)) / 1024


def owner_pid(data: Path) -> int:
    return int(json.loads((data / ".lithos" / "lock").read_bytes())["pid"])


def structured(answer: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = answer["result"]["structuredContent"]
    return result


@pytest.mark.slow
def test_second_stdio_server_becomes_a_bridge_and_loads_no_index(tmp_path: Path, errors: int) -> None:
    """behaviour 195"""
    data = tmp_path / "data"
    with house(2, data, errors) as (owner, bridge):
        bridge.call(1, "lithos_write", title="By the bridge", content="text", agent="a")
        note = structured(bridge.answer())
        owner.call(1, "lithos_read", id=note["id"])
        assert structured(owner.answer())["title"] == "By the bridge"
        for server in (owner, bridge):
            server.send("tools/list", 2)
        assert owner.answer()["result"] == bridge.answer()["result"]
        assert loaded(owner) >= {"tantivy", "numpy"}
        assert not loaded(bridge)
        assert own_memory(bridge) < BRIDGE_MEMORY < own_memory(owner)
        bridge.close_input()
        assert bridge.rest() == b""
        assert owner_pid(data) == owner.process.pid
        owner.close_input()
        owner.rest()
    assert "Traceback" not in (tmp_path / "stderr").read_text()


@pytest.mark.slow
def test_bridge_acts_as_the_owners_user_despite_a_configured_token(tmp_path: Path, errors: int) -> None:
    """behaviours 195 and 246: the bridge uses the owner's token, which is in the lock file (mode 0600)."""
    data = tmp_path / "data"
    with running_lithos(data, env={"LITHOS_AUTH_TOKEN": "right-token"}):
        for configured in ({}, {"LITHOS_AUTH_TOKEN": "right-token"}, {"LITHOS_AUTH_TOKEN": "another"}):
            with stdio_server(data, errors, **configured) as bridge:
                bridge.greet()
                bridge.call(1, "lithos_stats")
                assert structured(bridge.answer())["documents"] == 0
                bridge.process.send_signal(signal.SIGTERM)
                assert bridge.rest() == b""
        assert stat.S_IMODE((data / ".lithos" / "lock").stat().st_mode) == 0o600


@pytest.mark.slow
def test_owner_in_another_container_is_named_with_exit_code_4(tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path / "data" / ".lithos" / "lock")
    lock.acquire("now")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    lock.publish(OwnerRecord(7, "elsewhere", url, "now", "token"))
    refused = run_lithos("-d", tmp_path / "data", "serve", "-t", "stdio")
    lock.release()
    assert refused.returncode == 4
    assert "process 7 on elsewhere" in refused.stderr
    assert refused.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("as_bridge", [False, True])
def test_stdio_server_ends_when_its_parent_process_dies(as_bridge: bool, tmp_path: Path) -> None:
    """behaviour 195: the server ends although its stdin remains open."""
    data = tmp_path / "data"
    reading, writing = os.pipe()
    ending, alive = os.pipe()
    with ExitStack() as stack:
        if as_bridge:
            stack.enter_context(running_lithos(data))
        stderr = stack.enter_context((tmp_path / "stderr").open("w+b"))
        command = [sys.executable, "-c", PARENT, *LITHOS, "-d", str(data), "serve", "-t", "stdio"]
        parent = subprocess.Popen(
            command, stdin=reading, stdout=alive, stderr=stderr, pass_fds=[alive], env=clean_environment()
        )
        os.close(alive)
        os.close(reading)
        try:
            until(lambda: b"Starting MCP server" in (tmp_path / "stderr").read_bytes())
        finally:
            parent.kill()
            parent.wait()
        until(lambda: b"the parent process has gone" in (tmp_path / "stderr").read_bytes())
    os.close(writing)
    os.close(ending)


@contextmanager
def house(count: int, data: Path, errors: int) -> Iterator[list[StdioServer]]:
    """Start and initialise stdio servers. The first server is the owner."""
    with ExitStack() as stack:
        servers = []
        for _ in range(count):
            server = stack.enter_context(stdio_server(data, errors))
            server.greet()
            servers.append(server)
        yield servers


def write_notes(server: StdioServer, name: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        server.call(number, "lithos_write", title=f"{name} {number}", content="text", agent="a")


@pytest.mark.slow
def test_ten_stdio_servers_share_one_owner_and_survive_its_end(tmp_path: Path, errors: int) -> None:
    """behaviours 195, 196"""
    data = tmp_path / "data"
    with house(10, data, errors) as servers:
        owner, *bridges = servers
        assert [bool(loaded(server)) for server in servers] == [True] + [False] * 9
        assert max(map(own_memory, bridges)) < BRIDGE_MEMORY
        for name, server in enumerate(servers):
            write_notes(server, f"Before {name}", range(1, 12))
        acknowledged = [structured(server.answer()) for server in servers for _ in range(11)]
        for name, server in enumerate(bridges):
            write_notes(server, f"During {name}", range(21, 30))
        owner.process.kill()
        owner.process.wait()
        answers = [server.answer() for server in bridges for _ in range(9)]
        lost = [answer for answer in answers if "error" in answer]
        assert all(answer["error"]["data"]["reason"] == "outcome_unknown" for answer in lost)
        acknowledged += [structured(answer) for answer in answers if "error" not in answer]
        for name, server in enumerate(bridges):
            write_notes(server, f"After {name}", [40])
        acknowledged += [structured(server.answer()) for server in bridges]
        assert all(result["status"] == "created" for result in acknowledged)
        heirs = [server for server in bridges if loaded(server)]
        assert [server.process.pid for server in heirs] == [owner_pid(data)]
        for result in acknowledged:
            bridges[0].call(50, "lithos_read", id=result["id"])
            assert "error" not in bridges[0].answer()
        for server in bridges:
            server.close_input()
        assert [server.rest() for server in bridges] == [b""] * 9
    notes = len(list((data / "knowledge").glob("*.md")))
    assert len(acknowledged) <= notes <= len(acknowledged) + len(lost)
    assert "Traceback" not in (tmp_path / "stderr").read_text()


@pytest.mark.slow
def test_newest_protocol_client_gets_changes_through_a_bridge(tmp_path: Path, errors: int) -> None:
    """behaviour 205: an open stream must not delay the end. On a busy machine, one fast attempt is enough."""
    assert any(_is_told_and_leaves_at_once(tmp_path / f"data-{number}", errors) for number in range(3))


def _is_told_and_leaves_at_once(data: Path, errors: int) -> bool:
    with house(2, data, errors) as (owner, _), stdio_server(data, errors) as bridge:
        note = new_note(bridge, 1, _meta=META)
        uri = f"lithos://note/{note}"
        bridge.send("subscriptions/listen", 2, notifications={"resourceSubscriptions": [uri]}, _meta=META)
        assert bridge.message()["method"] == "notifications/subscriptions/acknowledged"
        owner.call(3, "lithos_write", id=note, title="A note", content="new", agent="a")
        assert notice(bridge)["uri"] == uri
        bridge.close_input()
        left = time.monotonic()
        assert bridge.rest() == b""
        return time.monotonic() - left < STOP_GRACE


@pytest.mark.slow
def test_hanging_owner_causes_an_error_instead_of_silence(tmp_path: Path, errors: int) -> None:
    data = tmp_path / "data"
    with house(2, data, errors) as (owner, bridge):
        owner.process.send_signal(signal.SIGSTOP)
        try:
            bridge.call(1, "lithos_stats")
            assert bridge.answer()["error"]["data"]["reason"] == "outcome_unknown"
        finally:
            owner.process.send_signal(signal.SIGCONT)
        bridge.call(2, "lithos_stats")
        assert structured(bridge.answer())["documents"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]
)
async def test_official_client_works_through_a_bridge(mode: str, version: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    parameters = StdioServerParameters(
        command=sys.executable, args=[*LITHOS[1:], "-d", str(data), "serve", "-t", "stdio"], cwd=tmp_path
    )
    with running_lithos(data), (tmp_path / "stderr").open("w") as sink:
        async with Client(stdio_client(parameters, errlog=sink), mode=mode) as client:
            assert client.protocol_version == version
            assert len((await client.list_tools()).tools) > 10
            results: list[Any] = []
            async with trio.open_nursery() as nursery:
                for number in range(20):
                    nursery.start_soon(_write, client, number, results)
            assert {result["status"] for result in results} == {"created"}
            text = "日本" * 100_000
            long = await client.call_tool("lithos_write", {"title": "Long", "content": text, "agent": "a"})
            read = await client.call_tool("lithos_read", {"id": long.structured_content["id"]})
            assert read.structured_content["content"].strip() == text


async def _write(client: Client, number: int, results: list[Any]) -> None:
    note = {"title": f"ünïcode {number}", "content": "text", "agent": "a"}
    results.append((await client.call_tool("lithos_write", note)).structured_content)


@pytest.mark.slow
@pytest.mark.takes(15)
def test_agent_scopes_apply_over_stdio_and_through_the_bridge(tmp_path: Path, errors: int) -> None:
    """Behaviour 413: a caller without a token is the owner's user. It is not a person or Lithos itself."""
    data = tmp_path / "data"
    (data / "knowledge" / "locked").mkdir(parents=True)
    (data / "knowledge" / "locked" / "l.md").write_text("Locked.\n")
    (data / "config.yaml").write_text(
        'agents: {junior: {propose: ["**"]}, clerk: {write: [notes/]}}\nstorage: {protected: [locked/]}\n'
    )
    with house(2, data, errors) as servers:
        for number, server in enumerate(servers):
            answers = list[dict[str, Any]]()
            for agent, folder in (
                ("junior", ""), ("Junior\u200b", ""), ("clerk", "notes"), ("clerk", ""), ("other", "locked"),
                ("cli", ""), ("Person", ""), ("undo\u200b", ""), ("other", ""),
            ):  # fmt: skip
                server.call(
                    1, "lithos_write", title=f"{number}{len(answers)}", content="x", path=folder, agent=agent
                )
                answers.append(structured(server.answer()))
            told = [answer.get("code", answer["status"]) for answer in answers]
            assert told == [
                "proposed", "proposed", "created", "forbidden", "forbidden",
                "invalid_input", "invalid_input", "invalid_input", "created",
            ]  # fmt: skip
    assert (data / "knowledge" / "locked" / "l.md").read_text() == "Locked.\n"
