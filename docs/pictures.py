"""Screenshots for the documentation. `python -m docs.pictures` takes them in a headless Chromium.

The program runs `lithos demo --stay`, which plays one day. It needs Chromium with its driver, and the extra
`test`. Run it again if texts or the navigation of the console change. Check the screenshots before you commit
them.
"""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import frozen
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

_FOLDER: Final = Path(__file__).parent
_WIDTH: Final = 1280
_ADDRESS: Final = re.compile(r"http://127\.0\.0\.1:\d+")
_ARGUMENTS: Final = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars")
#: Adds space below the page, so that the last part of the page can also be scrolled to the top.
_SCROLL: Final = "document.body.style.paddingBottom = '100vh'; arguments[0].scrollIntoView()"
#: Link on the overview page to the note in the tour.
_NOTE: Final = "//a[starts-with(@href, '/console/notes/') and .='Runbook: timetable import']"


@frozen
class Picture:
    """Screenshot to take.

    `path` is a page, or empty for a note. The element `top` is scrolled to the upper edge.
    """

    name: str
    path: str
    height: int
    scale: float = 1.0
    top: str = ""


PICTURES: Final = (
    Picture("console", "/console/", 800, scale=1.2),
    Picture("tour-feed", "/console/", 540, top="[data-part=feed]"),
    Picture("tour-history", "", 420, top="#versions"),
    Picture("tour-undo", "/console/undo?agent=intern", 580),
    Picture("tour-review", "/console/review", 800),
)


def main() -> None:
    """Take all screenshots."""
    with _demo() as base, _browser() as driver:
        WebDriverWait(driver, 120, poll_frequency=1).until(lambda each: _has_all(each, base))
        for picture in PICTURES:
            data = _take(driver, base, picture)
            (_FOLDER / f"{picture.name}.png").write_bytes(data)


@contextmanager
def _demo() -> Iterator[str]:
    """Run the demo and yield the address of its server."""
    command = [sys.executable, "-m", "lithos", "demo", "--stay"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(found[0] for line in process.stdout if (found := _ADDRESS.search(line)))
        finally:
            process.terminate()


@contextmanager
def _browser() -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def _has_all(driver: webdriver.Chrome, base: str) -> bool:
    """Return whether the overview already counts the notes that need attention.

    The count takes some seconds after the start of the server.
    """
    driver.get(f"{base}/console/")
    return bool(driver.find_elements("css selector", "a[href*='status=expired']"))


def _take(driver: webdriver.Chrome, base: str, picture: Picture) -> bytes:
    """Open a page and return a screenshot as PNG. Its size is that of the picture."""
    metrics = {"width": _WIDTH, "height": picture.height, "deviceScaleFactor": picture.scale, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get(base + (picture.path or "/console/"))
    if not picture.path:
        driver.get(str(driver.find_element("xpath", _NOTE).get_attribute("href")))
    WebDriverWait(driver, 30).until(lambda each: each.find_element("css selector", "main h1").is_displayed())
    if picture.top:
        place = driver.find_element("css selector", picture.top)
        driver.execute_script(_SCROLL, place)
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])


if __name__ == "__main__":
    main()
