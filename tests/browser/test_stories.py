"""User stories in the console, by mouse or by keyboard alone: notes, tasks, undo, feed, search, one day.

Each step asserts the visible text. After a change, it also asserts the answers that agents get over MCP. The
comments name every click. Together they describe a user's way through the console.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.browser.conftest import staying
from tests.browser.driving import Browser
from tests.e2e.feeds import call_tool
from tests.e2e.process import Lithos, running_lithos, start_lithos

pytestmark = [pytest.mark.slow, pytest.mark.takes(15)]

PERSON = "person"


def is_so(browser: Browser, fact: object, told: object = "") -> None:
    """Assert `fact`, and count the assertion."""
    browser.checks += 1
    assert fact, told


def is_quiet(browser: Browser) -> None:
    """Assert that the browser reported no error and sent no request to another host."""
    is_so(browser, not (complaints := browser.complaints()), complaints)
    is_so(browser, not (elsewhere := browser.asked_elsewhere()), elsewhere)


def write(server: Lithos, title: str, content: str, agent: str, **more: Any) -> str:
    answer = call_tool(server, "lithos_write", title=title, content=content, agent=agent, **more)
    assert answer["status"] in ("created", "updated"), answer
    return str(answer["id"])


def history(server: Lithos, note_id: str) -> list[tuple[int, str, str]]:
    """Return version, operation and agent of each version, newest first."""
    rows = call_tool(server, "lithos_history", id=note_id, limit=50)["versions"]
    return [(row["version"], row["op"], row["agent"]) for row in rows]


def create_task(server: Lithos, title: str, agent: str = "planner", **more: Any) -> str:
    return str(call_tool(server, "lithos_task_create", title=title, agent=agent, **more)["task_id"])


def task_of(server: Lithos, task_id: str) -> dict[str, Any]:
    answer = call_tool(server, "lithos_task_get", task_id=task_id)
    return dict(answer.get("task", answer))


# -- a note, by mouse ------------------------------------------------------------------------------


def test_note_can_be_managed_by_mouse(window: Browser, tmp_path: Path) -> None:
    """behaviour 239: changes show their consequences first and happen once, under the person's name."""
    with running_lithos(tmp_path) as server:
        browser = window.visit(server.url, "/console/")
        tide = write(server, "Tide table", "High water is at six.", "ada")
        write(server, "Ferry plan", "We leave at high water.", "ben", derived_from_ids=[tide])
        write(server, "Tide table", "High water is at nine.", "ada", id=tide)
        # The feed on the overview shows the change without a page reload.
        browser.shows("ada changed Tide table", ".feed")
        # Click the title in the feed.
        browser.click("Tide table", ".feed a.note")
        browser.shows("High water is at nine.", "article")
        is_so(browser, browser.path == f"/console/notes/{tide}")
        browser.shows("version 2", ".head")
        browser.shows("by ada", ".head")
        browser.shows("Ferry plan", "#about")
        # Click "Versions", and then "diff".
        browser.click("Versions", ".head a")
        is_so(browser, "ada" in browser.text("#versions"))
        browser.click("diff", "a[aria-label$=', version 2']")
        browser.shows("From version 1 to version 2")
        is_so(browser, "High water is at nine." in browser.text_now("ins"))
        is_so(browser, "High water is at six." in browser.text_now("del"))
        shown = browser.path
        restore_version_one(browser, server, tide)
        quarantine_and_clear(browser, server, tide)
        is_so(browser, "/diff?row=" in shown, shown)
        is_quiet(browser)


