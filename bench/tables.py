"""The report of `bench.all` as Markdown: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log
from typing import Final

from attrs import frozen

from bench.calls import CallFigures
from bench.client import Latencies
from bench.figures import Figures, Writes
from bench.first_index import PARTS
from bench.install import Installation
from bench.projection import RULES, Projection, project
from bench.targets import Target, judge, judge_installation, usual_of

HYBRID, WRITE = "hybrid search p95, ms", "write p50, ms"
MEMORY, FIRST_START, SECOND_START = "memory, MiB", "first start, s", "second start, s"
GROWTH: Final = (
    "Exponents of growth between neighbouring sizes, from the same figures: 0 is no growth, 1 is growth with "
    "the number of notes. A fixed cost keeps an exponent low until what grows outweighs it."
)
CALLS: Final = (
    "One client, unless said. The ratios are medians of those inside rounds that alternate all kinds; the "
    "processor's is of the server's processor time a call, which other work on the machine does not change. "
    "The kinds are those of `bench.calls`: `read, again` reads 200 notes again and again, `list` asks for 50 "
    "rows, `list, since` with a time, `list, title` and `list, text` with words."
)
#: What grows with the notes, and what does not.
WHY: Final = {
    HYBRID: "every vector is looked at (linear, from about 10,000 notes on most of it); words look only at "
    "notes that have them, and the call itself costs the same at any size",
    WRITE: "one file, one journal entry, one batch of index changes: none depends on the number of notes",
    MEMORY: "interpreter, libraries and model are fixed; a note adds its vectors (one byte a dimension) and "
    "its entry in the catalogue",
    FIRST_START: "every note is read, parsed, embedded and indexed once",
    SECOND_START: "interpreter and imports are fixed; every file is looked at and compared with the "
    "manifest, and the vectors are read",
}


@frozen
class Measured:
    """Everything of one run: `problems` are those of stages beside the sizes, `minutes` its length.

    `beside` is the text of the last `bench.compare --all`, empty where there was none.
    """

    machine: str
    sizes: Mapping[int, Figures]
    installed: Installation | None
    problems: Sequence[str]
    minutes: float
    beside: str = ""

    @property
    def targets(self) -> list[Target]:
        """All that can be judged, projections last."""
        installed = [] if self.installed is None else judge_installation(self.installed)
        return [*judge(self.sizes), *installed, *(one.target for one in project(self.sizes))]

    def failures(self) -> list[str]:
        """What was not measured, and why."""
        of_sizes = [f"{of.notes:,} notes, {told}" for of in self.sizes.values() for told in of.problems]
        return [*of_sizes, *self.problems]


def write_report(measured: Measured, plot: str) -> str:
    """The report as Markdown."""
    sizes, targets = measured.sizes, measured.targets
    usual = usual_of(sizes)
    failed = measured.failures()
    sections = [
        "# Performance",
        f"Written by `python -m bench.all`. {measured.machine} The run took {measured.minutes:.0f} minutes.",
        *(["## Not measured\n\n" + "\n".join(f"* {told}" for told in failed)] if failed else []),
        f"## Targets\n\n{render_targets(targets)}",
        *(
            [measured.beside.strip().replace("\n#", "\n##").replace("# ", "## ", 1)]
            if measured.beside
            else []
        ),
        f"## Calls beside the no-op\n\n{CALLS}\n\n{render_calls(sizes)}",
        f"## Sizes\n\n{render_sizes(sizes)}\n\n![size against latency, memory and start]({plot})",
        f"### A million notes, projected\n\n{RULES}\n\n{render_projection(project(sizes))}",
        f"### Growth\n\n{GROWTH}\n\n{render_growth(sizes)}",
        "## What explains them\n\n" + _tell_missed(targets),
        *_explain(usual),
    ]
    if measured.installed is not None:
        sections.append(f"## Installation\n\n{render_installation(measured.installed)}")
    return "\n\n".join(sections) + "\n"


def _tell_missed(targets: Sequence[Target]) -> str:
    if not targets:
        return "Nothing was measured."
    missed = [target.name for target in targets if not target.is_met]
    return "Missed: " + "; ".join(missed) if missed else "Every target was met."


def _explain(usual: Figures) -> list[str]:
    sections = []
    if usual.floor_s is not None and usual.index_s is not None:
        sections.append(f"### First index, {usual.notes:,} notes\n\n{render_index(usual)}")
    if usual.writes is not None:
        sections.append(f"### Actors while 16 clients write\n\n{render_actors(usual.writes)}")
    if usual.profile is not None:
        sections.append(f"### Hybrid search\n\n```\n{usual.profile}\n```")
    return sections


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


def render_calls(sizes: Mapping[int, Figures]) -> str:
    """A row for each kind of call and size; what is not read has no processor time of its own."""
    rows: list[tuple[str, ...]] = []
    for notes, of in sizes.items():
        if of.calls is not None:
            rows += [_row_of_call(notes, kind, of.calls) for kind in of.calls.kinds]
        if of.writes is not None:
            of_write = (("write", of.writes.alone, of.writes.to_noop),)
            for kind, taken, ratio in (*of_write, ("update", of.writes.update, of.writes.update_to_noop)):
                rows.append((f"{notes:,}", kind, *_latencies(taken), f"{ratio:.2f}", "", ""))
        if of.claims is not None:
            told = f"a claim, {of.claims.agents} agents racing"
            rows.append((f"{notes:,}", told, *_latencies(of.claims.racing), "", "", ""))
        if of.mix is not None:
            told = "a write beside 14 searchers, 2 writers"
            rows += [
                (
                    f"{notes:,}",
                    "a search, 14 searchers alone",
                    *_latencies(of.mix.searches_alone),
                    "",
                    "",
                    "",
                ),
                (f"{notes:,}", "a search, 14 searchers, 2 writers", *_latencies(of.mix.searches), "", "", ""),
                (f"{notes:,}", told, *_latencies(of.mix.writes), "", "", ""),
            ]
    head = ("Notes", "Call", "p50, ms", "p95, ms", "/s", "To no-op", "To no-op, processor", "To hybrid")
    return render_table(head, rows)


def _row_of_call(notes: int, kind: str, calls: CallFigures) -> tuple[str, ...]:
    ratios = (calls.to_noop, calls.to_noop_processor, calls.to_hybrid)
    told = (f"{ratio[kind]:.2f}" if kind in ratio else "" for ratio in ratios)
    return (f"{notes:,}", kind.replace("_", ", "), *_latencies(calls.kinds[kind]), *told)


def _latencies(of: Latencies) -> tuple[str, str, str]:
    return f"{of.p50:.2f}", f"{of.p95:.2f}", f"{of.rate:.0f}"


def render_sizes(sizes: Mapping[int, Figures]) -> str:
    """A row for each size; what was not measured is empty."""
    rows = [
        (
            f"{notes:,}",
            *_or_empty(
                of.front and (f"{of.front.alone['hybrid'].p50:.2f} / {of.front.alone['hybrid'].p95:.2f}"),
                of.front and f"{of.front.together['hybrid'].rate:.0f}",
                of.writes and f"{of.writes.alone.p50:.1f}",
                of.writes and f"{of.writes.together.rate:.0f}",
                of.mix and f"{of.mix.writes.p50:.0f} / {of.mix.writes.p95:.0f}, {of.mix.searches.rate:.0f}",
                of.memory and f"{of.memory.resident:.0f} / {of.memory.peak:.0f}",
                of.index_s and f"{of.index_s:.1f}",
                of.starts and f"{of.starts.first_answer:.2f}",
            ),
        )
        for notes, of in sizes.items()
    ]
    head = (
        "Notes",
        "Hybrid p50 / p95, ms",
        "Hybrid /s, 16 clients",
        "Write p50, ms",
        "Writes /s, 16 clients",
        "Write beside searchers p50 / p95, ms, searches /s",
        "Memory / peak, MiB",
        "First start, s",
        "Second start, s",
    )
    return render_table(head, rows)


def _or_empty(*cells: object) -> tuple[str, ...]:
    return tuple(str(cell) if cell else "" for cell in cells)


def render_projection(projections: Sequence[Projection]) -> str:
    """Each figure at both sizes and at a million notes."""
    rows = [
        (
            one.target.name,
            *(f"{value:.3g} at {notes:,}" for notes, value in zip(one.sizes, one.values, strict=True)),
            f"{one.linear:.3g}",
            one.target.limit,
            "met" if one.target.is_met else "**missed**",
        )
        for one in projections
    ]
    return render_table(("Figure", "Measured", "Measured", "Projected", "Aim", ""), rows)


def render_index(figures: Figures) -> str:
    """What the libraries take alone, and what the first start took."""
    floor = figures.floor_s or {}
    rows = [(part, f"{floor[part]:.2f}") for part in PARTS]
    rows += [
        ("sum", f"{sum(floor.values()):.2f}"),
        ("first start to searchable", f"{figures.index_s:.2f}"),
    ]
    if figures.starts is not None:
        rows.append(("a start with nothing to index, for comparison", f"{figures.starts.first_answer:.2f}"))
    return render_table(("Part", "Seconds"), rows)


def render_actors(writes: Writes) -> str:
    """The busiest first."""
    rows = [
        (actor.name, f"{actor.busy:.0%}", str(actor.batches), f"{actor.p50}", f"{actor.p95}")
        for actor in writes.actors
    ]
    return render_table(("Actor", "Busy", "Batches", "p50, ms", "p95, ms"), rows)


def render_growth(sizes: Mapping[int, Figures]) -> str:
    """The exponent between neighbouring sizes: 0 does not grow, 1 grows as the number of notes does."""
    steps = list(pairwise(sorted(sizes)))
    rows = [
        (
            name,
            *(
                f"{log(values[after] / values[before]) / log(after / before):.2f}"
                if before in values and after in values
                else ""
                for before, after in steps
            ),
            WHY[name],
        )
        for name, values in series_of(sizes).items()
    ]
    return render_table(("Figure", *(f"{one:,} to {two:,}" for one, two in steps), "Because"), rows)


def render_installation(installed: Installation) -> str:
    """What a fresh virtual environment holds, in a sentence and a table."""
    packages = installed.packages
    told = (
        f"`pip install .` into an empty environment took {installed.install_s:g} s and "
        f"{installed.mib:g} MiB beside the {installed.empty_mib:g} of pip; `lithos demo` was over "
        f"{installed.demo_s:g} s after the first command."
        f" {len(packages)} packages, {installed.direct} of them asked for by Lithos itself:"
    )
    rows = [(one.name, one.version, f"{one.mib:g}") for one in packages]
    return f"{told}\n\n{render_table(('Package', 'Version', 'MiB'), rows)}"


def series_of(sizes: Mapping[int, Figures]) -> dict[str, dict[int, float]]:
    """What the plot shows: the sizes that have it."""
    return {
        HYBRID: {notes: of.front.alone["hybrid"].p95 for notes, of in sizes.items() if of.front},
        WRITE: {notes: of.writes.alone.p50 for notes, of in sizes.items() if of.writes},
        MEMORY: {notes: of.memory.resident for notes, of in sizes.items() if of.memory},
        FIRST_START: {notes: of.index_s for notes, of in sizes.items() if of.index_s},
        SECOND_START: {notes: of.starts.first_answer for notes, of in sizes.items() if of.starts},
    }
