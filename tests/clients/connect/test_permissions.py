"""Permission rules for the tools that only read: written on request, taken out exactly (behaviour 317)."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from lithos.app.capabilities import all_tools
from lithos.app.main import main
from lithos.app.serving import here
from lithos.clients.connect import permissions
from lithos.clients.connect.clients import CLIENTS
from lithos.server.settings import ServerConfig
from lithos.server.tools.declaring import PROFILES
from tests.e2e.connecting import Person, make_person, servers_of

pytestmark = pytest.mark.needs("clients")

#: The file of the rules by client, relative to the home folder. The scope is `user`, except for Copilot CLI.
FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/permissions.json",
    "gemini-cli": ".gemini/policies/lithos.toml",
    "copilot-cli": ".copilot/permissions-config.json",
    "opencode": ".config/opencode/opencode.json",
    "zed": ".config/zed/settings.json",
}
WITHOUT = sorted(set(CLIENTS) - set(FILES))
#: Content of the file that makes Lithos write rules, for the clients that need such content.
NEEDED = {"cursor": b'{"mcpAllowlist": ["github:*"]}', "opencode": b'{"permission": {"*": "ask"}}'}


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Person:
    return make_person(tmp_path, monkeypatch, capsys)


def write(person: Person, client: str, *more: str) -> dict[str, Any]:
    return person.connect(client, *scope_of(client), "--write", "--allow-reads", *more)


def remove(person: Person, client: str) -> dict[str, Any]:
    return person.connect(client, *scope_of(client), "--remove")


def scope_of(client: str) -> list[str]:
    return ["--scope", "project"] if client == "copilot-cli" else []


def put(person: Person, client: str, data: bytes | None) -> Path:
    path = person.home / FILES[client]
    if data is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return path


def allowed(client: str, text: str, project: Path) -> list[str]:
    """Return the tools of Lithos that the client runs without a question. Independent of the tested code."""
    tree = tomllib.loads(text) if text and client in ("codex", "gemini-cli") else json.loads(text or "{}")
    if client == "claude-code":
        rules = tree.get("permissions", {}).get("allow", [])
        return [rule.removeprefix("mcp__lithos__") for rule in rules if rule.startswith("mcp__lithos__")]
    if client == "codex":
        tools = tree.get("mcp_servers", {}).get("lithos", {}).get("tools", {})
        return [name for name, held in tools.items() if held == {"approval_mode": "approve"}]
    if client == "cursor":
        rules = tree.get("mcpAllowlist", [])
        return [rule.removeprefix("lithos:") for rule in rules if rule.startswith("lithos:")]
    if client == "gemini-cli":
        return [
            name
            for rule in tree.get("rule", [])
            if (rule["mcpName"], rule["decision"]) == ("lithos", "allow")
            for name in rule["toolName"]
        ]
    if client == "copilot-cli":
        held = tree.get("locations", {}).get(str(project), {}).get("tool_approvals", [])
        return [each["toolName"] for each in held if (each["kind"], each["serverName"]) == ("mcp", "lithos")]
    if client == "zed":
        tools = tree.get("agent", {}).get("tool_permissions", {}).get("tools", {})
        return [
            name.removeprefix("mcp:lithos:") for name, held in tools.items() if held == {"default": "allow"}
        ]
    held = tree.get("permission", {})
    return [name.removeprefix("lithos_") for name, effect in held.items() if effect == "allow"]


def read_tools(profile: Any) -> list[str]:
    shown = PROFILES[: PROFILES.index(profile) + 1]
    return [
        tool.name
        for tool in all_tools()
        if tool.profile in shown and "R" in tool.hints and not tool.is_legacy
    ]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("client", sorted(FILES))
def test_only_listed_tools_that_read_get_a_rule(
    client: str, profile: str, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 317"""
    monkeypatch.setenv("LITHOS_SERVER__TOOLS", profile)
    path = put(person, client, NEEDED.get(client))
    result = write(person, client)
    assert result["rules"] == {"action": "allowed", "path": str(path)}
    text = path.read_text(encoding="utf-8")
    assert sorted(allowed(client, text, person.project)) == sorted(read_tools(profile))
    for tool in all_tools():
        if "R" not in tool.hints:
            assert not re.search(rf"(?<![a-z]){tool.name}(?![a-z_])", text), tool.name
    patterns = [line for line in text.replace(",", "\n").split("\n") if "*" in line and "lithos" in line]
    assert patterns == []


