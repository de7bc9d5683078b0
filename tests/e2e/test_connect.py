"""`lithos connect`, whose printed configuration must work without changes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from lithos.app.main import main
from lithos.clients.commands import CLIENTS
from lithos.clients.connect.clients import CLIENTS as KNOWN
from tests.e2e.connecting import servers_of

SECRET = "a-secret-of-ours"


def recipe(client: str, data: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the output of `lithos connect CLIENT --json`, parsed from JSON."""
    assert main(["connect", client, "--data-dir", str(data), "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def words_of(client: str, text: str) -> list[str]:
    """Return the command in a stdio recipe as a list of words."""
    if client in ("claude-code", "openclaw"):
        entry = json.loads(shlex.split(text)[-1])
    elif client == "agent-zero":
        entry = json.loads(text)["mcpServers"]["lithos"]
    else:
        entry = servers_of(client, text.encode())["lithos"]
    command: list[str] | str = entry["command"]
    return command if isinstance(command, list) else [command, *entry["args"]]


@pytest.mark.parametrize("client", CLIENTS)
def test_recipes_contain_the_installed_command_and_an_absolute_folder(
    client: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words_of(client, recipe(client, tmp_path / "my notes", capsys)["stdio"]["text"])
    assert Path(words[0]).is_absolute()
    assert words[-5:] == ["--data-dir", str(tmp_path / "my notes"), "serve", "--transport", "stdio"]


@pytest.mark.parametrize("client", CLIENTS)
def test_recipe_names_the_token_variable_but_never_the_token(
    client: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/spec/cli-config.md §4: output never contains secrets."""
    monkeypatch.setenv("LITHOS_AUTH_TOKEN", SECRET)
    printed = recipe(client, tmp_path, capsys)
    assert printed["token_variable"] == "LITHOS_AUTH_TOKEN"
    assert SECRET not in json.dumps(printed)
    if client != "claude-desktop":
        assert "LITHOS_AUTH_TOKEN" in printed["http"]["text"]


@pytest.mark.needs("access")
def test_recipes_ask_for_a_token_when_named_tokens_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LITHOS_AUTH_TOKEN", raising=False)
    assert recipe("cursor", tmp_path, capsys)["token_variable"] is None
    assert main(["token", "create", "ann", "-d", str(tmp_path)]) == 0
    made = capsys.readouterr().out.strip()
    printed = recipe("cursor", tmp_path, capsys)
    assert printed["token_variable"] == "LITHOS_AUTH_TOKEN"
    assert made not in json.dumps(printed)
    (tmp_path / ".lithos" / "tokens.json").unlink()
    assert recipe("cursor", tmp_path, capsys)["token_variable"] == "LITHOS_AUTH_TOKEN"


def test_command_line_accepts_exactly_the_known_clients() -> None:
    assert tuple(KNOWN) == CLIENTS


def test_transport_option_prints_only_that_transport(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connect", "zed", "--transport", "http", "-d", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "/mcp" in printed
    assert "stdio" not in printed


def test_recipe_contains_the_configured_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITHOS_PORT", "9123")
    document = json.loads(recipe("cursor", tmp_path, capsys)["http"]["text"])
    assert document == {"mcpServers": {"lithos": {"url": "http://127.0.0.1:9123/mcp"}}}


def test_error_for_an_unknown_client_lists_the_known_clients(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["connect", "emacs"])
    assert stop.value.code == 2
    assert "'claude-code'" in capsys.readouterr().err


@pytest.mark.slow
async def test_printed_command_starts_a_server_for_the_client(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words_of("claude-desktop", recipe("claude-desktop", tmp_path, capsys)["stdio"]["text"])
    parameters = StdioServerParameters(command=words[0], args=words[1:])
    with (tmp_path / "stderr").open("w") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as client:
            assert "lithos_search" in {tool.name for tool in (await client.list_tools()).tools}
