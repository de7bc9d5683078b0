"""Pages of a server that is empty, lacks something, is gone, or is asked for what is not there."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.browser.driving import Browser
from tests.browser.test_pages import STARTS, crawl
from tests.e2e.feeds import call_tool
from tests.e2e.process import Lithos, running_lithos

pytestmark = [pytest.mark.slow, pytest.mark.takes(30)]

NO_ID: Final = "00000000-0000-4000-8000-000000000000"
#: Light and wide, then dark and narrow.
LOOKS: Final = (("light", 1280), ("dark", 400))


@pytest.fixture
def visiting(window: Browser) -> Iterator[Browser]:
    """The browser, at no server yet."""
    window.driver.get("about:blank")
    window.complaints()
    window.asked_elsewhere()
    yield window
    look_as(window, *LOOKS[0])


def look_as(browser: Browser, theme: str, width: int) -> None:
    browser.theme(theme)
    browser.width(width)


def judged(browser: Browser, address: str, *allowed: str) -> None:
    """Open a page and judge it; the browser may report these statuses of the page itself."""
    browser.open(address)
    itself = f"{browser.driver.current_url} - Failed to load resource: the server responded with a status of "
    told = [one for one in browser.complaints() if not any(itself + status in one for status in allowed)]
    assert not told, (address, told)
    browser.judge()


def judge_all(browser: Browser, starts: tuple[str, ...], *allowed: str, most: int = 40) -> int:
    """Judge every kind of page that links lead to, light and wide, and dark and narrow."""
    look_as(browser, *LOOKS[0])
    found = crawl(browser, starts, most=most, each=1)
    browser.complaints()
    for look in LOOKS:
        look_as(browser, *look)
        for address in found:
            judged(browser, address, *allowed)
    return len(found)


def a_note(server: Lithos, title: str = "Timetable", **more: Any) -> str:
    answer = call_tool(server, "lithos_write", title=title, content="Trains go at nine.", agent="ada", **more)
    return str(answer["id"])


@pytest.mark.deadline(200)
def test_every_page_of_an_empty_vault_is_sound_and_says_what_to_do(visiting: Browser, tmp_path: Path) -> None:
    """behaviour 235"""
    with running_lithos(tmp_path / "data") as server:
        visiting.base = server.url
        count = judge_all(visiting, STARTS, "404")  # the examples of components lead nowhere
        for page in (
            "notes",
            "notes?view=deleted",
            "graph",
            "tasks",
            "agents",
            "receipts",
            "search?q=nothing",
        ):
            visiting.open(f"/console/{page}")
            assert visiting.all(".empty"), (page, visiting.text())
        print(f"empty: {count} pages, {visiting.checks} checks")  # noqa: T201


@pytest.mark.deadline(200)
def test_pages_without_model_and_files_are_sound_and_say_what_is_missing(
    visiting: Browser, tmp_path: Path
) -> None:
    """behaviour 235: the model of embeddings is missing, then the notes' folder too, then their files"""
    data = tmp_path / "data"
    env = {"LITHOS_SEARCH__EMBEDDING_MODEL": str(tmp_path / "no-model")}
    with running_lithos(data, env=env) as server:
        visiting.base = server.url
        note = a_note(server)
        a_note(server, "Stations", derived_from_ids=[note])
        call_tool(server, "lithos_task_create", title="Look at trains", agent="ada")
        call_tool(server, "lithos_retrieve", query="trains", agent_id="ada")
        visiting.open("/console/search?q=trains")
        visiting.shows("Timetable")
        visiting.shows("semantic")
        visiting.open("/console/search?q=trains&mode=semantic")
        visiting.complaints()
        assert visiting.all(".notice"), visiting.text()
        folder = data / "knowledge"
        away = data / "away"
        folder.rename(away)
        starts = (
            *STARTS,
            f"/console/notes/{note}",
            f"/console/graph?note={note}",
            "/console/search?q=trains&mode=semantic",
        )
        count = judge_all(visiting, starts, "503", "404", most=20)
        visiting.open("/console/")
        visiting.shows("degraded")
        visiting.open("/console/system")
        visiting.shows("no-model")
        away.rename(folder)
        visiting.open(f"/console/notes/{note}")
        visiting.shows("Trains go at nine.")
        print(f"degraded: {count} pages, {visiting.checks} checks")  # noqa: T201


