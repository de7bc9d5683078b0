"""`lithos connect CLIENT --hooks`: checks the files of all clients byte by byte (behaviour 313)."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lithos.app.main import main
from lithos.clients.connect.clients import CLIENTS
from lithos.clients.hook_files.places import HOOK_PLACES
from lithos.clients.hooks.dialects import KINDS as KINDS_OF
from lithos.clients.hooks.entries import SPELLINGS
from tests.clients.hooks.test_dialects import PAYLOADS
from tests.e2e.connecting import Person, make_person
from tests.e2e.process import clean_environment

FILES = {
    ("claude-code", "user"): ".claude/settings.json",
    ("claude-code", "project"): ".claude/settings.local.json",
    ("codex", "user"): ".codex/hooks.json",
    ("codex", "project"): ".codex/hooks.json",
    ("cursor", "user"): ".cursor/hooks.json",
    ("cursor", "project"): ".cursor/hooks.json",
    ("gemini-cli", "user"): ".gemini/settings.json",
    ("gemini-cli", "project"): ".gemini/settings.json",
    ("copilot-cli", "user"): ".copilot/hooks/lithos.json",
    ("copilot-cli", "project"): ".github/hooks/lithos.json",
    ("vscode", "user"): ".copilot/hooks/lithos-vscode.json",
    ("vscode", "project"): ".github/hooks/lithos-vscode.json",
    ("opencode", "user"): ".config/opencode/plugins/lithos.js",
    ("opencode", "project"): ".opencode/plugins/lithos.js",
}
ALL = sorted(FILES)
JSON = [pair for pair in ALL if pair[0] != "opencode"]


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Person:
    return make_person(tmp_path, monkeypatch, capsys)


def path_of(person: Person, client: str, scope: str = "user") -> Path:
    return (person.home if scope == "user" else person.project) / FILES[client, scope]


def put(person: Person, client: str, data: bytes, scope: str = "user") -> Path:
    path = path_of(person, client, scope)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def connect(person: Person, client: str, scope: str, *more: str, code: int = 0) -> dict[str, Any]:
    return person.connect(client, "--scope", scope, "--hooks", *more, code=code)


def commands_in(tree: Any) -> list[str]:
    """Return the commands of all hooks in a tree, wherever they are."""
    if isinstance(tree, dict):
        own = [tree["command"]] if isinstance(tree.get("command"), str) else []
        return own + [each for value in tree.values() for each in commands_in(value)]
    return [each for value in tree for each in commands_in(value)] if isinstance(tree, list) else []


def foreign(client: str) -> dict[str, Any]:
    """Return the hooks of another program in the form of the client, one of them at an event of Lithos."""
    event = next(iter(SPELLINGS[client].events))
    hook = {"type": "command", "command": "other --hook --client x", "timeout": 9}
    entry = {"matcher": "*", "hooks": [hook]} if SPELLINGS[client].is_grouped else hook
    return {event: [entry], "OtherEvent": [entry]}


def configurations(client: str) -> dict[str, bytes]:
    """Return the kinds of files that a person may have."""
    tree = {"version": 1, "theme": "d\u00fcster", "number": 1.50, "hooks": foreign(client)}
    return {
        "empty": b"",
        "minimal": b"{}",
        "own line": b'{\n  "hooks": {}\n}\n',
        "other hooks": json.dumps(tree, indent=2).encode() + b"\n",
        "crlf": json.dumps(tree, indent=4).encode().replace(b"\n", b"\r\n"),
        "tabs": b"\xef\xbb\xbf" + json.dumps(tree, indent="\t", ensure_ascii=False).encode(),
        "one line": json.dumps(tree, separators=(",", ":")).encode(),
        "short lists": b'{"hooks": {"OtherEvent": []}, "list": [1, 2,\n 3]}',
    }


KINDS = tuple(configurations("codex"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("client", "scope"), JSON)
def test_hooks_are_added_and_the_file_is_restored_exactly(
    client: str, scope: str, kind: str, person: Person
) -> None:
    """Behaviour 313: a second call changes nothing, and the hooks of other programs stay."""
    sample = configurations(client)[kind]
    path = put(person, client, sample, scope)
    before = person.files()
    others = commands_in(json.loads(sample.decode("utf-8-sig") or "{}"))
    done = connect(person, client, scope)
    assert (done["action"], done["path"]) == ("installed", str(path))
    tree = json.loads(path.read_bytes().decode("utf-8-sig"))
    mine = [line for line in commands_in(tree) if " --hook --client x" not in line]
    assert len(mine) == sum(map(len, SPELLINGS[client].events.values()))
    assert all(f" --hook --client {client} --event " in line for line in mine)
    assert all(line.startswith("[ -x ") and f"--data-dir {person.home / 'notes'}" in line for line in mine)
    assert [line for line in commands_in(tree) if line not in mine] == others
    state = (path.read_bytes(), path.stat().st_mtime_ns)
    assert connect(person, client, scope)["action"] == "already installed"
    assert (path.read_bytes(), path.stat().st_mtime_ns) == state
    assert connect(person, client, scope, "--remove")["action"] == "removed"
    assert path.read_bytes() == sample
    assert person.files() == before
    assert connect(person, client, scope, "--remove")["action"] == "not installed"


@pytest.mark.parametrize(("client", "scope"), ALL)
def test_file_that_lithos_created_is_deleted_on_removal(client: str, scope: str, person: Person) -> None:
    """Behaviour 313."""
    assert connect(person, client, scope)["action"] == "installed"
    assert path_of(person, client, scope).exists()
    assert connect(person, client, scope, "--agent", "ann@desk")["action"] == "updated"
    assert b"ann@desk" in path_of(person, client, scope).read_bytes()
    assert connect(person, client, scope, "--remove")["action"] == "removed"
    assert person.files() == []


@pytest.mark.parametrize("client", [client for client, scope in JSON if scope == "user"])
def test_only_lithos_hooks_are_removed_from_a_changed_file(client: str, person: Person) -> None:
    """Behaviour 313: hooks that a person wrote for Lithos stay as well."""
    path = put(person, client, json.dumps({"hooks": foreign(client)}, indent=2).encode())
    connect(person, client, "user")
    tree = json.loads(path.read_bytes())
    event = list(SPELLINGS[client].events)[-1]
    own = {"type": "command", "command": f"lithos checkpoint --hook --client {client}"}
    if SPELLINGS[client].is_grouped:
        tree["hooks"][event][-1]["hooks"].append(own)
    else:
        tree["hooks"][event].append(own)
    tree["added"] = True
    path.write_text(json.dumps(tree))
    assert connect(person, client, "user", "--remove")["action"] == "removed"
    left = json.loads(path.read_bytes())
    assert left["added"] is True
    assert sorted(commands_in(left)) == sorted([*commands_in({"hooks": foreign(client)}), own["command"]])
    assert left["hooks"].keys() == {*foreign(client), event}
    assert [name for name in person.files() if "backup" in name] == []


@pytest.mark.parametrize("client", [client for client, scope in JSON if scope == "user"])
def test_hooks_of_an_older_installation_are_replaced(client: str, person: Person) -> None:
    """The program of an update may be in another folder."""
    path = put(person, client, b'{"theme": "dark"}')
    connect(person, client, "user")
    text = path.read_text()
    (old,) = {line.split()[2] for line in commands_in(json.loads(text))}
    path.write_text(text.replace(old, "/old/bin/lithos"))
    assert connect(person, client, "user")["action"] == "updated"
    assert path.read_text() == text
    connect(person, client, "user", "--remove")
    assert path.read_bytes() == b'{"theme": "dark"}'


def test_hooks_of_another_vault_stay(person: Person) -> None:
    """Behaviour 313: each vault has its own hooks."""
    path = path_of(person, "cursor")
    connect(person, "cursor", "user")
    alone = path.read_bytes()
    other = ["connect", "cursor", "--hooks", "--data-dir", str(person.home / "other")]
    assert main(other) == 0
    assert len(commands_in(json.loads(path.read_bytes()))) == 8
    assert main([*other, "--remove"]) == 0
    assert path.read_bytes() == alone


@pytest.mark.parametrize("client", [client for client, scope in JSON if scope == "user"])
def test_file_with_comments_is_unchanged_and_the_hooks_are_printed(client: str, person: Person) -> None:
    """Behaviour 313."""
    path = put(person, client, b'{\n  // mine\n  "hooks": {},\n}\n')
    error = connect(person, client, "user", code=1)["error"]
    assert "comments" in error
    printed = json.loads(error[error.index('{\n  "hooks"') :])
    assert printed["hooks"].keys() == SPELLINGS[client].events.keys()
    path.write_bytes(b"{\n  // mine\n" + json.dumps(printed).encode()[1:])
    before = path.read_bytes()
    assert f"--hook --client {client}" in connect(person, client, "user", "--remove", code=1)["error"]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"hooks": ', "is not valid"),
        (b'{"hooks": []}', "unchanged"),
        (b'{"hooks": {"SessionStart": {}}}', "does not have the form"),
        (b'{"hooks": {}, "hooks": {}}', "occurs twice"),
        (b"[1]", "not an object"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_invalid_file_is_unchanged(data: bytes, words: str, person: Person) -> None:
    path = put(person, "claude-code", data)
    assert words in connect(person, "claude-code", "user", code=1)["error"]
    assert path.read_bytes() == data
    assert person.files()[-1] == str(path)


def test_invalid_file_without_hooks_does_not_stop_the_removal(person: Person) -> None:
    """Codex may have hooks in two files."""
    connect(person, "codex", "user")
    other = person.home / ".codex" / "config.toml"
    other.write_bytes(b"not = [valid")
    assert connect(person, "codex", "user", "--remove")["action"] == "removed"
    assert [name for name in person.files() if name.endswith((".json", ".toml"))] == [str(other)]
    assert connect(person, "codex", "user", "--remove")["action"] == "not installed"


@pytest.mark.slow
@pytest.mark.parametrize("client", [client for client, scope in JSON if scope == "user"])
def test_installed_commands_answer_the_payloads_of_their_client(client: str, person: Person) -> None:
    """Behaviour 313: each command ends with 0, with and without Lithos."""
    connect(person, client, "user")
    lines = commands_in(json.loads(path_of(person, client).read_bytes()))
    environment = clean_environment({"HOME": str(person.home), "XDG_STATE_HOME": str(person.home / "state")})
    for line in lines:
        event = line.split(" --event ")[1]
        told = json.dumps(PAYLOADS[client][KINDS_OF[event]])
        for broken in (told, told[:-5], "", "[]"):
            done = subprocess.run(
                ["/bin/sh", "-c", line],
                input=broken,
                capture_output=True,
                text=True,
                check=False,
                env=environment,
            )
            assert (done.returncode, done.stderr) == (0, "")
            assert not done.stdout or isinstance(json.loads(done.stdout), dict)
        gone = line.replace(line.split()[2], "/nowhere/lithos")
        done = subprocess.run(
            ["/bin/sh", "-c", gone], input=told, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


TOML = b"""# my settings
model = "x"

