"""Headless Chromium on the console of a running server: it reads, clicks and types, and records errors."""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from attrs import define, field
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException, WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

#: Maximum seconds until a page shows the expected content.
PATIENCE: Final = 60.0
THEMES: Final = ("light", "dark")
WIDTHS: Final = (1280, 400)
_CONTROLS: Final = ("a", "button", "input", "select", "textarea", "summary")
_ARGUMENTS: Final = (
    "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
    "--no-first-run", "--disable-component-update", "--disable-background-networking",
)  # fmt: skip
#: Rules of axe-core that the tests apply: WCAG 2 A and AA, and best practice for landmarks and headings.
_AXE_RUN: Final = """
const done = arguments[arguments.length - 1];
const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
const tell = (node) => node.html.slice(0, 200) + " | " + (node.failureSummary || "").slice(0, 300);
axe.run(document, {runOnly: rules, resultTypes: ["violations"]})
  .then((result) => done(JSON.stringify(result.violations.map(
      (one) => ({id: one.id, help: one.help, nodes: one.nodes.slice(0, 4).map(tell)})))))
  .catch((error) => done(JSON.stringify([{id: "axe itself", help: String(error), nodes: []}])));
"""


def chromium() -> tuple[str, str] | None:
    """Return the paths of Chromium and its driver, or None if one is missing."""
    browser, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def pictures() -> Path:
    """Return the folder for screenshots: `$CI_ARTIFACTS`, or the temporary folder."""
    folder = Path(os.environ.get("CI_ARTIFACTS") or tempfile.gettempdir()) / "lithos-console"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@define
