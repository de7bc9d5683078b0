"""Canary words in other vaults. A token must not receive a word, count or name of another vault."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from attrs import define
from trio_websocket import open_websocket_url

from lithos.access.files.tokens import TokenStore
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.configuration.load import LoadedConfig
from lithos.server.http import admissions
from tests.vaults.apart.hosting import (
    PATIENCE,
    Hosted,
    body_of,
    config_of,
    hosting,
    let_in,
    put,
    status_of,
)

OWN: Final = "alpha"
TOKEN: Final = "secret-of-alpha"
#: Vaults other than `alpha`. `bravo` is served, and `tango` never starts.
OTHERS: Final = ("bravo", "tango")
#: Words of the other vaults in any spelling. Each text in these vaults contains one of these words.
CANARY: Final = re.compile(rb"canary|bravo|tango|31337", re.IGNORECASE)
#: Paths at an endpoint and at the root.
PATHS: Final = (
    "/mcp", "/mcp/", "/sse", "/messages", "/messages/?session_id=0", "/events/ws", "/audit", "/metrics",
    "/health", "/reconcile", "/import", "/", "/console", "/console/", "/console/login", "/console/notes",
    "/console/state?partial=1", "/console/events", "/console/static/console.css", "/nowhere", "/oauth/token",
    "/.well-known/oauth-protected-resource", "/console/logout", "/v/alpha/mcp", "/consolefoo",
)  # fmt: skip
METHODS: Final = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE")
#: Names that no vault has. Their lengths equal the lengths of existing names.
UNKNOWN: Final = ("delta", "sigma")
_DATE: Final = re.compile(rb"^date: [^\r]+\r\n", re.IGNORECASE | re.MULTILINE)


@define
class Scene:
    """The running vaults, and object ids of the other vault."""

    hosted: Hosted
    ids: Mapping[str, str]


def set_up(root: Path) -> dict[str, Config]:
    """Create three vaults: the caller's own, one full of canary words, and one whose folder is missing."""
    put(root / OWN, {"own.md": "---\ntags: [plain]\n---\n# Own\n\nBasil wants water, see [[other]].\n"})
    put(root / OWN, {"folder/other.md": "# Other\n\nOf tents and water.\n"})
    canaries = {
        f"canary-folder/canary-{number}.md": "---\ntags: [canarytag]\naliases: [canaryalias]\n---\n"
        f"# Canary {number}\n\nBasil water canaryword 31337 [[canary-{number + 1}]].\n"
        for number in range(37)
    }
    put(root / "canary-bravo", canaries)
    let_in(root / "alpha-data", TOKEN, name="own-token")
    let_in(root / "canary-data", "secret-of-canary", name="canary-token")
    let_in(root / "canary-tango-data", "secret-of-tango", name="canary-tango-token")
    return {
        "bravo": config_of(root / "canary-bravo", root / "canary-data"),
        OWN: config_of(root / OWN, root / "alpha-data"),
        "tango": config_of(root / "canary-tango", root / "canary-tango-data"),
    }


async def fill(hosted: Hosted) -> dict[str, str]:
    """Create objects of every kind in the other vault. Return their ids."""

    async def call(tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await hosted.ask("/v/bravo/mcp", "secret-of-canary", f"lithos_{tool}", **arguments)
        assert answer.get("status") != "error", answer
        return answer

    await call("agent_register", id="canary-agent", name="Canary", type="canarytype")
    notes = (await call("list", limit=3))["items"]
    task = (await call("task_create", title="Canary task", agent="canary-agent", tags=["canarytag"]))[
        "task_id"
    ]
    await call("task_claim", task_id=task, aspect="canary-aspect", agent="canary-agent")
    await call("finding_post", task_id=task, agent="canary-agent", summary="Canary finding")
    await call("note_edit", id=notes[0]["id"], agent="canary-agent", op="append", text="canarytext")
    edge = await call(
        "edge_upsert", from_id=notes[0]["id"], to_id=notes[1]["id"], type="contradicts", weight=0.5,
        namespace="canaryspace", provenance_actor="canary-agent",
    )  # fmt: skip
    receipt = await call("retrieve", query="canaryword", agent_id="canary-agent", task_id=task)
    return {
        "note": notes[0]["id"],
        "path": notes[0]["path"],
        "task": task,
        "edge": edge["edge_id"],
        "receipt": receipt["receipt_id"],
    }


@asynccontextmanager
async def scene(root: Path) -> AsyncIterator[Scene]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admissions, "MOST_WRONG", 1_000_000)  # another test covers this limit
        async with hosting(set_up(root), settled=False, default="bravo") as hosted:
            await hosted.served(OWN, "bravo")
            await hosted.until(lambda: bool(hosted.vaults.hosted["tango"].vault.reason))
            yield Scene(hosted, await fill(hosted))


