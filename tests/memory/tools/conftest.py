"""A server for each test: `lithos`, whose clock stands still for tests that ask for the `clock`, too."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.servers import Clock, Lithos, serving


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lithos(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Lithos]:
    if "clock" in request.fixturenames:
        return serving(tmp_path, clock=request.getfixturevalue("clock"))
    return serving(tmp_path)