class Browser:
    """One browser window. `base` is the server's address. `checks` counts the assertions about pages."""

    driver: webdriver.Chrome
    base: str
    foreign: list[str] = field(factory=list)
    checks: int = 0

    def visit(self, base: str, path: str = "") -> Browser:
        """Visit a server as a new visitor, with the light theme and a wide window.

        Return the browser, so that calls can be chained.
        """
        self.driver.get("about:blank")
        self.driver.delete_all_cookies()
        self.base = base
        self.look_as("light", 1280)
        self.complaints()
        self.asked_elsewhere()
        if path:
            self.open(path)
        return self

    # -- looking ---------------------------------------------------------------------------------

    def open(self, path: str) -> None:
        """Load a page."""
        self.driver.get(self.base + path)

    @property
    def path(self) -> str:
        """Return the displayed address without the server part."""
        return str(self.driver.current_url).removeprefix(self.base)

    def text(self, selector: str = "main") -> str:
        """Wait until a part of the page exists. Return its visible text."""
        return str(self.one(selector).text)

    def one(self, selector: str) -> WebElement:
        """Wait for the first matching element and return it."""
        found = self.until(
            lambda: self.driver.find_element(By.CSS_SELECTOR, selector), f"{selector} is there"
        )
        assert isinstance(found, WebElement)
        return found

    def all(self, selector: str) -> list[WebElement]:
        """Return all matching elements that exist now."""
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def until(self, holds: Callable[[], Any], what: str, within: float = PATIENCE) -> Any:
        """Wait until `holds` returns a true value. Return that value."""

        def look(_: object) -> Any:
            try:
                return holds()
            except (StaleElementReferenceException, WebDriverException):
                return False

        self.checks += 1
        try:
            return WebDriverWait(self.driver, within, poll_frequency=0.05).until(look)
        except TimeoutException:
            told = f"not so in {within:g} s: {what}; the page {self.path} says: {self._page()[:1500]}"
            raise AssertionError(told) from None

    def shows(self, text: str, selector: str = "main", within: float = PATIENCE) -> None:
        """Wait until a text becomes visible."""
        self.until(lambda: text in self.text_now(selector), f"{text!r} is shown", within)

    def text_now(self, selector: str = "main") -> str:
        """Return the text that is visible now."""
        return " ".join(element.text for element in self.all(selector))

    def _page(self) -> str:
        try:
            return str(self.driver.find_element(By.TAG_NAME, "body").text)
        except WebDriverException as failure:
            return f"(no page: {failure.msg})"

    # -- acting ----------------------------------------------------------------------------------

    def click(self, words: str, selector: str = "a, button, summary") -> None:
        """Click the first visible link or button with these words."""

        def find() -> WebElement | None:
            for element in self.all(selector):
                told = element.text or element.get_attribute("aria-label") or ""
                if element.is_displayed() and words.lower() in told.lower():
                    return element
            return None

        self.until(find, f"something to click says {words!r}")
        element = find()
        assert element is not None
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def fill(self, name: str, value: str, *, submit: bool = False) -> None:
        """Type into the field with this name."""
        fields = [one for one in self.all(f"main [name='{name}']") if one.is_displayed()]
        assert fields, f"no field {name} on {self.path}"
        fields[0].clear()
        fields[0].send_keys(value + (Keys.ENTER if submit else ""))

    def press(self, *keys: str) -> None:
        """Press keys in the focused element."""
        active = self.driver.switch_to.active_element
        for key in keys:
            active.send_keys(key)
            active = self.driver.switch_to.active_element

    def tab_to(self, words: str, most: int = 200) -> WebElement:
        """Press Tab until an element with these words has the focus. Return the element."""
        for _ in range(most):
            self.press(Keys.TAB)
            active = self.driver.switch_to.active_element
            # Skip the body and scrolling regions. They contain all words of the page.
            if active.tag_name not in _CONTROLS:
                continue
            names = [active.get_attribute(name) or "" for name in ("aria-label", "name")]
            if words.lower() in " ".join([active.text, *names]).lower():
                self.checks += 1
                return active
        raise AssertionError(f"Tab reaches nothing that says {words!r} on {self.path}")

    def theme(self, name: str) -> None:
        """Emulate a preference for the light or dark theme."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def width(self, pixels: int, height: int = 900) -> None:
        """Resize the window."""
        metrics = {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def look_as(self, theme: str, width: int) -> None:
        self.theme(theme)
        self.width(width)

    # -- judging ---------------------------------------------------------------------------------

    def complaints(self) -> list[str]:
        """Return console messages of the browser since the last call, except hints."""
        lines = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [f"{line['level']}: {line['message']}" for line in lines if line["level"] != "DEBUG"]

    def asked_elsewhere(self) -> list[str]:
        """Return all addresses outside the server that the browser has requested since the last call."""
        found = []
        for line in self.driver.get_log("performance"):  # type: ignore[no-untyped-call]
            message = json.loads(line["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith((f"{self.base}/", "chrome", "about:", "data:")):
                    found.append(url)
        return found

    def faults(self) -> list[dict[str, Any]]:
        """Return the errors that axe-core finds: contrast, names, labels, landmarks and heading order."""
        source = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
        self.driver.execute_script(source)
        found: list[dict[str, Any]] = json.loads(self.driver.execute_async_script(_AXE_RUN))
        return found

    def is_too_wide(self) -> bool:
        """Return whether the page scrolls horizontally."""
        script = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(self.driver.execute_script(script))

    def judge(self) -> None:
        """Assert the rules that apply to every page."""
        assert not (complaints := self.complaints()), (self.path, complaints)
        assert not (elsewhere := self.asked_elsewhere()), (self.path, elsewhere)
        assert len(self.all("h1")) == 1, (self.path, "exactly one h1")
        assert not (faults := self.faults()), (self.path, json.dumps(faults, indent=1)[:4000])
        assert not self.is_too_wide(), (self.path, "scrolls sideways")
        self.checks += 5

    def picture(self, name: str) -> Path:
        """Save a screenshot of the whole page. Return its path."""
        tall, wide = self.driver.execute_script(
            "return [Math.min(document.documentElement.scrollHeight, 3000), innerWidth]"
        )
        clip = {"x": 0, "y": 0, "width": wide, "height": tall, "scale": 1}
        png = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
        )
        path = pictures() / f"{name}.png"
        path.write_bytes(base64.b64decode(png["data"]))
        return path


@contextmanager
def browsing(base: str) -> Iterator[Browser]:
    """Yield a separate browser. It is closed at the end of the block."""
    found = chromium()
    assert found is not None
    options = Options()
    options.binary_location = found[0]
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(found[1]))
    try:
        driver.set_page_load_timeout(60)
        driver.set_script_timeout(60)
        yield Browser(driver, base)
    finally:
        driver.quit()