def restore_version_one(browser: Browser, server: Lithos, tide: str) -> None:
    # Click "Restore 1…". A preview is shown first.
    browser.click("Restore 1")
    browser.shows("The bytes of version 1 become version 3")
    browser.shows("version 2 (updated by ada)")
    browser.shows("recorded under the name person")
    is_so(browser, "High water is at six." in browser.text_now("ins"))
    is_so(browser, len(history(server, tide)) == 2)
    # Open the same page in a second tab, which is used later.
    asked, first = browser.path, browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    second = browser.driver.current_window_handle
    browser.open(asked)
    browser.shows("become version 3")
    browser.driver.switch_to.window(first)
    # Double-click "Restore version 1".
    button = browser.one("main form[method=post] button")
    ActionChains(browser.driver).double_click(button).perform()
    browser.shows("Version 1 is restored as version 3, recorded as person.")
    browser.shows("High water is at six.", "article")
    browser.shows("person", "#versions")
    expected = [(3, "restored", PERSON), (2, "updated", "ada"), (1, "created", "ada")]
    is_so(browser, history(server, tide) == expected, history(server, tide))
    # Go back to the submitted page, and click "Restore version 1" again. The change has already been made.
    browser.driver.back()
    browser.shows("The bytes of version 1 become version 3")
    browser.click("Restore version 1", "main button")
    browser.until(lambda: browser.path == f"/console/notes/{tide}", "the note is shown")
    browser.shows("version 3", ".head")
    is_so(browser, history(server, tide) == expected, history(server, tide))
    # Click "Restore version 1" in the second tab. The note has changed since that page was loaded.
    browser.driver.switch_to.window(second)
    browser.click("Restore version 1", "main button")
    browser.shows("Nothing was restored: the note was changed in the meantime.")
    browser.shows("The bytes of version 1 become version 4")
    is_so(browser, history(server, tide) == expected, history(server, tide))
    browser.driver.close()
    browser.driver.switch_to.window(first)


def quarantine_and_clear(browser: Browser, server: Lithos, tide: str) -> None:
    # Click "Search", type a query, and click the title.
    browser.click("Search", ".side nav a")
    browser.fill("q", "high water")
    browser.shows("Tide table", "#search-results")
    browser.click("Tide table", "#search-results a.note")
    # Click "Quarantine…". The dependent notes are shown first.
    browser.click("Quarantine", ".head a")
    browser.shows("1 note that depends on this note is shown as suspect")
    is_so(browser, "Ferry plan" in browser.text("[aria-labelledby=dependents-title]"))
    is_so(browser, call_tool(server, "lithos_read", id=tide)["metadata"]["status"] == "active")
    browser.fill("reason", "It was read for another harbour.")
    # Click "Quarantine".
    browser.click("Quarantine", "main form[method=post] button")
    browser.shows("The note is quarantined; recorded as person.")
    browser.shows("Reason for the quarantine: It was read for another harbour.")
    is_so(browser, call_tool(server, "lithos_read", id=tide)["metadata"]["status"] == "quarantined")
    is_so(browser, history(server, tide)[0] == (4, "updated", PERSON), history(server, tide))
    # Go back, and click "Quarantine" again. The change has already been made.
    browser.driver.back()
    browser.shows("Quarantine this note", "h1")
    browser.click("Quarantine", "main form[method=post] button")
    browser.shows("Reason for the quarantine: It was read for another harbour.")
    is_so(browser, history(server, tide)[0][0] == 4, history(server, tide))
    # Click the dependent note. It shows a warning.
    browser.click("Ferry plan", "#about a.note")
    browser.shows("suspect", ".warnings")
    browser.shows("Tide table", ".warnings")
    # Click the title in the warning, then "End quarantine…", and then "End the quarantine".
    browser.click("Tide table", ".warnings a.note")
    browser.click("End quarantine", ".head a")
    browser.shows("Its status becomes active")
    browser.shows("It was read for another harbour.")
    browser.click("End the quarantine", "main form[method=post] button")
    browser.shows("The quarantine has ended; recorded as person.")
    is_so(browser, not browser.all(".warnings"))
    is_so(browser, call_tool(server, "lithos_read", id=tide)["metadata"]["status"] == "active")
    is_so(browser, history(server, tide)[0] == (5, "updated", PERSON), history(server, tide))
    # Click the dependent note. It no longer shows a warning.
    browser.click("Ferry plan", "#about a.note")
    browser.shows("We leave at high water.", "article")
    is_so(browser, not browser.all(".warnings"))


