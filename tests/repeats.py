"""How often tests repeat what differs from run to run: a little in the gate, much in `.ci/nightly`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest


def repeats(what: str, usual: int) -> int:
    """The number in `LITHOS_TEST_<what>`, which `.ci/nightly` sets, else the usual one."""
    return int(os.environ.get(f"LITHOS_TEST_{what}", usual))


def first_of(cases: Sequence[Any], usual: int, slow: int = 0) -> list[Any]:
    """The cases as parameters; after `usual` cases the next `slow` are slow tests, the rest nightly ones."""
    beside = [pytest.param(case, marks=pytest.mark.slow) for case in cases[usual : usual + slow]]
    nightly = [pytest.param(case, marks=pytest.mark.nightly) for case in cases[usual + slow :]]
    return [*cases[:usual], *beside, *nightly]
