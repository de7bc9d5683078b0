"""The switch that shows the tools of Lithos on the first turn: written, kept and removed (behaviour 309)."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from lithos.clients.connect.clients import CLIENTS, Surroundings
from lithos.clients.connect.recipes import make_recipes
from lithos.clients.connect.target import TRANSPORTS, ConnectTarget
from tests.e2e.connecting import Person, make_person, servers_of

NATIVE = b'{"mcp": {"servers": {"other": {"type": "local", "command": ["x"]}}}}'
#: Each client with a switch: a file that can contain it, the key and its value.
SWITCHES = {
    "claude-code": (b'{"numStartups": 3, "mcpServers": {}}\n', "alwaysLoad", True),
    "copilot-cli": (
        b'{"mcpServers": {"a": {"command": "a", "args": [], "tools": ["*"]}}}',
        "deferTools",
        "never",
    ),
    "opencode": (NATIVE, "codemode", False),
}
OTHERS = sorted(set(CLIENTS) - set(SWITCHES))
SWITCHED = sorted(SWITCHES)

pytestmark = pytest.mark.needs("clients")


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Person:
    return make_person(tmp_path, monkeypatch, capsys)


def always_loaded(person: Person, client: str) -> bool | None:
    rows = person.connect("--list")["clients"]
    (row,) = (row for row in rows if row["client"] == client and row["scope"] == "user")
    answer: bool | None = row["always_loaded"]
    return answer


@pytest.mark.parametrize("way", TRANSPORTS)
@pytest.mark.parametrize("client", SWITCHED)
def test_written_entry_has_the_switch_of_its_client(client: str, way: str, person: Person) -> None:
    """behaviour 309"""
    sample, key, value = SWITCHES[client]
    path = person.put(client, sample)
    assert always_loaded(person, client) is False
    for expected in ("connected", "already connected"):
        assert person.connect(client, "--write", "--transport", way)["action"] == expected
        assert servers_of(client, path.read_bytes())["lithos"][key] == value
    assert always_loaded(person, client) is True
    person.connect(client, "--remove")
    assert path.read_bytes() == sample


CONFIGURATIONS: dict[str, list[bytes | None]] = {
    "claude-code": [
        None,
        b"{}",
        b'{\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\t"command": "a"\r\n\t\t}\r\n\t}\r\n}\r\n',
        b'\xef\xbb\xbf{"mcpServers":{"gr\xc3\xb6\xc3\x9fe":{"url":"http://a","alwaysLoad":false}},"n":12}',
        b'{"projects": {"/a": {"mcpServers": {"lithos": {"command": "x"}}}}, "numStartups": 7}\n\n',
        b'{\n        "mcpServers": {}\n}',
    ],
    "copilot-cli": [
        None,
        b"{}\n",
        b'{"mcpServers": {"a": {"type": "http", "url": "http://a", "tools": ["x"], "deferTools": "auto"}}}',
        b'{\r\n  "mcpServers": {\r\n    "a": {"command": "a", "tools": ["*"]}\r\n  }\r\n}\r\n',
        b'\xef\xbb\xbf{"mcpServers":{},"timeout":30}',
    ],
    "opencode": [
        b'{"mcp": {"servers": {}}}',
        b'{"mcp":{"servers":{"a":{"type":"remote","url":"http://a","codemode":true}}},"n":3}\n',
        b'{\n\t"mcp": {\n\t\t"servers": {\n\t\t\t"a": {"type": "local", "command": ["a"]}\n\t\t}\n\t}\n}\n',
        b'{"$schema": "https://opencode.ai/config.json", "mcp": {"timeout": 5, "servers": {}}}',
        b'\xef\xbb\xbf{"mcp": {"servers": {}}, "permissions": []}\r\n',
    ],
}  # fmt: skip
CASES = [(client, number) for client, some in CONFIGURATIONS.items() for number in range(len(some))]


@pytest.mark.parametrize("way", TRANSPORTS)
@pytest.mark.parametrize(("client", "number"), CASES)
def test_file_is_restored_when_the_switch_is_written_twice(
    client: str, number: int, way: str, person: Person
) -> None:
    """behaviour 309"""
    sample, (_, key, value) = CONFIGURATIONS[client][number], SWITCHES[client]
    path = person.path_of(client) if sample is None else person.put(client, sample)
    before = person.files()
    for expected in ("connected", "already connected"):
        assert person.connect(client, "--write", "--transport", way)["action"] == expected
        assert servers_of(client, path.read_bytes())["lithos"][key] == value
    person.connect(client, "--remove")
    assert (path.read_bytes() if path.exists() else None) == sample
    assert person.files() == before


@pytest.mark.parametrize("client", SWITCHED)
def test_entry_of_an_older_version_gets_the_switch(client: str, person: Person) -> None:
    """behaviour 309: it is not refused as a setting of the user, and removal restores each byte."""
    sample, key, value = SWITCHES[client]
    path = person.put(client, sample)
    person.connect(client, "--write")
    tree = json.loads(path.read_bytes())
    servers = tree["mcp"]["servers"] if client == "opencode" else tree["mcpServers"]
    del servers["lithos"][key]
    layout = {"indent": None} if b"\n" not in sample.strip() else {"indent": 2}
    path.write_text(json.dumps(tree, **layout) + sample.decode()[len(sample.rstrip()) :])
    assert always_loaded(person, client) is False
    assert person.connect(client, "--write")["action"] == "updated"
    assert servers_of(client, path.read_bytes())["lithos"][key] == value
    person.connect(client, "--remove")
    assert path.read_bytes() == sample


@pytest.mark.parametrize("client", SWITCHED)
def test_file_created_by_an_older_version_is_deleted_on_removal(client: str, person: Person) -> None:
    """behaviour 309"""
    path = person.path_of(client)
    if client == "opencode":
        path = person.put(client, b'{"mcp": {"servers": {}}}')
    before = person.files()
    person.connect(client, "--write")
    tree = json.loads(path.read_bytes())
    servers = tree["mcp"]["servers"] if client == "opencode" else tree["mcpServers"]
    del servers["lithos"][SWITCHES[client][1]]
    path.write_text(json.dumps(tree, indent=None if client == "opencode" else 2) + "\n")
    assert person.connect(client, "--write")["action"] == "updated"
    person.connect(client, "--remove")
    assert [name for name in person.files() if Path(name).is_file()] == [
        name for name in before if Path(name).is_file()
    ]


@pytest.mark.parametrize("client", SWITCHED)
def test_switch_that_a_person_turned_off_stays_off(client: str, person: Person) -> None:
    sample, key, value = SWITCHES[client]
    off = {True: False, False: True, "never": "auto"}[value]
    old, new = (f'"{key}": {json.dumps(each)}'.encode() for each in (value, off))
    path = person.put(client, sample)
    person.connect(client, "--write", "--transport", "http")
    path.write_bytes(path.read_bytes().replace(old, new))
    edited = path.read_bytes()
    again = person.connect(client, "--write", "--transport", "http")
    assert (again["action"], path.read_bytes()) == ("already connected", edited)
    assert f"`{key}` stays {json.dumps(off)} in the entry, as you set it" in again["notes"][0]
    assert always_loaded(person, client) is False
    moved = person.connect(client, "--write", "--transport", "stdio")
    assert moved["action"] == "updated"
    assert servers_of(client, path.read_bytes())["lithos"][key] == off
    assert f"`{key}` stays" in moved["notes"][0]
    person.connect(client, "--remove")
    assert "lithos" not in servers_of(client, path.read_bytes())


def test_settings_of_a_person_survive_the_added_switch(person: Person) -> None:
    path = person.path_of("claude-code")
    person.connect("claude-code", "--write", "--transport", "http")
    own = {**servers_of("claude-code", path.read_bytes())["lithos"], "timeout": 9}
    del own["alwaysLoad"]
    sample = json.dumps({"mcpServers": {"lithos": own}}, indent=4).encode()
    path.write_bytes(sample)
    assert person.connect("claude-code", "--write", "--transport", "http")["action"] == "updated"
    assert servers_of("claude-code", path.read_bytes())["lithos"] == {**own, "alwaysLoad": True}
    person.connect("claude-code", "--remove")
    assert path.read_bytes() == sample


def test_opencode_1_entry_has_no_switch(person: Person) -> None:
    """opencode 2 drops the key from an entry of version 1."""
    path = person.put("opencode", b'{"mcp": {"other": {"type": "local", "command": ["x"]}}}')
    person.connect("opencode", "--write")
    assert "codemode" not in servers_of("opencode", path.read_bytes())["lithos"]
    assert always_loaded(person, "opencode") is None


@pytest.mark.parametrize("client", OTHERS)
def test_client_without_a_switch_gets_only_the_entry(client: str, person: Person) -> None:
    if client == "agent-zero":
        person.put(client, b'{"mcp_servers": ""}')
    person.connect(client, "--write")
    entry = servers_of(client, person.path_of(client).read_bytes())["lithos"]
    assert not entry.keys() & {"alwaysLoad", "deferTools", "codemode"}
    assert always_loaded(person, client) is None


def test_printed_recipe_of_claude_code_contains_the_switch(tmp_path: Path) -> None:
    target = ConnectTarget(("/bin/my lithos", "serve"), "http://127.0.0.1:8765/mcp", True, tmp_path)
    around = Surroundings("linux", {}, tmp_path, tmp_path)
    recipes = make_recipes(CLIENTS["claude-code"], target, around)
    for way in TRANSPORTS:
        *words, entry = shlex.split(recipes[way].text)
        assert words == ["claude", "mcp", "add-json", "lithos"]
        assert json.loads(entry) == CLIENTS["claude-code"].entry(target, way)
        assert json.loads(entry)["alwaysLoad"] is True
    assert "${LITHOS_AUTH_TOKEN}" in recipes["http"].text
