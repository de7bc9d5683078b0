"""Several vaults in a browser: one login, an overview of all vaults, the switcher, and separate consoles."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from tests.browser.driving import THEMES, WIDTHS, Browser
from tests.browser.test_states import LOOKS, judged
from tests.server.console.hosting import House, hosting

pytestmark = [pytest.mark.slow, pytest.mark.takes(25)]
TOKENS: Final = {"two": ("home", "work"), "one": ("home",), "all": ("home", "secret", "work")}
#: Pages of one vault that show the vault switcher.
PAGES: Final = ("", "search?q=lantern", "notes", "graph", "tasks", "review", "agents", "system")
#: Script that returns whether the list of the vault switcher fits in the window.
INSIDE: Final = """
const list = document.querySelector(".vaults ul").getBoundingClientRect();
return list.width > 60 && list.left >= 0 && list.right <= innerWidth && list.bottom <= innerHeight;
"""


async def test_overview_and_vault_switcher_work_in_a_browser(window: Browser, tmp_path: Path) -> None:
    """behaviour 293"""
    async with hosting(tmp_path, TOKENS) as house:
        for name in ("home", "work"):
            await house.vaults[name].lithos.create(f"Lantern of {name}", "It burns.")
        await house.vaults["work"].lithos.call("lithos_task_create", title="Trim the wick", agent="ann")
        house.views["work"].state, house.views["work"].progress = "indexing", 0.42
        house.views["work"].reason = "412 of 980 notes are indexed."
        house.views["secret"].state, house.views["secret"].console = "unavailable", None
        house.views["secret"].reason = "Another server has it open: stop that, or run `lithos doctor`."
        await in_thread(log_in, window, house)
        await in_thread(see_all, window)
        house.views["work"].state, house.views["work"].reason = "serving", ""
        # The page is updated without a reload.
        await in_thread(window.shows, "serving", "[aria-labelledby=vault-work] .badge")
        await in_thread(switch, window)
        await house.vaults["work"].lithos.create("Just written")
        await in_thread(window.shows, "Just written", "[data-rows]")
        await in_thread(use_keys, window)


async def in_thread(act: Any, *arguments: Any) -> None:
    """Control the browser in another thread while the servers run in this thread."""
    await trio.to_thread.run_sync(act, *arguments)


def log_in(window: Browser, house: House) -> None:
    window.visit(house.url, "/console/")
    for theme, width in LOOKS:
        window.look_as(theme, width)
        judged(window, "/console/login")
    window.fill("token", "all", submit=True)
    window.shows("home")
    assert window.path == "/console/"


def see_all(window: Browser) -> None:
    for theme, width in product(THEMES, WIDTHS):
        window.look_as(theme, width)
        judged(window, "/console/")
        window.picture(f"vaults-{theme}-{width}")
        text = window.text()
        for told in ("42 % indexed", "412 of 980 notes are indexed.", "Another server has it open"):
            assert told in text


def switch(window: Browser) -> None:
    window.look_as("light", 1280)
    window.click("home", "h2 a")
    window.shows("Lantern of home")
    assert window.path == "/v/home/console/"
    for number, page in enumerate(PAGES):
        window.look_as(*LOOKS[number % len(LOOKS)])
        judged(window, f"/v/home/console/{page}")
    for theme, width in product(THEMES, WIDTHS):
        window.look_as(theme, width)
        window.open("/v/home/console/notes")
        window.click("Vault", ".vaults summary")
        window.until(lambda: window.driver.execute_script(INSIDE), "the whole switch is seen")
        assert "home" in window.text(".vaults summary")
        window.judge()
        window.picture(f"vaults-switch-{theme}-{width}")
    window.click("work", ".vaults a")
    window.shows("Lantern of work")
    assert window.path == "/v/work/console/"
    window.shows("live", "[data-live]")


def use_keys(window: Browser) -> None:
    """Check that the script uses the addresses of this vault in quick switcher, feed filter and keys."""
    window.one("#quick").send_keys("Just wr")
    window.shows("Just written", "#quick-found")
    window.press("\ue007")
    window.shows("Just written", "h1")
    assert window.path.startswith("/v/work/console/notes/")
    window.press("\ue00c")
    window.open("/v/work/console/")
    window.fill("agent", "tester")
    window.until(lambda: window.path == "/v/work/console/?agent=tester", "the address follows the filter")
    window.click("Vault", ".vaults summary")
    window.click("All vaults", ".vaults a")
    window.until(lambda: window.path == "/console/", "the overview of all is shown")
    window.click("Log out of all vaults", "button")
    window.shows("Log in", "h1")
    window.open("/v/work/console/")
    window.shows("Log in", "h1")
    assert window.path.startswith("/v/work/console/login")
