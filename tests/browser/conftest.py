"""Fixtures for servers and a browser.

Without a browser, the tests are skipped unless the browser is required.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.driving import Browser, browsing, chromium

#: `.ci/run` sets this variable after it has installed the browser. A missing browser is then an error.
REQUIRED = "LITHOS_BROWSER_REQUIRED"
#: Folder of real data next to the repository, if the folder exists.
SHARED = Path(os.environ.get("LITHOS_SHARED") or Path(__file__).parents[3] / "shared")


@pytest.fixture(scope="session", autouse=True)
def _has_browser() -> None:
    if chromium() is None:
        assert not os.environ.get(REQUIRED), "there is no chromium, or no chromedriver"
        pytest.skip("needs chromium and chromedriver (Debian's packages chromium and chromium-driver)")


@contextmanager
def staying(*options: str) -> Iterator[str]:
    """Run `lithos demo --stay` in a separate process. Yield its address."""
    command = [sys.executable, "-m", "lithos", *options, "--json", "demo", "--stay"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, "the demo ended before it served"
            yield json.loads(line)["url"].removesuffix("/console/")
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0


@pytest.fixture(scope="session")
def day() -> Iterator[str]:
    """Serve the scripted day, and a copy of the shared vault if the vault exists.

    Tests must not change these data.
    """
    vault = SHARED / "vault"
    options = ("--vault", str(vault)) if vault.is_dir() else ()
    with staying(*options) as url:
        yield url


@pytest.fixture(scope="session")
def window() -> Iterator[Browser]:
    """Yield a browser for all tests of a test worker. Each test begins with `visit`."""
    with browsing("http://127.0.0.1:1") as browser:
        yield browser


@pytest.fixture
def at_day(window: Browser, day: str) -> Browser:
    """Return the browser, which shows the server with the scripted day."""
    return window.visit(day)
