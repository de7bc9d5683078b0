"""`lithos connect --write`, `--remove` and `--list`: checks the files of all clients byte by byte."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from lithos.app.main import main
from lithos.clients.connect import command, files, rule_files
from lithos.clients.connect.clients import CLIENTS
from lithos.notes.files.system_calls import KernelCalls
from tests.e2e.connecting import (
    FILES,
    KEYS,
    Person,
    is_plain,
    make_person,
    read_as_client,
    rest_of,
    sample_of,
    servers_of,
)

ALL = sorted(FILES)
SERVES = ("serve", "--transport", "stdio")


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Person:
    return make_person(tmp_path, monkeypatch, capsys)


def arguments(client: str, scope: str, *more: str) -> list[str]:
    return [client, "--scope", scope, *more]


def ways_of(client: str) -> list[str]:
    return ["stdio"] if CLIENTS[client].http is None else ["http", "stdio"]


@pytest.mark.parametrize(("client", "scope"), ALL)
def test_client_file_is_written_and_restored_exactly(client: str, scope: str, person: Person) -> None:
    """Behaviour 243."""
    sample, path = person.put_sample(client, scope)
    before = person.files()
    for way in ways_of(client):
        others = servers_of(client, sample)
        done = person.connect(*arguments(client, scope, "--write", "--transport", way))
        assert (done["action"], done["path"], done["transport"]) == ("connected", str(path), way)
        servers = servers_of(client, path.read_bytes())
        entry = servers.pop("lithos")
        assert servers == others
        assert ("http://127.0.0.1:8765/mcp" in entry.values()) == (way == "http")
        if way == "stdio":
            command = entry["command"]
            words = command if isinstance(command, list) else [command, *entry["args"]]
            assert words[-5:] == ["--data-dir", str(person.home / "notes"), *SERVES]
        assert Path(done["backup"]).read_bytes() == sample
        assert rest_of(client, path.read_bytes()) == rest_of(client, sample)
        assert client != "codex" or is_inserted(sample, path.read_bytes())

        state, files_then = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino), person.files()
        again = person.connect(*arguments(client, scope, "--write", "--transport", way))
        assert again["action"] == "already connected"
        assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == state
        assert person.files() == files_then

        assert person.connect(*arguments(client, scope, "--remove"))["action"] == "removed"
        assert path.read_bytes() == sample
        assert person.files() == before


def is_inserted(old: bytes, new: bytes) -> bool:
    """Return whether `new` equals `old` with one inserted piece of text."""
    begin = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), len(old))
    return new.endswith(old[begin:])


@pytest.mark.parametrize(("client", "scope"), [pair for pair in ALL if pair[0] != "agent-zero"])
def test_client_file_that_lithos_created_is_deleted_on_removal(
    client: str, scope: str, person: Person
) -> None:
    """Behaviour 243."""
    person.connect(*arguments(client, scope, "--write"))
    assert "lithos" in servers_of(client, person.path_of(client, scope).read_bytes())
    person.connect(*arguments(client, scope, "--write", "--transport", ways_of(client)[0]))
    person.connect(*arguments(client, scope, "--remove"))
    assert person.files() == []


@pytest.mark.parametrize(("client", "scope"), ALL)
def test_later_file_changes_survive_the_removal_of_the_entry(client: str, scope: str, person: Person) -> None:
    """Behaviour 243: the removal deletes only the entry."""
    sample, path = person.put_sample(client, scope)
    person.connect(*arguments(client, scope, "--write"))
    comment = {"codex": b"# mine\n"}.get(client, b"  \n")
    bom = b"\xef\xbb\xbf" if sample.startswith(b"\xef\xbb\xbf") else b""
    path.write_bytes(bom + comment + path.read_bytes().removeprefix(bom))
    assert person.connect(*arguments(client, scope, "--remove"))["action"] == "removed"
    assert path.read_bytes().startswith(bom + comment)
    assert rest_of(client, path.read_bytes()) == rest_of(client, sample)
    assert servers_of(client, path.read_bytes()) == servers_of(client, sample)
    if client in ("codex", "cursor"):
        assert path.read_bytes() == bom + comment + sample.removeprefix(bom)
    assert [name for name in person.files() if "lithos" in Path(name).name] == []


COMMENTED = [pair for pair in ALL if pair[0] != "codex" and not is_plain(sample_of(*pair))]


@pytest.mark.parametrize(("client", "scope"), COMMENTED)
def test_file_with_comments_is_unchanged_and_the_entry_is_printed(
    client: str, scope: str, person: Person
) -> None:
    """Behaviour 243."""
    sample = sample_of(client, scope)
    path = person.put(client, sample, scope)
    before = person.files()
    refused = person.connect(*arguments(client, scope, "--write"), code=1)["error"]
    assert f"{path} is unchanged" in refused
    assert '"lithos": {' in refused
    keys = KEYS.get(client, ("mcpServers",))
    assert f"`{'.'.join(keys)}{'.servers' if (client, scope) == ('opencode', 'project') else ''}`" in refused
    assert ("Or run: openclaw mcp set lithos" in refused) == (client == "openclaw")
    assert (path.read_bytes(), person.files()) == (sample, before)


def test_entry_in_a_file_with_comments_is_removed_manually(person: Person) -> None:
    path = person.put("zed", b'{"context_servers": {}}')
    person.connect("zed", "--write")
    path.write_bytes(b"// mine\n" + path.read_bytes())
    told = {row["client"]: row for row in person.connect("--list")["clients"] if row["scope"] == "user"}
    assert told["zed"]["state"] == "connected"
    assert person.connect("zed", "--write")["action"] == "already connected"
    assert "Delete 'lithos' under `context_servers`" in person.connect("zed", "--remove", code=1)["error"]
    assert path.read_bytes().startswith(b"// mine\n")


@pytest.mark.parametrize("answer", ["y\n", "n\n"])
def test_clients_own_command_edits_commented_files_only_with_consent(
    answer: str, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Path(os.environ["PATH"]) / "openclaw"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@" > "$HOME/typed"\n')
    program.chmod(0o755)
    monkeypatch.setattr(command, "agrees", lambda question: answer == "y\n")
    path = person.put("openclaw", b"{mcp: {}} // mine")
    typed = ["connect", "openclaw", "--write", "--data-dir", str(person.home / "notes")]
    assert main(typed) == (0 if answer == "y\n" else 1)
    assert main([*typed[:2], "--remove", *typed[3:]]) == (0 if answer == "y\n" else 1)
    told = (person.home / "typed").read_text() if answer == "y\n" else "mcp unset lithos\n"
    assert told == "mcp unset lithos\n"
    assert path.read_bytes() == b"{mcp: {}} // mine"


@pytest.mark.parametrize("client", ["claude-code", "cursor", "codex"])
def test_earlier_entry_for_this_server_is_restored(client: str, person: Person) -> None:
    own = {"command": "my-lithos", "args": ["-d", str(person.home / "notes"), "serve"]}
    data = json.dumps({"mcpServers": {"lithos": own, "b": {}}}, indent=2).encode()
    if client == "codex":
        data = f"[mcp_servers.lithos] # mine\ncommand = 'my-lithos'\nargs = {own['args']}\n[a]\n".encode()
    path = person.put(client, data)
    assert person.connect(client, "--write", "--transport", "http")["action"] == "updated"
    path.write_bytes(path.read_bytes().rstrip() + b"\n\n")
    person.connect(client, "--remove")
    assert servers_of(client, path.read_bytes())["lithos"] == own
    person.connect(client, "--write", "--transport", "http")
    person.connect(client, "--remove")
    assert servers_of(client, path.read_bytes())["lithos"] == own


def test_comment_after_the_entry_is_not_lost(person: Person) -> None:
    path = person.put("codex", b"a = 1\n")
    person.connect("codex", "--write")
    path.write_bytes(path.read_bytes().replace(b"command", b"# mine\ncommand").replace(b"args", b"args "))
    edited = path.read_bytes()
    assert "is unchanged" in person.connect("codex", "--remove", code=1)["error"]
    assert path.read_bytes() == edited
    path.write_bytes(edited.replace(b"# mine\n", b""))
    assert person.connect("codex", "--remove")["action"] == "removed"
    assert path.read_bytes().rstrip() == b"a = 1"


@pytest.mark.parametrize("number", ["1.10", "1e5", "-0", "9" * 5_000])
def test_file_with_unusual_number_formats_is_unchanged(number: str, person: Person) -> None:
    path = person.put("cursor", f'{{"a": {number}}}'.encode())
    assert "is unchanged" in person.connect("cursor", "--write", code=1)["error"]
    assert path.read_bytes() == f'{{"a": {number}}}'.encode()


def test_removal_works_after_the_client_rewrites_its_file(person: Person) -> None:
    """Claude Code rewrites its file at each start."""
    _, path = person.put_sample("claude-code")
    person.connect("claude-code", "--write")
    tree = json.loads(path.read_bytes())
    tree["numStartups"] += 1
    tree["mcpServers"]["another"] = {"command": "x"}
    path.write_text(json.dumps(tree, indent=4))
    person.connect("claude-code", "--remove")
    del tree["mcpServers"]["lithos"]
    assert path.read_text() == json.dumps(tree, indent=4)
    assert [name for name in person.files() if "backup" in name] == []


def test_backup_is_kept_when_the_file_has_lost_settings(person: Person) -> None:
    sample, path = person.put_sample("gemini-cli")
    done = person.connect("gemini-cli", "--write")
    tree = read_as_client("gemini-cli", path.read_bytes())
    path.write_text(json.dumps({"mcpServers": {"lithos": tree["mcpServers"]["lithos"]}}))
    removed = person.connect("gemini-cli", "--remove")
    assert removed["backup"] == done["backup"]
    assert "is kept" in removed["notes"][0]
    assert Path(done["backup"]).read_bytes() == sample
    assert json.loads(path.read_bytes()) == {"mcpServers": {}}


def test_edits_between_write_and_remove_are_not_lost(person: Person) -> None:
    sample = b'{"mcpServers": {"a": {"command": "a"}}}\n'
    path = person.put("windsurf", sample)
    person.connect("windsurf", "--write")
    edited = path.read_bytes().replace(b'"command": "a"', b'"command": "b"')
    path.write_bytes(edited)
    assert person.connect("windsurf", "--write", "--transport", "http")["action"] == "updated"
    assert servers_of("windsurf", path.read_bytes())["lithos"] == {"serverUrl": "http://127.0.0.1:8765/mcp"}
    person.connect("windsurf", "--remove")
    assert path.read_bytes() == sample.replace(b'"command": "a"', b'"command": "b"')
    assert [name for name in person.files() if "backup" in name] == []


def test_backup_is_kept_when_another_program_deletes_the_file(person: Person) -> None:
    path = person.put("cursor", b'{"mcpServers": {"a": {"command": "a"}}}')
    done = person.connect("cursor", "--write")
    path.unlink()
    assert person.connect("cursor", "--remove")["action"] == "not connected"
    assert Path(done["backup"]).read_bytes() == b'{"mcpServers": {"a": {"command": "a"}}}'
    assert person.connect("cursor", "--write")["action"] == "connected"
    assert person.connect("cursor", "--remove")["action"] == "removed"
    assert Path(done["backup"]).exists()


def test_existing_backup_of_the_person_is_not_overwritten(person: Person) -> None:
    path = person.put("cursor", b"{}")
    own = path.with_name("mcp.json.lithos-backup")
    own.write_text("mine")
    assert person.connect("cursor", "--write")["backup"] == f"{own}-2"
    person.connect("cursor", "--remove")
    assert own.read_text() == "mine"
    assert not Path(f"{own}-2").exists()


def test_foreign_entry_is_kept_and_another_name_is_suggested(person: Person) -> None:
    sample = b'{"mcpServers": {"lithos": {"command": "my-lithos", "args": []}}}'
    path = person.put("cursor", sample)
    for does in ("--write", "--remove"):
        assert "--name" in person.connect("cursor", does, code=1)["error"]
        assert path.read_bytes() == sample
    person.connect("cursor", "--write", "--name", "notes")
    assert set(servers_of("cursor", path.read_bytes())) == {"lithos", "notes"}
    person.connect("cursor", "--remove", "--name", "notes")
    assert path.read_bytes() == sample


def test_two_entries_in_one_file_are_added_and_removed_independently(person: Person) -> None:
    sample, path = person.put_sample("cursor")
    for order in (("a", "b"), ("b", "a")):
        for name in ("a", "b"):
            person.connect("cursor", "--write", "--name", name)
        for name in order:
            person.connect("cursor", "--remove", "--name", name)
        assert path.read_bytes() == sample
    assert [name for name in person.files() if "backup" in name] == []


def test_settings_added_to_the_entry_are_not_overwritten(person: Person) -> None:
    path = person.put("windsurf", b"{}")
    person.connect("windsurf", "--write")
    tree = json.loads(path.read_bytes())
    tree["mcpServers"]["lithos"]["disabledTools"] = ["lithos_delete"]
    path.write_text(json.dumps(tree))
    assert person.connect("windsurf", "--write")["action"] == "already connected"
    refused = person.connect("windsurf", "--write", "--transport", "http", code=1)
    assert "disabledTools" in refused["error"]
    assert json.loads(path.read_bytes()) == tree


@pytest.mark.parametrize(
    ("client", "content", "words"),
    [
        ("cursor", b'{\n  "mcpServers": {\n    "a": }\n}', "line 3, column 10"),
        ("claude-code", b"{\n  // no comments here\n}", "has comments"),
        ("codex", b'model = "x"\nbroken = = 1\n', "line 2, column 10"),
        ("codex", b"mcp_servers = { a = { command = 'x' } }\n", "cannot be added"),
        ("zed", b'{"context_servers": []}', "not an object"),
        ("zed", b'{"context_servers": {}, "context_servers": {}}', "twice"),
        ("cursor", b'{"mcpServers": {"lithos": {"url": "a"}, "lithos": {"url": "b"}}}', "twice"),
        ("vscode", b'{"servers": {}} \xff', "not UTF-8"),
        ("agent-zero", b'{"mcp_servers": "[{\'name\': 1}]"}', "line 1, column 3"),
        ("agent-zero", b'{"mcp_servers": "[]"}', "not an object"),
        ("gemini-cli", b"[" * 500_000, "recursion"),
    ],
)
def test_unsafe_files_are_unchanged_and_the_reason_is_printed(
    client: str, content: bytes, words: str, person: Person
) -> None:
    path = person.put(client, content)
    refused = person.connect(client, "--write", code=1)["error"]
    assert words in refused
    assert str(path) in refused
    assert path.read_bytes() == content
    assert [name for name in person.files() if "lithos" in Path(name).name] == []


def test_write_through_a_symbolic_link_keeps_the_link(person: Person) -> None:
    """People who keep their dotfiles in a repository use such symbolic links."""
    target = person.home / "dotfiles" / "mcp.json"
    target.parent.mkdir()
    target.write_bytes(b'{"mcpServers": {}}\n')
    link = person.path_of("cursor")
    link.parent.mkdir()
    link.symlink_to("../dotfiles/mcp.json")
    person.connect("cursor", "--write")
    assert link.is_symlink()
    assert "lithos" in servers_of("cursor", target.read_bytes())
    person.connect("cursor", "--remove")
    assert (os.readlink(link), target.read_bytes()) == ("../dotfiles/mcp.json", b'{"mcpServers": {}}\n')


def test_write_to_a_file_with_two_hard_links_keeps_both(person: Person) -> None:
    path = person.put("cursor", b"{}")
    os.link(path, person.home / "same.json")
    person.connect("cursor", "--write")
    assert (person.home / "same.json").read_bytes() == path.read_bytes() != b"{}"
    person.connect("cursor", "--remove")
    assert path.read_bytes() == b"{}"
    assert path.stat().st_nlink == 2


def test_file_permissions_are_kept_and_the_backup_is_private(person: Person) -> None:
    path = person.put("cursor", b"{}")
    path.chmod(0o640)
    done = person.connect("cursor", "--write")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE(Path(done["backup"]).stat().st_mode) == 0o600
    person.connect("cursor", "--remove")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owner_of_the_file_is_kept(person: Person) -> None:
    path = person.put("cursor", b"{}")
    os.chown(path, 12_345, 12_345)
    person.connect("cursor", "--write")
    assert (path.stat().st_uid, path.stat().st_gid) == (12_345, 12_345)


def test_file_that_cannot_be_replaced_is_written_in_place(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person may write to the folder but does not belong to the group of the file."""

    def denied(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(files.shutil, "copystat", denied)
    path = person.put("cursor", b"{}")
    inode = path.stat().st_ino
    person.connect("cursor", "--write")
    assert "lithos" in servers_of("cursor", path.read_bytes())
    assert path.stat().st_ino == inode


def test_connect_works_on_file_systems_without_atomic_exchange(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(KernelCalls, "exchange", missing)
    path = person.put("cursor", b"{}")
    person.connect("cursor", "--write")
    person.connect("cursor", "--remove")
    assert path.read_bytes() == b"{}"


@pytest.mark.parametrize("does", ["--write", "--remove"])
def test_file_saved_during_the_exchange_is_kept(
    does: str, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = person.put("cursor", b'{"count": 0}')
    if does == "--remove":
        person.connect("cursor", "--write")
    real, saved = KernelCalls.exchange, []

    def save_first(calls: KernelCalls, one: str, other: str) -> None:
        if not saved:
            saved.append(path.write_bytes(path.read_bytes().replace(b'"count": 0', b'"count": 1')))
        real(calls, one, other)

    monkeypatch.setattr(KernelCalls, "exchange", save_first)
    person.connect("cursor", does)
    assert json.loads(path.read_bytes())["count"] == 1
    assert ("lithos" in str(path.read_bytes())) == (does == "--write")


def test_save_during_the_removal_of_a_new_file_is_kept(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.connect("cursor", "--write")
    path, real = person.path_of("cursor"), rule_files.replace_config

    def save_first(file: files.ConfigFile, data: bytes | None) -> None:
        if data is None:
            path.write_bytes(path.read_bytes().replace(b"{", b'{"mine": 1, ', 1))
        real(file, data)

    monkeypatch.setattr(rule_files, "replace_config", save_first)
    assert person.connect("cursor", "--remove")["action"] == "removed"
    assert json.loads(path.read_bytes()).pop("mine") == 1
    assert "lithos" not in str(path.read_bytes())


def test_entry_with_another_name_of_this_host_counts_as_connected(person: Person) -> None:
    path = person.put("agent-zero", b'{"mcp_servers": ""}')
    person.connect("agent-zero", "--write")
    edited = path.read_bytes().replace(b"127.0.0.1", b"host.docker.internal")
    path.write_bytes(edited)
    assert person.connect("agent-zero", "--write")["action"] == "already connected"
    assert path.read_bytes() == edited
    person.connect("agent-zero", "--remove")
    assert servers_of("agent-zero", path.read_bytes()) == {}


def test_read_only_file_is_unchanged(person: Person) -> None:
    path = person.put("cursor", b"{}")
    path.chmod(0o444)
    assert "read-only" in person.connect("cursor", "--write", code=1)["error"]
    assert path.read_bytes() == b"{}"
    assert [name for name in person.files() if "lithos" in Path(name).name] == []


def test_path_that_is_not_a_regular_file_is_refused(person: Person) -> None:
    person.path_of("cursor").mkdir(parents=True)
    assert "is not a file" in person.connect("cursor", "--write", code=1)["error"]
    assert person.connect("--list")["clients"]


def test_huge_file_is_unchanged(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 100)
    path = person.put("cursor", b"{}" + b" " * 99)
    assert "larger" in person.connect("cursor", "--write", code=1)["error"]
    assert len(path.read_bytes()) == 101


@pytest.mark.parametrize("times", [1, 100])
def test_file_saved_by_the_client_is_not_overwritten(
    times: int, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = person.put("cursor", b'{"count": 0}')
    real, saved = rule_files.replace_config, []

    def save_first(file: files.ConfigFile, data: bytes | None) -> None:
        if len(saved) < times:
            saved.append(len(saved) + 1)
            path.write_bytes(b'{"count": %d}' % saved[-1])
        real(file, data)

    monkeypatch.setattr(rule_files, "replace_config", save_first)
    if times == 1:
        person.connect("cursor", "--write")
        assert json.loads(path.read_bytes())["count"] == 1
        person.connect("cursor", "--remove")
        assert path.read_bytes() == b'{"count": 1}'
    else:
        assert "changed 5 times" in person.connect("cursor", "--write", code=1)["error"]
        assert path.read_bytes() == b'{"count": 5}'
    assert [name for name in person.files() if "lithos" in Path(name).name] == []


def test_next_run_detects_an_interrupted_write(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    path = person.put("cursor", b'{"a": 1}')

    def killed(file: files.ConfigFile, data: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rule_files, "replace_config", killed)
        person.connect("cursor", "--write", code=130)
    assert person.connect("cursor", "--remove")["action"] == "not connected"
    assert [name for name in person.files() if "lithos" in Path(name).name] == []
    assert path.read_bytes() == b'{"a": 1}'


@pytest.mark.parametrize(("client", "scope"), ALL)
def test_token_variable_is_written_but_never_the_token(
    client: str, scope: str, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITHOS_AUTH_TOKEN", "a-secret-of-ours")
    _, path = person.put_sample(client, scope)
    knows = CLIENTS[client].knows_variables
    done = person.connect(*arguments(client, scope, "--write", "--transport", "http"), code=int(not knows))
    assert (b"LITHOS_AUTH_TOKEN" in path.read_bytes()) == knows
    if not knows:
        assert "stdio" in done["error"]
    person.connect(*arguments(client, scope, "--write", "--transport", "stdio"))
    assert b"LITHOS_AUTH_TOKEN" not in path.read_bytes()
    kept = [Path(name) for name in person.files()]
    assert [name for name in kept if name.is_file() and b"a-secret" in name.read_bytes()] == []


def test_default_transport_is_http_for_projects_and_stdio_for_users(person: Person) -> None:
    assert person.connect("cursor", "--write", "--scope", "project")["transport"] == "http"
    assert person.connect("cursor", "--write")["transport"] == "stdio"


def test_agent_id_of_a_client_is_equal_in_all_sessions(person: Person) -> None:
    notes = person.connect("cursor", "--write")["notes"]
    assert person.connect("cursor", "--write")["notes"][-1] == notes[-1]
    assert '"cursor@' in notes[-1]
    assert '"ann"' in person.connect("cursor", "--write", "--agent", "ann")["notes"][-1]


def test_connect_list_shows_installed_and_connected_clients(person: Person) -> None:
    person.put("cursor", b"{}")
    person.put("zed", b'{"context_servers": {"lithos": {"url": "http://other:1/mcp"}}}')
    person.put("gemini-cli", b'{"mcpServers": ')
    person.connect("claude-code", "--write", "--scope", "project")
    person.connect("cursor", "--write", "--name", "notes")
    rows = person.connect("--list")["clients"]
    told = {(row["client"], row["scope"]): row for row in rows}
    assert told.keys() == FILES.keys()
    assert told["cursor", "user"]["state"] == "connected"
    assert (told["cursor", "user"]["name"], told["cursor", "user"]["transport"]) == ("notes", "stdio")
    assert told["cursor", "project"]["state"] == "no file"
    assert told["claude-code", "project"]["transport"] == "http"
    assert told["zed", "user"]["state"] == "another server"
    assert told["zed", "user"]["leads_to"] == "http://other:1/mcp"
    assert "line 1, column 16" in told["gemini-cli", "user"]["trouble"]
    installed = {row["client"] for row in rows if row["installed"]}
    assert installed == {"cursor", "zed", "gemini-cli"}


def test_client_without_a_known_path_needs_the_file_option(person: Person) -> None:
    assert "--file" in person.connect("agent-zero", "--write", code=1)["error"]
    path = person.home / "elsewhere.json"
    path.write_bytes(b'{"mcp_servers": ""}')
    person.connect("agent-zero", "--write", "--file", str(path))
    assert "lithos" in servers_of("agent-zero", path.read_bytes())
    person.connect("agent-zero", "--remove", "--file", str(path))
    assert path.read_bytes() == b'{"mcp_servers": ""}'


@pytest.mark.parametrize("typed", [["--name", "a b", "cursor", "--write"], [], ["cursor", "--scope", "user"]])
def test_contradictory_arguments_are_usage_errors(typed: list[str], person: Person) -> None:
    person.connect(*typed, code=2)


def test_project_scope_needs_a_client_with_a_project_file(person: Person) -> None:
    refused = person.connect("windsurf", "--write", "--scope", "project", code=1)
    assert "Use --scope user" in refused["error"]
