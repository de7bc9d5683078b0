"""Keyboard control of the console. All listed keys work, and no key acts while a person types text."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.driving import THEMES, WIDTHS, Browser
from tests.browser.test_review import at, reviewing
from tests.server.console.proposing import propose_text
from tests.servers import Lithos

pytestmark = [pytest.mark.slow, pytest.mark.takes(20)]

LISTED = "#keys[open]"


def listed(browser: Browser) -> list[tuple[str, str]]:
    """Return the keys in the open list as typed. Each key comes with the text of its row."""
    rows = browser.all(f"{LISTED} tr")
    return [
        (" ".join(key.text for key in row.find_elements("css selector", "kbd")), row.text.split("\n")[-1])
        for row in rows
    ]


def test_each_listed_navigation_key_opens_its_page(window: Browser, tmp_path: Path) -> None:
    """behaviour 401"""
    with reviewing(tmp_path) as site:
        browser = window.visit(site.url, "/console/")
        browser.press("?")
        browser.shows("Go to a page", LISTED)
        browser.judge()
        pages = [(key.split()[1], told) for key, told in listed(browser) if key.startswith("g ")]
        assert len(pages) == 8
        # While the list is open, the keys of the page have no effect.
        browser.press("g", "t")
        assert browser.path == "/console/"
        browser.press(Keys.ESCAPE)
        browser.until(lambda: not browser.all(LISTED), "the list is closed")
        for key, told in pages:
            browser.open("/console/agents" if key != "a" else "/console/")
            browser.press("g", key)
            browser.until(lambda told=told: told.endswith(browser.one("h1").text), f"g {key} leads to {told}")
        browser.press("/")
        browser.until(
            lambda: browser.driver.switch_to.active_element.get_attribute("id") == "quick", "/ is the field"
        )
        # In a text field, letters are typed and have no other effect.
        at_first = browser.path
        browser.press("?", "g", "g", "/")
        assert browser.one("#quick").get_attribute("value") == "?gg/"
        assert browser.path == at_first
        assert not browser.all(LISTED)
        browser.press(Keys.ESCAPE)
        browser.press("?")
        browser.shows("Go to a page", LISTED)
        browser.click("Close", f"{LISTED} button")
        browser.until(lambda: not browser.all(LISTED), "the list is closed")
        # A mouse click also opens the list, in a wide window and in a narrow window.
        for width in WIDTHS:
            browser.width(width)
            browser.click("Keys", ".who button")
            browser.shows("Go to a page", LISTED)
            browser.judge()
            browser.click("Close", f"{LISTED} button")


def test_warning_is_confirmed_by_keys_and_its_result_stays_visible(window: Browser, tmp_path: Path) -> None:
    """behaviours 397 and 398: one key press does not approve hidden text.

    The result and its undo stay visible.
    """
    with reviewing(tmp_path) as site:
        lines = "\n\n".join(f"line {number}" for number in range(60))
        notes = [site.create(f"Note {number}", lines) for number in range(3)]
        changed = lines.replace("line 5\n", "line\u200b five\n").replace("line 45", "line 45!")
        for note in notes:
            site.do(propose_text, note, changed if note == notes[1] else lines.replace("line 5\n", "five\n"))
        for width in WIDTHS:
            browser = window.visit(site.url, "/console/review")
            browser.width(width)
            browser.press("?")
            browser.shows("approves the proposal; with a warning", LISTED)
            browser.press(Keys.ESCAPE)
            # No box is ticked, so no bar covers the difference
            assert not browser.one("#many").is_displayed()
            box = browser.all("input[name=pick][type=checkbox]")[0]
            box.click()
            assert browser.one("#many").is_displayed()
            box.click()
            assert not browser.one("#many").is_displayed()
        browser.width(1280)
        browser.open("/console/review")
        at(browser, "Note 0")
        browser.press("a")
        browser.shows("note-0.md is approved: version 2", ".decided")
        at(browser, "Note 1")
        in_sight = "const box = document.querySelector('.decided').getBoundingClientRect();"
        assert browser.driver.execute_script(f"{in_sight} return box.top >= 0 && box.bottom <= innerHeight")
        heading = (
            "return document.querySelector('.proposal.here h3').getBoundingClientRect().top >= box.bottom"
        )
        assert browser.driver.execute_script(f"{in_sight} {heading}"), "the next one is not covered"
        # A second press of the key still approves nothing. The focus is on the box.
        browser.press("a", "a")
        active = browser.driver.switch_to.active_element
        assert active.get_attribute("name") == "seen"
        assert site.content(notes[1]) == lines
        browser.press(Keys.SPACE, "a")
        browser.shows("note-1.md is approved: version 2", ".decided")
        assert site.content(notes[1]) == changed
        browser.judge()
        browser.picture("review-decided-in-sight")
        # Click "Undo" in the result, and then "Undo 1 change".
        browser.click("Undo", ".decided a.do")
        browser.shows("Nothing has been changed yet.")
        browser.click("Undo 1 change", "main button.danger")
        browser.shows("Changes of bot were undone", "h1")
        assert site.content(notes[1]) == lines
        # Undo the remaining change of the agent. Afterwards the page has no undo button.
        browser.open("/console/undo?agent=bot")
        browser.click("Undo 1 change", "main button.danger")
        browser.shows("Changes of bot were undone", "h1")
        browser.open("/console/undo?agent=bot")
        browser.shows("All changes shown here are already undone")
        assert not browser.all("main button.danger")
        browser.judge()


def test_contradiction_can_be_settled_by_mouse(window: Browser, tmp_path: Path) -> None:
    """behaviour 402: covers the way from the note's warning to the choice, in every theme and width."""
    with reviewing(tmp_path) as site:
        one, other = site.create("Four seconds", "We wait 4 s."), site.create("Nine seconds", "We wait 9 s.")
        edge = {"type": "contradicts", "weight": 0.8, "namespace": "default", "provenance_actor": "bot"}
        why = {"why": "4 is not 9"}
        site.do(Lithos.call, "lithos_edge_upsert", from_id=one, to_id=other, evidence=why, **edge)
        browser = window.visit(site.url, f"/console/notes/{one}")
        # Click "Settle…" in the warning.
        browser.click("Settle…", ".warnings a")
        browser.shows("4 is not 9")
        for theme in THEMES:
            for width in WIDTHS:
                browser.look_as(theme, width)
                browser.judge()
        # If no choice is made, the browser asks for one.
        browser.click("Settle the contradiction", "main button")
        assert "/console/contradictions" in browser.path
        browser.click("Nine seconds is right", "label.check")
        browser.click("Settle the contradiction", "main button")
        browser.shows("The contradiction was settled: “Nine seconds” holds. It is recorded under person.")
        assert browser.path == f"/console/notes/{other}"
        browser.open(f"/console/notes/{one}")
        browser.shows("superseded", ".warnings")
        assert "Settle…" not in browser.text()
        browser.judge()
