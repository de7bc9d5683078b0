"""Named tokens over HTTP: rights for every address, refusals, and ended streams (behaviours 246-248)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from attrs import define, field
from trio_websocket import ConnectionClosed, open_websocket_url

from lithos.access.files.tokens import TOKENS, TokenStore
from lithos.access.service.keyring import TokenRing
from lithos.events.journal.broadcaster import Broadcaster
from lithos.kernel.values.principals import RIGHTS, Principal, Rights
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.server.http.admissions import MOST_ADDRESSES, MOST_WRONG, WINDOW, WrongTokens
from lithos.server.service_state import ServerState
from tests.server.running import rpc
from tests.server.streaming import SseClient
from tests.server.whole import MODERN, Whole, whole_server

#: Maximum seconds after a token change until new calls are refused and streams close.
#: `tests/access/service/test_keyring.py` tests the promised 2 s on a mock clock.
WITHIN = 60.0
ACCEPT = {"Accept": "application/json, text/event-stream"}
#: Addresses outside the console, and the right that each address needs. None means that no token is needed.
#: `test_spellings.py` tests all other spellings and checks that the table is complete.
NEEDED: dict[str, Rights | None] = {
    "/health": None,
    "/metrics": "metrics",
    "/audit": "admin",
    "/reconcile": "admin",
    "/import": "admin",
    "/events": "read",
    "/events/ws": "read",
    "/mcp": "read",
    "/mcp/": "read",
    "/sse": "read",
    "/messages": "read",
    "/messages/": "read",
}


@define
class Team:
    """A server with named tokens and their owners."""

    whole: Whole
    store: TokenStore
    secrets: dict[str, str] = field(factory=dict)

    def create(self, name: str, rights: Rights = "write", agent: str | None = None) -> str:
        now = datetime.now(UTC)
        self.secrets[name] = self.store.create(name, rights, agent, now, None)[1]
        return self.secrets[name]

    def bearer(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secrets[name]}"}

    async def get(self, path: str, name: str | None = None, **headers: str) -> httpx2.Response:
        given = headers | (self.bearer(name) if name else {})
        async with httpx2.AsyncClient(base_url=self.whole.url) as client:
            return await client.get(path, headers=given)

    async def rpc(self, who: str, method: str, /, **params: Any) -> Any:
        async with httpx2.AsyncClient(base_url=self.whole.url) as client:
            answer = await client.post("/mcp", json=rpc(method, **params), headers=ACCEPT | self.bearer(who))
        return answer.json()

    async def call(self, who: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
        answer = await self.rpc(who, "tools/call", name=tool, arguments=arguments)
        return dict(answer["result"]["structuredContent"])

    async def step(self, who: str, step: str, /, **given: Any) -> dict[str, Any]:
        async with httpx2.AsyncClient(base_url=self.whole.url) as client:
            answer = await client.post("/import", json={"step": step, **given}, headers=self.bearer(who))
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def call_through_the_sdk(self, who: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool like `call`, with a content type that only the SDK handles."""
        content = json.dumps(rpc("tools/call", name=tool, arguments=arguments)).encode()
        headers = {**ACCEPT, **self.bearer(who), "Content-Type": "application/json;charset=utf-8"}
        async with httpx2.AsyncClient(base_url=self.whole.url) as client:
            answer = await client.post("/mcp", content=content, headers=headers)
        return dict(answer.json()["result"]["structuredContent"])

    async def until(self, holds: Callable[[], bool]) -> None:
        with trio.fail_after(WITHIN):
            while not holds():
                await trio.sleep(0.02)

    async def known(self, number: int) -> None:
        """Wait until the server has loaded `number` tokens."""
        await self.until(lambda: len(self.whole.lithos.server.get(TokenRing).named) == number)

    async def rejected(self) -> dict[str, float]:
        text = (await self.get("/metrics", "root")).text
        found = [line for line in text.splitlines() if line.startswith("lithos_http_rejected_total{")]
        return {line.split('"')[1]: float(line.split()[-1]) for line in found}


@asynccontextmanager
async def team(data: Path, **sections: Any) -> AsyncIterator[Team]:
    store = TokenStore(data / ".lithos")
    made = Team(None, store)  # type: ignore[arg-type]
    for rights in RIGHTS:
        made.create(rights, rights)
    made.create("root", "admin")
    async with whole_server(data, **sections) as whole:
        made.whole = whole
        yield made


