"""Comparison of Git revisions. Each figure of the newest revision is compared with the older revisions.

Run `python -m bench.compare OLD NEW --bench search --bench write -- --notes 1000`. Several OLD revisions are
possible. Each revision is checked out into a temporary git worktree. This interpreter runs it with the
revision's `lithos` first on the path, plus the packages that only this revision requires. Rounds alternate
the order (old new, new old, …), so that other load affects all revisions. The benchmarks of NEW measure every
revision, so that only the server differs. Arguments after `--` are passed to every benchmark.

`--all` measures calls, searches, writes, searches during writes, and starts, within `--minutes`. Each
revision indexes its copy of the same notes once, on its first start. Later rounds start servers on the
indexed notes. `--out` writes the table to a file.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copytree
from typing import Final

from attrs import frozen

from bench.corpus import generate
from bench.report import describe_error, describe_machine, end_by_signal, render_table
from bench.revisions import Change, Place, compare_rounds, in_turn, read_figures, worktrees

BENCHES: Final = ("search", "calls", "write", "start", "events", "costs")
#: Number of notes in most cases, and number of notes in the mixed case, in which many searchers wait for
#: writers.
USUAL, MIXED = 10_000, 1_000
#: Maximum duration in seconds of one benchmark run, and maximum duration of the first start.
RUN_LIMIT, START_LIMIT = 240.0, 600.0
_KINDS: Final = (
    "read", "list", "list_tag", "list_folder", "list_title", "tags", "related", "hybrid", "retrieve",
)  # fmt: skip


@frozen
class Case:
    """A benchmark with its arguments, and a pattern for the figures to show.

    A case with 0 notes creates its notes itself.
    """

    name: str
    module: str
    notes: int
    arguments: tuple[str, ...]
    shown: str


FIRST_START: Final = Case(
    "first start", "start", USUAL, ("--parts", "first"), r"first\.(searchable_s|resident_mib|peak_mib)"
)
CASES: Final = (
    Case(
        "calls, 1 client", "calls", USUAL, ("--calls", "120", "--only", *_KINDS),
        r"(\w+\.(p50|processor))|(to_noop|to_hybrid)\.\w+",
    ),
    Case(
        "briefings", "calls", USUAL, ("--calls", "40", "--only", "context"), r"context\.(p50|p95|processor)"
    ),
    Case(
        "searches", "search", MIXED, ("--calls", "320", "--searches", "320"),
        r"clients_16\.(fulltext|semantic|hybrid|noop)\.(rate|processor)",
    ),
    Case(
        "durable writes", "write", USUAL, ("--calls", "320"),
        r"(clients_1|update|noop)\.(p50|rate|processor)|(clients|updates)_16\.(p50|rate)|.*to_noop|rate_to_disk|disk_files_per_s",
    ),
    Case(
        "14 searchers and 2 writers", "write", MIXED, ("--beside-searches", "--seconds", "8"),
        r"writes\.(p50|p95|rate)|searches(_alone)?\.(p50|p95|rate|processor)",
    ),
    Case("starts", "start", USUAL, ("--parts", "again"), r"again\.\w+"),
)  # fmt: skip

#: Results of one round, one per revision. None means that the benchmark failed for this revision.
_Round = tuple[dict[str, float] | None, ...]


class Comparison:
    """Runs rounds of `cases` for all revisions, the newest last, for at most `minutes` minutes.

    If a case fails for one revision, it is reported and not repeated there. The remaining revisions still get
    figures.
    """

    def __init__(
        self, places: Sequence[Place], minutes: float, notes: int | None = None, cases: Sequence[Case] = CASES
    ) -> None:
        self._places = places
        self._begun = time.monotonic()
        self._machine = describe_machine(os.getloadavg()[0])
        self._limit = 60 * minutes
        self._notes = notes
        self._cases = cases
        self._rounds: dict[str, list[_Round]] = {}
        #: Errors of failed cases, by case and revision.
        self.failed: dict[tuple[str, str], str] = {}

    def run(self, rounds: int) -> Iterator[None]:
        """Run the rounds, and yield after each new set of results. The first round is always completed."""
        for notes in dict.fromkeys(self._notes_of(case) for case in self._cases if case.notes):
            self._index(notes)
            yield
        for number in range(rounds):
            begun = time.monotonic()
            for case in self._cases:
                self._measure(case, self._notes_of(case), number, RUN_LIMIT)
                yield
            took = time.monotonic() - begun
            if time.monotonic() + took > self._begun + self._limit:
                return

    def _index(self, notes: int) -> None:
        """Generate the notes, copy them for each revision, and start each revision once on its copy."""
        texts = self._folder(self._places[0], notes).with_name(f"corpus-{notes}")
        generate(texts, notes)
        for place in self._places:
            copytree(texts, self._folder(place, notes) / "knowledge")
        is_kept = notes == self._notes_of(FIRST_START)
        self._measure(FIRST_START, notes, 0, START_LIMIT, is_kept=is_kept)

    def _measure(self, case: Case, notes: int, number: int, limit: float, *, is_kept: bool = True) -> None:
        print(f"round {number + 1}: {case.name}", file=sys.stderr, flush=True)
        results: dict[Place, dict[str, float]] = {}
        for place in in_turn(self._places, number):
            if (case.name, place.revision) in self.failed:
                continue
            data = ("--notes", str(notes), "--data", str(self._folder(place, notes))) if case.notes else ()
            given = ("--rounds", "1", *data, *case.arguments)
            try:
                results[place] = read_figures(place.run(f"bench.{case.module}", *given, timeout=limit))
            except (SystemExit, subprocess.TimeoutExpired, ValueError) as error:
                told = f"{case.name}: {place.revision}: {describe_error(error, limit)}"
                self.failed[case.name, place.revision] = told
        if is_kept:
            found = tuple(results.get(place) for place in self._places)
            self._rounds.setdefault(case.name, []).append(found)

    def _notes_of(self, case: Case) -> int:
        return self._notes if self._notes is not None and case.notes else case.notes

    def _folder(self, place: Place, notes: int) -> Path:
        return place.tree.with_name(f"{place.tree.name}-data-{notes}")

    def changes(self, case: Case, old: int) -> dict[str, Change]:
        """Return the displayed figures of a case by name.

        The figures compare the newest revision with the revision at position `old`.
        """
        told = [(found[old], found[-1]) for found in self._rounds.get(case.name, ())]
        pairs = [(before, now) for before, now in told if before is not None and now is not None]
        changes = compare_rounds(pairs) if pairs else []
        return {change.figure: change for change in changes if re.fullmatch(case.shown, change.figure)}

    def render(self) -> str:
        """Return a Markdown table for each case."""
        *olds, new = (place.revision for place in self._places)
        minutes = (time.monotonic() - self._begun) / 60
        failed = self.failed.values()
        tables = [self._render_case(case) for case in (FIRST_START, *self._cases)]
        sections = [
            f"# {new} beside {' and '.join(olds)}",
            f"Written by `python -m bench.compare` after {minutes:.0f} minutes. {self._machine} "
            "All revisions were measured in turn by the same benchmarks, each on its own copy of "
            "the same notes. The ratio is the median of the ratios inside the rounds, followed "
            "by its range; `*` means that all rounds agree on more or less. Times are in ms, "
            "start times in s; `processor` is the server's processor time per call. Less is "
            "better, except for rates.",
            "\n".join(["Not measured:\n", *(f"* {told}" for told in failed)]) if failed else "",
            *tables,
        ]
        return "\n\n".join(filter(None, sections)) + "\n"

    def _render_case(self, case: Case) -> str:
        """Return the table of a case. If the newest revision has no figures, return ""."""
        *olds, new = self._places
        columns = [self.changes(case, old) for old, _ in enumerate(olds)]
        figures = dict.fromkeys(figure for column in columns for figure in column)
        if not figures:
            return ""
        rows = [
            (
                figure,
                *(f"{column[figure].old:.4g}" if figure in column else "" for column in columns),
                next(f"{column[figure].new:.4g}" for column in columns if figure in column),
                *(_ratio(column[figure]) if figure in column else "" for column in columns),
            )
            for figure in figures
        ]
        names = [place.revision for place in olds]
        head = ("Figure", *names, new.revision, *(f"To {name}" for name in names))
        rounds = len(self._rounds[case.name])
        notes = f", {self._notes_of(case):,} notes" if case.notes else ""
        title = f"## {case.name.capitalize()}{notes}, rounds: {rounds}"
        return f"{title}\n\n{render_table(head, rows)}"


def _ratio(change: Change) -> str:
    return f"{change.ratio:.2f} ({change.lowest:.2f} to {change.highest:.2f}){' *' * change.agrees}"


def main(arguments: Sequence[str] | None = None) -> None:
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", metavar="OLD", nargs="+")
    parser.add_argument("new", metavar="NEW")
    parser.add_argument("--bench", action="append", choices=BENCHES, help="default: search")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="run the usual cases instead of --bench")
    parser.add_argument(
        "--minutes", type=float, help="maximum minutes: no round starts that would end later; with --all: 12"
    )
    parser.add_argument(
        "--notes",
        type=int,
        help="with --all: number of notes in every case, instead of each case's own number",
    )
    parser.add_argument("--out", type=Path, help="Markdown file for the table, rewritten after each case")
    options = parser.parse_args(given[:end])
    end_by_signal()
    handed = tuple(given[end + 1 :])
    cases = CASES if options.all else [Case(b, b, 0, handed, ".*") for b in options.bench or ["search"]]
    minutes = options.minutes or (12.0 if options.all else 10_000.0)
    with worktrees(*options.old, options.new) as places:
        comparison = Comparison(places, minutes, options.notes, cases)
        for _ in comparison.run(options.rounds):
            if options.out:
                options.out.write_text(comparison.render())
        print(comparison.render())


if __name__ == "__main__":
    main()