# -- tasks, by keyboard alone ------------------------------------------------------------------------


def go_to(browser: Browser, words: str, *keys: str) -> None:
    """Press Tab until the element with these words has the focus. Then press keys there."""
    browser.tab_to(words)
    browser.press(*keys)


@pytest.mark.nightly
def test_task_can_be_managed_by_keyboard_alone(window: Browser, tmp_path: Path) -> None:
    """behaviour 239: cancelling and resolving show their consequences first.

    The change has the person's name.
    """
    with running_lithos(tmp_path) as server:
        browser = window.visit(server.url, "/console/")
        browser.shows("Overview", "h1")
        browser.press("g", "t")
        browser.shows("There are no tasks yet.")
        go_to(browser, "New task", Keys.ENTER)
        browser.shows("The task is created under your name")
        go_to(browser, "title", "Ask the harbour master")
        go_to(browser, "description", "By **telephone**.")
        go_to(browser, "Create", Keys.ENTER)
        browser.shows("created by person")
        browser.shows("By telephone.", ".prose")
        task_id = browser.path.rpartition("/")[2]
        is_so(browser, task_of(server, task_id)["created_by"] == PERSON)
        # An agent claims the task, and another task depends on this task.
        call_tool(server, "lithos_task_claim", task_id=task_id, aspect="call", agent="ada", ttl_minutes=30)
        create_task(server, "Print the timetable", depends_on=[task_id])
        # Open the board with keys, and then open the task.
        browser.press("g", "t")
        browser.shows("Print the timetable", ".blocked")
        browser.shows("ada", ".claimed")
        go_to(browser, "Ask the harbour master", Keys.ENTER)
        browser.shows("By telephone.", ".prose")
        go_to(browser, "Cancel", Keys.ENTER)
        browser.shows("Cancel “Ask the harbour master”?", "h1")
        browser.shows("Print the timetable")
        browser.shows("can never start")
        browser.shows("ada")
        is_so(browser, task_of(server, task_id)["status"] == "open")
        # Another task now depends on this task, so the displayed consequences are outdated.
        create_task(server, "Hire a pilot", depends_on=[task_id])
        go_to(browser, "Cancel the task", Keys.ENTER)
        browser.shows(
            "Nothing was changed. The effects of this action have changed since you opened the page"
        )
        is_so(browser, task_of(server, task_id)["status"] == "open")
        (told,) = browser.complaints()
        is_so(browser, "409" in told, told)
        browser.press("g", "t")
        go_to(browser, "Ask the harbour master", Keys.ENTER)
        browser.shows("By telephone.", ".prose")
        go_to(browser, "Cancel", Keys.ENTER)
        browser.shows("Hire a pilot")
        browser.shows("Print the timetable")
        go_to(browser, "reason", "Nobody answers.")
        go_to(browser, "Cancel the task", Keys.ENTER)
        browser.shows("The task was cancelled.")
        browser.shows("Nobody answers.")
        browser.shows("No agent holds a claim.")
        browser.shows("person cancelled the task")
        is_so(browser, task_of(server, task_id)["status"] == "cancelled")
        # Go back, and press Enter again. The task is cancelled only once.
        browser.driver.back()
        browser.shows("Cancel “Ask the harbour master”?", "h1")
        go_to(browser, "Cancel the task", Keys.ENTER)
        browser.shows("person cancelled the task")
        is_so(browser, browser.text().count("cancelled the task") == 1, browser.text())
        resolve_a_gate(browser, server)
        is_quiet(browser)