async def test_every_address_needs_its_right(tmp_path: Path) -> None:
    """behaviours 246, 201"""
    async with team(tmp_path) as made:
        assert NEEDED
        for rights, (path, needed) in product((None, *RIGHTS), NEEDED.items()):
            answer = await _head_of(made, path, rights)
            status = answer.status_code
            if needed is None:
                assert status == 200, path
            elif rights is None:
                assert (status, answer.json()) == (401, {"error": "unauthorized"}), path
                assert answer.headers["WWW-Authenticate"] == "Bearer"
            elif Principal("x", rights).may(needed):
                assert status not in (401, 403), (path, rights)
            else:
                body = answer.json()
                assert (status, body["error"]) == (403, "forbidden"), (path, rights)
                assert f"'{rights}' has the right {rights}, but {path} needs {needed}" in body["message"]


async def test_metrics_right_opens_only_the_metrics(tmp_path: Path) -> None:
    """behaviour 387: the right `metrics` gives access to no tool, resource or stream."""
    async with team(tmp_path) as made:
        made.create("prometheus", "metrics")
        await made.known(5)
        assert "lithos_documents" in (await made.get("/metrics", "prometheus")).text
        for path, needed in NEEDED.items():
            if needed not in (None, "metrics"):
                answer = await _head_of(made, path, "prometheus")
                assert answer.status_code == 403, path
        for method, given in (("tools/list", {}), ("resources/list", {})):
            message = rpc(method, **given)
            async with httpx2.AsyncClient(base_url=made.whole.url) as client:
                answer = await client.post("/mcp", json=message, headers=made.bearer("prometheus") | ACCEPT)
                assert answer.status_code == 403, method


async def _head_of(made: Team, path: str, name: str | None) -> httpx2.Response:
    """Return the head of a stream. If the stream is refused, return the whole response."""
    headers = made.bearer(name) if name else {}
    async with (
        httpx2.AsyncClient(base_url=made.whole.url) as client,
        client.stream("GET", path, headers=headers) as answer,
    ):
        if "event-stream" not in answer.headers.get("Content-Type", ""):
            await answer.aread()
        return answer


async def test_tools_over_http_need_their_rights(tmp_path: Path) -> None:
    """behaviour 246: rights also apply to the tool list and to calls through the SDK."""
    async with team(tmp_path) as made:
        for rights in RIGHTS:
            listed = await made.rpc(rights, "tools/list")
            names = {tool["name"] for tool in listed["result"]["tools"]}
            assert {"lithos_search", "lithos_impact"} <= names
            assert ("lithos_write" in names) is (rights != "read")
            for way, call in (("fast", made.call), ("slow", made.call_through_the_sdk)):
                title = f"{rights} {way}"
                answer = await call(rights, "lithos_write", title=title, content="c", agent="ada")
                if rights == "read":
                    assert list(answer) == ["status", "code", "message"]
                    assert (answer["status"], answer["code"]) == ("error", "forbidden")
                    assert "'read' has the right read" in answer["message"]
                    assert "needs write" in answer["message"]
                else:
                    assert answer["status"] == "created"
                assert "tags" in await call(rights, "lithos_tags")
        assert (await made.call("read", "lithos_list"))["total"] == 2 * (len(RIGHTS) - 1)


async def test_resource_reads_are_attributed_to_the_bound_agent(tmp_path: Path) -> None:
    """behaviour 247"""
    async with team(tmp_path) as made:
        made.create("bound", "read", "bot")
        await made.known(5)
        note = await made.whole.lithos.create("Raft")
        await made.rpc("bound", "resources/read", uri=f"lithos://note/{note}")
        await made.rpc("read", "resources/read", uri=f"lithos://note/{note}")
        readers = [agent for agent, _, _ in await made.whole.lithos.audit()]
        assert readers[0] == "bot"
        assert len(readers) == 2
        assert readers[1] != "bot"
        listed = await made.rpc("bound", "tools/list")
        assert listed["result"]["tools"]


async def test_first_token_closes_an_open_server_and_its_streams(tmp_path: Path) -> None:
    """behaviour 248"""
    async with whole_server(tmp_path) as whole:
        made = Team(whole, TokenStore(tmp_path / ".lithos"))
        assert (await made.get("/metrics")).status_code == 200
        stream = await _open_stream(made, "/events", None)
        made.create("root", "admin")
        await _expect_end(stream, b": token ended")
        assert (await made.get("/metrics")).status_code == 401
        assert (await made.get("/health")).status_code == 200
        assert (await made.get("/metrics", "root")).status_code == 200


