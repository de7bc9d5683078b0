"""Every performance target, measured in one run and judged in a report.

`python -m bench.all` writes `bench/report.md` and, beside it, a plot of the same name: 1,000, 10,000 and
100,000 notes, about a quarter of an hour on two quiet cores. A `compare.md` of `bench.compare --all` beside
it, older revisions beside the newest, becomes a chapter of it. `--largest 300000` adds a size, which is
measured last and takes as long again or longer. The report is written anew after each size; a stage that
fails or takes too long is named in it and costs the others nothing. No stage begins after `--minutes`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from attrs import asdict

from bench.figures import Figures
from bench.install import Installation, measure_installation
from bench.plot import draw_plot
from bench.report import describe_machine, end_by_signal, print_report
from bench.sizes import Effort, measure_size
from bench.stages import Stages, describe_error
from bench.tables import Measured, render_targets, series_of, write_report
from bench.targets import LARGE, USUAL

#: Minutes after which no further stage begins, and how many more for each 100,000 notes of `--largest`.
MINUTES, MINUTES_PER_LARGE = 25.0, 12.0
INSTALL_LIMIT = 300.0


def main(arguments: list[str] | None = None) -> None:
    options = parse_arguments(arguments)
    end_by_signal()
    load, begun = os.getloadavg()[0], time.monotonic()
    machine = describe_machine(load)
    stages = Stages(begun + 60 * options.minutes)
    until = begun + 60 * options.minutes
    effort = Effort(options.rounds, options.calls, options.writes, options.seconds)
    usual = USUAL if USUAL in options.notes else max(options.notes)
    sizes: dict[int, Figures] = {}
    installed: Installation | None = None

    def tell() -> Measured:
        """Write what there is so far."""
        minutes = (time.monotonic() - begun) / 60
        compared = options.out.with_name("compare.md")
        beside = compared.read_text() if compared.exists() else ""
        found = Measured(machine, dict(sizes), installed, stages.problems, minutes, beside)
        plot = options.out.with_suffix(".svg")
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(write_report(found, plot.name))
        if any(series_of(sizes).values()):
            plot.write_text(draw_plot({name: of for name, of in series_of(sizes).items() if of}, "notes"))
        return found

    # What is quick and needed comes first, what may take too long last.
    for notes in options.notes:
        if notes < LARGE:
            sizes[notes] = _measure(notes, usual, effort, until)
            tell()
    if not options.no_install:
        installed = stages.run("installation", INSTALL_LIMIT, lambda _: measure_installation())
    for notes in options.notes:
        if notes >= LARGE:
            tell()
            sizes[notes] = _measure(notes, usual, effort, until)
    found = tell()
    print(render_targets(found.targets), file=sys.stderr)
    print(*(f"not measured: {told}" for told in found.failures()), sep="\n", file=sys.stderr)
    print_report(
        "all",
        targets=[{**asdict(target), "met": target.is_met} for target in found.targets],
        sizes={notes: asdict(figures) for notes, figures in sizes.items()},
        installation=None if installed is None else asdict(installed),
        not_measured=found.failures(),
        minutes=round(found.minutes, 1),
    )


def _measure(notes: int, usual: int, effort: Effort, until: float) -> Figures:
    try:
        return measure_size(notes, usual, effort, until)
    except Exception as error:  # noqa: BLE001 - no size may cost the others their figures
        return Figures(notes, problems=(describe_error(error, 0),))


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.all", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=_sizes, default=(1_000, USUAL, LARGE), help="separated by commas")
    parser.add_argument("--largest", type=int, default=0, help="one more size, which is measured last")
    parser.add_argument("--out", type=Path, default=Path("bench/report.md"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=400, help="calls per kind and round")
    parser.add_argument("--writes", type=int, default=480, help="writes per round")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a round of searchers and writers")
    parser.add_argument(
        "--minutes", type=float, help="no stage begins later; default: 25, more with --largest"
    )
    parser.add_argument("--no-install", action="store_true", help="without a fresh installation")
    options = parser.parse_args(arguments)
    if options.largest:
        options.notes = tuple(sorted({*options.notes, options.largest}))
    if options.minutes is None:
        options.minutes = MINUTES + MINUTES_PER_LARGE * options.largest / LARGE
    return options


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(part) for part in text.split(",")}))
    if sizes[0] < 100:
        raise argparse.ArgumentTypeError("give sizes of at least 100 notes")
    return sizes


if __name__ == "__main__":
    main()
