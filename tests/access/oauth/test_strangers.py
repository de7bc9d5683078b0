"""Attacks by a stranger who saw parts of a flow or sends many requests."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import trio

from lithos.access.files.login_links import LoginLinks
from tests.access.oauth.flow import public_server, told
from tests.servers import Clock


async def test_simultaneous_refreshes_get_the_same_answer(tmp_path: Path) -> None:
    """behaviour 273: two windows of one client may refresh at the same time. This does not count as theft."""
    async with public_server(tmp_path) as public:
        flow = await public.begin()
        first = await flow.tokens()
        answers: list[httpx2.Response] = []

        async def refresh() -> None:
            answers.append(await flow.refresh(first["refresh_token"]))

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(refresh)
        assert [answer.status_code for answer in answers] == [200] * 4
        (second,) = {(each["access_token"], each["refresh_token"]) for each in map(_json, answers)}
        assert (await public.call(second[0])).status_code == 200
        assert (await flow.refresh(second[1])).status_code == 200


def _json(answer: httpx2.Response) -> dict[str, str]:
    found: dict[str, str] = answer.json()
    return found


async def test_pages_send_no_referrer_and_secrets_are_not_cached(tmp_path: Path) -> None:
    """Codes, requests and links must not reach referrers, caches or other sites."""
    async with public_server(tmp_path) as public:
        flow = await public.begin()
        pages = [
            await public.http.get("/oauth/authorize?client_id=x"),
            await flow.open(),
            await public.http.get("/console/link?key=x"),
            await public.http.get("/console/login?next=/console/consent"),
        ]
        for page in pages:
            assert page.headers["referrer-policy"] == "no-referrer", page.url
            assert "no-store" in page.headers["cache-control"], page.url
        going = await flow.allow()
        assert "no-store" in going.headers["cache-control"]
        assert going.headers["referrer-policy"] == "no-referrer"
        answer = await flow.exchange(told(going)["code"])
        assert answer.headers["cache-control"] == "no-store"
        token = answer.json()["access_token"]
        in_address = await public.http.post(f"/mcp?access_token={token}", json={})
        assert in_address.status_code == 401


async def test_visitor_without_a_session_is_not_redirected(tmp_path: Path) -> None:
    """Prevents open redirects to other sites.

    Without a console session, Lithos never redirects to an address that a client named.
    """
    async with public_server(tmp_path, is_logged_in=False) as public:
        flow = await public.begin()
        for other in ({}, {"response_type": "token"}, {"redirect_uri": "https://evil.example/"}):
            page = await flow.open(**other)
            assert page.status_code == 302
            assert page.headers["location"].startswith("/console/login?next=/console/consent")
        posted = await public.person.post("/console/consent", data={"answer": "allow"})
        assert not posted.headers.get("location", "").startswith(("http", "//"))
        assert public.server.grants == []


async def test_login_link_from_the_future_is_refused(tmp_path: Path) -> None:
    clock = Clock()
    async with public_server(tmp_path, is_logged_in=False, clock=clock) as public:
        links = LoginLinks(tmp_path / ".lithos")
        clock.advance(days=1)
        key = links.make(clock())
        clock.advance(days=-1)
        assert (await public.person.post("/console/link", data={"key": key})).status_code == 401


ODD_CLIENTS = (
    "https://a.example:70000/c", "https://a.example:0/c", "https://a.example:99999999999999999999/c",
    "https://[::1]:80/c", "https://[::1/c", "https://u:p@a.example/c", "https:///c", "https://exämple.org/c",
    "https://a.example/c#x", "https://a.example/" + "c" * 1_900, "https://" + "a." * 400 + "example/c",
    "\x00", "\n", "/", "://", "https://" + "a" * 64 + ".example:99999/c",
)  # fmt: skip


async def test_invalid_client_ids_are_refused_with_400(tmp_path: Path) -> None:
    """behaviour 394: covers every kind of invalid metadata document address."""
    async with public_server(tmp_path) as public:
        for client in ODD_CLIENTS:
            asked = {
                "client_id": client,
                "redirect_uri": "https://a.example:70000/cb",
                "response_type": "code",
            }
            page = await public.person.get("/console/consent", params=asked)
            assert page.status_code == 400, client
            assert (await public.http.get("/oauth/authorize", params=asked)).status_code == 200, "a door"
            given = {"grant_type": "authorization_code", "code": "x", "code_verifier": "v" * 43, **asked}
            assert (await public.http.post("/oauth/token", data=given)).status_code == 400, client
        for uri in (
            "https://a.example:70000/cb",
            "https://[::1/cb",
            "http://localhost:99999/cb",
            "https://\ud83d/",
        ):
            body = json.dumps({"redirect_uris": [uri]})
            answer = await public.http.post(
                "/oauth/register", content=body, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code == 400, uri