async def test_configured_token_keeps_full_access(tmp_path: Path) -> None:
    async with team(tmp_path, server={"auth_token": "s3cret"}) as made:
        made.secrets["config"] = "s3cret"
        assert (await made.get("/metrics", "config")).status_code == 200
        assert (await made.get("/metrics", "read")).status_code == 403
        assert (await made.get("/metrics")).status_code == 401


async def _open_stream(made: Team, path: str, name: str | None) -> trio.SocketStream:
    host, _, port = made.whole.url.removeprefix("http://").rpartition(":")
    stream = await trio.open_tcp_stream(host, int(port))
    lines = "".join(f"{key}: {value}\r\n" for key, value in (made.bearer(name) if name else {}).items())
    await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode())
    received = b""
    while b"\r\n\r\n" not in received:
        received += bytes(await stream.receive_some())
    assert received.startswith(b"HTTP/1.1 200 "), received
    return stream


async def _expect_end(stream: trio.SocketStream, goodbye: bytes = b"") -> None:
    """Wait until the response ends with `goodbye`, within the limit."""
    received = b""
    with trio.fail_after(WITHIN):
        while not received.endswith(b"0\r\n\r\n"):
            part = await stream.receive_some()
            if not part:
                break
            received += bytes(part)
    assert goodbye in received
    await stream.aclose()


@pytest.mark.parametrize(("path", "goodbye"), [("/events", b": token ended"), ("/sse", b"")])
async def test_revoked_token_ends_its_event_streams_and_sessions(
    tmp_path: Path, path: str, goodbye: bytes
) -> None:
    """behaviour 248"""
    async with team(tmp_path) as made:
        revoked = await _open_stream(made, path, "read")
        kept = await _open_stream(made, path, "write")
        made.store.revoke("read")
        await _expect_end(revoked, goodbye)
        assert (await made.get("/mcp", "read")).status_code == 401
        if path == "/events":
            await made.whole.lithos.create("Raft")
            frames = SseClient(kept)
            with trio.fail_after(WITHIN):
                while (frame := await frames.next()) is not None and frame.comment:
                    pass
            assert frame is not None
        await kept.aclose()


async def test_revoked_token_closes_its_websockets(tmp_path: Path) -> None:
    """behaviour 248"""
    async with team(tmp_path) as made:
        url = made.whole.url.replace("http", "ws") + "/events/ws"
        headers = [(name, value) for name, value in made.bearer("read").items()]
        async with open_websocket_url(url, extra_headers=headers) as socket:
            assert json.loads(await socket.get_message())["type"] == "hello"
            made.store.revoke("read")
            with trio.fail_after(WITHIN), pytest.raises(ConnectionClosed) as closed:
                await socket.get_message()
            assert closed.value.reason is not None
            assert closed.value.reason.code == 1008
            await socket._stream.aclose()  # the library does not close a stream that the server closed
        assert (await made.get("/events/ws", "read")).status_code == 401


async def test_revoked_token_ends_its_change_subscriptions(tmp_path: Path) -> None:
    """behaviour 248: the last message of `subscriptions/listen` is its result."""
    async with team(tmp_path) as made:
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        }
        message = rpc("subscriptions/listen", notifications={"resourcesListChanged": True}, _meta=meta)
        headers = {**ACCEPT, **made.bearer("read"), "MCP-Protocol-Version": MODERN}
        headers["Mcp-Method"] = "subscriptions/listen"
        async with (
            httpx2.AsyncClient(base_url=made.whole.url) as client,
            client.stream("POST", "/mcp", json=message, headers=headers) as answer,
        ):
            assert answer.status_code == 200
            received = ""
            parts = answer.aiter_text()
            while "acknowledged" not in received:
                received += await anext(parts)
            made.store.revoke("read")
            with trio.fail_after(WITHIN):
                async for part in parts:
                    received += part
            assert '"result"' in received