@pytest.mark.parametrize("profile", [*PROFILES, "connector"])
def test_read_tools_of_a_server_are_those_that_it_lists(profile: Any) -> None:
    """behaviour 317: the names come from the declarations of the tools, and no list repeats them."""
    settings = ServerConfig(tools=profile)
    names = here.read_tools_here(settings)
    hints = {tool.name: tool.hints for tool in all_tools()}
    assert names
    assert all("R" in hints[name] and "D" not in hints[name] for name in names)
    if profile != "connector":
        assert list(names) == read_tools(profile)


CONFIGURATIONS: dict[str, list[bytes | None]] = {
    "claude-code": [
        None,
        b"{}",
        b'{"permissions": {"allow": ["Bash(ls:*)"], "deny": ["Read(./.env)"]}, "model": "opus"}\n',
        b'{\r\n\t"permissions": {\r\n\t\t"allow": ["Bash(ls)", "mcp__lithos__lithos_read"]\r\n\t}\r\n}\r\n',
        b'\xef\xbb\xbf{\n    "permissions": {"allow": []},\n    "gr\xc3\xb6\xc3\x9fe": 1\n}',
        b'{"env": {"A": "b"}, "permissions": {"ask": ["mcp__lithos__lithos_write"]}}',
    ],
    "codex": [
        None,
        b"",
        b'model = "x" # mine\r\n[mcp_servers.other]\r\ncommand = "x"\r\n# tail\r\n',
        b'[mcp_servers.b]\nurl = "http://b"\n[mcp_servers.b.tools.lithos_read]\napproval_mode = "approve"\n',
        b'default_tools_approval_mode = "prompt"\n[a]\nb = nan\n',
        b'[[a]]\nb = 1\n[[a]]\nb = 2\n# end',
    ],
    "cursor": [
        b'{"mcpAllowlist": []}',
        b'{"mcpAllowlist": ["lithos:lithos_read", "github:*"]}\n',
        b'{\n    "terminalAllowlist": ["git"],\n    "mcpAllowlist": ["a:b"]\n}\n',
        b'{\r\n\t"mcpAllowlist": [\r\n\t]\r\n}',
        b'\xef\xbb\xbf{"mcpAllowlist":["x:y"],"n":1}',
    ],
    "gemini-cli": [None, None, None, b"", b"\n"],
    "copilot-cli": [
        None,
        b"{}",
        b'{"locations": {"/elsewhere": {"tool_approvals": [{"kind": "shell"}]}}}',
        b'{\n  "locations": {}\n}\n',
        b'\xef\xbb\xbf{"trusted":["/a"],"locations":{}}',
    ],
    "opencode": [
        b'{"permission": {"*": "ask"}}',
        b'{"$schema": "x", "permission": {"bash": "deny", "*": "ask"}, "mcp": {}}\n',
        b'{\n    "permission": {"*": "deny", "lithos_lithos_read": "allow"},\n    "theme": "a"\n}',
        b'{"permissions": [{"action": "*", "resource": "*", "effect": "ask"}], "mcp": {"servers": {}}}',
        b'{\r\n\t"permission": {\r\n\t\t"*": "ask"\r\n\t}\r\n}\r\n',
    ],
    "zed": [
        None,
        b"{}",
        b'{"agent": {"tool_permissions": {"default": "confirm"}}, "context_servers": {}}\n',
        b'{"agent": {"tool_permissions": {"tools": {"mcp:lithos:lithos_read": {"default": "deny"}}}}}',
        b'{\r\n\t"theme": "One",\r\n\t"context_servers": {"a": {"url": "http://a"}}\r\n}\r\n',
    ],
}  # fmt: skip
CASES = [(client, number) for client, some in CONFIGURATIONS.items() for number in range(len(some))]


