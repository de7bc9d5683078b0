"""Every performance target, measured in one run and judged in a report.

`python -m bench.all --notes 1000,10000,100000 --out bench/report.md` writes the report and, beside it, a plot
of the same name. Up to 10,000 notes it takes some minutes; 100,000 notes take longer and some gigabytes.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from attrs import asdict

from bench.hot_search import profile_searches
from bench.install import measure_installation
from bench.plot import draw_plot
from bench.report import print_report
from bench.sizes import Effort, measure_size
from bench.tables import render_targets, series_of, write_report
from bench.targets import USUAL, Figures, judge, judge_installation


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.all", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=_sizes, default=(1_000, USUAL), help="sizes, separated by commas")
    parser.add_argument("--out", type=Path, default=Path("bench/report.md"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=400, help="calls per kind and round")
    parser.add_argument("--writes", type=int, default=480, help="writes per round")
    options = parser.parse_args()
    effort = Effort(options.rounds, options.calls, options.writes)
    load = os.getloadavg()[0]
    profiled = USUAL if USUAL in options.notes else max(options.notes)
    sizes: dict[int, Figures] = {}
    profile = ""
    for notes in options.notes:
        sizes[notes], told = measure_size(notes, effort, profile_searches if notes == profiled else None)
        profile = told or profile
    print("installation", file=sys.stderr, flush=True)
    installed = measure_installation()
    targets = [*judge(sizes), *judge_installation(installed)]
    plot = options.out.with_suffix(".svg")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(
        write_report(describe_machine(load), targets, sizes, installed, profile, plot.name)
    )
    plot.write_text(draw_plot(series_of(sizes), "notes"))
    print(render_targets(targets), file=sys.stderr)
    print_report(
        "all",
        targets=[{**asdict(target), "met": target.is_met} for target in targets],
        sizes={notes: asdict(figures) for notes, figures in sizes.items()},
        installation=asdict(installed),
    )


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(part) for part in text.split(",")}))
    if sizes[0] < 100:
        raise argparse.ArgumentTypeError("give sizes of at least 100 notes")
    return sizes


def describe_machine(load: float) -> str:
    """Where and when it was measured; the load is that of the minute before."""
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    cores = len(os.sched_getaffinity(0))
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f"Revision {revision or 'unknown'}, {now}, {cores} cores, Python {platform.python_version()}, "
        f"load {load:.1f} before. Clients share the cores with the server."
    )


if __name__ == "__main__":
    main()
