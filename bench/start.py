"""First and second start on notes that no server has seen: seconds to listening and to searchable.

`python -m bench.start --notes 10000`. The server listens once full text covers every note. Each round
has a fresh data directory; its files are in the page cache.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bench.report import middle, print_report
from bench.server import Serving, data_directory, serving


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.start", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path, help="one round on this directory, which no server has seen")
    options = parser.parse_args()
    firsts: list[dict[str, float]] = []
    seconds: list[dict[str, float]] = []
    for _ in range(1 if options.data else options.rounds):
        with nullcontext(options.data) if options.data else data_directory(options.notes) as data:
            for starts in (firsts, seconds):
                with serving(data) as server:
                    starts.append(_figures(server))
    print_report("start", notes=options.notes, first=_middle(firsts), second=_middle(seconds))


def _figures(server: Serving) -> dict[str, float]:
    return {
        "listening_s": server.listening,
        "searchable_s": server.searchable,
        "resident_mib": server.resident(),
        "peak_mib": server.peak(),
    }


def _middle(rows: list[dict[str, float]]) -> dict[str, Any]:
    return {name: middle([row[name] for row in rows]) for name in rows[0]}


if __name__ == "__main__":
    main()
