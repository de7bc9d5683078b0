"""`python -m tests.storm --runs N --seconds S`: storms one after the other; 1 when one lost a text."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from tests.storm.storm import Storm


def main() -> int:
    """Run them, and print what each left."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="storms")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each")
    options = parser.parse_args()
    has_lost = False
    for number in range(options.runs):
        with TemporaryDirectory() as folder:
            outcome = trio.run(Storm(Path(folder) / "data", options.seconds).run)
        print(number + 1, outcome, *outcome.lost, flush=True)  # noqa: T201 - a program
        has_lost = has_lost or bool(outcome.lost)
    return int(has_lost)


if __name__ == "__main__":
    raise SystemExit(main())
