"""The usual comparison of two revisions: calls, writes, writes beside searches, starts, within some minutes.

Each revision indexes a copy of the same notes once, which is its first start; the rounds then start servers
on what is indexed, old and new in turn. Used by `python -m bench.compare OLD NEW --all`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copytree
from typing import Any, Final

from attrs import asdict, frozen

from bench.corpus import generate
from bench.report import describe_machine
from bench.revisions import Change, Place, compare_rounds, read_figures
from bench.stages import describe_error
from bench.tables import render_table
from bench.targets import MIXED, USUAL

#: Seconds that one run of a benchmark may take, and the first start.
RUN_LIMIT, START_LIMIT = 240.0, 600.0
_KINDS: Final = (
    "read", "list", "list_tag", "list_folder", "list_title", "tags", "related", "hybrid", "retrieve",
)  # fmt: skip


@frozen
class Case:
    """A benchmark, its arguments, its notes, and a pattern of the figures of it that are shown."""

    name: str
    module: str
    notes: int
    arguments: tuple[str, ...]
    shown: str


FIRST_START: Final = Case("first start", "start", USUAL, (), r"first\.(searchable_s|resident_mib|peak_mib)")
CASES: Final = (
    Case(
        "calls, 1 client", "calls", USUAL, ("--calls", "120", "--only", *_KINDS),
        r"(\w+\.(p50|processor))|(to_noop|to_hybrid)\.\w+",
    ),
    Case(
        "durable writes", "write", USUAL, ("--calls", "320"),
        r"(clients_1|update|noop)\.(p50|processor)|clients_16\.(p50|rate)|.*to_noop|rate_to_disk|disk_files_per_s",
    ),
    Case(
        "14 searchers and 2 writers", "write", MIXED, ("--beside-searches", "--seconds", "8"),
        r"writes\.(p50|p95|rate)|searches(_alone)?\.(p50|p95|rate|processor)",
    ),
    Case("starts", "starts", USUAL, (), r"first_answer|version|bridge"),
)  # fmt: skip

_Pair = tuple[dict[str, float], dict[str, float]]


class Comparison:
    """Rounds of `cases` on both places until `minutes` are over; a case that fails is left out and named."""

    def __init__(
        self,
        places: tuple[Place, Place],
        minutes: float,
        notes: int | None = None,
        cases: Sequence[Case] = CASES,
    ) -> None:
        self._places = places
        self._begun = time.monotonic()
        self._machine = describe_machine(os.getloadavg()[0])
        self._limit = 60 * minutes
        self._notes = notes
        self._cases = cases
        self._pairs: dict[str, list[_Pair]] = {}
        self.problems: list[str] = []

    def run(self, rounds: int) -> Iterator[None]:
        """Measure; yields whenever there is more to tell. The first round is always whole."""
        for notes in dict.fromkeys(self._notes_of(case) for case in (FIRST_START, *self._cases)):
            self._index(notes)
            yield
        for number in range(rounds):
            begun = time.monotonic()
            for case in self._cases:
                if not any(told.startswith(f"{case.name}:") for told in self.problems):
                    self._measure(case, number)
                    yield
            took = time.monotonic() - begun
            if time.monotonic() + took > self._begun + self._limit:
                return

    def _index(self, notes: int) -> None:
        """Generate the notes, copy them, and start each revision on its copy for the first time."""
        texts = self._folder(self._places[0], notes).with_name(f"corpus-{notes}")
        generate(texts, notes)
        for place in self._places:
            copytree(texts, self._folder(place, notes) / "knowledge")
        self._run_pair(FIRST_START, notes, 0, START_LIMIT, is_kept=notes == self._notes_of(FIRST_START))

    def _measure(self, case: Case, number: int) -> None:
        self._run_pair(case, self._notes_of(case), number, RUN_LIMIT)

    def _run_pair(self, case: Case, notes: int, number: int, limit: float, *, is_kept: bool = True) -> None:
        print(f"round {number + 1}: {case.name}, {notes:,} notes", file=sys.stderr, flush=True)
        results: dict[int, dict[str, float]] = {}
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            place = self._places[which]
            data = str(self._folder(place, notes))
            given = ("--rounds", "1", "--notes", str(notes), "--data", data, *case.arguments)
            try:
                results[which] = read_figures(place.run(f"bench.{case.module}", *given, timeout=limit))
            except (SystemExit, subprocess.TimeoutExpired, ValueError) as error:
                self.problems.append(f"{case.name}: {place.revision}: {describe_error(error, limit)}")
                return
        if is_kept:
            self._pairs.setdefault(case.name, []).append((results[0], results[1]))

    def _notes_of(self, case: Case) -> int:
        return case.notes if self._notes is None else self._notes

    def _folder(self, place: Place, notes: int) -> Path:
        return place.tree.with_name(f"{place.tree.name}-data-{notes}")

    def changes(self, case: Case) -> list[Change]:
        """The figures of a case that are shown."""
        pairs = self._pairs.get(case.name)
        changes = compare_rounds(pairs) if pairs else []
        return [change for change in changes if re.fullmatch(case.shown, change.figure)]

    def told(self) -> dict[str, Any]:
        """Everything for the JSON line."""
        return {
            "changes": {
                case.name: [{**asdict(change), "agrees": change.agrees} for change in self.changes(case)]
                for case in (FIRST_START, *self._cases)
            },
            "problems": self.problems,
        }

    def render(self) -> str:
        """A table for each case, as Markdown."""
        old, new = (place.revision for place in self._places)
        minutes = (time.monotonic() - self._begun) / 60
        sections = [
            f"# {new} beside {old}",
            f"Written by `python -m bench.compare --all` after {minutes:.0f} minutes. {self._machine} "
            "Both revisions were measured by the same benchmarks in turn, each on its own copy of the same "
            "notes. The ratio is the median of the ratios inside the rounds, beside its range; `*` where all "
            "rounds say the same, more or less. Times are in ms, of starts in s; `processor` is the server's "
            "processor time a call. Less is better, except for rates.",
            *(["Not measured:\n\n" + "\n".join(f"* {told}" for told in self.problems)] * bool(self.problems)),
            *(self._render_case(case) for case in (FIRST_START, *self._cases) if self.changes(case)),
        ]
        return "\n\n".join(sections) + "\n"

    def _render_case(self, case: Case) -> str:
        rounds = len(self._pairs[case.name])
        rows = [
            (
                change.figure, f"{change.old:.4g}", f"{change.new:.4g}", f"{change.ratio:.2f}",
                f"{change.lowest:.2f} to {change.highest:.2f}", "*" if change.agrees and rounds > 1 else "",
            )
            for change in self.changes(case)
        ]  # fmt: skip
        head = f"## {case.name.capitalize()}, {self._notes_of(case):,} notes, rounds: {rounds}"
        return f"{head}\n\n{render_table(('Figure', 'Old', 'New', 'New/old', 'Range', ''), rows)}"
