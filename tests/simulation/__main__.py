"""Command `python -m tests.simulation --minutes N | --seeds N | --seed N`.

The command exits with 1 if a seed broke a promise.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
import time
from pathlib import Path
from tempfile import mkdtemp

MEMORY = Path("/dev/shm")
#: Hash seed of Python. If the value is equal, sets of texts have the same order in every process.
HASHES = "0"


def main() -> int:
    """Run the requested seeds and print their outcomes."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--minutes", type=float, help="run seed after seed for so long")
    parser.add_argument("--seeds", type=int, help="run so many seeds")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--step", type=int, default=1, help="run every so-manyth seed")
    parser.add_argument("--seed", type=int, help="run one seed and print its trace")
    parser.add_argument("--quiet", action="store_true", help="print no trace")
    parser.add_argument("--keep-going", action="store_true", help="run on after a failure")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != HASHES:
        os.environ["PYTHONHASHSEED"] = HASHES
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    from tests.simulation.seeds import run_seed  # noqa: PLC0415 - after the new beginning

    folder = Path(mkdtemp(prefix="lithos-simulation-", dir=MEMORY if MEMORY.is_dir() else None))
    began, virtual, count, failed = time.monotonic(), 0.0, 0, 0
    seed = options.first if options.seed is None else options.seed
    try:
        while True:
            tell = print if options.seed is not None and not options.quiet else None
            outcome = run_seed(seed, folder, tell)
            count, virtual = count + 1, virtual + outcome.virtual
            if outcome.problem is not None:
                failed += 1
                print(f"{outcome.problem}\n  {outcome.line}", flush=True)  # noqa: T201 - a program
            if options.seed is not None:
                told = f"seed {seed}: {outcome.steps} steps, digest {outcome.digest}, {outcome.checks}"
                print(told)  # noqa: T201
                break
            if failed and not options.keep_going:
                break
            if options.seeds is not None and count >= options.seeds:
                break
            if options.minutes is not None and time.monotonic() - began > options.minutes * 60:
                break
            if options.seeds is None and options.minutes is None:
                break
            if count % 20 == 0:
                gc.collect()
            seed += options.step
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    hours, seconds = virtual / 3600, time.monotonic() - began
    print(f"{count} seeds, {hours:.1f} simulated hours, {seconds:.0f} s, {failed} failed")  # noqa: T201
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
