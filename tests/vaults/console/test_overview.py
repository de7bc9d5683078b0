"""Overview console: one login, one overview, and no data of vaults that the token does not open."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import httpx2
import pytest
import trio

from lithos.server.console.page_layout import HEADERS
from lithos.server.console.sessions import COOKIE, LIFE
from lithos.server.service_state import ServerState
from lithos.upkeep.checks.care import OverviewWarnings
from lithos.upkeep.console import summary
from tests.server.console.hosting import House, hosting
from tests.server.console.pages import Element, check, parse
from tests.server.console.visiting import PATIENCE, browser, form_of, revoke_token
from tests.servers import Lithos

#: Secrets, and the vaults that each secret opens.
TOKENS: Final = {"two": ("home", "work"), "one": ("home",), "all": ("home", "secret", "work")}


async def log_in(house: House, secret: str, **fields: str) -> httpx2.Response:
    action, hidden = form_of((await house.client.get("/console/login")).text)
    assert action == "/console/login"
    return await house.client.post(action, data=hidden | {"token": secret} | fields)


async def overview(house: House) -> Element:
    """Return the page. Assert that it has no actions and links only to vaults and to the console."""
    answer = await house.client.get("/console/")
    assert answer.status_code == 200, answer.text
    assert {name: answer.headers[name.lower()] for name in HEADERS} == HEADERS
    check(re.sub('"/v/[a-z]+/console/', '"/console/', answer.text), "overview")
    return parse(answer.text)


def card_of(page: Element, name: str) -> str:
    (found,) = (one for one in page.all("section") if one.attributes["aria-labelledby"] == f"vault-{name}")
    return found.text


async def test_login_opens_exactly_the_vaults_of_the_token(tmp_path: Path) -> None:
    """behaviour 293: each vault gets its own cookie. Names of other vaults are hidden."""
    async with hosting(tmp_path, TOKENS) as house:
        answer = await house.client.get("/console/", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (302, "/console/login")
        answer = await log_in(house, "two")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/")
        cookies = answer.headers.get_list("set-cookie")
        paths = {part for each in cookies for part in each.split("; ") if part.startswith("Path=")}
        assert paths == {"Path=/console", "Path=/v/home/console", "Path=/v/work/console"}
        assert all("HttpOnly" in each and "SameSite=Strict" in each for each in cookies)
        page = await overview(house)
        assert [one.text for one in page.all("h2")] == ["home", "work"]
        for name in ("home", "work"):
            below = await house.client.get(f"/v/{name}/console/notes")
            assert below.status_code == 200
            assert "secret" not in below.text
        assert (await house.client.get("/v/secret/console/notes")).status_code == 302
        for path in ("/console/", "/console/state?partial=1", "/console/nothing", "/console/v/secret"):
            assert "secret" not in (await house.client.get(path)).text.replace("/v/secret", "")


async def test_wrong_token_opens_no_vault(tmp_path: Path) -> None:
    async with hosting(tmp_path, TOKENS, ("home", "work")) as house:
        answer = await log_in(house, "wrong")
        assert answer.status_code == 401
        assert "This token is not valid" in answer.text
        assert "set-cookie" not in answer.headers
        for _ in range(20):
            answer = await house.client.post("/console/login", data={"token": "wrong"})
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 0
        assert (await log_in(house, "two")).status_code == 303
        answer = await house.client.post("/console/login", data={"token": "two", "agent": "watcher"})
        assert answer.status_code == 400
        assert "Lithos itself acts under that name" in answer.text


async def test_overview_shows_the_state_of_each_vault(tmp_path: Path) -> None:
    """behaviour 293: the overview shows the state with its reason, notes, open tasks, warnings, proposals."""
    async with hosting(tmp_path, TOKENS) as house:
        home, work = (house.vaults[name].lithos for name in ("home", "work"))
        for number in range(3):
            await home.create(f"Note {number}")
        await work.call("lithos_task_create", title="Task", agent="ann")
        doubtful = await work.create("Doubtful")
        await work.call("lithos_impact", id=doubtful, action="quarantine", reason="It is wrong.", agent="ann")
        house.views["work"].state, house.views["work"].progress = "indexing", 0.42
        house.views["secret"].state, house.views["secret"].console = "unavailable", None
        house.views["secret"].reason = "Another server has it open. Run `lithos doctor`."
        await log_in(house, "all")
        for lithos in (home, work):  # The overview does not wait for this report.
            await lithos.server.get(OverviewWarnings).report(60.0)
        page = await overview(house)
        told = card_of(page, "home")
        assert "serving" in told
        assert "Notes3" in told
        assert "Open tasks0" in told
        assert "Proposals to review0" in told
        assert "right admin" in told
        assert "No note has a warning" in told
        told = card_of(page, "work")
        assert "indexing" in told
        assert "42 % indexed" in told
        assert "Notes1" in told
        assert "Open tasks1" in told
        assert "right write" in told
        assert "Notes with warnings: 1 quarantined." in told
        told = card_of(page, "secret")
        assert "unavailable" in told
        assert "Another server has it open. Run lithos doctor." in told
        assert "Notes" not in told
        links = {one.attributes["href"] for one in page.all("a")}
        assert {"/v/home/console/", "/v/work/console/", "/v/work/console/notes?status=quarantined"} <= links
        assert "/v/secret/console/" not in links
        piece = (await house.client.get("/console/state?partial=1")).text
        assert "42 % indexed" in parse(piece).text
        assert "<html" not in piece
        assert (await house.client.get("/console/state")).headers["location"] == "/console/"


async def test_hanging_vault_does_not_hide_other_vaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(tmp_path, TOKENS, ("home", "work")) as house:
        over = _time_is_over(monkeypatch)
        stats = _hanging(house.vaults["work"].lithos, ServerState.stats, over)
        monkeypatch.setattr(ServerState, "stats", stats)
        await house.vaults["home"].lithos.create("A note")
        await log_in(house, "two")
        page = await overview(house)
        assert "Notes1" in card_of(page, "home")
        told = card_of(page, "work")
        assert "The numbers could not be read: no answer within 3 s" in told
        assert "Proposals to review0" in told


def _time_is_over(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that ends the deadline of a summary call. Other callers have no deadline."""
    scopes: dict[trio.lowlevel.Task, trio.CancelScope] = {}

    def move_on_after(_: float) -> trio.CancelScope:
        scope = scopes[trio.lowlevel.current_task()] = trio.CancelScope()
        return scope

    # Only this module gets the replacement, because other parts of the server have their own deadlines.
    its_trio = SimpleNamespace(move_on_after=move_on_after, Lock=trio.Lock, current_time=trio.current_time)
    monkeypatch.setattr(summary, "trio", its_trio)

    def over() -> None:
        scopes[trio.lowlevel.current_task()].cancel()

    return over


