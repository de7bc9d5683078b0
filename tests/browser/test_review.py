"""Review page in a browser: with the keyboard alone, and with a mouse in a narrow window."""

from __future__ import annotations

import queue
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
from attrs import frozen

from tests.browser.driving import THEMES, WIDTHS, Browser
from tests.server.console.proposing import bind, decide, propose_note, propose_text, row_of
from tests.server.console.visiting import Visitor, visiting
from tests.servers import Lithos

pytestmark = [pytest.mark.slow, pytest.mark.takes(25)]

T = TypeVar("T")
HERE = ".proposal.here"


@frozen
class Site:
    """A running server in another thread, and agents that propose changes."""

    url: str
    _lithos: Lithos
    _token: trio.lowlevel.TrioToken

    def do(self, act: Callable[..., Awaitable[T]], *given: Any, **named: Any) -> T:
        """Run a function of `proposing` in the server's thread. Return its result."""
        return trio.from_thread.run(partial(act, self._lithos, *given, **named), trio_token=self._token)

    def create(self, title: str, content: str) -> str:
        return str(self.do(Lithos.create, title, content, agent="ann"))

    def content(self, note: str) -> str:
        return str(self.do(Lithos.read, note)["content"])

    def status(self, proposal: str) -> str:
        return str(self.do(row_of, proposal)["status"])


@contextmanager
def reviewing(data: Path) -> Iterator[Site]:
    """Run a server whose agents `bot` and `bee` may only propose changes.

    The server ends with the block, even if an error occurs.
    """
    begun: queue.Queue[tuple[Site, trio.Event] | BaseException] = queue.Queue()

    async def serve() -> None:
        person: Visitor
        ended = trio.Event()
        async with visiting(data) as person:
            bind(person.lithos)
            begun.put((Site(person.url, person.lithos, trio.lowlevel.current_trio_token()), ended))
            await ended.wait()

    def run() -> None:
        try:
            trio.run(serve)
        except BaseException as failure:
            begun.put(failure)
            raise

    thread = threading.Thread(target=run, name="reviewing", daemon=True)
    thread.start()
    made = begun.get(timeout=60)
    assert not isinstance(made, BaseException), made
    site, ended = made
    try:
        yield site
    finally:
        trio.from_thread.run_sync(ended.set, trio_token=site._token)
        thread.join(60)
    assert not thread.is_alive()


def at(browser: Browser, title: str) -> None:
    """Wait until keys apply to the proposal with this title."""
    browser.until(lambda: title in browser.text_now(f"{HERE} h3"), f"the keys are at {title}")


def test_review_queue_can_be_processed_by_keys_alone(window: Browser, tmp_path: Path) -> None:
    """behaviour 281: the keys j, k, a, r and e work.

    The page also shows new proposals and decisions by other people.
    """
    with reviewing(tmp_path) as site:
        notes = [site.create(f"Note {number}", "one\n\ntwo\n\nthree") for number in range(4)]
        ids = [site.do(propose_text, note, "one\n\ntwo, says bot\n\nthree") for note in notes]
        browser = window.visit(site.url, "/console/")
        browser.shows("4 proposals to review")
        browser.press("g", "r")
        browser.shows("By agent")
        assert browser.path == "/console/review"
        assert browser.one(".keys").is_displayed()
        # The keys j and k move through the list and stop at its ends.
        at(browser, "Note 0")
        browser.press("j")
        at(browser, "Note 1")
        browser.press("k", "k")
        at(browser, "Note 0")
        # The key a approves a proposal. The next proposal then becomes visible.
        browser.press("a")
        browser.shows("note-0.md is approved: version 2", ".decided")
        at(browser, "Note 1")
        assert site.content(notes[0]) == "one\n\ntwo, says bot\n\nthree"
        # The key r opens the field for the reason. Letters in this field have no other effect.
        browser.press("r")
        browser.until(
            lambda: browser.driver.switch_to.active_element.get_attribute("name") == "reason", "asks why"
        )
        browser.press("a", "j", "k", "\n")
        browser.shows("note-1.md is rejected", ".decided")
        row = site.do(row_of, ids[1])
        assert (row["status"], row["reason"], row["decided_by"]) == ("rejected", "ajk", "person")
        assert site.content(notes[1]) == "one\n\ntwo\n\nthree"
        # The key e opens the proposal for editing before its approval.
        at(browser, "Note 2")
        browser.press("e")
        browser.shows("Change and approve", "#change h2")
        browser.press("e")
        active = browser.driver.switch_to.active_element
        assert active.get_attribute("name") == "text"
        browser.driver.execute_script(
            "arguments[0].value = arguments[0].value.replace('says bot', 'says Ann')", active
        )
        browser.click("Preview changes", "#change button")
        browser.shows("Below is the change that your text would make.")
        assert "two, says Ann" in browser.text_now(".diff ins")
        assert site.content(notes[2]) == "one\n\ntwo\n\nthree"
        browser.click("Approve this text", "#change button")
        browser.shows("note-2.md is approved", ".decided")
        assert site.content(notes[2]) == "one\n\ntwo, says Ann\n\nthree"
        at(browser, "Note 3")
        # The proposals change while the page is open.
        site.do(propose_note, "Fresh", agent="bee")
        browser.shows("1 new proposal has arrived.", "[data-news]")
        site.do(decide, ids[3], "reject", reason="Elsewhere.")
        browser.shows("rejected in the meantime", HERE)
        browser.press("a")
        browser.shows("note-3.md is rejected already, by Ann", ".decided")
        at(browser, "Fresh")
        assert [site.status(one) for one in ids] == ["approved", "rejected", "approved", "rejected"]
        assert not browser.complaints()
        assert not browser.asked_elsewhere()


