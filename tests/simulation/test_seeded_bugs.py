"""The simulation finds what it is for: each bug that is put in breaks a promise within 200 seeds."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from tests.simulation.bugs import BUGS
from tests.simulation.seeds import run_seed

SEEDS = 200
#: What takes longest to be found is looked for where it was found first.
BEGIN = {"skip_the_fence_check": 10}


@pytest.mark.slow
@pytest.mark.takes(4)
@pytest.mark.deadline(300)
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was broken is told, of a seed that is sound without the bug."""
    first = BEGIN.get(bug, 1)
    for seed in chain(range(first, SEEDS + 1), range(1, first)):
        with monkeypatch.context() as patch:
            BUGS[bug](patch)
            found = run_seed(seed, tmp_path)
        if found.problem is not None:
            print(f"{bug}: seed {seed}: {found.problem[:200]}")  # noqa: T201 - for `pytest -s`
            assert run_seed(seed, tmp_path).problem is None
            return
    raise AssertionError(f"{bug} was not found in {SEEDS} seeds")
