"""A server without a public address: no OAuth endpoints, and static tokens still work."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from lithos.access.service.authorization import AuthorizationServer
from lithos.kernel.configuration.rules import Disagreement
from lithos.server.http.access import (
    OAUTH_ADDRESSES,
    RESOURCE_ADDRESSES,
    AccessPolicy,
    Refusal,
    RequestHead,
    decide,
)
from lithos.server.service_state import Gauges
from lithos.server.settings import ServerConfig
from lithos.server.tools.token_ports import OneToken
from tests.access.oauth.flow import public_server
from tests.server.whole import whole_server

#: Console pages for remote clients, and OAuth addresses that other servers use.
PAGES = ("/console/consent", "/console/link", "/console/grants/revoke")
OTHERS = ("/.well-known/openid-configuration", "/authorize", "/token", "/register", "/revoke")


async def test_oauth_endpoints_are_missing_without_a_public_address(tmp_path: Path) -> None:
    """behaviour 271"""
    async with whole_server(tmp_path) as whole, httpx2.AsyncClient(base_url=whole.url) as client:
        assert whole.lithos.server.find(AuthorizationServer) is None
        for path in (*RESOURCE_ADDRESSES, *OAUTH_ADDRESSES, *PAGES, *OTHERS):
            for method in ("GET", "POST"):
                assert (await client.request(method, path)).status_code == 404, path
        names = {tool["name"] for tool in (await whole.result("2025-11-25", "tools/list"))["tools"]}
        assert not names & {"search", "fetch"}
        assert (await whole.result("2025-11-25", "tools/call", name="search", arguments={}))["isError"]
        metrics = str(await whole.lithos.server.get(Gauges).scrape())
        assert not [word for word in ('tool="search"', 'tool="fetch"', 'reason="oauth"') if word in metrics]


def test_challenge_is_plain_bearer_without_a_public_address() -> None:
    """behaviour 271"""
    policy = AccessPolicy("127.0.0.1", "secret", keyring=OneToken("secret"))
    refused = decide(policy, RequestHead("/mcp", hosts=("127.0.0.1",)))
    assert isinstance(refused, Refusal)
    assert refused.headers == ((b"www-authenticate", b"Bearer"),)


async def test_static_token_works_without_a_challenge(tmp_path: Path) -> None:
    """behaviour 271"""
    async with public_server(tmp_path, server={"auth_token": "a-static-token"}) as public:
        right = await public.call("a-static-token")
        assert right.status_code == 200
        assert "www-authenticate" not in right.headers
        assert "search" not in {tool["name"] for tool in right.json()["result"]["tools"]}
        wrong = await public.call("a-wrong-token")
        assert wrong.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
    async with public_server(tmp_path / "other") as public:
        assert (await public.call(None)).status_code == 401


@pytest.mark.parametrize(
    "address",
    [
        "http://notes.example.org",
        "https://notes.example.org/path",
        "https://u@notes.example.org",
        "notes",
        "https://a.example?x",
    ],
)
def test_public_address_is_https_without_a_path(address: str) -> None:
    with pytest.raises(ValueError, match="public_url"):
        ServerConfig(public_url=address)


def test_public_address_needs_the_console() -> None:
    assert ServerConfig(public_url="https://Notes.example.org/").public_url == "https://notes.example.org"
    with pytest.raises(Disagreement):
        ServerConfig(public_url="https://notes.example.org", console=False)