def test_a_page_that_is_open_says_that_the_server_is_gone_and_goes_on_after_it(
    visiting: Browser, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with running_lithos(data) as server:
        visiting.base, port = server.url, str(server.address[1])
        visiting.open("/console/")
        visiting.shows("live", "[data-live]")
        assert not visiting.one("[data-lost]").is_displayed()
        assert server.stop() == 0
        visiting.until(lambda: visiting.one("[data-lost]").is_displayed(), "the banner is there")
        look_as(visiting, *LOOKS[1])
        visiting.complaints()  # Chromium reports the refused connections
        visiting.judge()
    with running_lithos(data, "-p", port) as server:
        visiting.until(lambda: not visiting.one("[data-lost]").is_displayed(), "the banner is gone", 40)
        visiting.shows("live", "[data-live]")
        a_note(server, "After the restart")
        visiting.shows("After the restart", "[data-head]")
        # A form of before: the session was the old server's, so nothing is changed, and that is said.
        visiting.open("/console/tasks/new")
        visiting.fill("title", "Kept through a restart")
        assert server.stop() == 0
    with running_lithos(data, "-p", port) as server:
        visiting.click("Create", "main button")
        visiting.shows("Nothing was changed")
        assert call_tool(server, "lithos_task_list")["tasks"] == []
        visiting.open("/console/tasks/new")
        visiting.fill("title", "After the restart")
        visiting.click("Create", "main button")
        visiting.shows("After the restart", "h1")
        visiting.open("/console/tasks/new")
        visiting.fill("title", "To nobody")
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(15)
        visiting.click("Create", "main button")  # the browser says that nobody answers
    with running_lithos(data, "-p", port) as server:
        assert [task["title"] for task in call_tool(server, "lithos_task_list")["tasks"]] == [
            "After the restart"
        ]
        visiting.open("/console/tasks")
        visiting.shows("After the restart")
        visiting.complaints()


def test_a_button_that_is_clicked_twice_changes_once(visiting: Browser, tmp_path: Path) -> None:
    with running_lithos(tmp_path / "data") as server:
        visiting.base = server.url
        visiting.open("/console/tasks/new")
        visiting.fill("title", "Only once")
        twice = "for (const _ of [1, 2]) document.querySelector('main form[method=post] button').click()"
        visiting.driver.execute_script(twice)
        visiting.shows("Only once", "h1")
        # Even a browser without the script: the same form sent twice at one moment.
        visiting.open("/console/tasks/new")
        visiting.fill("title", "Sent twice")
        visiting.driver.execute_async_script("""
          const done = arguments[0], form = document.querySelector("main form[method=post]");
          const body = new URLSearchParams(new FormData(form));
          const send = () => fetch(form.action, {method: "POST", body});
          Promise.all([send(), send(), send()]).then((all) => done(all.map((one) => one.url)));
        """)
        titles = [task["title"] for task in call_tool(server, "lithos_task_list")["tasks"]]
        assert sorted(titles) == ["Only once", "Sent twice"]
        note = a_note(server)
        visiting.open(f"/console/notes/{note}/quarantine")
        visiting.fill("reason", "It is wrong")
        visiting.driver.execute_script(twice)
        visiting.shows("quarantined")
        versions = call_tool(server, "lithos_history", id=note)["versions"]
        assert len(versions) == 2
        visiting.judge()


def test_what_is_not_there_is_told_with_a_way_on(visiting: Browser, tmp_path: Path) -> None:
    with running_lithos(tmp_path / "data") as server:
        visiting.base = server.url
        a_note(server)
        for look in LOOKS:
            look_as(visiting, *look)
            for page in (
                f"notes/{NO_ID}", f"notes/{NO_ID}/diff?from=1&to=2", f"notes/{NO_ID}/restore?version=1",
                f"notes/{NO_ID}/quarantine", "notes/by-path?path=no.md", "notes/%0A", f"tasks/{NO_ID}",
                f"tasks/{NO_ID}/cancel", "tasks?column=none", "agents/nobody", "receipts/rcpt_0",
                "undo", "undo/none", f"graph?note={NO_ID}", "files/no.png", "no-such-page", "line%0Abreak",
            ):  # fmt: skip
                judged(visiting, f"/console/{page}", "404", "400")
                assert visiting.all("main .notice"), (page, visiting.text())
                assert visiting.all("main a[href^='/console/'], .side nav a"), page
        print(f"{visiting.checks} checks")  # noqa: T201