[[hooks.SessionStart]]
matcher = "startup"

[[hooks.SessionStart.hooks]]
type = "command"
command = "mine"
"""


@pytest.mark.parametrize(
    "sample", [TOML, TOML.replace(b"\n", b"\r\n"), TOML.rstrip(), b"\xef\xbb\xbf" + TOML]
)
def test_codex_hooks_are_added_to_existing_toml_tables(sample: bytes, person: Person) -> None:
    """Behaviour 313: Codex warns if a folder has hooks in both forms."""
    path = person.home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(sample)
    done = connect(person, "codex", "user")
    assert (done["action"], done["path"]) == ("installed", str(path))
    assert any("/hooks" in note for note in done["notes"])
    written = path.read_bytes()
    assert written.startswith(sample)
    hooks = tomllib.loads(written.decode("utf-8-sig"))["hooks"]
    assert hooks.keys() == SPELLINGS["codex"].events.keys()
    assert len(hooks["SessionStart"]) == 3
    assert connect(person, "codex", "user")["action"] == "already installed"
    # Codex stores which hooks the person trusts.
    path.write_bytes(written + b'\n[hooks.state."x"]\ntrusted_hash = "1"\n')
    assert connect(person, "codex", "user", "--remove")["action"] == "removed"
    left = path.read_bytes()
    assert tomllib.loads(left.decode("utf-8-sig"))["hooks"].keys() == {"SessionStart", "state"}
    assert b"--hook" not in left
    path.write_bytes(sample)
    connect(person, "codex", "user")
    connect(person, "codex", "user", "--remove")
    assert path.read_bytes() == sample
    assert [name for name in person.files() if "backup" in name] == []


def test_codex_hooks_in_toml_that_a_person_changed_are_refused(person: Person) -> None:
    path = person.home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(TOML)
    connect(person, "codex", "user")
    changed = path.read_bytes() + b'\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "theirs"\n'
    path.write_bytes(changed)
    assert "only a person can remove" in connect(person, "codex", "user", "--remove", code=1)["error"]
    assert path.read_bytes() == changed


def test_codex_trust_table_alone_leaves_the_hooks_in_json(person: Person) -> None:
    """Codex writes the table `hooks.state` for hooks in either file."""
    path = person.home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('[hooks.state."x"]\ntrusted_hash = "1"\n')
    assert connect(person, "codex", "user")["path"].endswith("hooks.json")


def test_changed_opencode_plugin_is_neither_replaced_nor_deleted(person: Person) -> None:
    connect(person, "opencode", "user")
    path = path_of(person, "opencode")
    path.write_bytes(path.read_bytes() + b"// mine\n")
    for more in ((), ("--remove",)):
        assert "was changed" in connect(person, "opencode", "user", *more, code=1)["error"]
    path.write_bytes(b"export default {}\n")
    assert "another program" in connect(person, "opencode", "user", code=1)["error"]
    assert connect(person, "opencode", "user", "--remove")["action"] == "not installed"
    assert path.read_bytes() == b"export default {}\n"


def test_client_without_hooks_gets_a_clear_refusal(person: Person) -> None:
    for client, words in (("zed", "Zed has no hooks"), ("windsurf", "cannot give the model any text")):
        assert words in person.connect(client, "--hooks", code=2)["error"]
    assert "claude-code, codex, cursor" in person.connect("--hooks", code=2)["error"]
    assert "without --write" in person.connect("cursor", "--hooks", "--write", code=2)["error"]
    assert person.files() == []


def test_every_client_with_hooks_has_an_entry_and_a_place() -> None:
    assert HOOK_PLACES.keys() == {client for client, _ in FILES}
    assert HOOK_PLACES.keys() - SPELLINGS.keys() == {"opencode"}
    assert CLIENTS.keys() >= HOOK_PLACES.keys()