def check(received: bytes, asked: str, sent: Iterable[str] = ()) -> None:
    """Assert that a response contains no canary word, except words that the caller sent."""
    text = received + b"\n" + body_of(received)
    for word in sorted(sent, key=len, reverse=True):
        for spelling in {word, json.dumps(word)[1:-1], word.replace("/", "%2F")}:
            text = text.replace(spelling.encode(), b"")
    found = CANARY.search(text)
    assert found is None, (asked, text[max(0, found.start() - 300) : found.end() + 100])


def arguments_of(tool: Mapping[str, Any], ids: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return calls of a tool. Each argument gets ids, paths and words of the other vault."""
    properties = tool["inputSchema"]["properties"]
    required = tool["inputSchema"].get("required", ())
    odd: dict[str, list[Any]] = {
        "string": [
            *ids.values(),
            "water",
            "c",
            "../canary-bravo/canary-folder/canary-1.md",
            "2026-01-01T00:00:00Z",
        ],
        "array": [[ids["note"]], [ids["task"]], ["plain"]],
        "object": [{"key": "value"}],
        "number": [0.5],
        "integer": [1],
        "boolean": [True],
    }
    base = {name: odd[properties[name]["type"]][0] for name in required}
    base |= {name: "own-agent" for name in ("agent", "resolver") if name in properties and name in required}
    base |= {"query": "water canaryword basil"} if "query" in properties else {}
    base |= {"version": 1} if tool["name"] == "lithos_restore" else {}  # the tool needs a version or a row
    base |= {name: properties[name]["enum"][0] for name in base if "enum" in properties[name]}
    calls = [
        base,
        base | {"vault": "bravo"},
        base | {"vault": "*"},
        base | {"vault": "tango"},
        base | {"to_vault": "bravo"},
    ]
    for name, schema in properties.items():
        kinds = [kind["type"] for kind in schema.get("anyOf", (schema,))]
        calls += [base | {name: value} for kind in kinds for value in odd[kind]]
    return calls


@pytest.mark.slow
@pytest.mark.takes(20)
async def test_tools_do_not_reveal_other_vaults_to_a_token(tmp_path: Path) -> None:
    """behaviour 294: each argument of every tool gets names, ids and paths of another vault."""
    async with scene(tmp_path) as played:
        hosted = played.hosted
        sent = list[str]()  # The token may read texts that it sent.
        seen = 0
        for door in ("/mcp", f"/v/{OWN}/mcp"):
            listed = await hosted.rpc(door, TOKEN, "tools/list")
            check(listed, "tools/list")
            tools = json.loads(body_of(listed))["result"]["tools"]
            assert not any("vault" in tool["inputSchema"]["properties"] for tool in tools)
            for tool in tools:
                for arguments in arguments_of(tool, played.ids):
                    received = await hosted.call(door, TOKEN, tool["name"], **arguments)
                    sent += [text for text in texts_of(arguments) if text not in (*sent, *OTHERS)]
                    check(received, f"{tool['name']} {arguments}", (*sent, *texts_of(arguments)))
                    assert b'"vault"' not in body_of(received).replace(b"unknown argument", b""), received
                    seen += 1
            for uri in ("lithos://tags", f"lithos://note/{played.ids['note']}", "lithos://stats"):
                check(await hosted.rpc(door, TOKEN, "resources/read", uri=uri), uri, [*sent, uri])
            for method in ("initialize", "resources/list", "resources/templates/list", "prompts/list"):
                check(await hosted.rpc(door, TOKEN, method), method, sent)
        assert seen > 1000


def texts_of(value: Any) -> list[str]:
    """Return all texts that the arguments contain."""
    if isinstance(value, str):
        return [value, value.removesuffix(".md")]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in texts_of(item)]


@pytest.mark.slow
async def test_urls_do_not_reveal_other_vaults_to_a_token(tmp_path: Path) -> None:
    """behaviour 294: tries every URL and method with the vault's token, a wrong token and no token."""
    async with scene(tmp_path) as played:
        for token in (TOKEN, "wrong", None):
            for base in ("", f"/v/{OWN}", "/v/bravo", "/v/tango", "/v/delta"):
                for path in (*PATHS, "/audit?titles=true", "/metrics"):
                    if path.startswith(("/sse", "/console/events")) and base in ("", f"/v/{OWN}"):
                        continue  # other tests read these streams
                    for method in METHODS if token == TOKEN else ("GET", "POST"):
                        asked = f"{method} {base}{path}"
                        received = await played.hosted.exchange(f"{base}{path}", token, method)
                        check(received, asked)


@pytest.mark.slow
async def test_forbidden_vault_answers_like_unknown_vault(tmp_path: Path) -> None:
    """behaviour 294: status, headers and body are equal for every URL, method and token."""
    async with scene(tmp_path) as played:
        fields = (
            (),
            ("Origin: http://localhost:1", "Access-Control-Request-Method: POST"),
            ("Origin: http://evil.example",),
            ("Cookie: lithos_session=nothing",),
            ("Accept: application/json, text/event-stream", "Content-Type: application/json"),
            ("Connection: close", "Expect: 100-continue"),
            (
                "Upgrade: websocket",
                "Connection: Upgrade",
                "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            ),
        )
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
        compared = 0
        for token in (TOKEN, "wrong", None):
            for path in PATHS:
                for method in METHODS:
                    for lines in fields if method in ("GET", "POST", "OPTIONS") else ((),):
                        answers = set()
                        for name in (*OTHERS, *UNKNOWN):
                            sent = body if method == "POST" else b""
                            received = await played.hosted.exchange(
                                f"/v/{name}{path}", token, method, sent, lines
                            )
                            answers.add(_DATE.sub(b"", received))
                        assert len(answers) == 1, (token, method, path, lines, answers)
                        compared += 1
        assert compared > 500


async def test_wrong_tokens_are_limited_equally_for_known_and_unknown_vaults(tmp_path: Path) -> None:
    """behaviour 294: covers an address that has used up its permitted guesses."""
    async with hosting(set_up(tmp_path), settled=False) as hosted:
        await hosted.served(OWN)
        statuses = {}
        for name in ("bravo", "delta"):
            statuses[name] = [status_of(await hosted.exchange(f"/v/{name}/mcp", "wrong")) for _ in range(30)]
        assert statuses["bravo"][0] == 401
        assert set(statuses["delta"]) == {429} == set(statuses["bravo"][25:])
        assert status_of(await hosted.exchange(f"/v/{OWN}/audit", TOKEN)) == 200


@pytest.mark.slow
async def test_console_pages_do_not_reveal_other_vaults(tmp_path: Path) -> None:
    """behaviour 294: follows every link on the caller's own pages."""
    async with scene(tmp_path) as played:
        hosted = played.hosted
        form = ("Content-Type: application/x-www-form-urlencoded",)
        login = await hosted.exchange(
            "/console/login", method="POST", body=f"token={TOKEN}&agent=".encode(), fields=form
        )
        check(login, "login")
        begun = re.findall(r"(lithos_session=[\w-]+);[^\r]*Path=([\w/]+)", login.decode())
        cookies = {path: cookie for cookie, path in begun}
        assert set(cookies) == {"/console", f"/v/{OWN}/console"}
        todo, done = (
            ["/console/", *(f"/v/{OWN}/console/{page}" for page in ("system", "system?run=1"))],
            set(),
        )
        while todo:
            path = todo.pop()
            if path in done or "/static/" in path or "/events" in path:
                continue
            done.add(path)
            cookie = cookies[f"/v/{OWN}/console" if path.startswith("/v/") else "/console"]
            received = await hosted.exchange(path, fields=(f"Cookie: {cookie}",))
            check(received, path)
            links = re.findall(r'(?:href|data-address)="(/[^"#]*)', body_of(received).decode())
            todo += [link.replace("&amp;", "&") for link in links if len(done) < 150]
        assert f"/v/{OWN}/console/system" in done
        assert len(done) > 15
        other = ("notes", f"notes/{played.ids['note']}", "system", "login", "state?partial=1", "events")
        for name in (*OTHERS, *UNKNOWN):
            for page in other:
                for cookie in cookies.values():
                    received = await hosted.exchange(
                        f"/v/{name}/console/{page}", fields=(f"Cookie: {cookie}",)
                    )
                    check(received, f"{name} {page}", [played.ids["note"]])
                    assert status_of(received) == 302


async def test_streams_do_not_reveal_other_vaults_to_a_token(tmp_path: Path) -> None:
    """behaviour 294:

    SSE and WebSocket clients listen at the root and the endpoint while the other vault changes.
    """
    async with scene(tmp_path) as played:
        hosted = played.hosted
        received: dict[str, bytes] = {}

        async def listen(path: str, *, task_status: trio.TaskStatus[None]) -> None:
            async with await trio.open_tcp_stream(*hosted.address) as stream:
                head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
                await stream.send_all(head.encode())
                received[path] = bytes(await stream.receive_some())
                task_status.started()
                while b"The end of it" not in received[path]:
                    received[path] += bytes(await stream.receive_some())

        async def listen_ws(path: str, *, task_status: trio.TaskStatus[None]) -> None:
            url = hosted.url.replace("http", "ws") + path
            async with open_websocket_url(
                url, extra_headers=[("Authorization", f"Bearer {TOKEN}")]
            ) as socket:
                received[path] = (await socket.get_message()).encode()
                task_status.started()
                while b"The end of it" not in received[path]:
                    received[path] += (await socket.get_message()).encode()

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for base in ("", f"/v/{OWN}"):
                    await nursery.start(listen, f"{base}/events?since=0")
                    await nursery.start(listen_ws, f"{base}/events/ws?since=0")
                for number in range(5):
                    await hosted.ask(
                        "/v/bravo/mcp", "secret-of-canary", "lithos_write", title=f"Canary late {number}",
                        content="canaryword", agent="canary-agent",
                    )  # fmt: skip
                await hosted.ask(
                    "/mcp", TOKEN, "lithos_write", title="The end of it", content="x", agent="ann"
                )
        assert len(received) == 4
        for path, text in received.items():
            assert CANARY.search(text) is None, (path, text)


async def test_root_streams_end_when_one_vault_revokes_the_token(tmp_path: Path) -> None:
    """behaviour 294: streams for both vaults end. The remaining vault accepts new streams."""
    for name in ("one", "two"):
        put(tmp_path / name, {f"{name}.md": f"Of {name}."})
        let_in(tmp_path / f"{name}-data", "both")
    configs = {name: config_of(tmp_path / name, tmp_path / f"{name}-data") for name in ("one", "two")}
    async with hosting(configs) as hosted:
        assert {
            row["vault"] for row in (await hosted.ask("/mcp", "both", "lithos_list", vault="*"))["items"]
        } == {"one", "two"}
        async with await trio.open_tcp_stream(*hosted.address) as stream:
            await stream.send_all(
                b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer both\r\n\r\n"
            )
            assert b"200" in bytes(await stream.receive_some()).partition(b"\r\n")[0]
            store = TokenStore(tmp_path / "two-data" / ".lithos")
            await trio.to_thread.run_sync(store.revoke, "both")
            received = b""
            with trio.fail_after(PATIENCE):
                while not received.endswith(b"\r\n0\r\n\r\n"):  # the data ends with the last chunk
                    received += bytes(await stream.receive_some())
        answer = await hosted.ask("/mcp", "both", "lithos_list")
        assert [row["title"] for row in answer["items"]] == ["one"]
        assert "vault" not in answer
        assert status_of(await hosted.exchange("/v/two/mcp", "both")) == 401


async def test_vault_console_shows_only_its_own_warnings_and_sources(
    tmp_path: Path,
) -> None:
    """behaviour 294: warnings and sources of other vaults would mention those vaults and their folders."""
    told = {
        name: LoadedConfig(
            config=config,
            sources={"search.max_results": f"file {name}.yaml"},
            warnings=(f"{name}.odd is no setting",),
        )
        for name, config in set_up(tmp_path).items()
        if name != "tango"
    }
    async with hosting(told) as hosted:
        form = ("Content-Type: application/x-www-form-urlencoded",)
        body = f"token={TOKEN}&agent=".encode()
        login = await hosted.exchange("/console/login", method="POST", body=body, fields=form)
        (cookie,) = re.findall(rf"(lithos_session=[\w-]+)(?=;[^\r]*Path=/v/{OWN}/console;)", login.decode())
        page = await hosted.exchange(f"/v/{OWN}/console/system?run=1", fields=(f"Cookie: {cookie}",))
        assert status_of(page) == 200
        assert b"alpha.odd is no setting" in page
        assert b"file alpha.yaml" in page
        check(page, "system")
