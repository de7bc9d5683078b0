"""The report of `bench.all` as Markdown: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log
from typing import Final

from bench.first_index import PARTS
from bench.install import Installation
from bench.targets import USUAL, Figures, Target

HYBRID, WRITE = "hybrid search p95, ms", "write p50, ms"
MEMORY, FIRST_START, SECOND_START = "memory, MiB", "first start, s", "second start, s"
GROWTH: Final = (
    "Exponents of growth between neighbouring sizes, from the same figures: 0 is no growth, 1 is growth with "
    "the number of notes. A fixed cost keeps an exponent low until what grows outweighs it."
)
#: What grows with the notes, and what does not.
WHY: Final = {
    HYBRID: "every vector is looked at (linear, from about 10,000 notes on most of it), from 400,000 vectors "
    "(some 80,000 notes) on a few per cent of them; words look only at "
    "notes that have them, and the call itself costs the same at any size",
    WRITE: "one file, one journal entry, one batch of index changes: none depends on the number of notes",
    MEMORY: "interpreter, libraries and model are fixed; a note adds its vectors (one byte a dimension) and "
    "its entry in the catalogue",
    FIRST_START: "every note is read, parsed, embedded and indexed once",
    SECOND_START: "interpreter and imports are fixed; every file is looked at and compared with the "
    "manifest, and the vectors are read",
}


def write_report(
    machine: str,
    targets: Sequence[Target],
    sizes: Mapping[int, Figures],
    installed: Installation,
    profile: str,
    plot: str,
) -> str:
    """The report as Markdown."""
    usual = sizes.get(USUAL) or sizes[max(sizes)]
    missed = [target.name for target in targets if not target.is_met]
    sections = [
        "# Performance",
        f"Written by `python -m bench.all`. {machine}",
        f"## Targets\n\n{render_targets(targets)}",
        f"## Sizes\n\n{render_sizes(sizes)}\n\n![size against latency, memory and start]({plot})",
        f"### Growth\n\n{GROWTH}\n\n{render_growth(sizes)}",
        "## What explains them\n\n" + ("Missed: " + "; ".join(missed) if missed else "Every target was met."),
        f"### First index, {usual.notes:,} notes\n\n{render_index(usual)}",
        f"### Actors while 16 clients write\n\n{render_actors(usual)}",
        f"### Hybrid search\n\n```\n{profile}\n```",
        f"## Installation\n\n{render_installation(installed)}",
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


def render_growth(sizes: Mapping[int, Figures]) -> str:
    """The exponent between neighbouring sizes: 0 does not grow, 1 grows as the number of notes does."""
    notes = sorted(sizes)
    steps = list(pairwise(notes))
    rows = [
        (
            name,
            *(f"{log(values[after] / values[before]) / log(after / before):.2f}" for before, after in steps),
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
        f"{installed.mib:g} MiB, pip included; `lithos demo` was over {installed.demo_s:g} s after the "
        f"first command. {len(packages)} packages, {installed.direct} of them asked for by Lithos itself:"
    )
    rows = [(one.name, one.version, f"{one.mib:g}") for one in packages]
    return f"{told}\n\n{render_table(('Package', 'Version', 'MiB'), rows)}"


def series_of(sizes: Mapping[int, Figures]) -> dict[str, dict[int, float]]:
    """What the plot shows."""
    return {
        HYBRID: {notes: of.alone["hybrid"].p95 for notes, of in sizes.items()},
        WRITE: {notes: of.write_alone.p50 for notes, of in sizes.items()},
        MEMORY: {notes: of.resident_mib for notes, of in sizes.items()},
        FIRST_START: {notes: of.index_s for notes, of in sizes.items()},
        SECOND_START: {notes: of.starts.first_answer for notes, of in sizes.items()},
    }
