"""Login, logout and expired sessions in a browser; a server that stops while a page is open."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.driving import Browser
from tests.e2e.process import Lithos, running_lithos

pytestmark = pytest.mark.slow

TOKEN = "a-token-for-the-browser"


def visit(window: Browser, server: Lithos) -> Browser:
    window.base = server.url
    window.width(1280)
    window.driver.get("about:blank")
    window.driver.delete_all_cookies()
    window.complaints()
    window.asked_elsewhere()
    return window


def test_a_person_logs_in_sees_nothing_before_and_logs_out(window: Browser, tmp_path: Path) -> None:
    """behaviour 237: with a token nothing is shown without login."""
    with running_lithos(tmp_path, env={"LITHOS_AUTH_TOKEN": TOKEN}) as server:
        browser = visit(window, server)
        browser.open("/console/tasks")
        browser.shows("Log in")
        assert browser.path == "/console/login?next=/console/tasks"
        browser.judge()
        browser.fill("token", "wrong", submit=True)
        browser.shows("This is no valid token")
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


def test_a_browser_whose_session_is_gone_is_asked_to_log_in_again(window: Browser, tmp_path: Path) -> None:
    with running_lithos(tmp_path, env={"LITHOS_AUTH_TOKEN": TOKEN}) as server:
        browser = visit(window, server)
        browser.open("/console/login")
        browser.fill("token", TOKEN, submit=True)
        browser.shows("Overview", ".side")
        browser.driver.delete_all_cookies()
        browser.open("/console/identity")
        browser.shows("Log in")
        assert browser.path.startswith("/console/login?next=/console/identity")
