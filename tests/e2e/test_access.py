"""Who may ask a real server: token, Host and Origin, and the warning for an open one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.process import Lithos, run_lithos, running_lithos

pytestmark = pytest.mark.slow

TOKEN = "correct-horse-battery-staple"
LIST_TOOLS = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
ENDPOINTS = (("POST", "/mcp"), ("GET", "/mcp"), ("GET", "/sse"), ("POST", "/messages/"), ("GET", "/events"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lithos]:
    """A server with a token and one more host and origin."""
    settings = {
        "LITHOS_AUTH_TOKEN": TOKEN,
        "LITHOS_SERVER__ALLOWED_HOSTS": "notes.example",
        "LITHOS_SERVER__ALLOWED_ORIGINS": '["https://app.example"]',
    }
    with running_lithos(tmp_path_factory.mktemp("access") / "data", env=settings) as running:
        yield running
        assert running.stop() == 0
        assert TOKEN not in running.log()
        assert "Traceback" not in running.log()


def ask(server: Lithos, method: str, path: str, **headers: str) -> tuple[int, str]:
    return server.ask(method, path, LIST_TOOLS if method == "POST" else None, **headers)


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
def test_without_the_token_every_endpoint_answers_401(guarded: Lithos, method: str, path: str) -> None:
    """behaviour 201"""
    for wrong in ("", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}"):
        assert ask(guarded, method, path, Authorization=wrong) == (401, '{"error":"unauthorized"}')


@pytest.mark.parametrize("path", ["/", "/console/", "/console/notes"])
def test_the_console_leads_to_its_login_instead(guarded: Lithos, path: str) -> None:
    status, body = ask(guarded, "GET", path)
    assert status == 302
    assert "/console/" in body


def test_with_the_token_the_server_answers_and_health_needs_none(guarded: Lithos) -> None:
    """behaviour 201"""
    status, body = ask(guarded, "POST", "/mcp", Authorization=f"Bearer {TOKEN}")
    assert status == 200
    assert "lithos_write" in body
    status, body = ask(guarded, "GET", "/health")
    assert (status, json.loads(body)["status"]) == (200, "ok")


def test_commands_beside_a_guarded_server_use_the_token_of_its_lock(guarded: Lithos) -> None:
    """behaviours 197, 201: whoever may read the lock file is the owner, with or without the setting."""
    data = guarded.stderr.with_name("data")
    assert (data / ".lithos" / "lock").stat().st_mode & 0o777 == 0o600
    for environment in ({}, {"LITHOS_AUTH_TOKEN": TOKEN}, {"LITHOS_AUTH_TOKEN": "another"}):
        assert run_lithos("-d", data, "stats", env=environment).returncode == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost.evil.example:8765"}, 403),
        ({"Host": "localhost"}, 200),
        ({"Host": "[::1]:8765"}, 200),
        ({"Host": "notes.example"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "https://app.example"}, 200),
    ],
)
def test_foreign_hosts_and_origins_are_refused(guarded: Lithos, headers: dict[str, str], status: int) -> None:
    """behaviour 202"""
    assert ask(guarded, "POST", "/mcp", Authorization=f"Bearer {TOKEN}", **headers)[0] == status


def test_an_open_bind_without_token_warns(tmp_path: Path) -> None:
    """behaviour 203"""
    with running_lithos(tmp_path / "data", "--host", "0.0.0.0") as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert ask(server, "GET", "/health")[0] == 200
        warnings = [line for line in map(json.loads, server.log().splitlines()) if line["level"] == "warning"]
    assert any("server.auth_token" in warning["message"] for warning in warnings)
