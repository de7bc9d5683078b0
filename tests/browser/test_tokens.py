"""Login and logout in a browser: pages for each right, and sessions that end while a page is open."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lithos.access.files.tokens import TokenStore
from lithos.kernel.values.principals import Rights
from tests.browser.driving import Browser
from tests.e2e.process import running_lithos
from tests.servers import put_note

pytestmark = [pytest.mark.slow, pytest.mark.takes(12)]

TOKEN = "a-token-for-the-browser"

#: Name, rights and agent of each token.
TOKENS: tuple[tuple[str, Rights, str | None], ...] = (
    ("reader", "read", None),
    ("bot", "write", "ci-bot"),
    ("boss", "admin", None),
)


def make_tokens(data: Path) -> dict[str, str]:
    """Create the tokens in `TOKENS`. Return the secrets by token name."""
    store = TokenStore(data / ".lithos")
    return {
        name: store.create(name, rights, agent, datetime.now(UTC), None)[1] for name, rights, agent in TOKENS
    }


def log_in(browser: Browser, secret: str, name: str = "") -> None:
    browser.driver.delete_all_cookies()
    browser.open("/console/login")
    browser.fill("token", secret)
    browser.fill("agent", name, submit=True)
    browser.shows("Log out", ".who")


def create_task(browser: Browser, title: str) -> str:
    """Create a task. Return the address of its page."""
    browser.open("/console/tasks")
    browser.click("New task")
    browser.fill("title", title, submit=True)
    browser.shows(title, "h1")
    return browser.path


def judge_all(browser: Browser, addresses: tuple[str, ...]) -> None:
    for address in addresses:
        browser.open(address)
        browser.judge()


def test_pages_offer_permitted_changes_and_explain_refused_changes(window: Browser, tmp_path: Path) -> None:
    """behaviours 246 and 247: covers read, write and admin on pages. A bound token keeps its agent."""
    put_note(tmp_path, "beacon.md", "# Beacon\n\nIt blinks.\n")
    secrets = make_tokens(tmp_path)
    with running_lithos(tmp_path) as server:
        browser = window.visit(server.url)
        log_in(browser, secrets["boss"], "Ann")
        assert "Ann" in browser.text(".who")
        assert "token boss, admin" in browser.text(".who")
        of_ann = create_task(browser, "Of Ann")
        browser.open("/console/notes/by-path?path=beacon.md")
        browser.shows("Beacon", "h1")
        note = browser.path
        pages = (note, of_ann, *(f"/console/{one}" for one in ("tasks", "agents/Ann", "system", "identity")))
        judge_all(browser, pages)
        browser.open("/console/system")
        assert [row.text.split()[:2] for row in browser.all("#tokens tbody tr")] == [
            [name, rights] for name, rights, _ in TOKENS
        ]

        log_in(browser, secrets["bot"], "Mallory")
        browser.shows("The token bot is bound to the agent ci-bot")
        assert "ci-bot" in browser.text(".who")
        of_bot = create_task(browser, "Of the bot")
        browser.shows("created by ci-bot")
        browser.open(of_ann)
        browser.shows("This needs the right admin; you have write (token bot).")
        off = browser.one(".actions .off")
        told = (off.text, off.get_attribute("aria-disabled"), off.get_attribute("href"))
        assert told == ("Cancel…", "true", None)
        judge_all(browser, pages)
        browser.open(of_bot)
        browser.click("Cancel…")
        browser.click("Cancel the task")
        browser.shows("The task was cancelled.")

        log_in(browser, secrets["reader"])
        for address, words in ((note, "Quarantine…"), (of_ann, "Cancel…"), ("/console/tasks", "New task")):
            browser.open(address)
            browser.shows("This needs the right write; you have read (token reader).")
            assert [one.text for one in browser.all(".actions .off")] == [words]
        browser.open(f"{note}/quarantine")
        browser.shows("This needs the right write; you have read (token reader).")
        browser.complaints()  # Chromium reports the 403
        judge_all(browser, pages)
        # behaviour 248: revocation of a token ends the session of an open page and its live feed.
        browser.open("/console/")
        browser.shows("live", "[data-live]")
        TokenStore(tmp_path / ".lithos").revoke("reader")
        browser.shows("the token reader was revoked")
        assert browser.path.startswith("/console/login")
        browser.complaints()  # Chromium reports the 401 of the feed
        browser.judge()


def test_person_sees_no_data_before_login_or_after_logout(window: Browser, tmp_path: Path) -> None:
    """behaviour 237: if a token is set, nothing is shown without a login."""
    with running_lithos(tmp_path, env={"LITHOS_AUTH_TOKEN": TOKEN}) as server:
        browser = window.visit(server.url)
        browser.open("/console/tasks")
        browser.shows("Log in")
        assert browser.path == "/console/login?next=/console/tasks"
        browser.judge()
        browser.fill("token", "wrong", submit=True)
        browser.shows("This token is not valid")
        browser.complaints()  # Chromium reports the 401
        browser.fill("token", TOKEN)
        browser.fill("agent", "Ann", submit=True)
        browser.until(lambda: browser.path == "/console/tasks", "the login leads to what was asked for")
        browser.shows("Ann", ".who")
        (cookie,) = browser.driver.get_cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert TOKEN not in str(cookie)
        assert browser.driver.execute_script("return document.cookie") == ""
        browser.click("Log out")
        browser.shows("Log in")
        browser.open("/console/")
        browser.shows("Log in")
        # The session has ended, so the console asks for another login.
        browser.fill("token", TOKEN, submit=True)
        browser.shows("Overview", ".side")
        browser.driver.delete_all_cookies()
        browser.open("/console/identity")
        browser.shows("Log in")
        assert browser.path.startswith("/console/login?next=/console/identity")
