"""Pytest plugin for a copy of Lithos that lacks a package: `-p tests.without`.

`WITHOUT` names the removed package, and then the packages that need it. Test files that import the removed
package are not collected, and tests whose helpers import it are skipped. A failed import within the rest of
Lithos is still an error.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from traceback import walk_tb
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
GONE, *NEEDING = os.environ["WITHOUT"].split()
#: Folders whose modules may import a removed package.
USERS: Final = [ROOT / "tests", ROOT / ".ci", *(ROOT / "lithos" / package for package in NEEDING)]


def is_need(error: BaseException) -> bool:
    """Return whether the failed import comes from tests or from a package that needs the removed package."""
    if isinstance(error, ModuleNotFoundError) and str(error.name).startswith(f"tests.{GONE}"):
        return True
    if not isinstance(error, ModuleNotFoundError) or error.name != f"lithos.{GONE}":
        return False
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    importing = Path([file for file in files if "importlib" not in file][-1])
    return any(user in importing.parents for user in USERS)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Exclude test files that import the removed package."""
    report = yield
    if report.call is not None and report.call.excinfo is not None:
        cause = report.call.excinfo.value.__cause__
        if cause is not None and is_need(cause):
            report.outcome, report.longrepr = "passed", None
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip tests whose helpers import the removed package."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if not is_need(missing):
            raise
        pytest.skip(f"needs lithos.{GONE}")
