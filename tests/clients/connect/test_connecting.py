"""Location of client configurations on each system, and recognition of entries for Lithos."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.clients.connect.clients import CLIENTS, Surroundings
from lithos.clients.connect.formats import OpencodeFormat
from lithos.clients.connect.listing import describe
from lithos.clients.connect.target import ConnectTarget, ServerLink

HOME, HERE = Path("/home/ann"), Path("/home/ann/work")
TARGET = ConnectTarget(
    ("/bin/lithos", "--data-dir", "/n", "serve"), "http://127.0.0.1:8765/mcp", False, Path("/n")
)


@pytest.mark.parametrize(
    ("client", "system", "environment", "path"),
    [
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("claude-desktop", "darwin", {}, "Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", {"APPDATA": "/r"}, "/r/Claude/claude_desktop_config.json"),
        ("claude-desktop", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Claude/claude_desktop_config.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "relative"}, ".config/Code/User/mcp.json"),
        ("vscode", "darwin", {}, "Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", {}, "AppData/Roaming/Code/User/mcp.json"),
        ("codex", "darwin", {"CODEX_HOME": "/k"}, "/k/config.toml"),
        ("zed", "darwin", {"XDG_CONFIG_HOME": "/x"}, ".config/zed/settings.json"),
        ("zed", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/zed/settings.json"),
        ("zed", "win32", {"APPDATA": "/r"}, "/r/Zed/settings.json"),
        ("opencode", "darwin", {}, ".config/opencode/opencode.json"),
        ("copilot-cli", "linux", {"COPILOT_HOME": "/p"}, "/p/mcp-config.json"),
        ("copilot-cli", "darwin", {}, ".copilot/mcp-config.json"),
        ("openclaw", "linux", {"OPENCLAW_HOME": "/o"}, "/o/.openclaw/openclaw.json"),
        ("openclaw", "linux", {"OPENCLAW_HOME": "/o", "OPENCLAW_STATE_DIR": "/s"}, "/s/openclaw.json"),
        ("openclaw", "linux", {"OPENCLAW_CONFIG_PATH": "/f.json"}, "/f.json"),
    ],
)
def test_configuration_path_is_the_path_that_the_client_reads(
    client: str, system: str, environment: dict[str, str], path: str
) -> None:
    files = CLIENTS[client].files(Surroundings(system, environment, HOME, HERE))
    assert files["user"] == HOME / path


def test_configuration_with_comments_is_chosen_when_no_other_file_exists(tmp_path: Path) -> None:
    files = CLIENTS["opencode"].files(Surroundings("linux", {}, HOME, tmp_path))
    assert files["project"] == tmp_path / "opencode.json"
    (tmp_path / "opencode.jsonc").touch()
    files = CLIENTS["opencode"].files(Surroundings("linux", {}, HOME, tmp_path))
    assert files["project"] == tmp_path / "opencode.jsonc"


@pytest.mark.parametrize(
    ("entry", "is_here"),
    [
        ({"url": "http://localhost:8765/mcp/"}, True),
        ({"httpUrl": "http://[::1]:8765/mcp"}, True),
        ({"serverUrl": "http://127.0.0.1:8766/mcp"}, False),
        ({"url": "http://[broken/mcp"}, False),
        ({"command": "lithos", "args": ["-d", "/n", "serve"]}, True),
        ({"command": ["python", "-m", "lithos", "--data-dir=/n/.", "serve"]}, True),
        ({"command": "lithos", "args": ["-d", "/other", "serve"]}, False),
        ({"command": "lithos", "args": ["-d"]}, False),
    ],
)
def test_entry_for_this_server_is_recognised_in_every_spelling(
    entry: dict[str, object], is_here: bool
) -> None:
    link = ServerLink.of(entry)
    assert link is not None
    assert link.points_to(TARGET) == is_here


@pytest.mark.parametrize("entry", [None, "x", {}, {"command": 1}, {"command": "x", "args": [1]}, {"url": 2}])
def test_value_without_program_or_address_is_not_a_server_entry(entry: object) -> None:
    assert ServerLink.of(entry) is None


def test_entry_target_is_shown_without_secrets() -> None:
    link = ServerLink.of({"url": "http://ann:secret@host:1/mcp?token=secret"})
    assert link is not None
    assert link.place == "http://host:1/mcp"


def test_opencode_2_entry_has_no_enabled_key() -> None:
    entry = CLIENTS["opencode"].stdio(TARGET)
    text = OpencodeFormat(("mcp",))
    assert text.written('{"mcp": {"servers": {}}}', entry).keys() == {"type", "command"}
    assert text.written('{"mcp": {"servers": {"type": "local", "command": []}}}', entry) == entry


def test_connected_client_is_listed_once_when_its_program_is_missing() -> None:
    rows = [
        {
            "client": client, "installed": False, "scope": "project", "path": f"/w/{client}", "state": state,
            "name": name, "transport": transport, "leads_to": None,
            "always_loaded": always, "trouble": None,
        }
        for client, state, name, transport, always in (
            ("claude-code", "connected", "lithos", "http", False),
            ("cursor", "connected", "lithos", "stdio", None), ("zed", "no file", None, None, None),
        )
    ]  # fmt: skip
    assert list(describe(rows)) == [
        "claude-code     project  connected over http, always loaded: no",
        "                         /w/claude-code",
        "cursor          project  connected over stdio, always loaded: no such switch",
        "                         /w/cursor",
        "Not installed: zed.",
    ]
