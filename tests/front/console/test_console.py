"""Admission, sessions, changes and headers of the console (docs/spec/console.md §1)."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
import pytest

from lithos.config.sections import ServerConfig
from lithos.front.console.console import HEADERS
from tests.front.console.visiting import form_of, visiting

TOKEN = "a-token-of-tests"


async def test_the_root_leads_to_the_overview_and_every_page_carries_the_policy(tmp_path: Path) -> None:
    """behaviour 235: the policy header is there."""
    async with visiting(tmp_path) as person:
        first = await person.client.get("/")
        assert (first.status_code, first.headers["location"]) == (302, "/console/")
        for path in ("/console/", "/console/identity", "/console/components", "/console/nothing-like-it"):
            page = await person.get(path)
            assert {name: page.headers[name.lower()] for name in HEADERS} == HEADERS
            assert not re.search(r"\sstyle=|\son[a-z]+=|<script(?! src=\"/console/static/)", page.text), path


async def test_with_a_token_nothing_is_shown_without_login(tmp_path: Path) -> None:
    """behaviour 237: with a token nothing is shown without login; the cookie is HttpOnly and Strict."""
    async with visiting(tmp_path, token=TOKEN) as person:
        await person.lithos.write("A secret title")
        refused = await person.client.get("/console/notes?q=x")
        assert refused.status_code == 302
        assert refused.headers["location"] == "/console/login?next=/console/notes%3Fq%3Dx"
        for path in ("/console/", "/console/components", "/console/events"):
            answer = await person.client.get(path)
            assert answer.status_code in (302, 401), path
            assert "secret title" not in answer.text
        assert (await person.client.post("/console/identity", data={"agent": "x"})).status_code == 401

        wrong = await person.submit("/console/login", token="not-it")
        assert wrong.status_code == 401
        assert "This is no valid token" in wrong.text
        assert not person.client.cookies

        entered = await person.submit("/console/login", token=TOKEN, agent="Ann  B")
        assert entered.status_code == 200
        assert "Ann B" in entered.text
        (cookie,) = entered.history[0].headers.get_list("set-cookie")
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "Secure" not in cookie
        assert TOKEN not in cookie

        page = await person.page("/console/")
        left = await person.post("/console/logout", csrf=form_csrf(page))
        assert str(left.url).endswith("/console/login")
        assert (await person.client.get("/console/")).status_code == 302


def form_csrf(page: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page)
    assert found
    return found[1]


async def test_the_cookie_is_secure_behind_tls(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        answer = await person.get("/console/", **{"X-Forwarded-Proto": "https"})
        assert "Secure" in answer.headers["set-cookie"]


async def test_a_change_without_the_sessions_token_is_refused(tmp_path: Path) -> None:
    """behaviour 237: a change without the session's token is refused."""
    async with visiting(tmp_path) as person:
        _, fields = form_of(await person.page("/console/identity"))
        for wrong in ({"csrf": ""}, {"csrf": "guessed"}, {"once": ""}):
            answer = await person.post("/console/identity", **(fields | {"agent": "Mallory"} | wrong))
            assert answer.status_code == 403
            assert "Nothing was changed" in answer.text
        async with httpx2.AsyncClient(base_url=person.url) as stranger:  # with a session of its own
            await stranger.get("/console/")
            answer = await stranger.post("/console/identity", data=fields | {"agent": "Mallory"})
            assert answer.status_code == 403
        assert "Mallory" not in await person.page("/console/")


async def test_a_person_takes_no_name_under_which_lithos_acts_but_that_of_the_console(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        _, fields = form_of(await person.page("/console/identity"))
        refused = await person.post("/console/identity", **(fields | {"agent": " Undo"}))
        assert refused.status_code == 400
        assert "Lithos itself acts under that name" in refused.text
        assert (
            "recorded as person"
            in (await person.post("/console/identity", **(fields | {"agent": "person"}))).text
        )


async def test_a_form_submitted_twice_is_carried_out_once(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        _, fields = form_of(await person.page("/console/identity"))
        first = await person.post("/console/identity", **(fields | {"agent": "Ann"}))
        assert "Your changes are recorded as Ann." in first.text
        again = await person.post("/console/identity", **(fields | {"agent": "Bob"}))
        assert again.status_code == 200
        assert "recorded as Bob" not in again.text
        assert "Ann" in again.text


async def test_a_page_of_another_origin_can_submit_nothing(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        _, fields = form_of(await person.page("/console/identity"))
        answer = await person.client.post(
            "/console/identity", data=fields, headers={"Origin": "http://evil.example"}
        )
        assert answer.status_code == 403
        assert answer.json()["error"] == "forbidden_origin"


async def test_a_form_of_many_fields_is_not_parsed(tmp_path: Path) -> None:
    """Anybody may send one to the login."""
    async with visiting(tmp_path, token="secret") as person:
        for body in ("a&" * 100_000, "&" * 600_000):
            answer = await person.client.post("/console/login", content=body, headers=FORM)
            assert answer.status_code == 413
            assert answer.json()["error"] == "body_too_large"
        answer = await person.client.post("/console/login", content="token=secret&next=&" * 50, headers=FORM)
        assert answer.status_code == 303


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    "location", ["//evil.example/", "http://evil.example", "/console/../x\\y", "/metrics"]
)
async def test_a_login_leads_nowhere_else(tmp_path: Path, location: str) -> None:
    async with visiting(tmp_path, token=TOKEN) as person:
        answer = await person.client.post("/console/login", data={"token": TOKEN, "next": location})
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/")


async def test_the_console_can_be_switched_off(tmp_path: Path) -> None:
    from attrs import evolve  # noqa: PLC0415

    from lithos.cli.commands.hosting import front_settings  # noqa: PLC0415
    from lithos.config.catalogue import Config  # noqa: PLC0415

    config = Config(server=ServerConfig(console=False))
    assert not front_settings(config, "127.0.0.1", 0, None).console
    assert front_settings(evolve(config, server=ServerConfig()), "127.0.0.1", 0, None).console
