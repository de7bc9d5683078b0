"""Console access, sessions, forms and headers (docs/spec/console.md §1)."""

from __future__ import annotations

from pathlib import Path

from lithos.app.serving.hosting import front_settings
from lithos.kernel.configuration.catalogue import Config
from lithos.server.console.page_layout import HEADERS
from lithos.server.settings import ServerConfig
from tests.server.console.visiting import browser, form_of, visiting

TOKEN = "a-token-of-tests"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def test_root_redirects_to_overview_and_pages_have_security_policy(tmp_path: Path) -> None:
    """behaviour 235: every page has the content security policy header."""
    async with visiting(tmp_path) as person:
        behind_tls = await person.get("/console/", **{"X-Forwarded-Proto": "https"})
        assert "Secure" in behind_tls.headers["set-cookie"]
        first = await person.client.get("/")
        assert (first.status_code, first.headers["location"]) == (302, "/console/")
        for path in ("", "identity", "components", "nothing-like-it"):
            answer = await person.get(f"/console/{path}")
            assert {name: answer.headers[name.lower()] for name in HEADERS} == HEADERS
            await person.look(f"/console/{path}", answer.status_code)


async def test_console_shows_no_data_before_login_when_token_is_set(tmp_path: Path) -> None:
    """behaviour 237: without a login no page shows data. The cookie is HttpOnly and Strict."""
    async with visiting(tmp_path, token=TOKEN) as person:
        await person.lithos.write("A secret title")
        refused = await person.client.get("/console/notes?q=x")
        assert refused.status_code == 302
        assert refused.headers["location"] == "/console/login?next=/console/notes%3Fq%3Dx"
        pieces = {"feed?partial=1": 401, "state?partial=1": 401}
        for path, status in ({"": 302, "components": 302, "events": 401} | pieces).items():
            answer = await person.client.get(f"/console/{path}")
            assert answer.status_code == status, path
            assert "secret title" not in answer.text
        assert (await person.client.post("/console/identity", data={"agent": "x"})).status_code == 401

        wrong = await person.submit("/console/login", token="not-it")
        assert wrong.status_code == 401
        assert "This token is not valid" in wrong.text
        assert not person.client.cookies

        entered = await person.submit("/console/login", token=TOKEN, agent="Ann  B")
        assert entered.status_code == 200
        assert "Ann B" in entered.text
        (cookie,) = entered.history[0].headers.get_list("set-cookie")
        assert ("HttpOnly" in cookie, "SameSite=Strict" in cookie) == (True, True)
        assert ("Secure" in cookie, TOKEN in cookie) == (False, False)

        _, fields = form_of(await person.page("/console/"), "/console/logout", all_forms=True)
        left = await person.post("/console/logout", **fields)
        assert str(left.url).endswith("/console/login")
        assert (await person.client.get("/console/")).status_code == 302
        for location in ("//evil.example/", "http://evil.example", "/console/../x\\y", "/metrics"):
            answer = await person.client.post("/console/login", data={"token": TOKEN, "next": location})
            assert (answer.status_code, answer.headers["location"]) == (303, "/console/"), location


async def test_console_change_without_csrf_token_is_refused(tmp_path: Path) -> None:
    """behaviour 237: a change without the session's CSRF token, or from another origin, is refused."""
    async with visiting(tmp_path) as person:
        _, fields = form_of(await person.page("/console/identity"))
        for wrong in ({"csrf": ""}, {"csrf": "guessed"}, {"once": ""}):
            answer = await person.post("/console/identity", **(fields | {"agent": "Mallory"} | wrong))
            assert answer.status_code == 403
            assert "Nothing was changed" in answer.text
        async with browser(person.url) as stranger:  # another visitor with a separate session
            await stranger.get("/console/")
            answer = await stranger.post("/console/identity", data=fields | {"agent": "Mallory"})
            assert answer.status_code == 403
        answer = await person.client.post(
            "/console/identity", data=fields, headers={"Origin": "http://evil.example"}
        )
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden_origin")
        assert "Mallory" not in await person.page("/console/")


async def test_form_submitted_twice_takes_effect_once(tmp_path: Path) -> None:
    """Agent names that are reserved for Lithos are refused, except the console's own name."""
    async with visiting(tmp_path) as person:
        _, fields = form_of(await person.page("/console/identity"))
        refused = await person.post("/console/identity", **(fields | {"agent": " Undo"}))
        assert refused.status_code == 400
        assert "Lithos itself acts under that name" in refused.text
        first = await person.post("/console/identity", **(fields | {"agent": "person"}))
        assert "Your changes are recorded as person." in first.text
        again = await person.post("/console/identity", **(fields | {"agent": "Bob"}))
        assert again.status_code == 200
        assert "Bob" not in again.text


async def test_form_with_too_many_fields_is_refused_before_parsing(tmp_path: Path) -> None:
    """Any client can send such a form to the login page, even without a token."""
    async with visiting(tmp_path, token="secret") as person:
        for body in ("a&" * 100_000, "&" * 600_000):
            answer = await person.client.post("/console/login", content=body, headers=FORM)
            assert (answer.status_code, answer.json()["error"]) == (413, "body_too_large")
        answer = await person.client.post("/console/login", content="token=secret&next=&" * 50, headers=FORM)
        assert answer.status_code == 303


def test_console_can_be_switched_off() -> None:
    config = Config(server=ServerConfig(console=False))
    assert not front_settings(config, "127.0.0.1", 0, None).console
    assert front_settings(config.replace(ServerConfig()), "127.0.0.1", 0, None).console
