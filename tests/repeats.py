"""Number of repetitions of random tests. It is low in the gate and high in `.ci/nightly`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest


def repeats(what: str, usual: int) -> int:
    """Return the number in `LITHOS_TEST_<what>`, which `.ci/nightly` sets. The default is `usual`."""
    return int(os.environ.get(f"LITHOS_TEST_{what}", usual))


def first_of(cases: Sequence[Any], usual: int, slow: int = 0) -> list[Any]:
    """Return the cases as parameters: `usual` fast tests, then `slow` slow tests, and then nightly tests."""
    beside = [pytest.param(case, marks=pytest.mark.slow) for case in cases[usual : usual + slow]]
    nightly = [pytest.param(case, marks=pytest.mark.nightly) for case in cases[usual + slow :]]
    return [*cases[:usual], *beside, *nightly]