def _hanging(
    lithos: Lithos, stats: Callable[[ServerState], Any], over: Callable[[], None]
) -> Callable[[ServerState], Any]:
    """Return a `stats` method that hangs on this server until `over` is set."""

    async def hang(self: ServerState) -> Any:
        if self is lithos.server.get(ServerState):
            over()
            await trio.sleep_forever()
        return await stats(self)

    return hang


async def test_vault_that_starts_later_needs_no_second_login(tmp_path: Path) -> None:
    async with hosting(tmp_path, TOKENS, ("home", "work")) as house:
        work = house.views["work"]
        console, work.console, work.state = work.console, None, "unavailable"
        await log_in(house, "two")
        assert (await house.client.get("/v/work/console/notes")).status_code == 302
        work.console, work.state = console, "serving"
        answer = await house.client.get("/console/")
        assert "Path=/v/work/console" in answer.headers["set-cookie"]
        assert (await house.client.get("/v/work/console/notes")).status_code == 200
        assert "set-cookie" not in (await house.client.get("/console/")).headers


async def test_logout_in_the_overview_ends_the_session_of_each_vault(tmp_path: Path) -> None:
    async with hosting(tmp_path, TOKENS, ("home", "work")) as house:
        await log_in(house, "two")
        page = (await house.client.get("/console/")).text
        kept = {each.path: each.value for each in house.client.cookies.jar}
        assert len(kept) == 3
        action, fields = form_of(page, "/console/logout", all_forms=True)
        forged = await house.client.post(action, data={"csrf": "x"})
        assert forged.status_code == 403
        answer = await house.client.post(action, data=fields)
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/login")
        assert not [each for each in house.client.cookies.jar if each.value]
        async with browser(house.url) as thief:
            for path, value in kept.items():
                found = await thief.get(f"{path}/", headers={"cookie": f"{COOKIE}={value}"})
                assert (found.status_code, "login" in found.headers["location"]) == (302, True)