@pytest.mark.needs("imports")
async def test_bound_token_imports_only_under_its_own_agent_name(tmp_path: Path) -> None:
    """behaviour 247: covers authors in records, texts and table rows.

    For other callers, imported authors stay unchanged.
    """
    async with team(tmp_path) as made:
        made.create("chief", "admin", "ann")
        await made.known(5)
        texts = {"own": "---\nauthor: ann\n---\nx", "none": "x", "forged": "---\nauthor: boss\n---\nx"}
        texts["helped"] = "---\nauthor: ann\ncontributors: [boss]\n---\nx"
        for who, left_out in (("root", set()), ("chief", {"forged", "helped", "written"})):
            session = (await made.step(who, "begin", **BEGIN, into=who))["session"]
            records = [
                {"id": f"{who}{name}", "hash": "h", "position": name, "title": f"{who} {name}"} | more
                for name, more in [
                    *((name, {"text": text}) for name, text in texts.items()),
                    ("written", {"content": "x", "author": "boss"}),
                    ("mine", {"content": "x", "author": "ann"}),
                ]
            ]
            told = (await made.step(who, "notes", session=session, records=records))["outcomes"]
            assert {each["position"] for each in told if each["result"] != "created"} == left_out, told
            assert all("bound to 'ann'" in each["reason"] for each in told if each["result"] != "created")
            rows = [[f"{who}-{agent}", "T", None, "open", "task", agent, "", "[]", None, None, "{}"]
                    for agent in ("ann", "boss", "unknown")]  # fmt: skip
            tasks = {"table": "tasks", "rows": rows, "source": "s", "is_look": False}
            carried = await made.step(who, "rows", session=session, **tasks)
            assert carried["created"] == (2 if left_out else 3)
            assert [row[0] for row in carried["kept"]] == ([f"{who}-boss"] if left_out else [])
        authors = {
            each.note.author for each in made.whole.lithos.server.get(Catalogue) if "chief" in each.path
        }
        assert authors == {"ann", "unknown"}
        agents = [["zoe", "Zoe", None, None, None, "{}", None], ["ann", "Ann", None, None, None, "{}", None]]
        carried = await made.step("chief", "rows", session=session, table="agents", rows=agents,
                                  source="s", is_look=False)  # fmt: skip
        assert [row[0] for row in carried["kept"]] == ["zoe"]


BEGIN = {"kind": "given", "agent": "ann", "dry_run": False, "recreate": False}


async def test_session_accepts_only_the_caller_who_opened_it(tmp_path: Path) -> None:
    """behaviour 247: a post to another caller's session would act under the wrong identity."""
    async with team(tmp_path) as made:
        stream = await _open_stream(made, "/sse", "write")
        session = await _session_of(stream)
        async with httpx2.AsyncClient(base_url=made.whole.url) as client:
            for name, status in (("read", 403), ("root", 403), ("write", 202)):
                spellings = (
                    session.upper(),
                    f"{session[:8]}-{session[8:]}",
                    f"urn:uuid:{session}",
                    f"{{{session}}}",
                )
                twice = (f"{'0' * 32}&session_id={session}", f"{session}&session_id={'0' * 32}")
                for spelling in (session, *spellings, *twice[: 1 if name == "write" else 2]):
                    address = f"/messages/?session_id={spelling}"
                    answer = await client.post(address, json=rpc("ping"), headers=made.bearer(name))
                    assert answer.status_code == status, (name, spelling)
            nobody = await client.post(
                "/messages/?session_id=" + "0" * 32, json=rpc("ping"), headers=made.bearer("read")
            )
            assert nobody.status_code == 404
        await stream.aclose()


