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
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from attrs import asdict

from bench.first_index import PARTS
from bench.hot_search import profile_searches
from bench.plot import draw_plot
from bench.report import print_report
from bench.sizes import Effort, measure_size
from bench.targets import USUAL, Figures, Target, judge


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
    targets = judge(sizes)
    plot = options.out.with_suffix(".svg")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(write_report(describe_machine(load), targets, sizes, profile, plot.name))
    plot.write_text(draw_plot(series_of(sizes), "notes"))
    print(render_targets(targets), file=sys.stderr)
    print_report(
        "all",
        targets=[{**asdict(target), "met": target.is_met} for target in targets],
        sizes={notes: asdict(figures) for notes, figures in sizes.items()},
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


def write_report(
    machine: str, targets: Sequence[Target], sizes: Mapping[int, Figures], profile: str, plot: str
) -> str:
    """The report as Markdown."""
    usual = sizes.get(USUAL) or sizes[max(sizes)]
    missed = [target.name for target in targets if not target.is_met]
    sections = [
        "# Performance",
        f"Written by `python -m bench.all`. {machine}",
        f"## Targets\n\n{render_targets(targets)}",
        f"## Sizes\n\n{render_sizes(sizes)}\n\n![size against latency, memory and start]({plot})",
        "## What explains them\n\n" + ("Missed: " + "; ".join(missed) if missed else "Every target was met."),
        f"### First index, {usual.notes:,} notes\n\n{render_index(usual)}",
        f"### Actors while 16 clients write\n\n{render_actors(usual)}",
        f"### Hybrid search\n\n```\n{profile}\n```",
    ]
    return "\n\n".join(sections) + "\n"


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def render_targets(targets: Sequence[Target]) -> str:
    """The verdicts; the ratio is the share of what is allowed."""
    rows = [
        (
            target.name,
            target.limit,
            target.measured,
            f"{target.share:.2f}",
            "met" if target.is_met else "**missed**",
        )
        for target in targets
    ]
    return render_table(("Target", "Allowed", "Measured", "Of allowed", ""), rows)


def render_sizes(sizes: Mapping[int, Figures]) -> str:
    """A row for each size."""
    rows = [
        (
            f"{notes:,}",
            f"{of.alone['hybrid'].p50:.2f} / {of.alone['hybrid'].p95:.2f}",
            f"{of.together['hybrid'].rate:.0f}",
            f"{of.write_alone.p50:.1f}",
            f"{of.write_together.rate:.0f}",
            f"{of.resident_mib:.0f} / {of.peak_mib:.0f}",
            f"{of.index_s:.1f}",
            f"{of.starts.first_answer:.2f}",
        )
        for notes, of in sizes.items()
    ]
    head = (
        "Notes",
        "Hybrid p50 / p95, ms",
        "Hybrid /s, 16 clients",
        "Write p50, ms",
        "Writes /s, 16 clients",
        "Memory / peak, MiB",
        "First start, s",
        "Second start, s",
    )
    return render_table(head, rows)


def render_index(figures: Figures) -> str:
    """What the libraries take alone, and what the first start took."""
    floor = figures.floor_s
    rows = [(part, f"{floor[part]:.2f}") for part in PARTS]
    rows += [
        ("sum", f"{sum(floor.values()):.2f}"),
        ("first start to searchable", f"{figures.index_s:.2f}"),
        ("a start with nothing to index, for comparison", f"{figures.starts.first_answer:.2f}"),
    ]
    return render_table(("Part", "Seconds"), rows)


def render_actors(figures: Figures) -> str:
    """The busiest first."""
    rows = [
        (actor.name, f"{actor.busy:.0%}", str(actor.batches), f"{actor.p50}", f"{actor.p95}")
        for actor in figures.actors
    ]
    return render_table(("Actor", "Busy", "Batches", "p50, ms", "p95, ms"), rows)


def series_of(sizes: Mapping[int, Figures]) -> dict[str, dict[int, float]]:
    """What the plot shows."""
    return {
        "hybrid search p95, ms": {notes: of.alone["hybrid"].p95 for notes, of in sizes.items()},
        "write p50, ms": {notes: of.write_alone.p50 for notes, of in sizes.items()},
        "memory, MiB": {notes: of.resident_mib for notes, of in sizes.items()},
        "first start, s": {notes: of.index_s for notes, of in sizes.items()},
        "second start, s": {notes: of.starts.first_answer for notes, of in sizes.items()},
    }


if __name__ == "__main__":
    main()