def resolve_a_gate(browser: Browser, server: Lithos) -> None:
    browser.press("g", "t")
    browser.shows("Tasks", "h1")
    go_to(browser, "New task", Keys.ENTER)
    browser.shows("The task is created under your name")
    go_to(browser, "title", "The mayor agrees")
    go_to(browser, "task_type", "gate")
    go_to(browser, "Create", Keys.ENTER)
    browser.shows("created by person")
    gate = browser.path.rpartition("/")[2]
    is_so(browser, task_of(server, gate)["task_type"] == "gate")
    behind = create_task(server, "Build the pier", depends_on=[gate])
    browser.press("g", "t")
    browser.shows("Build the pier", ".blocked")
    go_to(browser, "The mayor agrees", Keys.ENTER)
    browser.shows("Build the pier")
    go_to(browser, "Resolve the gate", Keys.ENTER)
    browser.shows("Resolve the gate “The mayor agrees”?", "h1")
    browser.shows("Build the pier")
    is_so(browser, "Tasks that can start" in browser.text("main"))
    is_so(browser, task_of(server, gate)["status"] == "open")
    go_to(browser, "outcome", "She agrees.")
    go_to(browser, "Resolve the gate", Keys.ENTER)
    browser.shows("The gate was resolved. 1 task can start now.")
    browser.shows("She agrees.")
    is_so(browser, task_of(server, gate)["status"] == "completed")
    ready = call_tool(server, "lithos_task_ready")
    is_so(browser, behind in str(ready), ready)
    browser.press("g", "t")
    browser.shows("Build the pier", ".ready")


# -- undoing what one agent did, by mouse -------------------------------------------------------------


@pytest.mark.nightly
def test_changes_of_one_agent_can_be_undone_by_mouse(window: Browser, tmp_path: Path) -> None:
    """behaviour 239: undo shows its consequences first. It happens once, under the person's name."""
    with running_lithos(tmp_path) as server:
        harbours = write(server, "Harbours", "Bergen.\n\nStavanger.\n\nBodø.", "ada")
        fares = write(server, "Fares", "Twelve crowns.", "ada")
        write(server, "Harbours", "Bergen.\n\nStavanger.\n\nAtlantis.", "intern", id=harbours)
        write(server, "Harbours", "Bergen, Askøy.\n\nStavanger.\n\nAtlantis.", "ben", id=harbours)
        write(server, "Fares", "Free of charge.", "intern", id=fares)
        made = write(server, "All is well", "No problems.", "intern")
        write(server, "Boats", "Three.", "ben")
        browser = window.visit(server.url, "/console/")
        # Click "Agents", then "intern", and then "Undo the agent's changes…".
        browser.click("Agents", ".side nav a")
        browser.click("intern", "main a.agent")
        browser.shows("intern", "h1")
        browser.click("Undo the agent's changes", ".head a")
        browser.shows("Nothing has been changed yet.")
        is_so(browser, "Fares" in browser.text(".r-reverted"))
        is_so(browser, "Harbours" in browser.text(".r-merged"))
        is_so(browser, "All is well" in browser.text(".r-deleted"))
        is_so(browser, "Boats" not in browser.text("main"))
        is_so(browser, "Atlantis" in call_tool(server, "lithos_read", id=harbours)["content"])
        # Double-click the undo button.
        ActionChains(browser.driver).double_click(browser.one("main button.danger")).perform()
        browser.shows("Changes of intern were undone", "h1")
        browser.shows("by person")
        texts = [call_tool(server, "lithos_read", id=each)["content"].strip() for each in (harbours, fares)]
        is_so(browser, texts == ["Bergen, Askøy.\n\nStavanger.\n\nBodø.", "Twelve crowns."], texts)
        is_so(browser, history(server, fares)[0] == (3, "restored", PERSON), history(server, fares))
        is_so(browser, history(server, made)[0][1:] == ("deleted", PERSON), history(server, made))
        # Go back, and click the undo button again. The page shows the first result.
        outcome = browser.path
        browser.driver.back()
        browser.shows("Nothing has been changed yet.")
        browser.click("Undo ", "main button.danger")
        browser.until(lambda: browser.path == outcome, "the same outcome is shown")
        is_so(browser, len(history(server, harbours)) == 4, history(server, harbours))
        is_quiet(browser)


