"""Entries of projects: the header with the project, and the merge of both configuration files of Codex."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lithos.clients.connect.clients import CLIENTS
from tests.e2e.connecting import FILES, Person, make_person, servers_of

pytestmark = pytest.mark.needs("clients")

KEY = "github.com/acme/shop"
#: Clients with a configuration file per project that documents headers.
WITH_HEADER = ["claude-code", "codex", "copilot-cli", "cursor", "gemini-cli", "opencode", "vscode", "zed"]
PROJECTS = sorted(client for client, scope in FILES if scope == "project")


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Person:
    belongs_to(monkeypatch, KEY)
    return make_person(tmp_path, monkeypatch, capsys)


def belongs_to(monkeypatch: pytest.MonkeyPatch, key: str | None) -> None:
    """Let each folder belong to the project `key`."""
    monkeypatch.setattr("lithos.clients.connect.target.project_of", lambda folder: key)


def write(person: Person, client: str, *more: str) -> dict[str, Any]:
    return person.connect(client, "--scope", "project", "--write", "--transport", "http", *more)


def headers_of(person: Person, client: str) -> dict[str, Any]:
    entry = servers_of(client, person.path_of(client, "project").read_bytes())["lithos"]
    assert not (client == "codex" and "headers" in entry)
    headers: dict[str, Any] = entry.get("http_headers" if client == "codex" else "headers", {})
    return headers


@pytest.mark.parametrize("client", PROJECTS)
def test_http_entry_of_a_project_names_the_project(client: str, person: Person) -> None:
    """docs/spec/integration.md §2"""
    sample, path = person.put_sample(client, "project")
    assert write(person, client)["action"] == "connected"
    expected = {"Lithos-Project": KEY} if client in WITH_HEADER else {}
    assert headers_of(person, client) == expected
    assert write(person, client)["action"] == "already connected"
    person.connect(client, "--scope", "project", "--remove")
    assert path.read_bytes() == sample


@pytest.mark.parametrize("client", WITH_HEADER)
def test_entry_without_a_project_gets_it(
    client: str, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older Lithos wrote the entry, and removal restores each byte."""
    sample, path = person.put_sample(client, "project")
    belongs_to(monkeypatch, None)
    write(person, client)
    assert headers_of(person, client) == {}
    belongs_to(monkeypatch, KEY)
    assert write(person, client)["action"] == "updated"
    assert headers_of(person, client) == {"Lithos-Project": KEY}
    person.connect(client, "--scope", "project", "--remove")
    assert path.read_bytes() == sample