@pytest.mark.parametrize(("client", "number"), CASES)
def test_rules_are_written_once_and_removed_exactly(client: str, number: int, person: Person) -> None:
    """behaviours 309 and 317"""
    path = put(person, client, CONFIGURATIONS[client][number])
    before, files_before = path.read_bytes() if path.exists() else None, person.files()
    assert write(person, client)["rules"]["action"] == "allowed"
    state, files_then = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino), person.files()
    assert write(person, client)["rules"]["action"] == "already allowed"
    assert person.connect(client, *scope_of(client), "--write")["rules"]["action"] == "already allowed"
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == state
    assert person.files() == files_then
    removed = remove(person, client)
    assert removed["rules"] == {"action": "removed", "path": str(path)}
    assert f"are removed from {path}" in removed["notes"][-1]
    assert (path.read_bytes() if path.exists() else None) == before
    assert person.files() == files_before


@pytest.mark.parametrize("client", sorted(FILES))
def test_rules_survive_another_transport_and_are_removed_exactly(client: str, person: Person) -> None:
    """Three clients keep rules and entries in one file, so the entry changes around the rules."""
    path = put(person, client, CONFIGURATIONS[client][2])
    before, files_before = path.read_bytes() if path.exists() else None, person.files()
    person.connect(client, *scope_of(client), "--write", "--transport", "http")
    write(person, client, "--transport", "http")
    rules = allowed(client, path.read_text(encoding="utf-8-sig"), person.project)
    moved = person.connect(client, *scope_of(client), "--write", "--transport", "stdio")
    assert (moved["action"], moved["rules"]["action"]) == ("updated", "already allowed")
    assert allowed(client, path.read_text(encoding="utf-8-sig"), person.project) == rules != []
    remove(person, client)
    assert (path.read_bytes() if path.exists() else None) == before
    assert person.files() == files_before


def lists(monkeypatch: pytest.MonkeyPatch, names: Sequence[str]) -> None:
    """Let the server list these tools that only read."""
    monkeypatch.setattr(here, "LOCAL", attrs.evolve(here.LOCAL, read_tools=lambda settings: names))


