"""Commands with several vaults: selection, addresses, exit codes and texts (docs/spec/cli-config.md §3.1)."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import trio
from trio_websocket import WebSocketRequest, serve_websocket

from lithos.access.files.tokens import digest_of, read_tokens
from lithos.app.main import main
from lithos.app.options import parse_arguments
from lithos.clients.connect.target import ServerLink, find_target
from lithos.clients.hooks.owner import HookOwner, find_hook_owner
from lithos.events.commands_events import Feed
from lithos.kernel.configuration.load import state_of_vault
from lithos.kernel.databases.lock import OwnerRecord, encode_owner
from lithos.kernel.settings import StorageConfig
from lithos.server.command.asking import how_to_serve
from lithos.server.command.hook_failsafe import NoHookOutput
from lithos.server.command.session import CommandFailed, CommandSession, load_session
from lithos.server.mcp.client import OwnerClient
from lithos.server.mcp.link import OwnerLink
from lithos.server.mcp.messages import Request


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create two vaults, and a settings file that names them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("w", "h"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(f"About {name}.\n")
    (tmp_path / "c.yaml").write_text("vaults:\n  work: {path: w}\n  home: {path: h}\n")
    return tmp_path


def session_of(*words: str) -> CommandSession:
    return load_session(parse_arguments(words))


def own(place: Path, name: str, url: str, *, private: bool = False) -> None:
    """Write an owner record for the server of a vault."""
    lock = place_of(place, name) / "lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    record = OwnerRecord(1, "h", url, "2026-01-01T00:00:00+00:00", "secret", private)
    lock.write_bytes(encode_owner(record))


def place_of(place: Path, name: str) -> Path:
    environment = {"XDG_DATA_HOME": str(place / "share")}
    return state_of_vault(place / name, environment) / ".lithos"


def test_vault_option_is_accepted_at_every_command_level() -> None:
    given = parse_arguments(["--vault", "a=x", "token", "--vault", "b=y", "create", "ci", "--vault=c=z"])
    assert given.vaults == ("a=x", "b=y", "c=z")
    assert "vault" not in given.typed
    alone = parse_arguments(["search", "x", "--vault", "v"])
    assert (alone.vaults, alone.typed["vault"]) == (("v",), Path("v"))


def test_command_uses_the_named_vault_or_the_default_vault(place: Path) -> None:
    session = session_of("-c", "c.yaml", "stats")
    assert (session.default_vault, session.config.of(StorageConfig).vault) == ("work", place / "w")
    assert [vault.name for vault in session.vaults] == ["work", "home"]
    home = session_of("-c", "c.yaml", "--vault", "home", "stats")
    assert (home.default_vault, home.config.of(StorageConfig).vault) == ("home", place / "h")
    assert [vault.name for vault in home.vaults] == ["home"]
    by_folder = session_of("-c", "c.yaml", "--vault", "./h", "stats")
    assert by_folder.default_vault == "home"
    typed = session_of("--vault", "b=h", "--vault", "a=w", "serve")
    assert (typed.default_vault, [vault.name for vault in typed.vaults]) == ("b", ["b", "a"])
    assert session_of("--vault", "w", "stats").vaults == ()
    assert session_of("--vault", "w", "stats").default_vault is None


def test_command_for_one_vault_refuses_several_vaults(place: Path) -> None:
    for words in (("--vault", "work", "--vault", "home"), ("--vault", "*")):
        with pytest.raises(CommandFailed, match=r"stats works on one vault.*Name one") as caught:
            session_of("-c", "c.yaml", *words, "stats")
        assert caught.value.exit_code == 2


def test_missing_vault_folder_fails_a_query_but_not_startup(place: Path) -> None:
    (place / "w" / "w.md").unlink()
    (place / "w").rmdir()
    assert session_of("-c", "c.yaml", "serve").vaults[0].root == place / "w"
    with pytest.raises(CommandFailed, match=r"The folder .* does not exist"):
        session_of("-c", "c.yaml", "stats")
    assert session_of("-c", "c.yaml", "--vault", "home", "stats").default_vault == "home"


def test_start_is_refused_when_vaults_share_a_folder(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """behaviour 296"""
    (place / "link").symlink_to(place / "w")
    (place / "w" / "in").mkdir()
    for other in ("w", "link", "w/in", "."):
        assert main(["serve", "--vault", "work=w", "--vault", f"home={other}"]) == 2
        told = capsys.readouterr().err
        assert "of vault work" in told
        assert "of vault home" in told
    assert main(["--vault", "work=w", "--vault", "h", "serve"]) == 2
    assert "has no name" in capsys.readouterr().err
    assert main(["-d", "d", "-c", "c.yaml", "stats"]) == 2
    assert "--data-dir d cannot be given with named vaults" in capsys.readouterr().err


class Recorder(http.server.BaseHTTPRequestHandler):
    """A server that records request paths and answers every request with a recognisable body."""

    paths: list[str]

    def _answer(self) -> None:
        self.paths.append(self.path)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b'{"status": "ok", "results": [], "result": {"structuredContent": {"a": 1}}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815 - as the library calls them

    def log_message(self, format: str, *args: object) -> None:
        """Suppress log output."""


@pytest.fixture
def owner() -> Iterator[tuple[str, list[str]]]:
    """Run a server. Yield the address of one of its vaults and the recorded request paths."""
    Recorder.paths = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v/work", Recorder.paths
        server.shutdown()


async def test_commands_and_hooks_call_the_address_of_the_vault(owner: tuple[str, list[str]]) -> None:
    url, paths = owner
    client = OwnerClient(url, None)
    await client.call("lithos_stats", {})
    await client.health()
    await client.accesses({"limit": 1})
    await client.metrics()
    await client.reconcile("all")
    await client.import_step({})
    hook = HookOwner(url, None, time.monotonic() + 5)
    hook.call("lithos_context", {})
    hook.check_health()
    below = [
        "/mcp",
        "/health",
        "/audit?limit=1",
        "/metrics",
        "/reconcile?scope=all",
        "/import",
        "/mcp",
        "/health",
    ]
    assert paths == [f"/v/work{path}" for path in below]


async def test_bridge_forwards_to_the_address_of_the_vault() -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": {}})

    async def take(line: bytes) -> None:
        assert line

    record = OwnerRecord(1, "h", "http://127.0.0.1:9/v/work", "2026-01-01T00:00:00+00:00")
    async with OwnerLink(record, None, httpx2.MockTransport(answer)) as link:
        await link.check()
        request = Request(1, "ping", b"{}")
        await link.send(request, {}, take)
    assert asked == ["http://127.0.0.1:9/v/work/mcp"] * 2


async def test_events_are_followed_at_the_address_of_the_vault(place: Path) -> None:
    asked: list[str] = []

    async def refuse(request: WebSocketRequest) -> None:
        asked.append(request.path)
        await request.reject(403, body=b'{"message": "no"}')

    feed = Feed(session_of("-c", "c.yaml", "events"), types="note.created")
    async with trio.open_nursery() as nursery:
        server = await nursery.start(serve_websocket, refuse, "127.0.0.1", 0, None)
        url = f"http://127.0.0.1:{server.port}/v/work"
        record = OwnerRecord(1, "h", url, "2026-01-01T00:00:00+00:00")
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        async with stream:
            with pytest.raises(CommandFailed, match="did not return its events"):
                await feed._converse(stream, record, bool)
        nursery.cancel_scope.cancel()
    assert asked == ["/v/work/events/ws?types=note.created"]


def test_connect_prints_the_address_of_the_named_vault(place: Path) -> None:
    every, home = (session_of("-c", "c.yaml", *words, "connect") for words in ((), ("--vault", "home")))
    assert find_target(every).url == "http://127.0.0.1:8765/mcp"
    assert find_target(home).url == "http://127.0.0.1:8765/v/home/mcp"
    own(place, "h", "http://127.0.0.1:99/v/home")
    own(place, "w", "http://127.0.0.1:99/v/work")
    assert find_target(every).url == "http://127.0.0.1:99/mcp"
    assert find_target(home).url == "http://127.0.0.1:99/v/home/mcp"
    own(place, "h", "http://127.0.0.1:99/v/home", private=True)
    assert find_target(home).url == "http://127.0.0.1:8765/v/home/mcp"


def test_client_entry_points_to_its_named_vault(place: Path) -> None:
    every, home = (
        find_target(session_of("-c", "c.yaml", *words, "connect")) for words in ((), ("--vault", "home"))
    )
    config = str(place / "c.yaml")
    assert home.command[-6:] == ("--config", config, "--vault", "home", "serve", "--transport", "stdio")[-6:]
    link = ServerLink.of(home.stdio)
    assert link is not None
    assert link.points_to(home)
    assert not link.points_to(every)
    assert link.place == f"--config {config} --vault home"
    typed = find_target(session_of("--vault", "b=h", "--vault", "a=w", "connect"))
    assert typed.command[-7:-3] == ("--vault", f"b={place / 'h'}", "--vault", f"a={place / 'w'}")
    assert how_to_serve(session_of("-c", "c.yaml", "stats")) == f"lithos --config {config} serve -t http"


def test_hook_finds_the_owner_of_its_vault(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Path] = []

    def look(data: Path, token: str | None, until: float) -> HookOwner:
        found.append(data)
        return HookOwner("http://127.0.0.1:9", token, until)

    monkeypatch.setattr("lithos.clients.hooks.owner.read_hook_owner", look)
    (place / "data").mkdir()
    for words in (
        ("-c", "c.yaml"), ("-c", "c.yaml", "--vault", "home"), ("--vault", "x=h"), ("--vault", "h"), (),
    ):  # fmt: skip
        find_hook_owner(parse_arguments((*words, "brief", "--hook")), time.monotonic() + 1)
    (place / "c.yaml").rename(place / "data" / "config.yaml")
    find_hook_owner(parse_arguments(("brief", "--hook")), time.monotonic() + 1)
    work, home = place_of(place, "w").parent, place_of(place, "h").parent
    assert found == [work, home, home, home, Path("data"), work]
    with pytest.raises(NoHookOutput):
        find_hook_owner(parse_arguments(("--vault", "other", "brief", "--hook")), time.monotonic() + 1)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["-c", "c.yaml", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def tokens_in(place: Path, name: str) -> list[tuple[str, str]] | None:
    tokens = read_tokens(place_of(place, name))
    return None if tokens is None else [(token.name, token.rights) for token in tokens]


def test_token_is_created_in_the_named_vaults(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "token", "create", "ci")
    assert (code, tokens_in(place, "w"), tokens_in(place, "h")) == (0, [("ci", "write")], [])
    assert "in work alone" in err
    assert "any of these vaults can be used only with a token" in err
    (token,) = read_tokens(place_of(place, "w")) or ()
    assert token.digest == digest_of(out.strip().encode())
    code, out, _ = run(capsys, "--json", "token", "create", "both", "--vault", "work", "--vault", "home")
    told = json.loads(out)
    assert (code, told["vaults"], told["every_vault"]) == (0, ["work", "home"], False)
    assert tokens_in(place, "h") == [("both", "write")]
    assert run(capsys, "token", "create", "all", "--vault", "*")[0] == 0
    listed = json.loads(run(capsys, "--json", "token", "list")[1])
    assert [(row["name"], row["vaults"], row["every_vault"]) for row in listed["tokens"]] == [
        ("ci", ["work"], False), ("both", ["work", "home"], False), ("all", ["work", "home"], True),
    ]  # fmt: skip
    out = run(capsys, "token", "list")[1]
    assert "every vault" in out
    assert "work, home" in out
    assert "ci" not in run(capsys, "token", "list", "--vault", "home")[1]


def test_token_name_has_the_same_secret_in_all_vaults(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "token", "create", "ci", "--agent", "bot")
    code, _, err = run(capsys, "token", "create", "ci", "--vault", "home")
    assert code == 1
    assert "already exists in work" in err
    assert "lithos token create ci --vault home --add" in err
    code, out, _ = run(capsys, "token", "create", "ci", "--vault", "home", "--rights", "read", "--add")
    assert code == 0
    assert (
        out
        == "The token 'ci' may read as only the agent 'bot' in home, in addition to its previous access.\n"
    )
    (work,), (home,) = (read_tokens(place_of(place, name)) or () for name in ("w", "h"))
    assert (work.digest, work.agent, work.rights) == (home.digest, home.agent, "write")
    assert home.rights == "read"
    for words, told, expected in (
        (("ci", "--vault", "home", "--add"), "has access to home", 1),
        (("other", "--vault", "home", "--add"), "No vault has a token of that name", 1),
        (("ci", "--add"), "--add needs the names", 2),
        (("ci", "--vault", "*", "--add"), "--add needs the names", 2),
    ):
        code, _, err = run(capsys, "token", "create", *words)
        assert (code, told in err) == (expected, True), err
    assert main(["--vault", "w", "token", "create", "ci", "--add"]) == 2


def test_token_patterns_are_not_copied_to_other_vaults(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "token", "create", "ci", "--write", "plans/")
    code, _, err = run(capsys, "token", "create", "ci", "--vault", "home", "--add")
    assert code == 1
    assert "Name the notes that it can change in home" in err
    assert run(capsys, "token", "create", "ci", "--vault", "home", "--add", "--write", "x/")[0] == 0


def test_token_is_revoked_in_all_vaults_or_named_vaults(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "token", "create", "ci", "--vault", "work", "--vault", "home")
    run(capsys, "token", "create", "all", "--vault", "*")
    code, out, _ = run(capsys, "token", "revoke", "ci", "--vault", "home")
    assert (code, out.split(".")[0]) == (0, "The token 'ci' is revoked in home")
    assert tokens_in(place, "h") == [("all", "write")]
    code, _, err = run(capsys, "token", "revoke", "all", "--vault", "home")
    assert code == 1
    assert "omit --vault" in err
    assert run(capsys, "token", "off")[0] == 1
    assert run(capsys, "token", "off", "--vault", "home")[0] == 2
    for name in ("all", "ci"):
        code, out, err = run(capsys, "token", "revoke", name)
        assert code == 0
    assert "still refuses all callers" in err
    assert run(capsys, "token", "revoke", "ci")[0] == 1
    assert run(capsys, "token", "off")[0] == 0
    assert tokens_in(place, "w") is tokens_in(place, "h") is None


def test_damaged_token_file_is_reported_with_its_vault(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "token", "create", "ci", "--vault", "work", "--vault", "home")
    (place_of(place, "h") / "tokens.json").write_text("damage")
    code, out, err = run(capsys, "token", "list")
    assert (code, "ci" in out, "home: Named tokens are refused" in err) == (1, True, True)
    code, out, err = run(capsys, "token", "revoke", "ci")
    assert (code, "revoked in work" in out) == (1, True)
    assert "The token may still have access to home" in err


def test_backup_contains_one_folder_per_vault(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "backup", "saved")
    assert code == 0
    assert out.splitlines()[0] == f"work: {place / 'w'}"
    assert sorted(path.name for path in (place / "saved").iterdir()) == ["home", "work"]
    assert run(capsys, "backup", "saved")[0] == 1
    code, out, _ = run(capsys, "--json", "--vault", "home", "backup", "one")
    assert (code, json.loads(out)["vault"]) == (0, "home")
    assert not (place / "one" / "home").exists()
    (place / "w").rename(place / "away")
    code, out, err = run(capsys, "--json", "backup", "rest")
    told = [json.loads(line) for line in out.splitlines()]
    assert (code, [each["vault"] for each in told]) == (1, ["work", "home"])
    assert "does not exist" in told[0]["error"]
    assert "Not backed up: work. The backups of the other vaults (1) are in rest" in err


def test_doctor_checks_each_vault(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITHOS_PORT", "0")
    for name in ("w", "h"):
        place_of(place, name).mkdir(parents=True)
    code, out, _ = run(capsys, "--json", "doctor")
    assert (code, [json.loads(line)["vault"] for line in out.splitlines()]) == (0, ["work", "home"])
    out = run(capsys, "--vault", "home", "doctor")[1]
    assert out.startswith(f"home: {place / 'h'}\n")
    assert "work" not in out
    (place / "c.yaml").write_text("vaults:\n  a: {path: w, search: {max_results: -1}}\n  b: {path: w/in}\n")
    code, out, _ = run(capsys, "doctor")
    assert code == 1
    assert "search.max_results: -1" in out
    assert "of vault b is inside of the folder" in out
    (place / "c.yaml").write_text("vaults: {A: {path: w}}\n")
    code, out, _ = run(capsys, "doctor")
    assert (code, "this cannot name a vault" in out) == (1, True)
