"""Ability of the simulation to detect bugs. Each deliberate bug breaks a promise within 200 seeds."""

from __future__ import annotations

import pytest

from tests.repeats import first_of
from tests.simulation.bugs import BUGS
from tests.simulation.test_simulation import simulate


@pytest.mark.slow
@pytest.mark.takes(6)
@pytest.mark.parametrize("bug", first_of([*BUGS], 2))
def test_deliberate_bug_is_found(bug: str) -> None:
    """The seed passes without the bug. With the bug, it reports the broken promise."""
    done = simulate(bug, module="tests.simulation.finding")
    assert done.returncode == 0, done.stdout + done.stderr[-2_000:]
    print(done.stdout)  # noqa: T201 - for `pytest -s`