# -- the live feed -----------------------------------------------------------------------------------


def rows_of(browser: Browser) -> list[str]:
    """Return the sequence numbers of the feed rows, newest first."""
    return [row.get_attribute("data-seq") or "" for row in browser.all(".feed [data-seq]")]


@pytest.mark.nightly
def test_feed_continues_without_a_reload_after_a_server_restart(window: Browser, tmp_path: Path) -> None:
    """behaviour 238: events appear without a page reload.

    After a lost connection, no event is missing or shown twice.
    """
    with running_lithos(tmp_path) as server:
        browser = window.visit(server.url, "/console/")
        browser.shows("Nothing has happened yet.")
        browser.shows("live", "[data-live]")
        browser.driver.execute_script("window.marker = 'the same document'")
        write(server, "Seen at once", "Text.", "ada")
        browser.shows("ada wrote Seen at once", ".feed")
        is_so(browser, not browser.one("[data-lost]").is_displayed())
        is_quiet(browser)
        port = server.address[1]
        is_so(browser, server.stop(signal.SIGTERM) == 0)
        browser.until(browser.one("[data-lost]").is_displayed, "the banner tells that the server is away")
        browser.shows("The server does not answer.", "[data-lost]")
        browser.shows("connecting", "[data-live]")
    # Write a file while no server runs.
    (tmp_path / "knowledge" / "by-hand.md").write_text("# Written by hand\n\nText.\n", encoding="utf-8")
    again = start_lithos(tmp_path, "-p", str(port))
    try:
        is_so(browser, again.url == browser.base, again.url)
        for number in range(5):
            write(again, f"After the restart {number}", "Text.", f"ben-{number}")
        browser.until(lambda: not browser.one("[data-lost]").is_displayed(), "the banner is gone", within=60)
        for number in range(5):
            browser.shows(f"ben-{number} wrote After the restart {number}", ".feed")
        browser.shows("live", "[data-live]")
        write(again, "The stream is back", "Text.", "ben")
        browser.shows("ben wrote The stream is back", ".feed")
        browser.shows("while the server was down", ".feed")
        numbers = rows_of(browser)
        is_so(browser, len(numbers) == len(set(numbers)), numbers)
        is_so(browser, numbers == sorted(numbers, key=int, reverse=True), numbers)
        told = [row.text for row in browser.all(".feed [data-seq]") if " wrote " in row.text]
        titles = [re.split(r" wrote | \+\d", row)[1] for row in told]
        is_so(browser, len(titles) == len(set(titles)), titles)
        is_so(browser, "Seen at once" in titles, titles)
        marker = browser.driver.execute_script("return window.marker")
        is_so(browser, marker == "the same document", "the document was loaded again")
        browser.open("/console/")
        is_so(browser, rows_of(browser) == numbers, "a loaded page shows what the open one had")
        browser.driver.get("about:blank")
        is_so(browser, again.stop() == 0)
    finally:
        again.close()
        browser.driver.get("about:blank")


