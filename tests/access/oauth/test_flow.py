"""Complete OAuth flow of a client that knows only the server's address, up to the revoked grant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.access.oauth.flow import public_server, told
from tests.server.console.visiting import form_of


async def test_client_gets_access_from_the_address_alone(tmp_path: Path) -> None:
    """behaviours 272 and 275: the client acts under the agent name and with the rights that a person chose"""
    async with public_server(tmp_path) as public:
        refused = await public.call(None)
        assert refused.status_code == 401
        challenge = refused.headers["www-authenticate"]
        metadata = f"{public.url}/.well-known/oauth-protected-resource/mcp"
        assert challenge == f'Bearer resource_metadata="{metadata}", scope="read write"'
        resource = (await public.http.get(metadata)).json()
        assert resource["resource"] == f"{public.url}/mcp"
        (issuer,) = resource["authorization_servers"]
        server = (await public.http.get(f"{issuer}/.well-known/oauth-authorization-server")).json()
        assert server["issuer"] == issuer == public.url
        assert server["code_challenge_methods_supported"] == ["S256"]

        flow = await public.begin()
        answer = told(await flow.allow(agent="chat", rights="write"))
        assert (answer["iss"], answer["state"]) == (public.url, "a-state")
        tokens = (await flow.exchange(answer["code"])).json()
        assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, "read write")

        written = await public.tool(tokens["access_token"], "lithos_write", title="T", content="C")
        read = await public.tool(tokens["access_token"], "lithos_read", id=written["id"])
        assert read["metadata"]["author"] == "chat"
        assert "chat" in {event.get("agent", "chat") for _, event in public.lithos.events()}
        assert {agent for agent, _, _ in await public.lithos.audit()} == {"chat"}

        page = (await public.person.get("/console/agents")).text
        assert "a-client-1" in page
        assert (await flow.revoke(tokens["refresh_token"])).status_code == 200
        gone = await public.call(tokens["access_token"])
        assert gone.status_code == 401
        assert 'error="invalid_token"' in gone.headers["www-authenticate"]


async def test_page_before_consent_shows_no_data_and_allows_no_frame(tmp_path: Path) -> None:
    async with public_server(tmp_path, is_logged_in=False) as public:
        page = await public.http.get("/oauth/authorize?client_id=x&state=%22%3E%3Cscript%3E")
        assert page.status_code == 200
        assert 'url=/console/consent?client_id=x&amp;state=%22%3E%3Cscript%3E"' in page.text
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["x-frame-options"] == "DENY"
        login = await public.person.get("/console/consent?client_id=x")
        assert login.status_code == 302
        assert login.headers["location"].startswith("/console/login?next=/console/consent")


async def test_login_link_leads_to_the_pending_consent_page(tmp_path: Path) -> None:
    """A login in a second browser window continues the pending consent page in the first window."""
    async with public_server(tmp_path, is_logged_in=False) as public:
        flow = await public.begin()
        asking = await flow.open()
        login = await public.person.get(asking.headers["location"])
        assert (login.status_code, "lithos login" in login.text) == (200, True)
        await public.log_in()
        again = await public.person.get(login.url)
        assert again.status_code == 302
        page = await public.person.get(again.headers["location"])
        assert (page.status_code, "A client</bdi> to connect?" in page.text) == (200, True)
        assert told(await flow.allow())["code"]


async def test_login_with_a_token_leads_to_the_consent_page(tmp_path: Path) -> None:
    server = {"auth_token": "a-static-token"}
    async with public_server(tmp_path, is_logged_in=False, server=server) as public:
        flow = await public.begin()
        login = await public.person.get((await flow.open()).headers["location"])
        action, fields = form_of(login.text)
        entered = await public.person.post(action, data={**fields, "token": "a-static-token"})
        page = await public.person.get(entered.headers["location"])
        assert (page.status_code, "A client</bdi> to connect?" in page.text) == (200, True)


@pytest.mark.needs("proposals")
async def test_person_chooses_where_a_client_may_write_or_propose(tmp_path: Path) -> None:
    """behaviours 275 and 278"""
    async with public_server(tmp_path) as public:
        flow = await public.begin()
        wrong = await flow.allow(agent="chat", rights="write", write="notes", propose="desk/")
        assert wrong.status_code == 400
        assert "matches no note" in wrong.text
        assert ">notes</textarea>" in wrong.text
        assert ">desk/</textarea>" in wrong.text
        allowed = told(await flow.allow(agent="chat", rights="write", write="", propose="desk/\r\nlaw/\r\n"))
        token = (await flow.exchange(allowed["code"])).json()["access_token"]
        written = await public.tool(token, "lithos_write", title="T", content="C", path="notes")
        assert written["status"] == "created"
        asked = await public.tool(token, "lithos_write", title="Asks", content="C", path="desk")
        assert asked["status"] == "proposed"
        page = (await public.person.get("/console/agents")).text
        assert "write ** !desk/ !law/; propose desk/ law/" in page

        narrow = await public.begin()
        answer = await narrow.allow(
            agent="chat", rights="write", write="notes/\nnotes/x/", propose="notes/x/"
        )
        token = (await narrow.exchange(told(answer)["code"])).json()["access_token"]
        for path, status in (("notes", "created"), ("notes/x", "proposed"), ("desk", "error")):
            answer = await public.tool(token, "lithos_write", title=f"In {path}", content="C", path=path)
            assert answer["status"] == status, path
