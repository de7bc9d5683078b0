"""Shared helpers of the `lithos connect --write` tests: home folders, sample files and client parsers."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from lithos.app.main import main

SAMPLES = Path(__file__).parents[1] / "data" / "connect"
#: Client files with their server keys. Paths are relative to the home folder or the project folder.
FILES: Mapping[tuple[str, str], str] = {
    ("claude-code", "user"): ".claude.json",
    ("claude-code", "project"): ".mcp.json",
    ("claude-desktop", "user"): ".config/Claude/claude_desktop_config.json",
    ("cursor", "user"): ".cursor/mcp.json",
    ("cursor", "project"): ".cursor/mcp.json",
    ("vscode", "user"): ".config/Code/User/mcp.json",
    ("vscode", "project"): ".vscode/mcp.json",
    ("codex", "user"): ".codex/config.toml",
    ("codex", "project"): ".codex/config.toml",
    ("gemini-cli", "user"): ".gemini/settings.json",
    ("gemini-cli", "project"): ".gemini/settings.json",
    ("copilot-cli", "user"): ".copilot/mcp-config.json",
    ("copilot-cli", "project"): ".github/mcp.json",
    ("windsurf", "user"): ".codeium/windsurf/mcp_config.json",
    ("zed", "user"): ".config/zed/settings.json",
    ("zed", "project"): ".zed/settings.json",
    ("opencode", "user"): ".config/opencode/opencode.json",
    ("opencode", "project"): "opencode.json",
    ("openclaw", "user"): ".openclaw/openclaw.json",
    ("agent-zero", "user"): "agent-zero/usr/settings.json",
    ("agent-zero", "project"): "tmp/settings.json",
}
KEYS: Mapping[str, tuple[str, ...]] = {
    "vscode": ("servers",),
    "codex": ("mcp_servers",),
    "zed": ("context_servers",),
    "opencode": ("mcp",),
    "openclaw": ("mcp", "servers"),
}
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
#: Converter from JSON5 to JSON for the sample. It is independent of the tested parser, which may be wrong.
_JSON5 = (
    (r"(?<!:)//[^\n]*", ""), (r"\\\n", ""), (r"\\'", "\u2019"), (r"'([^']*)'", r'"\1"'),
    (r"([{,]\s*)([A-Za-z]\w*)\s*:", r'\1"\2":'), (r"\+Infinity", "Infinity"), (r"0xFF", "255"),
    (r": \.5", ": 0.5"), (r",(\s*[}\]])", r"\1"),
)  # fmt: skip


def read_as_client(client: str, data: bytes) -> Any:
    """Parse the file like the client. The parser is independent of the parser in the tested editor."""
    text = data.decode("utf-8-sig")
    if client == "codex":
        return tomllib.loads(text, parse_float=str)  # NaN stays text, because NaN does not equal itself
    if client == "openclaw":
        for pattern, replacement in _JSON5:
            text = re.sub(pattern, replacement, text)
        return json.loads(text)
    if client in ("claude-code", "claude-desktop", "agent-zero"):
        return json.loads(text)
    text = _COMMENT.sub(lambda found: found[1] or "", text)
    return json.loads(_TRAILING.sub(lambda found: found[1] or "", text))


def servers_of(client: str, data: bytes) -> dict[str, Any]:
    """Return the server entries that the client finds in the file."""
    tree = read_as_client(client, data)
    if client == "agent-zero":
        tree = json.loads(tree["mcp_servers"] or "{}")
    for key in KEYS.get(client, ("mcpServers",)):
        tree = tree.get(key, {})
    servers: dict[str, Any] = tree["servers"] if client == "opencode" and "servers" in tree else tree
    return servers


def rest_of(client: str, data: bytes) -> Any:
    """Return the file as the client parses it. The entry `lithos` and empty objects are left out."""

    def without(tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        inner = {key: without(value) for key, value in tree.items() if key != "lithos"}
        return {key: value for key, value in inner.items() if value != {}}

    tree = read_as_client(client, data)
    if client == "agent-zero":
        tree["mcp_servers"] = json.loads(tree["mcp_servers"] or "{}")
    return without(tree)


def sample_of(client: str, scope: str) -> bytes:
    (found,) = (SAMPLES / client).glob(f"{scope}.*")
    return found.read_bytes()


def is_plain(data: bytes) -> bool:
    try:
        json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError:
        return False
    return True


@frozen
class Person:
    """Home folder and project folder of a person, and the commands that the person types."""

    home: Path
    project: Path
    capsys: pytest.CaptureFixture[str]

    def path_of(self, client: str, scope: str = "user") -> Path:
        return (self.home if scope == "user" else self.project) / FILES[client, scope]

    def put_sample(self, client: str, scope: str = "user") -> tuple[bytes, Path]:
        """Write the client's sample file, which has no comments. Return its bytes and its path."""
        sample = sample_of(client, scope)
        if client != "codex" and not is_plain(sample):
            tree = read_as_client(client, sample)
            sample = json.dumps(tree, indent=2, ensure_ascii=False).encode() + b"\n"
        return sample, self.put(client, sample, scope)

    def put(self, client: str, data: bytes, scope: str = "user") -> Path:
        path = self.path_of(client, scope)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def connect(self, *typed: str, code: int = 0) -> dict[str, Any]:
        """Run `connect --json`. Return the output, or stderr under the key `error`."""
        self.capsys.readouterr()
        got = main(["connect", *typed, "--data-dir", str(self.home / "notes"), "--json"])
        printed = self.capsys.readouterr()
        assert got == code, printed.err
        if code:
            return {"error": printed.err}
        document: dict[str, Any] = json.loads(printed.out)
        return document

    def files(self) -> list[str]:
        """Return the paths of all files in the home folder and the project folder."""
        every = [*self.home.rglob("*"), *self.project.rglob("*")]
        return sorted(map(str, every))


def make_person(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Person:
    """Return a person with an empty home folder, which hides the real home folder."""
    home, project = folder / "home", folder / "project"
    home.mkdir()
    project.mkdir()
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENCLAW_HOME", "OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH", "LITHOS_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(folder / "no-programs"))
    monkeypatch.chdir(project)
    return Person(home, project, capsys)
