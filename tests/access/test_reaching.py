"""Results of `lithos doctor` for a public address that it requests from outside."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import httpx2
import pytest

from lithos.access import commands_reaching as reaching
from lithos.access.commands_reaching import check_public_url
from lithos.kernel.values.findings import CheckFinding
from tests.access.oauth.flow import public_server
from tests.servers import Clock

ADDRESS = "https://notes.example.org"
NOW = datetime(2026, 3, 4, tzinfo=UTC)
#: Correct answers of a server, by request path.
WELL: dict[str, tuple[int, object, dict[str, str]]] = {
    "/.well-known/oauth-protected-resource/mcp": (
        200,
        {"resource": f"{ADDRESS}/mcp", "authorization_servers": [ADDRESS]},
        {},
    ),
    "/.well-known/oauth-authorization-server": (200, {"issuer": ADDRESS}, {}),
    "/mcp": (
        401,
        {},
        {"WWW-Authenticate": 'Bearer resource_metadata="x/.well-known/oauth-protected-resource/mcp"'},
    ),
    "/console/login": (200, "page", {}),
}


async def find(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[httpx2.Request], httpx2.Response]
) -> list[CheckFinding]:
    """Return the findings of `lithos doctor` for these answers."""
    client = httpx2.AsyncClient
    monkeypatch.setattr(
        httpx2, "AsyncClient", lambda **settings: client(transport=httpx2.MockTransport(answer))
    )
    return await check_public_url(ADDRESS, lambda: NOW, is_live=True)


def answering(
    path: str = "", status: int = 200, body: object = None, date: datetime = NOW
) -> Callable[[httpx2.Request], httpx2.Response]:
    def answer(request: httpx2.Request) -> httpx2.Response:
        told = (status, body, {}) if request.url.path == path else WELL[request.url.path]
        headers = {"Date": format_datetime(date, usegmt=True), **told[2]}
        return httpx2.Response(told[0], json=told[1], headers=headers)

    return answer


async def test_reachable_server_has_only_ok_findings(tmp_path: Path) -> None:
    async with public_server(tmp_path) as public:
        clock = Clock(datetime.now(UTC).isoformat())
        (found,) = await check_public_url(public.url, clock, is_live=True)
        assert (found.status, public.url in found.cause) == ("ok", True)


@pytest.mark.parametrize(
    ("path", "status", "body", "told"),
    [
        ("/.well-known/oauth-protected-resource/mcp", 403, {"error": "forbidden_host"}, "another host name"),
        ("/.well-known/oauth-protected-resource/mcp", 404, {}, "without metadata"),
        ("/.well-known/oauth-protected-resource/mcp", 200, "a page", "without metadata"),
        (
            "/.well-known/oauth-protected-resource/mcp",
            200,
            {"resource": "https://other/mcp"},
            "another public address",
        ),
        ("/.well-known/oauth-authorization-server", 404, {}, "another public address"),
        ("/mcp", 200, {}, "without the authentication challenge"),
        ("/mcp", 401, {}, "without the authentication challenge"),
        ("/console/login", 404, {}, "access cannot be approved"),
    ],
)
async def test_first_error_of_a_public_address_is_reported(
    monkeypatch: pytest.MonkeyPatch, path: str, status: int, body: object, told: str
) -> None:
    (found,) = await find(monkeypatch, answering(path, status, body))
    assert found.status == "fail"
    assert told in found.cause


async def test_clock_difference_of_a_public_address_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await find(monkeypatch, answering(date=NOW - timedelta(seconds=90)))
    assert [each.status for each in found] == ["ok", "warn"]
    assert "differs from this machine's clock by 90 seconds" in found[1].cause


async def test_invalid_certificate_and_network_errors_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no") from ssl.SSLCertVerificationError(1, "certificate verify failed")

    def stall(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("slow")

    def lose(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no way")

    for answer, told in ((refuse, "certificate"), (stall, "10 seconds"), (lose, "cannot be reached")):
        with monkeypatch.context() as patch:
            (found,) = await find(patch, answer)
        assert (found.status, told in found.cause) == ("fail", True)
    (found,) = await reaching.check_public_url(ADDRESS, lambda: NOW, is_live=False)
    assert found.status == "warn"
