"""Command `python -m tests.simulation.finding BUG`.

The command finds the first seed that detects the bug and passes without the bug.

The search runs in a separate program with a fixed hash seed. It therefore always finds the same seed.
"""

from __future__ import annotations

import gc
import shutil
import sys
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.simulation.__main__ import MEMORY
from tests.simulation.bugs import BUGS
from tests.simulation.seeds import run_seed

SEEDS = 200
#: First seed to try for each bug that is slow to find. This seed was the first to find the bug.
BEGIN = {"skip_the_fence_check": 10}


def main(bug: str) -> int:
    """Return 0 if a seed broke a promise only with the bug. Print the broken promise."""
    folder = Path(mkdtemp(prefix="lithos-simulation-", dir=MEMORY if MEMORY.is_dir() else None))
    first = BEGIN.get(bug, 1)
    try:
        for seed in chain(range(first, SEEDS + 1), range(1, first)):
            with pytest.MonkeyPatch.context() as patch:
                BUGS[bug](patch)
                found = run_seed(seed, folder)
            if found.problem is not None:
                print(f"{bug}: seed {seed}: {found.problem[:200]}")  # noqa: T201 - a program
                sound = run_seed(seed, folder)
                print(sound.problem or "sound without it")  # noqa: T201
                return int(sound.problem is not None)
            if seed % 20 == 0:
                gc.collect()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{bug} was not found in {SEEDS} seeds")  # noqa: T201
    return 1


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
