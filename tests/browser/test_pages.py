"""Every console page in a browser. The page renders, requests no other host, and is accessible."""

from __future__ import annotations

import re
from collections import deque

import pytest

from tests.browser.driving import THEMES, WIDTHS, Browser

pytestmark = [pytest.mark.slow, pytest.mark.takes(35)]

#: Number of pages to check for each kind of address.
EACH = 2
MOST = 40
STARTS = (
    "/console/", "/console/search", "/console/search?q=timetable", "/console/notes", "/console/graph",
    "/console/tasks", "/console/agents", "/console/receipts", "/console/system", "/console/components",
    "/console/identity",
)  # fmt: skip
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|rcpt_[0-9a-f]+")


def kind_of(address: str) -> str:
    """Return the address without the parts that differ between pages of the same kind."""
    path, _, query = address.partition("?")
    names = sorted(part.partition("=")[0] for part in query.split("&") if part)
    path = re.sub(r"(/agents|/receipts|/notes|/tasks|/files)/[^/]+", r"\1/*", _ID.sub("*", path))
    return f"{path}?{'&'.join(names)}"


def crawl(browser: Browser, starts: tuple[str, ...], most: int = MOST, each: int = EACH) -> list[str]:
    """Return linked console addresses, at most `each` addresses of each kind."""
    waiting, seen, kinds, found = deque(starts), set(starts), dict[str, int](), list[str]()
    while waiting and len(found) < most:
        address = waiting.popleft()
        if kinds.get(kind_of(address), 0) >= each:
            continue
        kinds[kind_of(address)] = kinds.get(kind_of(address), 0) + 1
        browser.open(address)
        found.append(address)
        links = browser.driver.execute_script(
            "return [...document.querySelectorAll('a[href]')].filter(a => !a.hasAttribute('download'))"
            ".map(a => a.href instanceof SVGAnimatedString ? new URL(a.href.baseVal, location).href : a.href)"
        )
        for link in links:
            path = str(link).removeprefix(browser.base).partition("#")[0]
            if path.startswith("/console/") and "/files/" not in path and path not in seen:
                seen.add(path)
                waiting.append(path)
    return found


@pytest.mark.parametrize(
    ("theme", "width"),
    [
        pytest.param(theme, width, marks=[] if (theme, width) == ("dark", 400) else pytest.mark.nightly)
        for theme in THEMES
        for width in WIDTHS
    ],
)
def test_every_kind_of_page_is_valid_in_all_layouts(at_day: Browser, theme: str, width: int) -> None:
    """behaviour 235: every page renders on the shared vault. No request leaves the origin."""
    at_day.theme(theme)
    at_day.width(width)
    found = crawl(at_day, STARTS, each=1 if (theme, width) == ("dark", 400) else EACH)
    assert len(found) >= len(STARTS)
    at_day.complaints()
    at_day.asked_elsewhere()
    for address in found:
        at_day.open(address)
        at_day.judge()
        name = re.sub(r"[^a-z0-9]+", "-", kind_of(address).removeprefix("/console/").lower()).strip("-")
        at_day.picture(f"{name or 'overview'}-{theme}-{width}")