def test_feed_can_be_paused_and_filtered_by_mouse(window: Browser, tmp_path: Path) -> None:
    """behaviour 238: a paused feed does not move. Afterwards no event is missing."""
    with running_lithos(tmp_path) as server:
        browser = window.visit(server.url, "/console/")
        browser.shows("live", "[data-live]")
        browser.driver.execute_script("window.marker = 'the same document'")
        # Click "Pause".
        browser.click("Pause", "[data-pause]")
        browser.shows("paused", "[data-live]")
        write(server, "Behind its back", "Text.", "ada", tags=["sea"])
        # The button counts one new event, or two events with the registration of the agent.
        browser.until(lambda: "new)" in browser.one("[data-pause]").text, "what came is counted")
        is_so(browser, "Behind its back" not in browser.text_now(".feed"))
        browser.click("Continue", "[data-pause]")
        browser.shows("ada wrote Behind its back", ".feed")
        browser.shows("Pause", "[data-pause]")
        # Type into the field "Agent".
        browser.fill("agent", "ben")
        browser.shows("No matching events happened recently.", ".feed")
        browser.until(lambda: "agent=ben" in browser.path, "the address follows")
        write(server, "Not of interest", "Text.", "ada")
        write(server, "By ben", "Text.", "ben")
        browser.shows("ben wrote By ben", ".feed")
        is_so(browser, "Not of interest" not in browser.text_now(".feed"))
        # Clear the filter. The feed shows all events again, including the new events.
        browser.press(*[Keys.BACKSPACE] * 3)
        browser.shows("ada wrote Not of interest", ".feed")
        # Repeated rows are collapsed, even while the page is open.
        for number in range(3):
            write(server, f"Alike {number}", "Text.", "ben")
        browser.shows("and 3 more", ".feed")
        is_so(browser, "By ben" not in browser.text_now(".feed"))
        browser.click("and 3 more", ".feed summary")
        for title in ("Alike 0", "Alike 1", "By ben"):
            browser.shows(f"ben wrote {title}", ".feed")
        is_so(browser, browser.driver.execute_script("return window.marker") == "the same document")
        is_quiet(browser)


# -- searching ---------------------------------------------------------------------------------------


def focus_of(browser: Browser) -> WebElement:
    return browser.driver.switch_to.active_element


def test_search_results_update_while_a_person_types(window: Browser, tmp_path: Path) -> None:
    with running_lithos(tmp_path) as server:
        write(server, "Lighthouse keeping", "The lamp is trimmed at dusk.", "ada")
        write(server, "Fog horn", "Two blasts a minute.", "ada")
        browser = window.visit(server.url, "/console/")
        browser.shows("Overview", "h1")
        browser.press("/")
        is_so(browser, focus_of(browser).get_attribute("id") == "quick")
        browser.press(Keys.ESCAPE)
        browser.press("g", "s")
        browser.shows("Search", "h1")
        is_so(browser, focus_of(browser).get_attribute("id") == "q", "the field has the focus")
        browser.driver.execute_script("window.marker = 'the same document'")
        browser.press("l", "a", "m", "p")
        browser.shows("Lighthouse keeping", "#search-results")
        browser.shows("lamp", "#search-results mark")
        browser.until(lambda: "q=lamp" in browser.path, "the address follows")
        is_so(browser, focus_of(browser).get_attribute("id") == "q", "the field keeps the focus")
        browser.shows("Lighthouse keeping", "#search-results li:first-child h2")
        is_so(browser, "in mode hybrid" in (browser.one("#search-said").get_attribute("textContent") or ""))
        browser.press(*[Keys.BACKSPACE] * 4)
        browser.shows("Search modes", "#search-results")
        browser.press("fog")
        browser.shows("Fog horn", "#search-results")
        is_so(browser, browser.driver.execute_script("return window.marker") == "the same document")
        browser.press(Keys.ENTER)
        browser.until(lambda: browser.driver.execute_script("return !window.marker"), "Enter loads the page")
        browser.shows("Fog horn", "#search-results")
        is_so(browser, "q=fog" in browser.path, browser.path)
        browser.tab_to("Fog horn")
        browser.press(Keys.ENTER)
        browser.shows("Two blasts a minute.", "article")
        # On any page, type into the search field in the navigation and press Enter.
        browser.press("/")
        is_so(browser, focus_of(browser).get_attribute("id") == "quick")
        browser.press("dusk", Keys.ENTER)
        browser.shows("Lighthouse keeping", "#search-results")
        # The beginning of a name opens the note. With Shift+Enter, the text is searched instead.
        browser.press("/")
        browser.press("l", "i")
        browser.shows("lighthouse-keeping.md", "#quick-found")
        browser.press(Keys.ESCAPE)
        is_so(browser, not browser.one("#quick-found").is_displayed())
        browser.press("/")
        browser.press("fo", Keys.ARROW_DOWN, Keys.ENTER)
        browser.shows("Two blasts a minute.", "article")
        browser.press("/")
        ActionChains(browser.driver).send_keys("fog").key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(
            Keys.SHIFT
        ).perform()
        browser.shows("Fog horn", "#search-results")
        browser.driver.execute_script("document.activeElement.blur()")
        browser.press("g", "t")
        browser.until(lambda: browser.path == "/console/tasks", "g t leads to the tasks")
        is_quiet(browser)


