"""Command `python -m tests.linearizability --minutes N`, which records and checks histories for N minutes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from tests.linearizability.campaign import Checked, run_campaigns
from tests.linearizability.models import OUTSIDE_COUNTS


def main() -> int:
    """Run campaigns, and print histories that cannot be explained. Return 1 if such a history exists."""
    parser = argparse.ArgumentParser(prog="python -m tests.linearizability", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="minimum duration in minutes (default: 1)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first run (default: 1)")
    parser.add_argument(
        "--outside-counts",
        action=argparse.BooleanOptionalAction,
        default=OUTSIDE_COUNTS,
        help="whether a save by another program counts as a version",
    )
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes

    is_enough: Callable[[Checked], bool] = lambda _: time.monotonic() >= until  # noqa: E731
    with TemporaryDirectory() as folder:
        campaigns = partial(
            run_campaigns, Path(folder), options.seed, is_enough, outside_counts=options.outside_counts
        )
        checked = trio.run(campaigns)
    print(checked)  # noqa: T201 - a program
    for problem in checked.problems:
        print(problem)  # noqa: T201
    return int(bool(checked.problems))


if __name__ == "__main__":
    raise SystemExit(main())
