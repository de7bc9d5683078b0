"""How `lithos serve` starts, and with which words and exit codes it does not."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.e2e.clients import connected
from tests.e2e.process import run_lithos, running_lithos


def test_a_second_server_exits_4_and_names_the_holder(tmp_path: Path) -> None:
    """behaviour 195"""
    data = tmp_path / "data"
    with running_lithos(data) as server:
        second = run_lithos("-d", data, "serve", "-t", "http", "-p", "0")
        assert second.returncode == 4
        for named in (str(server.process.pid), socket.gethostname(), server.url, "--data-dir"):
            assert named in second.stderr
        assert "Traceback" not in second.stderr
    assert (data / ".lithos" / "lock").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_a_port_in_use_is_told_with_exit_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run_lithos("-d", tmp_path / "data", "serve", "-t", "http", "-p", str(port))
    assert refused.returncode == 1
    assert f"Port {port} on 127.0.0.1 is already in use" in refused.stderr
    assert "--port" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("env", "yaml", "arguments", "named"),
    [
        ({"LITHOS_PORT": "eighty"}, "", [], ["server.port", "LITHOS_PORT", "'eighty'"]),
        ({"LITHOS_SERVER__PORT": "70000"}, "", [], ["server.port", "LITHOS_SERVER__PORT"]),
        ({}, "server:\n  port: soon\n", [], ["server.port", "config.yaml", "'soon'"]),
        ({}, "server: [1\n", [], ["config.yaml"]),
        ({"LITHOS_LOG_LEVEL": "loud"}, "", [], ["LITHOS_LOG_LEVEL", "warning"]),
        ({}, "", ["-c", "missing.yaml"], ["missing.yaml"]),
        ({}, "", ["-p", "x"], ["--port"]),
    ],
)
def test_a_wrong_setting_exits_2_and_names_its_source(
    env: dict[str, str], yaml: str, arguments: list[str], named: list[str], tmp_path: Path
) -> None:
    """behaviour 163"""
    data = tmp_path / "data"
    data.mkdir()
    if yaml:
        (data / "config.yaml").write_text(yaml)
    refused = run_lithos("serve", "-t", "http", "-d", data, *arguments, env=env, cwd=tmp_path)
    assert refused.returncode == 2
    assert all(word in refused.stderr for word in named), refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (data / ".lithos").exists()


@pytest.mark.parametrize(
    ("yaml", "env", "typed", "expected"),
    [("core", "standard", [], "standard"), ("full", "standard", ["--tools", "core"], "core")],
)
async def test_environment_beats_yaml_and_typed_options_beat_both(
    yaml: str, env: str, typed: list[str], expected: str, tmp_path: Path
) -> None:
    """behaviours 163, 171"""
    data = tmp_path / "data"
    data.mkdir()
    # The file's host must lose against the environment's, else this server would not start.
    (data / "config.yaml").write_text(f"server:\n  tools: {yaml}\n  host: host.invalid\n")
    settings = {"LITHOS_SERVER__TOOLS": env, "LITHOS_HOST": "127.0.0.1"}
    with running_lithos(data, *typed, env=settings) as server:
        assert server.url.startswith("http://127.0.0.1:")
        async with connected("mcp", url=server.url) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
    assert {"lithos_write", "lithos_read", "lithos_search"} <= listed
    assert ("lithos_delete" in listed) == (expected == "standard")


def test_a_corrupt_coordination_database_stops_the_start_and_keeps_its_bytes(tmp_path: Path) -> None:
    database = tmp_path / "data" / ".lithos" / "coordination.db"
    database.parent.mkdir(parents=True)
    damage = b"SQLite format 3\x00" + os.urandom(8176)
    database.write_bytes(damage)
    refused = run_lithos("-d", tmp_path / "data", "serve", "-t", "http", "-p", "0")
    assert refused.returncode == 1
    assert "coordination.db is damaged" in refused.stderr
    assert "backup" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert database.read_bytes() == damage
    assert [file.name for file in database.parent.iterdir() if "coordination" in file.name] == [database.name]


@pytest.mark.slow
def test_a_data_directory_that_is_a_file_is_told_with_exit_1(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    refused = run_lithos("-d", tmp_path / "data", "serve", "-t", "http", "-p", "0")
    assert refused.returncode == 1
    assert str(tmp_path / "data") in refused.stderr
    assert "Traceback" not in refused.stderr