@pytest.mark.parametrize("client", sorted(FILES))
def test_tool_that_no_longer_only_reads_loses_its_rule(
    client: str, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 317: the next `--write` takes the rule out, even without `--allow-reads`."""
    path = put(person, client, NEEDED.get(client))
    before = person.files()
    lists(monkeypatch, ["lithos_read", "lithos_search"])
    write(person, client)
    lists(monkeypatch, ["lithos_read", "lithos_list"])
    assert person.connect(client, *scope_of(client), "--write")["rules"]["action"] == "allowed"
    text = path.read_text(encoding="utf-8")
    assert allowed(client, text, person.project) == ["lithos_read", "lithos_list"]
    remove(person, client)
    assert person.files() == before


@pytest.mark.parametrize("client", ["claude-code", "cursor", "copilot-cli", "zed"])
def test_later_changes_survive_the_removal_of_the_rules(
    client: str, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's own rule for a tool of Lithos stays, whether it is older or newer than the rules."""
    lists(monkeypatch, ["lithos_read", "lithos_search"])
    path = put(person, client, NEEDED.get(client))
    write(person, client)
    text = path.read_text(encoding="utf-8")
    # A list gets another item for a tool that changes notes, and an object another key.
    text = re.sub(
        r'(?s)(,\s*)("[^"]*lithos_search(?:": \{.*?\})?"?|\{[^{}]*"lithos_search"[^{}]*\})',
        lambda found: found[0] + found[1] + found[2].replace("lithos_search", "lithos_write"),
        text,
        count=1,
    )
    path.write_text(text, encoding="utf-8")
    assert allowed(client, text, person.project) == ["lithos_read", "lithos_search", "lithos_write"]
    remove(person, client)
    assert allowed(client, path.read_text(encoding="utf-8"), person.project) == ["lithos_write"]
    assert [name for name in person.files() if name.endswith("lithos-rules")] == []


def test_plain_write_prints_a_hint_without_a_terminal(person: Person) -> None:
    done = person.connect("claude-code", "--write")
    assert done["rules"] == {"action": "not allowed", "path": None}
    assert "add --allow-reads" in done["notes"][0]
    assert not (person.home / ".claude").exists()


@pytest.mark.parametrize("answer", [True, False])
def test_write_at_a_terminal_asks_one_question(
    answer: bool, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def agrees(question: str) -> bool:
        asked.append(question)
        return answer

    monkeypatch.setattr(permissions, "agrees", agrees)
    typed = ["connect", "claude-code", "--write", "--data-dir", str(person.home / "notes")]
    assert main(typed) == main(typed) == 0
    assert asked == ["Let Claude Code run the tools of Lithos that only read without a question?"] * (
        2 - answer
    )
    assert (person.home / FILES["claude-code"]).exists() is answer


def test_rules_of_a_project_are_in_the_persons_own_file(person: Person) -> None:
    done = person.connect("claude-code", "--write", "--scope", "project", "--allow-reads")
    assert done["rules"]["path"] == str(person.project / ".claude" / "settings.local.json")
    person.connect("claude-code", "--remove", "--scope", "project")
    assert person.files() == []


@pytest.mark.parametrize("order", [("lithos", "notes"), ("notes", "lithos")])
@pytest.mark.parametrize("client", ["claude-code", "codex", "zed", "gemini-cli"])
def test_rules_of_two_entries_are_independent(client: str, order: tuple[str, str], person: Person) -> None:
    person.put(client, b"a = 1\n" if client == "codex" else b"{}")
    before = person.files()
    for name in ("lithos", "notes"):
        write(person, client, "--name", name)
    for name, count in zip(order, (1, 0), strict=True):
        assert person.connect(client, "--remove", "--name", name)["rules"]["action"] == "removed"
        places = [person.home / FILES[client].replace("lithos", each) for each in order]
        texts = {place: place.read_text() for place in places if place.exists()}
        assert sum(text.count("lithos_read") for text in texts.values()) == count
    assert person.files() == before


@pytest.mark.parametrize("client", WITHOUT)
def test_client_without_rules_gets_a_reason(client: str, person: Person) -> None:
    if client == "agent-zero":
        person.put(client, b'{"mcp_servers": ""}')
    done = write(person, client)
    assert done["rules"] == {"action": "not allowed", "path": None}
    words = {"vscode": "nothing to set", "claude-desktop": "in the app", "windsurf": "in the app"}
    assert words.get(client, "Lithos writes none") in done["notes"][0]


def test_cursors_own_list_is_not_replaced_without_consent(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list in the file replaces the list in the settings of Cursor."""
    done = write(person, "cursor")
    assert done["rules"]["action"] == "not allowed"
    assert "instead of the list in its settings" in done["notes"][0]
    assert '"lithos:lithos_read"' in "".join(done["notes"])
    assert not (person.home / FILES["cursor"]).exists()


def test_copilot_cli_has_rules_only_for_projects(person: Person) -> None:
    done = person.connect("copilot-cli", "--write", "--allow-reads")
    assert "copilot --allow-tool='lithos(lithos_read)'" in done["notes"][0]
    assert "--scope project" in done["notes"][0]


def test_copilot_cli_rules_name_the_main_folder_of_a_worktree(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, folder = person.home / "shop", person.project / "deep"
    (root / ".git" / "worktrees" / "wt").mkdir(parents=True)
    folder.mkdir()
    (person.project / ".git").write_text(f"gitdir: {root}/.git/worktrees/wt\n")
    monkeypatch.chdir(folder)
    write(person, "copilot-cli")
    tree = json.loads((person.home / FILES["copilot-cli"]).read_text())
    assert list(tree["locations"]) == [str(root)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{}", "nothing to set"),
        (b'{"permission": {"bash": "ask"}}', "nothing to set"),
        (b'{"permission": "ask"}', "is for all tools"),
        (b'{"permission": {"*": "ask", "lithos_*": "deny"}}', "rule of your own"),
        (b'{"permissions": [{"action": "bash", "resource": "*", "effect": "ask"}]}', "nothing to set"),
    ],
)
def test_opencode_gets_rules_only_when_it_would_ask(content: bytes, words: str, person: Person) -> None:
    path = person.put("opencode", content)
    done = write(person, "opencode")
    assert words in done["notes"][0]
    person.connect("opencode", "--remove")
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("client", "content", "words"),
    [
        ("claude-code", b'{"permissions": {"allow": "all"}}', "is not a list"),
        ("claude-code", b'{"permissions": {"allow": [],}}', "has comments"),
        ("claude-code", b'{"permissions": [', "line 1"),
        ("claude-code", b"{} \xff", "not UTF-8"),
        ("cursor", b'{"mcpAllowlist": []} // mine', "has comments"),
        ("gemini-cli", b'[[rule]]\ntoolName = ["x"]\ndecision = "deny"\npriority = 1\n', "did not write"),
    ],
)
def test_rules_file_that_cannot_be_edited_is_unchanged(
    client: str, content: bytes, words: str, person: Person
) -> None:
    """The entry is written nevertheless, and the rules are printed if the file is valid."""
    path = put(person, client, content)
    done = write(person, client)
    assert (done["action"], done["rules"]["action"]) == ("connected", "not allowed")
    shown = "\n".join(done["notes"])
    assert words in shown
    assert path.read_bytes() == content
    assert "lithos" in servers_of(client, person.path_of(client).read_bytes())
    assert ("lithos_read" in shown) == ("add this to the file" in shown)
    assert [name for name in person.files() if name.endswith("lithos-rules")] == []


def test_damaged_record_is_reported_and_nothing_is_changed(person: Person) -> None:
    write(person, "claude-code")
    path = person.home / FILES["claude-code"]
    held, record = path.read_bytes(), path.with_name("settings.json.lithos-rules")
    record.write_text('{"added": 1}')
    done = remove(person, "claude-code")
    assert (done["action"], done["rules"]["action"]) == ("removed", "not removed")
    assert "is damaged" in done["notes"][0]
    assert path.read_bytes() == held


def test_record_of_the_rules_is_private(person: Person) -> None:
    """The record has the earlier content of the file, which may contain secrets."""
    put(person, "claude-code", b'{"env": {"KEY": "secret"}}')
    write(person, "claude-code")
    assert (person.home / ".claude" / "settings.json.lithos-rules").stat().st_mode & 0o777 == 0o600


def test_rules_stay_when_the_entry_cannot_be_removed(person: Person) -> None:
    write(person, "claude-code")
    rules, entry = person.home / FILES["claude-code"], person.path_of("claude-code")
    held = rules.read_bytes()
    entry.write_text('{"mcpServers": {"lithos": {"command": "another"}}}')
    person.connect("claude-code", "--remove", code=1)
    assert rules.read_bytes() == held
    assert rules.with_name("settings.json.lithos-rules").exists()


def test_allow_reads_needs_the_option_write(person: Person) -> None:
    assert "--allow-reads" in person.connect("claude-code", "--allow-reads", code=2)["error"]