# -- a day's questions, by mouse, nothing is changed ---------------------------------------------------


def test_author_and_earlier_text_of_a_note_can_be_found(at_day: Browser) -> None:
    browser = at_day
    browser.open("/console/")
    # Click "Timetable search" in the feed row "intern changed Timetable search".
    browser.shows("intern changed Timetable search", ".feed")
    browser.click("Timetable search", ".feed a.note")
    browser.shows("by intern", ".head")
    browser.shows("written by planner", ".head")
    # Click "intern changed text (version 2)" under "What moves it".
    browser.click("intern changed text (version 2)", "#about a")
    browser.shows("From version 1 to version 2")
    is_so(browser, "It need not be fast." in browser.text_now("ins"))
    is_quiet(browser)


def test_page_explains_why_a_note_ranks_lower(at_day: Browser) -> None:
    browser = at_day
    browser.open("/console/")
    # Click "Delay training set" under "Suspect notes".
    browser.shows("Delay training set", "#suspect")
    browser.click("Delay training set", "#suspect a.note")
    browser.shows("retrieval multiplies its score by 0.7", ".reasons")
    browser.shows("Ytre Holme sent copies of its last good value.", ".warnings")
    # Click "Wind stations" in the warning. The page shows the agent that set the quarantine, and other
    # dependent notes.
    browser.click("Wind stations", ".warnings a.note")
    browser.shows("The note is quarantined: retrieval leaves it out.", ".reasons")
    browser.shows("by reviewer", ".head")
    is_so(browser, "Delay model, second fit" in browser.text("#about"))
    # Click "diff" next to the newest version.
    browser.click("diff", "#versions a")
    browser.shows("quarantined", "ins")
    is_quiet(browser)


def test_blocked_tasks_and_their_blockers_can_be_found(at_day: Browser) -> None:
    browser = at_day
    browser.open("/console/")
    # Click "Tasks".
    browser.click("Tasks", ".side nav a")
    browser.shows("Show delays on the map", ".blocked")
    browser.shows("Legal agrees to the map tiles", ".blocked")
    for agent, task in (
        ("ops", "Write the runbook of the import"),
        ("scribe", "Announce the changes to travellers"),
        ("reviewer", "Find harbours despite typos"),
    ):
        held = next(card.text for card in browser.all(".claimed .task-card") if task in card.text)
        is_so(browser, agent in held, held)
    # Click "Show delays on the map". This task waits for a gate.
    browser.click("Show delays on the map", ".blocked a.task")
    browser.shows("Why it cannot start")
    # Click "Legal agrees to the map tiles". The page shows the waiting task, and a button that resolves the
    # gate.
    browser.click("Legal agrees to the map tiles", "main .tree a.task")
    browser.shows("human", ".head")
    browser.shows("Show delays on the map", ".tree")
    is_so(browser, browser.all(".head a.primary")[0].text == "Resolve the gate…")
    is_quiet(browser)


