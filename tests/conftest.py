"""A small trio runner: an `async def test_…` runs under `trio.run`.

Mark a test `autojump` to run it on a clock that jumps over sleeps; every async test is bounded
by a deadline, so a hang is a failure with a traceback and never a stuck run.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from hypothesis import settings
from trio.testing import MockClock

from lithos.telemetry import NOISY

DEADLINE = 60.0
#: The gate asks the same of every property each time, so that it says the same of the same commit; elsewhere
#: each run tries other examples.
settings.register_profile("gate", derandomize=True)
if os.environ.get("HYPOTHESIS_PROFILE"):
    settings.load_profile(os.environ["HYPOTHESIS_PROFILE"])

#: Commands that tests run in this process do not load the accurate tier; its own tests ask for it.
os.environ.setdefault("LITHOS_SEARCH__TIER", "static")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "autojump: run this async test on an autojumping mock clock")
    config.addinivalue_line("markers", "deadline(seconds): allow this async test more time than usual")


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """A command that runs in this process sets logging up; the next test must find it as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in NOISY}
    interval = sys.getswitchinterval()
    yield
    root.setLevel(level)
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)
    sys.setswitchinterval(interval)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    function = pyfuncitem.obj
    if not inspect.iscoroutinefunction(function):
        return None
    arguments: dict[str, Any] = {
        name: pyfuncitem.funcargs[name] for name in inspect.signature(function).parameters
    }
    marked = pyfuncitem.get_closest_marker("deadline")
    seconds = float(marked.args[0]) if marked else DEADLINE
    autojump = pyfuncitem.get_closest_marker("autojump") is not None

    async def bounded() -> None:
        with trio.fail_after(1e9 if autojump else seconds):
            await function(**arguments)

    trio.run(bounded, clock=MockClock(autojump_threshold=0) if autojump else None)
    return True
