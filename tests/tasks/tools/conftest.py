"""Fixtures with a clock. It starts at the beginning of a year and moves only when a test moves it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.servers import Clock, Lithos, serving


@pytest.fixture
def clock() -> Clock:
    return Clock("2026-01-01T00:00:00+00:00")


@pytest.fixture
def lithos(tmp_path: Path, clock: Clock) -> AbstractAsyncContextManager[Lithos]:
    return serving(tmp_path, clock=clock)