async def test_revoked_token_ends_its_sessions_with_running_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 248: the session ends within the limit. A server stop would wait longer for the call."""
    began = trio.Event()

    async def never(_: ServerState) -> dict[str, Any]:
        began.set()
        await trio.sleep_forever()
        return {}

    monkeypatch.setattr(ServerState, "stats", never)
    async with team(tmp_path) as made:
        stream = await _open_stream(made, "/sse", "read")
        session = await _session_of(stream)
        async with httpx2.AsyncClient(base_url=made.whole.url, headers=made.bearer("read")) as client:

            async def send(message: dict[str, Any]) -> None:
                answer = await client.post(f"/messages/?session_id={session}", json=message)
                assert answer.status_code == 202

            me = {"name": "t", "version": "1"}
            await send(rpc("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=me))
            await send(rpc("notifications/initialized", None))
            await send(rpc("tools/call", 2, name="lithos_stats", arguments={}))
            await began.wait()
            made.store.revoke("read")
            await _expect_end(stream)


async def _session_of(stream: trio.SocketStream) -> str:
    received = b""
    while b"\n" not in received.partition(b"session_id=")[2]:
        received += bytes(await stream.receive_some())
    return received.partition(b"session_id=")[2][:32].decode()


async def test_bound_agents_have_separate_event_cursors(tmp_path: Path) -> None:
    """behaviour 247"""
    async with team(tmp_path) as made:
        for agent in ("ada", "bob"):
            made.create(agent, "read", agent)
        await made.known(6)
        await made.whole.lithos.create("Raft")
        head = made.whole.lithos.server.get(Broadcaster).head
        url = made.whole.url.replace("http", "ws") + "/events/ws?subscriber=mine"
        stored = {}
        for agent in ("ada", "bob"):
            async with open_websocket_url(
                f"{url}&since=0", extra_headers=[*made.bearer(agent).items()]
            ) as socket:
                stored[agent] = json.loads(await socket.get_message())["cursor"]
                if agent == "ada":
                    await socket.send_message(json.dumps({"op": "ack", "seq": 1}))
        assert stored == {"ada": None, "bob": None}
        async with open_websocket_url(url, extra_headers=[*made.bearer("ada").items()]) as socket:
            assert json.loads(await socket.get_message())["cursor"] <= head
        async with open_websocket_url(url, extra_headers=[*made.bearer("bob").items()]) as socket:
            assert json.loads(await socket.get_message())["cursor"] == head


async def test_refusals_are_counted_and_token_guessing_is_slowed_down(tmp_path: Path) -> None:
    """behaviour 248"""
    async with team(tmp_path) as made:
        made.secrets["wrong"] = "lithos_wrong"
        for _ in range(MOST_WRONG):
            assert (await made.get("/mcp", "wrong")).status_code == 401
        slowed = await made.get("/mcp", "wrong")
        assert (slowed.status_code, slowed.json()["error"]) == (429, "too_many_wrong_tokens")
        assert 0 < int(slowed.headers["Retry-After"]) <= WINDOW
        assert (await made.get("/mcp")).status_code == 401, "a missing token is no guess"
        assert (await made.get("/metrics", "root")).status_code == 200, "a right one always passes"
        assert (await made.get("/metrics", "read")).status_code == 403
        counts = await made.rejected()
        assert counts["unauthorized"] == MOST_WRONG + 1
        assert counts["too_many_wrong_tokens"] == 1
        assert counts["forbidden"] == 1


def test_wrong_tokens_are_counted_per_address_for_a_minute() -> None:
    wrong = WrongTokens()
    assert [wrong.note("10.0.0.1", 0.0) for _ in range(MOST_WRONG)] == [0.0] * MOST_WRONG
    assert wrong.note("10.0.0.1", 1.0) == WINDOW
    assert wrong.note("10.0.0.2", 1.0) == 0.0
    assert wrong.note("10.0.0.1", 31.0) == 30.0
    assert wrong.note("10.0.0.1", 1.0 + WINDOW) == 0.0
    assert [wrong.note(f"2001:db8::{n:x}", 0.0) for n in range(MOST_WRONG + 1)][-1] == WINDOW
    assert wrong.note("2001:db8:0:1::1", 0.0) == 0.0
    slow = WrongTokens()
    for minute in range(100):
        assert slow.note("10.0.0.1", minute * WINDOW / (MOST_WRONG - 1)) == 0.0


def test_address_table_for_wrong_tokens_has_a_maximum_size() -> None:
    wrong = WrongTokens()
    for number in range(MOST_ADDRESSES + 10):
        wrong.note(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 0.0)
    assert len(wrong) == MOST_ADDRESSES


async def test_server_without_its_token_file_refuses_callers_with_a_reason(tmp_path: Path) -> None:
    """behaviour 248"""
    async with team(tmp_path) as made:
        (tmp_path / ".lithos" / TOKENS).unlink()
        await made.known(0)
        assert (await made.get("/metrics", "root")).status_code == 401
        assert (await made.get("/metrics")).status_code == 401
        health = (await made.get("/health")).json()
        assert health["status"] == "degraded"
        assert "Restore a copy of the file" in health["components"]["tokens"]["error"]
        made.secrets["own"] = made.whole.lithos.server.get(TokenRing).own_token
        assert (await made.get("/metrics", "own")).status_code == 200
        made.create("again", "admin")
        await made.known(1)
        assert (await made.get("/metrics", "again")).status_code == 200
        assert "tokens" not in (await made.get("/health")).json()["components"]
