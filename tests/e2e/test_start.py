"""Start of `lithos serve`, and messages and exit codes when the start fails."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.clients import connected
from tests.e2e.feeds import call_tool
from tests.e2e.process import LITHOS, START_BOUND, clean_environment, read_line, run_lithos, running_lithos


@pytest.mark.slow
def test_second_server_exits_with_4_and_names_the_owner(tmp_path: Path) -> None:
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
def test_port_in_use_is_reported_with_exit_code_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run_lithos("-d", tmp_path / "data", "serve", "-t", "http", "-p", str(port))
    assert refused.returncode == 1
    assert f"Port {port} on 127.0.0.1 is already in use" in refused.stderr
    assert "--port" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.slow
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
def test_invalid_setting_exits_with_2_and_names_its_source(
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("yaml", "env", "typed", "expected"),
    [("core", "standard", [], "standard"), ("full", "standard", ["--tools", "core"], "core")],
)
async def test_typed_options_override_environment_and_environment_overrides_yaml(
    yaml: str, env: str, typed: list[str], expected: str, tmp_path: Path
) -> None:
    """behaviours 163, 171"""
    data = tmp_path / "data"
    data.mkdir()
    # The server can start only if the host in the environment overrides the host in the file.
    (data / "config.yaml").write_text(f"server:\n  tools: {yaml}\n  host: host.invalid\n")
    settings = {"LITHOS_SERVER__TOOLS": env, "LITHOS_HOST": "127.0.0.1"}
    with running_lithos(data, *typed, env=settings) as server:
        assert server.url.startswith("http://127.0.0.1:")
        async with connected("mcp", url=server.url) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
    assert {"lithos_write", "lithos_read", "lithos_search"} <= listed
    assert ("lithos_delete" in listed) == (expected == "standard")


@pytest.mark.slow
def test_corrupt_coordination_database_prevents_startup_and_is_unchanged(tmp_path: Path) -> None:
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
def test_file_as_data_directory_is_reported_with_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    refused = run_lithos("-d", tmp_path / "data", "serve", "-t", "http", "-p", "0")
    assert refused.returncode == 1
    assert str(tmp_path / "data") in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "arguments", "code"),
    [
        ({}, ("-t", "http", "--host", "host.invalid"), 1),
        ({"LITHOS_PORT": "eighty"}, ("-t", "http"), 2),
        ({"LITHOS_LOG_LEVEL": "loud"}, ("-t", "stdio"), 2),
    ],
)
def test_fatal_error_is_logged_as_json_in_a_json_log(
    env: dict[str, str], arguments: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    refused = run_lithos("-d", tmp_path / "data", "serve", *arguments, env=env)
    assert refused.returncode == code
    lines = [json.loads(line) for line in refused.stderr.splitlines() if line != "Initializing Lithos..."]
    assert (lines[-1]["level"], lines[-1]["message"]) == ("error", "server not started")
    assert lines[-1]["exit_code"] == code
    assert lines[-1]["reason"]
    as_text = run_lithos(
        "-d", tmp_path / "data", "serve", *arguments, env=env | {"LITHOS_LOG_FORMAT": "text"}
    )
    assert as_text.stderr.splitlines()[-1] == f"lithos: {lines[-1]['reason']}"


@pytest.mark.slow
def test_unexpected_exception_is_one_json_log_line_with_traceback(tmp_path: Path) -> None:
    program = (
        "import sys, lithos.app.serving.serve as serve; from lithos.app.main import main\n"
        "def fail(*_): raise ZeroDivisionError('a bug')\n"
        "serve.run_serve = fail\n"
        f"sys.exit(main(['-d', {str(tmp_path / 'data')!r}, 'serve']))"
    )
    failed = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, env=clean_environment(), timeout=30, check=False,
    )  # fmt: skip
    assert failed.returncode == 1
    (line,) = map(json.loads, failed.stderr.splitlines())
    assert (line["message"], line["reason"]) == ("server failed", "ZeroDivisionError('a bug')")
    assert "Traceback" in line["exception"]
    assert "in fail" in line["exception"]


@pytest.mark.slow
def test_errors_of_commands_except_serve_are_plain_text(tmp_path: Path) -> None:
    failed = run_lithos("-d", tmp_path / "nowhere", "stats")
    assert failed.stderr.startswith("lithos: No notes found in ")


def modes_in(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_only_the_owner_may_read_databases_and_indexes(tmp_path: Path) -> None:
    """Private files get their modes as under umask 077. Notes get modes from the real umask."""
    data = tmp_path / "data"
    (data / "knowledge").mkdir(parents=True)
    (data / "knowledge" / "a.md").write_text("# A\n\nzanzibar\n")
    before = os.umask(0o022)
    try:
        with running_lithos(data) as server:
            call_tool(server, "lithos_write", title="B", content="b", agent="ada")
            databases = modes_in(data / ".lithos")
        folders = modes_in(data)  # these are the modes after the stop, which saves the vectors
    finally:
        os.umask(before)
    private = (".lithos", ".tantivy", ".usearch")
    assert {name: folders[name] for name in private} == dict.fromkeys(private, 0o700)
    databases = {name: mode for name, mode in databases.items() if ".db" in name}
    assert {"coordination.db", "coordination.db-wal", "manifest.db"} <= databases.keys()
    assert set(databases.values()) == {0o600}


@pytest.mark.slow
def test_banner_shows_the_bound_address(tmp_path: Path) -> None:
    with running_lithos(tmp_path / "data", "--host", "127.0.0.1") as server:
        bound = server.url.removeprefix("http://")
    everywhere = [*LITHOS, "-d", str(tmp_path / "data"), "serve", "-t", "http", "-p", "0"]
    for host, words in (("127.0.0.1", ""), ("0.0.0.0", ", bound to 0.0.0.0:")):
        process = subprocess.Popen(
            [*everywhere, "--host", host], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=clean_environment({"LITHOS_AUTH_TOKEN": "a-token"}),
        )  # fmt: skip
        try:
            assert read_line(process, START_BOUND) == b"Initializing Lithos...\n"
            line = read_line(process, START_BOUND).decode()
        finally:
            process.terminate()
            process.communicate(timeout=60)
        assert re.match(r"Serving MCP at http://127\.0\.0\.1:\d+/mcp \(HTTP\) and http://", line)
        assert words in line
        assert ("bound" in line) == bool(words)
    assert re.fullmatch(r"127\.0\.0\.1:\d+", bound)