async def test_logout_in_a_vault_ends_only_its_own_session(tmp_path: Path) -> None:
    """The session that the person ended stays closed until the next login. The other session continues."""
    async with hosting(tmp_path, TOKENS, ("home", "work")) as house:
        await log_in(house, "two")
        page = (await house.client.get("/v/work/console/")).text
        action, fields = form_of(page, "/v/work/console/logout", all_forms=True)
        assert (await house.client.post(action, data=fields)).status_code == 303
        assert [one.text for one in (await overview(house)).all("h2")] == ["home"]
        assert (await house.client.get("/v/work/console/notes")).status_code == 302
        page = (await house.client.get("/v/home/console/")).text
        action, fields = form_of(page, "/v/home/console/logout", all_forms=True)
        await house.client.post(action, data=fields)
        answer = await house.client.get("/console/", follow_redirects=True)
        assert "Your session has ended" in answer.text
        assert (await house.client.get("/console/state?partial=1")).status_code == 401


async def test_revoked_token_removes_its_vault_from_the_overview(tmp_path: Path) -> None:
    """behaviour 293: the vault disappears within 2 s from every page that the person sees."""
    async with hosting(tmp_path, TOKENS, ("home", "work")) as house:
        answer = await log_in(house, "two")
        assert f"Max-Age={int(LIFE.total_seconds())}" in answer.headers["set-cookie"]
        await revoke_token(house.vaults["work"], "two")
        with trio.fail_after(PATIENCE):
            while "work" in (page := await house.client.get("/console/")).text:
                await trio.sleep(0.02)
        assert [one.text for one in parse(page.text).all("h2")] == ["home"]
        assert (await house.client.get("/v/work/console/notes")).status_code == 302
        assert (await house.client.get("/v/home/console/notes")).status_code == 200
        await revoke_token(house.vaults["home"], "two")
        with trio.fail_after(PATIENCE):
            while (await house.client.get("/console/")).status_code == 200:
                await trio.sleep(0.02)


async def test_console_needs_no_login_when_no_tokens_exist(tmp_path: Path) -> None:
    async with hosting(tmp_path, None, ("home", "work")) as house:
        page = await overview(house)
        assert [one.text for one in page.all("h2")] == ["home", "work"]
        assert "Log out" not in page.text
        assert (await house.client.get("/console/login")).headers["location"] == "/console/"
        assert (await house.client.get("/")).headers["location"] == "/console/"
        assert (await house.client.get("/console/notes")).status_code == 404
        assert (await house.client.post("/console/logout")).status_code == 401
        below = await house.client.get("/v/work/console/")
        assert 'href="/v/home/console/">home</a>' in below.text


async def test_static_files_need_no_login(tmp_path: Path) -> None:
    async with hosting(tmp_path, TOKENS, ("home",)) as house:
        for name in ("console.css", "console.js", "icon.svg"):
            assert (await house.client.get(f"/console/static/{name}")).status_code == 200
        assert (await house.client.get("/console/static/nothing")).status_code == 404
