"""The project of a call travels with every transport (docs/spec/projects.md §2)."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from attrs import evolve
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from lithos.app.options import parse_arguments
from lithos.app.serving.serve import _bridge
from lithos.kernel.databases.lock import OwnerRecord
from lithos.kernel.values.principals import OWN_CALL, OWNER, Principal
from lithos.kernel.values.projects import PROJECT_HEADER, WORKING_IN
from lithos.server.command.session import load_session
from lithos.server.mcp import bridge
from lithos.server.mcp.link import OwnerLink
from lithos.server.mcp.messages import Request
from lithos.server.service_state import ServerState
from tests.server.running import rpc
from tests.server.whole import SseSession, Whole, whole_server

ACCEPT = {"Accept": "application/json, text/event-stream"}
SHOP, BLOG = "github.com/acme/shop", "Größe 日本"
PROGRAM = """
import trio
from lithos.server.mcp.session import serve_stdio
from tests.server.running import FakeToolBox

class Telling(FakeToolBox):
    def acting_as(self, principal):
        self.told_project = principal.project
        return self

    async def call(self, name, arguments):
        return {"text": self.told_project}

async def main():
    await serve_stdio(Telling(), "9.8.7", shutdown=trio.Event())

trio.run(main)
"""


@pytest.fixture
def _telling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `lithos_stats` return the project of its call."""

    async def told(_: ServerState) -> dict[str, Any]:
        return {"project": WORKING_IN.get()}

    monkeypatch.setattr(ServerState, "stats", told)


async def asked(whole: Whole, more: str = "", **headers: str | bytes) -> str | None:
    """Return the project that a call has with these headers. `more` is added to the content type."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    content = json.dumps(rpc("tools/call", name="lithos_stats", arguments={})).encode()
    everything: Any = {**ACCEPT, "Content-Type": f"application/json{more}", **given}
    encoded = {
        name: value.encode() if isinstance(value, str) else value for name, value in everything.items()
    }
    async with httpx2.AsyncClient(base_url=whole.url) as client:
        headers_sent = [(name.encode(), value) for name, value in encoded.items()]
        answer = await client.post("/mcp", content=content, headers=headers_sent)
    found: str | None = answer.json()["result"]["structuredContent"].get("project")
    return found


@pytest.mark.usefixtures("_telling")
@pytest.mark.parametrize("more", ["", ";charset=utf-8"])
async def test_header_names_the_project_of_a_call(tmp_path: Path, more: str) -> None:
    """The second content type is served by the SDK."""
    async with whole_server(tmp_path) as whole:
        assert await asked(whole, more) is None
        assert await asked(whole, more, lithos_project="git@GitHub.com:acme/shop.git") == SHOP
        assert await asked(whole, more, lithos_project=BLOG.encode()) == BLOG
        assert await asked(whole, more, lithos_project="..", lithos_session="s") is None
        assert await asked(whole, more, lithos_project=b"\xff\xfe") == "\ufffd\ufffd"
        own = {OWN_CALL.replace("-", "_"): "1"}
        assert await asked(whole, more, **own, lithos_project=SHOP) == SHOP


@pytest.mark.usefixtures("_telling")
async def test_sse_session_has_the_project_of_its_stream(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as whole, SseSession.open(whole, f"Lithos-Project: {SHOP}") as session:
        await session.greet("2025-06-18")

        async def told() -> object:
            answer = await session.ask("tools/call", name="lithos_stats", arguments={})
            return answer["result"]["structuredContent"]["project"]

        assert await told() == SHOP
        session.client.headers["Lithos-Project"] = "blog"
        assert await told() == "blog"
        session.client.headers["Lithos-Project"] = ".."
        assert await told() == SHOP


async def test_bridge_sends_the_project_of_its_folder() -> None:
    asked: list[bytes | None] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(dict(request.headers.raw).get(b"lithos-project"))
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": {}})

    async def take(line: bytes) -> None:
        assert line

    record = OwnerRecord(1, "h", "http://127.0.0.1:9", "2026-01-01T00:00:00+00:00")
    for project in (None, SHOP, BLOG):
        async with OwnerLink(record, None, httpx2.MockTransport(answer), project) as link:
            await link.send(Request(1, "ping", b"{}"), {}, take)
    assert asked == [None, SHOP.encode(), BLOG.encode()]


async def test_bridge_works_in_its_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".lithos-project").write_text("git@github.com:acme/shop.git\n")
    sent: list[bytes] = []

    async def serve(trail: Any, shutdown: trio.Event) -> None:
        record = OwnerRecord(1, "h", "http://127.0.0.1:9", "2026-01-01T00:00:00+00:00")
        async with trail._connect(record) as link:
            sent.extend(value for name, value in link._client.headers.raw if name == PROJECT_HEADER)

    monkeypatch.setattr(bridge, "serve_bridge", serve)
    monkeypatch.chdir(tmp_path)
    await _bridge(load_session(parse_arguments(["-d", str(tmp_path), "serve"])), trio.Event())
    assert sent == [SHOP.encode()]


@pytest.mark.slow
async def test_stdio_server_takes_the_project_of_its_working_directory(tmp_path: Path) -> None:
    shop = tmp_path / "shop" / "src"
    shop.mkdir(parents=True)
    (shop / ".lithos-project").write_text("git@github.com:acme/shop.git\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    for folder, project in ((shop, SHOP), (Path("/"), None)):
        parameters = StdioServerParameters(
            command=sys.executable, args=["-c", PROGRAM], cwd=folder, env=environment
        )
        with (tmp_path / "stderr").open("w") as errors:
            async with Client(stdio_client(parameters, errlog=errors)) as client:
                answer = await client.call_tool("echo", {})
        assert (answer.structured_content or {})["text"] == project


def test_own_project_precedes_that_of_the_session() -> None:
    shop = evolve(OWNER, project=SHOP, session="s1")
    assert OWNER.coming_from(OWNER) is OWNER
    assert OWNER.coming_from(shop).project == SHOP
    later = evolve(OWNER, project="blog").coming_from(shop)
    assert (later.project, later.session) == ("blog", "s1")
    assert later == OWNER
    assert Principal("ann", "read").coming_from(shop).rights == "read"
