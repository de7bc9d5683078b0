"""Console pages with an empty vault, missing components, a lost server or missing objects."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any, Final

import pytest

from tests.browser.driving import Browser
from tests.browser.test_pages import STARTS, crawl
from tests.e2e.feeds import call_tool
from tests.e2e.process import Lithos, running_lithos
from tests.servers import MISSING_ID as NO_ID

pytestmark = [pytest.mark.slow, pytest.mark.takes(30)]

#: First a light theme in a wide window, then a dark theme in a narrow window.
LOOKS: Final = (("light", 1280), ("dark", 400))


def judged(browser: Browser, address: str, *allowed: str) -> None:
    """Open a page and check it. The given HTTP statuses of the page itself do not count as errors."""
    browser.open(address)
    itself = f"{browser.driver.current_url} - Failed to load resource: the server responded with a status of "
    told = [one for one in browser.complaints() if not any(itself + status in one for status in allowed)]
    assert not told, (address, told)
    browser.judge()


def judge_all(browser: Browser, starts: tuple[str, ...], *allowed: str, most: int = 40) -> None:
    """Check every kind of linked page. Light and wide pages alternate with dark and narrow pages."""
    found = crawl(browser, starts, most=most, each=1)
    browser.complaints()
    for number, address in enumerate(found):
        browser.look_as(*LOOKS[number % 2])
        judged(browser, address, *allowed)


def a_note(server: Lithos, title: str = "Timetable", **more: Any) -> str:
    answer = call_tool(server, "lithos_write", title=title, content="Trains go at nine.", agent="ada", **more)
    return str(answer["id"])


@pytest.mark.nightly
def test_pages_of_an_empty_vault_show_what_to_do(window: Browser, tmp_path: Path) -> None:
    """behaviour 235"""
    with running_lithos(tmp_path / "data") as server:
        window.visit(server.url)
        judge_all(window, STARTS, "404")  # the component examples contain links without a target
        for page in (
            "notes",
            "notes?view=deleted",
            "graph",
            "tasks",
            "agents",
            "receipts",
            "search?q=nothing",
        ):
            window.open(f"/console/{page}")
            assert window.all(".empty"), (page, window.text())


@pytest.mark.nightly
def test_pages_without_model_or_files_report_the_missing_parts(window: Browser, tmp_path: Path) -> None:
    """behaviour 235: first without the embedding model, and then without the notes folder."""
    data = tmp_path / "data"
    env = {"LITHOS_SEARCH__EMBEDDING_MODEL": str(tmp_path / "no-model")}
    with running_lithos(data, env=env) as server:
        window.visit(server.url)
        note = a_note(server)
        a_note(server, "Stations", derived_from_ids=[note])
        call_tool(server, "lithos_task_create", title="Look at trains", agent="ada")
        call_tool(server, "lithos_retrieve", query="trains", agent_id="ada")
        window.open("/console/search?q=trains")
        window.shows("Timetable")
        window.shows("semantic")
        window.open("/console/search?q=trains&mode=semantic")
        window.complaints()
        assert window.all(".notice"), window.text()
        folder = data / "knowledge"
        away = data / "away"
        folder.rename(away)
        more = (f"notes/{note}", f"graph?note={note}", "search?q=trains&mode=semantic")
        starts = (*STARTS, *(f"/console/{one}" for one in more))
        judge_all(window, starts, "503", "404", most=20)
        window.open("/console/")
        window.shows("degraded")
        window.open("/console/system")
        window.shows("no-model")
        away.rename(folder)
        window.open(f"/console/notes/{note}")
        window.shows("Trains go at nine.")


@pytest.mark.nightly
def test_open_page_reports_a_lost_server_and_recovers(window: Browser, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_lithos(data) as server:
        window.visit(server.url)
        port = str(server.address[1])
        window.open("/console/")
        window.shows("live", "[data-live]")
        assert not window.one("[data-lost]").is_displayed()
        assert server.stop() == 0
        window.until(lambda: window.one("[data-lost]").is_displayed(), "the banner is there")
        window.look_as(*LOOKS[1])
        window.complaints()  # Chromium reports the refused connections
        window.judge()
    with running_lithos(data, "-p", port) as server:
        window.until(lambda: not window.one("[data-lost]").is_displayed(), "the banner is gone", 40)
        window.shows("live", "[data-live]")
        a_note(server, "After the restart")
        window.shows("After the restart", "[data-head]")
        # The form belongs to a session of the old server. The new server reports that it changed nothing.
        window.open("/console/tasks/new")
        window.fill("title", "Kept through a restart")
        assert server.stop() == 0
    with running_lithos(data, "-p", port) as server:
        window.click("Create", "main button")
        window.shows("Nothing was changed")
        assert call_tool(server, "lithos_task_list")["tasks"] == []
        window.open("/console/tasks/new")
        window.fill("title", "After the restart")
        window.click("Create", "main button")
        window.shows("After the restart", "h1")
        window.open("/console/tasks/new")
        window.fill("title", "To nobody")
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(15)
        window.click("Create", "main button")  # the browser reports that the server does not answer
    with running_lithos(data, "-p", port) as server:
        assert [task["title"] for task in call_tool(server, "lithos_task_list")["tasks"]] == [
            "After the restart"
        ]
        window.open("/console/tasks")
        window.shows("After the restart")
        window.complaints()


def test_error_page_of_a_missing_object_offers_a_next_step(window: Browser, tmp_path: Path) -> None:
    with running_lithos(tmp_path / "data") as server:
        window.visit(server.url)
        a_note(server)
        for number, page in enumerate((
            f"notes/{NO_ID}", f"notes/{NO_ID}/diff?from=1&to=2", f"notes/{NO_ID}/restore?version=1",
            f"notes/{NO_ID}/quarantine", "notes/by-path?path=no.md", "notes/%0A", f"tasks/{NO_ID}",
            f"tasks/{NO_ID}/cancel", "tasks?column=none", "agents/nobody", "receipts/rcpt_0",
            "undo", "undo/none", f"graph?note={NO_ID}", "files/no.png", "no-such-page", "line%0Abreak",
        )):  # fmt: skip
            window.look_as(*LOOKS[number % 2])
            judged(window, f"/console/{page}", "404", "400")
            assert window.all("main .notice"), (page, window.text())
            assert window.all("main a[href^='/console/'], .side nav a"), page
