"""Git revisions measured in turn, and what the newest one is to the older, figure by figure.

`python -m bench.compare OLD NEW --bench search --bench write -- --notes 1000`; more than one OLD may be
given. Each revision is checked out into a temporary git worktree and run by this interpreter, its `lithos`
first on the path, beside packages that it alone requires; rounds alternate (old new, new old, …), so that
what else the machine does falls on all. All are measured by the benchmarks of NEW, so that only the server
differs; `--own-bench` lets each bring its own. What stands after `--` is handed to every benchmark.

`--all` measures calls, writes, writes beside searches and starts (`bench.comparison`) on data directories
that each revision has indexed once, for `--minutes` at most, and writes a table (`--out`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attrs import asdict

from bench.comparison import Comparison
from bench.report import end_by_signal, print_report
from bench.revisions import Place, compare_rounds, measure, render_changes, worktrees

BENCHES: Final = ("search", "calls", "write", "start", "watch", "events", "costs")


def main(arguments: Sequence[str] | None = None) -> None:
    given = list(sys.argv[1:] if arguments is None else arguments)
    own, _, handed = _split_at(given, "--")
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", metavar="OLD", nargs="+")
    parser.add_argument("new", metavar="NEW")
    parser.add_argument("--bench", action="append", choices=BENCHES, help="default: search")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--own-bench", action="store_true", help="each revision measures with its own bench")
    parser.add_argument("--all", action="store_true", help="the usual cases, written to --out")
    parser.add_argument(
        "--minutes", type=float, default=12.0, help="of --all: no round begins that would end later"
    )
    parser.add_argument("--notes", type=int, help="of --all: in so many notes instead of each case's own")
    parser.add_argument("--out", type=Path, default=Path("bench/compare.md"), help="of --all")
    options = parser.parse_args(own)
    end_by_signal()
    with worktrees(*options.old, options.new, own_bench=options.own_bench) as places:
        if options.all:
            _compare_all(places, options)
            return
        for bench in options.bench or ["search"]:
            told = measure(bench, places, options.rounds, handed)
            for old, name in enumerate(options.old):
                changes = compare_rounds([(figures[old], figures[-1]) for figures in told])
                print(f"{bench}: {options.new} to {name}, {options.rounds} rounds")
                print(render_changes(changes))
                figures = [{**asdict(change), "agrees": change.agrees} for change in changes]
                print_report("compare", of=bench, old=name, new=options.new, changes=figures)


def _compare_all(places: Sequence[Place], options: argparse.Namespace) -> None:
    """The cases of `bench.comparison` in rounds; the table is written after each case."""
    comparison = Comparison(places, options.minutes, options.notes)
    for _ in comparison.run(options.rounds):
        options.out.write_text(comparison.render())
    print(comparison.render())
    print_report("compare", old=options.old, new=options.new, **comparison.told())


def _split_at(arguments: list[str], mark: str) -> tuple[list[str], str, list[str]]:
    if mark not in arguments:
        return arguments, "", []
    place = arguments.index(mark)
    return arguments[:place], mark, arguments[place + 1 :]


if __name__ == "__main__":
    main()