def test_reads_before_a_write_can_be_found(at_day: Browser) -> None:
    browser = at_day
    browser.open("/console/")
    # Click "Import measurements" in the feed row "builder changed Import measurements".
    browser.click("Import measurements", ".feed a.note")
    browser.shows("by builder", ".head")
    # Click "builder", and then "Writes".
    browser.click("builder", ".head a.agent")
    browser.shows("builder", "h1")
    browser.click("Writes", ".tabs a")

    def changed() -> WebElement:
        return next(row for row in browser.all(".timeline li") if "changed Import measurements" in row.text)

    row = browser.until(changed, "the change is in the timeline")
    is_so(browser, "asked why is the timetable import slow" in row.text, row.text)
    is_so(browser, "read Winter timetable" in row.text, row.text)
    # Click "why is the timetable import slow". The receipt shows the returned notes and the cited notes.
    browser.click("why is the timetable import slow", ".timeline a")
    browser.shows("Returned notes")
    browser.shows("by builder", ".receipt-facts")
    browser.shows("cited", "#returned")
    is_so(browser, "Import measurements" in browser.text("#returned"))
    is_quiet(browser)


def test_all_changes_of_the_intern_are_undone_by_two_clicks(window: Browser) -> None:
    """docs/spec/console.md §2: a person needs ten seconds, mostly to read the preview."""
    with staying() as url:
        browser, clicks = window.visit(url, "/console/"), 0
        spoilt = ("Everything is fine", "Harbour names", "Timetable search")
        # Click "undo" next to the intern under "at work".
        browser.one("#at-work [aria-label='Undo changes of intern']").click()
        clicks += 1
        browser.shows("Nothing has been changed yet.")
        ticked = [row.text for row in browser.all("li.choice:has(input:checked)")]
        is_so(browser, [row.partition("\n")[0].split(" +")[0] for row in ticked] == list(spoilt), ticked)
        # Click the undo button for the ticked changes.
        browser.click("Undo ", "main button.danger")
        clicks += 1
        browser.shows("Changes of intern were undone", "h1")
        is_so(browser, all(title in browser.text() for title in spoilt), browser.text())
        is_so(browser, not browser.all(".r-not-reverted"))
        is_so(browser, clicks == 2)
        browser.open("/console/search?mode=fulltext&q=fine")
        is_so(browser, "Everything is fine" not in browser.text(), "the note that the intern made is gone")
        is_quiet(browser)


def test_change_in_the_feed_can_be_undone_by_two_clicks(window: Browser, tmp_path: Path) -> None:
    with running_lithos(tmp_path) as server:
        fares = write(server, "Fares", "Twelve crowns.", "ada")
        write(server, "Fares", "Free of charge.", "intern", id=fares)
        write(server, "Boats", "Three.", "intern")
        browser = window.visit(server.url, "/console/")
        row = browser.until(
            lambda: next(row for row in browser.all(".feed .event") if "changed Fares" in row.text),
            "the change is told",
        )
        is_so(browser, "+1 −1" in row.text, row.text)
        # Click "undo" in the row.
        row.find_element("link text", "undo").click()
        browser.shows("Nothing has been changed yet.")
        is_so(browser, [one.text.split()[0] for one in browser.all("li.choice")] == ["Fares"])
        # Click the undo button for the ticked changes.
        browser.click("Undo ", "main button.danger")
        browser.shows("Changes of intern were undone", "h1")
        is_so(browser, history(server, fares)[0] == (3, "restored", PERSON), history(server, fares))
        is_quiet(browser)


def test_undo_of_an_agent_shows_a_preview_first(at_day: Browser) -> None:
    browser = at_day
    browser.open("/console/")
    # Click "Agents", then "intern", and then "Undo the agent's changes…".
    browser.click("Agents", ".side nav a")
    browser.click("intern", "main a.agent")
    browser.shows("intern", "h1")
    browser.click("Undo the agent's changes", ".head a")
    browser.shows("Nothing has been changed yet.")
    rows = [row.text for row in browser.all("li.choice")]
    for title, ahead in {
        "Timetable search": "goes back",
        "Harbour names": "goes back",
        "Everything is fine": "is deleted",
    }.items():
        is_so(browser, any(title in row and ahead in row for row in rows), rows)
    # Click "Make no change".
    browser.click("Make no change", "main a")
    browser.shows("intern", "h1")
    is_quiet(browser)