def test_header_with_the_token_is_next_to_the_project(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITHOS_AUTH_TOKEN", "a-secret")
    write(person, "claude-code")
    assert headers_of(person, "claude-code") == {
        "Authorization": "Bearer ${LITHOS_AUTH_TOKEN}",
        "Lithos-Project": KEY,
    }


def test_entry_for_another_project_is_kept_and_reported(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(person, "cursor")
    belongs_to(monkeypatch, "github.com/acme/other")
    done = write(person, "cursor")
    assert done["action"] == "already connected"
    assert f"still names the project {KEY}" in done["notes"][0]
    assert headers_of(person, "cursor") == {"Lithos-Project": KEY}


def test_headers_of_a_person_are_kept(person: Person) -> None:
    path = person.path_of("cursor", "project")
    path.parent.mkdir()
    own = {"url": "http://127.0.0.1:8765/mcp", "headers": {"X-Mine": "1"}}
    path.write_text(json.dumps({"mcpServers": {"lithos": own}}))
    before = path.read_bytes()
    assert write(person, "cursor")["action"] == "updated"
    assert headers_of(person, "cursor") == {"X-Mine": "1", "Lithos-Project": KEY}
    person.connect("cursor", "--scope", "project", "--remove")
    assert path.read_bytes() == before


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_own_configuration_and_stdio_name_no_project(client: str, person: Person) -> None:
    """A stdio server finds the project of the folder in which it starts."""
    person.connect(client, "--write", "--transport", "http")
    person.connect(client, "--write", "--transport", "stdio", "--scope", "project", "--name", "other")
    for scope in ("user", "project"):
        assert b"Lithos-Project" not in person.path_of(client, scope).read_bytes()


@pytest.mark.parametrize("key", ["gr\u00f6\u00dfe", "a${HOME}", "a{env:HOME}", "a$HOME", None])
def test_key_that_no_header_can_contain_is_left_out(
    key: str | None, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    belongs_to(monkeypatch, key)
    write(person, "claude-code")
    assert headers_of(person, "claude-code") == {}


def merge(base: Any, over: Any) -> Any:
    """Merge TOML values like Codex: openai/codex, codex-rs/config/src/merge.rs, `merge_toml_values`."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {**base, **{key: merge(base[key], value) if key in base else value for key, value in over.items()}}


def check(entry: dict[str, Any]) -> None:
    """Check an entry like Codex: codex-rs/config/src/mcp_types.rs, `TryFrom<RawMcpServerConfig>`."""
    if "command" in entry:
        assert not entry.keys() & {"url", "http_headers", "bearer_token_env_var"}
    else:
        assert "url" in entry
        assert not entry.keys() & {"args", "env", "cwd"}


def merged(person: Person) -> dict[str, Any]:
    trees = [tomllib.loads(person.path_of("codex", scope).read_text()) for scope in ("user", "project")]
    entry: dict[str, Any] = merge(*trees)["mcp_servers"]["lithos"]
    return entry


@pytest.mark.parametrize("token", [True, False])
@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize("first", ["user", "project"])
def test_both_entries_of_codex_merge_to_a_valid_entry(
    first: str, way: str, token: bool, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    if token:
        monkeypatch.setenv("LITHOS_AUTH_TOKEN", "a-secret")
    second = {"user": "project", "project": "user"}[first]
    person.connect("codex", "--write", "--allow-reads", "--scope", first, "--transport", way)
    done = person.connect("codex", "--write", "--allow-reads", "--scope", second)
    assert done["transport"] == way
    assert "because Codex merges both entries" in "".join(done["notes"])
    check(merged(person))


def test_other_transport_for_codex_is_refused(person: Person) -> None:
    person.connect("codex", "--write")
    typed = ("codex", "--scope", "project", "--write", "--transport", "http")
    assert "Use --transport stdio or another --name" in person.connect(*typed, code=1)["error"]
    assert not person.path_of("codex", "project").exists()
    assert write(person, "codex", "--name", "shared")["transport"] == "http"


def test_entry_of_codex_is_repaired_by_writing_it_again(person: Person) -> None:
    """Older versions wrote stdio for the user and HTTP for the project."""
    write(person, "codex")
    (person.home / ".codex").mkdir()
    (person.home / ".codex" / "config.toml").write_text(
        '[mcp_servers.lithos]\ncommand = "lithos"\nargs = []\n'
    )
    with pytest.raises(AssertionError):
        check(merged(person))
    done = person.connect("codex", "--scope", "project", "--write")
    assert (done["action"], done["transport"]) == ("updated", "stdio")
    check(merged(person))


@pytest.mark.parametrize(
    "content", ["mcp_servers = 1\n", "a = = 1\n", "[mcp_servers.lithos]\nenabled = true\n"]
)
def test_other_file_of_codex_without_a_usable_entry_changes_nothing(content: str, person: Person) -> None:
    (person.home / ".codex").mkdir()
    (person.home / ".codex" / "config.toml").write_text(content)
    assert person.connect("codex", "--scope", "project", "--write")["transport"] == "http"


def test_other_clients_choose_the_transport_of_their_scope(person: Person) -> None:
    for client in sorted({client for client, scope in FILES if scope == "project"} - {"codex", "agent-zero"}):
        assert CLIENTS[client].http is not None
        person.connect(client, "--write")
        assert person.connect(client, "--write", "--scope", "project")["transport"] == "http"
