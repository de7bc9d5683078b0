"""`lithos connect` for remote clients, `lithos login`, and `lithos token client`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lithos.clients.commands import HOSTED
from lithos.clients.connect.clients import HOSTED_STEPS
from tests.access.oauth.flow import free_port
from tests.e2e.process import running_lithos

pytestmark = pytest.mark.slow
ADDRESS = "https://notes.example.org"


def run(data: Path, *words: str, address: str | None = ADDRESS) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(data)}
    if address is not None:
        environment["LITHOS_SERVER__PUBLIC_URL"] = address
    command = [sys.executable, "-m", "lithos", "-d", str(data), *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_parser_lists_the_available_clients() -> None:
    assert set(HOSTED) == set(HOSTED_STEPS)


@pytest.mark.parametrize("client", HOSTED)
def test_connect_instructions_show_the_server_address(tmp_path: Path, client: str) -> None:
    told = json.loads(run(tmp_path, "connect", client, "--json").stdout)
    assert told["url"] == f"{ADDRESS}/mcp"
    assert any(f"{ADDRESS}/mcp" in step for step in told["steps"])
    assert run(tmp_path, "connect", client, "--write").returncode == 2
    without = run(tmp_path, "connect", client, address=None)
    assert (without.returncode, "server.public_url" in without.stderr) == (1, True)


def test_login_link_is_printed_but_stored_only_as_a_hash(tmp_path: Path) -> None:
    (tmp_path / ".lithos").mkdir()
    told = run(tmp_path, "login")
    assert told.stdout.startswith(f"{ADDRESS}/console/link?key=")
    key = told.stdout.strip().rpartition("=")[2]
    assert key not in (tmp_path / ".lithos" / "login_links.json").read_text()
    assert run(tmp_path, "login", address=None).returncode == 1


def test_oauth_client_can_be_added_listed_and_removed(tmp_path: Path) -> None:
    (tmp_path / ".lithos").mkdir()
    added = run(tmp_path, "token", "client", "add", "Mine", "--redirect", "https://a.example/cb")
    client = added.stdout.strip()
    assert client.startswith("lithos-client-")
    (row,) = json.loads(run(tmp_path, "token", "client", "list", "--json").stdout)["clients"]
    assert (row["client_id"], row["added"]) == (client, True)
    wrong = run(tmp_path, "token", "client", "add", "Mine", "--redirect", "http://a.example/cb")
    assert (wrong.returncode, "https" in wrong.stderr) == (2, True)
    assert run(tmp_path, "token", "client", "remove", client).returncode == 0
    assert run(tmp_path, "token", "client", "remove", client).returncode == 1


def test_commands_use_the_options_of_the_running_server(tmp_path: Path) -> None:
    """Follows an example in docs/remote-clients.md: `serve --public-url` without a settings file."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with running_lithos(tmp_path, "--port", str(port), "--public-url", address):
        login = run(tmp_path, "login", address=None)
        assert login.stdout.startswith(f"{address}/console/link?key="), login.stderr
        told = json.loads(run(tmp_path, "connect", "chatgpt", "--json", address=None).stdout)
        assert told["url"] == f"{address}/mcp"
        doctor = json.loads(run(tmp_path, "doctor", "--json", address=None).stdout)
        (found,) = [each for each in doctor["checks"] if each["name"] == "public address"]
        assert found["status"] == "ok", found
    assert run(tmp_path, "login", address=None).returncode == 1
