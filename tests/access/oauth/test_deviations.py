"""Refusals of requests that deviate from the OAuth flow: wrong values, repeats, strangers."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from lithos.access.files.login_links import LoginLinks
from lithos.access.files.tokens import TokenStore
from lithos.access.service.authorization import MOST_REGISTRATIONS
from lithos.access.service.keyring import TokenRing
from lithos.server.service_state import Gauges
from tests.access.oauth.flow import Flow, public_server, told
from tests.server.console.visiting import form_of
from tests.servers import Clock

#: Deviating client requests, each with the error that the redirect URI receives.
TOLD: dict[str, tuple[dict[str, str | None], str]] = {
    "another response type": ({"response_type": "token"}, "unsupported_response_type"),
    "no response type": ({"response_type": None}, "invalid_request"),
    "no challenge": ({"code_challenge": None}, "invalid_request"),
    "a plain challenge": ({"code_challenge_method": "plain"}, "invalid_request"),
    "no method, which is plain": ({"code_challenge_method": None}, "invalid_request"),
    "a short challenge": ({"code_challenge": "abc"}, "invalid_request"),
    "scopes that are none": ({"scope": "admin"}, "invalid_scope"),
    "another resource": ({"resource": "https://other.example/mcp"}, "invalid_target"),
    "a request object": ({"request": "e30."}, "request_not_supported"),
}
#: Deviating requests whose error only the person sees, because the redirect URI may belong to another client.
UNTOLD: dict[str, dict[str, str | None]] = {
    "another redirect URI": {"redirect_uri": "https://evil.example/callback"},
    "a longer redirect URI": {"redirect_uri": "https://client.example/callback/x"},
    "no redirect URI": {"redirect_uri": None},
    "no client": {"client_id": None},
    "a client that nobody knows": {"client_id": "lithos-client-unknown"},
    "a document of this machine": {"client_id": "https://127.0.0.1/client"},
    "a script": {"redirect_uri": "javascript:alert(1)"},
}
#: Deviating code exchanges, each with its error.
EXCHANGED: dict[str, tuple[dict[str, str | None], str]] = {
    "another client": ({"client_id": "lithos-client-other"}, "invalid_grant"),
    "no client": ({"client_id": None}, "invalid_request"),
    "another redirect URI": ({"redirect_uri": "https://client.example/other"}, "invalid_grant"),
    "no redirect URI": ({"redirect_uri": None}, "invalid_request"),
    "another verifier": ({"code_verifier": "w" * 60}, "invalid_grant"),
    "no verifier": ({"code_verifier": None}, "invalid_request"),
    "another resource": ({"resource": "https://other.example/mcp"}, "invalid_target"),
    "another code": ({"code": "lithos_c_x"}, "invalid_grant"),
    "another kind": ({"grant_type": "password"}, "unsupported_grant_type"),
    "no kind": ({"grant_type": None}, "invalid_request"),
}


async def test_deviating_request_gets_the_error_of_the_rfc(tmp_path: Path) -> None:
    """behaviour 272"""
    async with public_server(tmp_path) as public:
        flow = await public.begin()
        for name, (other, error) in TOLD.items():
            answer = told(await flow.open(**other))
            assert (answer["error"], answer["iss"], answer["state"]) == (error, public.url, "a-state"), name
        for name, other in UNTOLD.items():
            page = await flow.open(**other)
            assert page.status_code == 400, name
            assert "location" not in page.headers, name
            assert "the client got no answer" in page.text, name
        twice = await public.person.get(f"/console/consent?client_id={flow.client_id}&client_id=other")
        assert (twice.status_code, "repeated" in twice.text) == (400, True)
        assert public.server.grants == []


async def test_deviating_exchange_is_refused_and_the_code_stays_valid(tmp_path: Path) -> None:
    """behaviour 272: covers an injected code, a missing PKCE verifier, and the wrong client."""
    async with public_server(tmp_path) as public:
        flow = await public.begin()
        code = await flow.code()
        for name, (other, error) in EXCHANGED.items():
            answer = await flow.exchange(code, **other)
            assert (answer.status_code, answer.json()["error"]) == (400, error), name
            assert answer.headers["cache-control"] == "no-store"
        assert (await flow.exchange(code)).status_code == 200


async def test_code_that_is_used_twice_ends_the_grant(tmp_path: Path) -> None:
    """behaviour 273"""
    async with public_server(tmp_path) as public:
        flow = await public.begin()
        code = await flow.code()
        tokens = (await flow.exchange(code)).json()
        assert (await public.call(tokens["access_token"])).status_code == 200
        again = await flow.exchange(code)
        assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
        assert (await public.call(tokens["access_token"])).status_code == 401
        assert (await flow.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_grant_ends_when_a_code_is_exchanged_twice_at_once(tmp_path: Path) -> None:
    """behaviour 273"""
    async with public_server(tmp_path) as public:
        flow = await public.begin()
        code = await flow.code()
        answers: list[httpx2.Response] = []

        async def exchange() -> None:
            answers.append(await flow.exchange(code))

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(exchange)
        assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]
        (won,) = (answer.json() for answer in answers if answer.status_code == 200)
        assert (await public.call(won["access_token"])).status_code == 401


async def test_codes_and_tokens_expire_with_the_clock(tmp_path: Path) -> None:
    """behaviour 273: codes and tokens expire even if the clock jumps back."""
    clock = Clock()
    async with public_server(tmp_path, clock=clock) as public:
        flow = await public.begin()
        code = await flow.code()
        clock.advance(seconds=-3_600)
        assert (await flow.exchange(code)).json()["error"] == "invalid_grant"
        clock.advance(seconds=3_600)
        late = await flow.code()
        clock.advance(seconds=60)
        assert (await flow.exchange(late)).json()["error"] == "invalid_grant"
        tokens = await flow.tokens()
        clock.advance(minutes=59)
        assert (await public.call(tokens["access_token"])).status_code == 200
        clock.advance(minutes=1)
        assert (await public.call(tokens["access_token"])).status_code == 401
        tokens = (await flow.refresh(tokens["refresh_token"])).json()
        assert (await public.call(tokens["access_token"])).status_code == 200
        clock.advance(days=90)
        assert (await flow.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_late_use_of_a_replaced_refresh_token_ends_grant(tmp_path: Path) -> None:
    """behaviour 273: a lost answer is repeated for 30 s.

    Refresh tokens rotate, so later use of a replaced token signals theft.
    """
    clock = Clock()
    async with public_server(tmp_path, clock=clock) as public:
        flow = await public.begin()
        first = await flow.tokens()
        second = (await flow.refresh(first["refresh_token"])).json()
        assert second["refresh_token"] != first["refresh_token"]
        clock.advance(seconds=30)
        assert (await flow.refresh(first["refresh_token"])).json() == second
        other = await flow.refresh(first["refresh_token"], client_id="lithos-client-other")
        assert other.json()["error"] == "invalid_grant"
        assert (await public.call(second["access_token"])).status_code == 200
        clock.advance(seconds=1)
        assert (await flow.refresh(first["refresh_token"])).json()["error"] == "invalid_grant"
        assert (await public.call(second["access_token"])).status_code == 401
        assert (await flow.refresh(second["refresh_token"])).json()["error"] == "invalid_grant"


async def test_refresh_may_be_repeated_after_a_restart(tmp_path: Path) -> None:
    """behaviour 273: the restarted server no longer has its answers in memory, but it still has its files."""
    async with public_server(tmp_path) as public:
        flow = await public.begin()
        first = await flow.tokens()
        lost = (await flow.refresh(first["refresh_token"])).json()
        public.server._answers.clear()
        second = (await flow.refresh(first["refresh_token"])).json()
        assert (await public.call(second["access_token"])).status_code == 200
        assert (await flow.refresh(second["refresh_token"])).status_code == 200
        assert (await flow.refresh(lost["refresh_token"])).json()["error"] == "invalid_grant"


async def test_forged_consent_is_refused(tmp_path: Path) -> None:
    """Covers forged consent, framed consent, and a page opened for one client but sent for another."""
    async with public_server(tmp_path) as public:
        mine, other = await public.begin(), await public.begin()
        page = await mine.open()
        assert page.headers["x-frame-options"] == "DENY"
        policy = page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self' https://client.example;" in policy
        action, fields = form_of(page.text)
        fields |= {"answer": "allow", "rights": "read", "days": "7"}
        others, _ = form_of((await other.open()).text)
        forged: list[tuple[str, dict[str, Any]]] = [
            (action, {**fields, "csrf": "x"}),
            (action, {**fields, "seal": "x"}),
            (action, {**fields, "once": ""}),
            (others, fields),
            (action.replace("a-state", "b-state"), fields),
        ]
        for where, what in forged:
            assert (await public.person.post(where, data=what)).status_code == 403
        foreign = await public.person.post(action, data=fields, headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        fields["answer"] = "refuse"
        assert told(await public.person.post(action, data=fields))["error"] == "access_denied"
        for wrong in ({"agent": ""}, {"agent": "watcher"}, {"days": "9999"}):
            assert (await mine.allow(**wrong)).status_code == 400
        assert public.server.grants == []
        assert "location" not in (await public.http.post(action, data=fields)).headers


async def test_client_gets_at_most_the_requested_rights(tmp_path: Path) -> None:
    """behaviour 275"""
    async with public_server(tmp_path) as public:
        reader = Flow(public, (await public.register()).json()["client_id"], scope="read")
        tokens = await reader.tokens(rights="write")
        assert tokens["scope"] == "read"
        refused = await public.tool(tokens["access_token"], "lithos_write", title="T", content="C")
        assert refused["code"] == "forbidden"
        metrics = await public.http.get(
            "/metrics", headers={"Authorization": f"Bearer {tokens['access_token']}"}
        )
        assert metrics.status_code == 403
        assert metrics.headers["www-authenticate"] == 'Bearer error="insufficient_scope", scope="metrics"'


async def test_registrations_are_limited_and_malformed_registrations_are_refused(tmp_path: Path) -> None:
    async with public_server(tmp_path) as public:
        wrong: list[Any] = [
            {"redirect_uris": []}, {"redirect_uris": ["javascript:x"]}, {"redirect_uris": "x"}, {}, [], 5,
        ]  # fmt: skip
        for body in wrong:
            answer = await public.http.post("/oauth/register", json=body)
            assert answer.status_code == 400, body
            assert answer.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")
        form = await public.http.post("/oauth/register", data={"redirect_uris": "x"})
        assert form.json()["error"] == "invalid_request"
        huge = await public.register(client_name="x" * 70_000)
        assert huge.status_code == 413
        for _ in range(MOST_REGISTRATIONS):
            assert (await public.register()).status_code == 201
        flood = await public.register()
        assert (flood.status_code, flood.headers["retry-after"]) == (429, "3600")
        assert (await public.http.get("/oauth/register")).status_code == 405


async def test_wrong_codes_are_rate_limited_without_affecting_correct_codes(tmp_path: Path) -> None:
    """Wrong codes do not cause disk accesses.

    After 20 wrong codes in a minute the answer is 429. A correct code is still accepted.
    """
    async with public_server(tmp_path) as public:
        flow = await public.begin()
        code = await flow.code()
        statuses = [(await flow.exchange(f"lithos_c_{number}")).status_code for number in range(25)]
        assert (statuses[0], statuses[-1]) == (400, 429)
        tokens = await flow.exchange(code)
        assert tokens.status_code == 200
        assert (await public.call(tokens.json()["access_token"])).status_code == 200


async def test_secrets_do_not_appear_in_logs_metrics_pages_or_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """behaviour 275: client secrets get the same protection as tokens (behaviour 248)."""
    caplog.set_level(logging.DEBUG)
    async with public_server(tmp_path) as public:
        flow = await public.begin()
        code = await flow.code()
        await flow.exchange(code, code_verifier="w" * 60)
        tokens = (await flow.exchange(code)).json()
        later = (await flow.refresh(tokens["refresh_token"])).json()
        await public.call("wrong-" + later["access_token"])
        told_of = [(await public.person.get(f"/console/{page}")).text for page in ("agents", "system")]
        told_of.append(str(await public.lithos.server.get(Gauges).scrape()))
        told_of += [path.read_text() for path in sorted((tmp_path / ".lithos").glob("*.json"))]
        await flow.exchange(code)
        own = [record for record in caplog.records if record.name.startswith("lithos")]
        told_of += [repr(record.__dict__) for record in own] + [
            repr(public.lithos.server.get(TokenRing).named)
        ]
        secrets = [code, flow.verifier, "a-state"]
        secrets += [each[name] for each in (tokens, later) for name in ("access_token", "refresh_token")]
        for secret in secrets:
            assert all(secret not in text for text in told_of)
        assert "oauth grant revoked" in caplog.text


async def test_grant_is_listed_and_revoked_like_a_token(tmp_path: Path) -> None:
    """behaviour 275"""
    async with public_server(tmp_path) as public:
        flow = await public.begin()
        tokens = await flow.tokens(agent="chat", days="7")
        (grant,) = public.server.grants
        assert (grant.name, grant.agent, grant.rights) == ("a-client-1", "chat", "write")
        assert grant.expires_at is not None
        assert abs(grant.expires_at - grant.created_at - timedelta(days=7)) < timedelta(minutes=1)
        other = await public.tool(tokens["access_token"], "lithos_task_create", title="T", agent="other")
        assert other["code"] == "forbidden"
        assert "a-client-1" in other["message"]
        await trio.to_thread.run_sync(TokenStore(tmp_path / ".lithos").revoke, "a-client-1")
        with trio.fail_after(2):
            while (await public.call(tokens["access_token"])).status_code != 401:
                await trio.sleep(0.05)


async def test_login_link_works_once_within_ten_minutes(tmp_path: Path) -> None:
    clock = Clock()
    async with public_server(tmp_path, is_logged_in=False, clock=clock) as public:
        links = LoginLinks(tmp_path / ".lithos")
        old = links.make(clock())
        clock.advance(minutes=10)
        assert (await public.person.post("/console/link", data={"key": old})).status_code == 401
        key = links.make(clock())
        shown = await public.person.get(f"/console/link?key={key}")
        assert (shown.status_code, shown.headers["referrer-policy"]) == (200, "no-referrer")
        assert (await public.person.post("/console/link", data={"key": key})).status_code == 303
        assert (await public.person.get("/console/system")).status_code == 200
        assert (await public.person.post("/console/link", data={"key": key})).status_code == 401
        assert key not in (tmp_path / ".lithos" / "login_links.json").read_text()


async def test_any_web_origin_may_read_metadata_but_not_call_tools(tmp_path: Path) -> None:
    async with public_server(tmp_path) as public:
        origin = {"Origin": "https://inspector.example"}
        metadata = await public.http.get("/.well-known/oauth-authorization-server", headers=origin)
        assert metadata.headers["access-control-allow-origin"] == origin["Origin"]
        assert "access-control-allow-credentials" not in metadata.headers
        call = await public.http.post("/mcp", json={}, headers=origin)
        assert call.status_code == 403
        elsewhere = await public.http.get(
            "/.well-known/oauth-authorization-server", headers={"Host": "evil.example"}
        )
        assert elsewhere.status_code == 403