def test_several_proposals_are_ticked_and_decided_in_every_layout(window: Browser, tmp_path: Path) -> None:
    """behaviour 283: invisible characters are shown by name. Each layout is accessible."""
    with reviewing(tmp_path) as site:
        plan = site.create("Plan", "one\n\nWe pay ann.\n\nthree")
        other = site.create("Other", "text\n\nmore")
        ids = [
            site.do(propose_text, plan, "one\n\nWe pay \u202e\u0430nn\u200b.\n\nthree, and more"),
            site.do(propose_text, other, "text, says bee\n\nmore", agent="bee"),
            site.do(propose_note, "Fresh note", "Its text.", agent="bee", tags=["a"]),
        ]
        site.do(decide, site.do(propose_note, "Bad"), "reject", reason="Say where it is from.")
        browser = window.visit(site.url)
        for theme in THEMES:
            for width in WIDTHS:
                browser.look_as(theme, width)
                for name, address in (
                    ("review", ""),
                    ("review-by-note", "?by=note"),
                    ("review-one", f"/{ids[0]}"),
                ):
                    browser.open(f"/console/review{address}")
                    browser.shows("U+202E RIGHT-TO-LEFT OVERRIDE", ".diff")
                    browser.shows("U+0430 CYRILLIC SMALL LETTER A", ".diff")
                    browser.judge()
                    browser.picture(f"{name}-{theme}-{width}")
        browser.open("/console/review")
        browser.shows("bee")
        site.do(Lithos.write, "Other", "text, says ann\n\nmore", id=other, agent="ann")
        groups = browser.all("section.proposals")
        assert len(groups) == 2
        for button in (each for each in browser.all("[data-all]") if each.is_displayed()):
            browser.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
            button.click()
        for box in browser.all("section.proposals input[type=checkbox]"):
            if not box.is_selected():
                browser.driver.execute_script("arguments[0].click()", box)
        browser.click("Approve 3 proposals", "#many button")
        browser.shows("1 of 3", ".decided h2")
        browser.shows("plan.md was not approved: it adds invisible or look-alike characters", ".decided")
        browser.shows("other.md has changed since you opened the page. Check it again", ".decided")
        browser.shows("This proposal cannot be approved in its current form", "section.proposals")
        browser.judge()
        browser.picture("review-decided-dark-400")
        browser.click("I have checked the characters", f"#p-{ids[0]} label")
        browser.click("Approve", f"#p-{ids[0]} button")
        browser.shows("plan.md is approved: version 2", ".decided")
        assert [site.status(one) for one in ids] == ["approved", "pending", "approved"]
        assert site.content(other) == "text, says ann\n\nmore"
        browser.click("Reject", f"#p-{ids[1]} summary")
        browser.fill("reason", "Say where it is from.", submit=True)
        browser.shows("other.md is rejected", ".decided")
        browser.shows("No proposals are waiting.")
        browser.judge()
