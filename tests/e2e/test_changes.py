"""Change notifications of `lithos serve` over stdio, in both generations of the protocol."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from lithos.server.http.limits import STOP_GRACE
from tests.e2e.stdio import StdioServer, stdio_server

pytestmark = pytest.mark.slow

UPDATED = "notifications/resources/updated"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}


def ask(server: StdioServer, number: int, method: str, **params: Any) -> Any:
    """Send a request and return its result. Notifications that arrive first are skipped."""
    server.send(method, number, **params)
    while (answer := server.answer()).get("id") != number:
        pass
    return answer["result"]


def new_note(server: StdioServer, number: int, **more: Any) -> str:
    """Create a note and return its id."""
    arguments = {"title": "A note", "content": "x", "agent": "a"}
    written = ask(server, number, "tools/call", name="lithos_write", arguments=arguments, **more)
    return str(written["structuredContent"]["id"])


def notice(server: StdioServer) -> Any:
    """Return the next notification about a single resource."""
    while (message := server.message()).get("method") != UPDATED:
        pass
    return message["params"]


def test_stdio_session_gets_notifications(tmp_path: Path) -> None:
    """behaviours 204, 205"""
    with stdio_server(tmp_path / "data", subprocess.DEVNULL) as server:
        server.greet()
        note = new_note(server, 1)
        uri = f"lithos://note/{note}"
        assert ask(server, 2, "resources/subscribe", uri=uri) == {}
        server.call(3, "lithos_write", id=note, title="A note", content="new", agent="a")
        assert notice(server)["uri"] == uri
        server.close_input()
        server.rest()


def test_newest_protocol_stdio_client_listens_and_disconnects_at_once(tmp_path: Path) -> None:
    """behaviours 204, 205: an open change stream does not delay the end."""
    # Two retries are allowed, because the machine may be busy.
    assert any(_leaves_at_once(tmp_path / f"data-{number}") for number in range(3))


def _leaves_at_once(data: Path) -> bool:
    with stdio_server(data, subprocess.DEVNULL) as server:
        note = new_note(server, 1, _meta=META)
        uri = f"lithos://note/{note}"
        wanted = {"resourceSubscriptions": [uri]}
        server.send("subscriptions/listen", 2, notifications=wanted, _meta=META)
        acknowledged = server.message()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == wanted
        changes = {"id": note, "title": "A note", "content": "new", "agent": "a"}
        server.send("tools/call", 3, name="lithos_write", arguments=changes, _meta=META)
        assert notice(server) == {"uri": uri, "_meta": {"io.modelcontextprotocol/subscriptionId": 2}}
        server.close_input()
        left = time.monotonic()
        server.rest()
        return time.monotonic() - left < STOP_GRACE
