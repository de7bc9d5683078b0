"""What the server must be able to do, and whether it was: pure. Ratios are against floors of the same run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from bench.client import Latencies
from bench.install import Installation
from bench.starts import Starts

#: The size that targets without a size of their own mean, and the large one.
USUAL, LARGE = 10_000, 100_000
OVERHEAD_LIMIT: Final = 1.15
SEARCH_LIMIT: Final = 1.5
RATE_FLOOR, RATE_SHARE = 500.0, 0.8
WRITE_SHARE: Final = 0.5
INDEX_LIMIT: Final = 1.5
MIB_OF_GB: Final = 1e9 / 1024**2


@frozen
class Actor:
    """One actor under writes: the share of time it worked, and its batches, in milliseconds."""

    name: str
    busy: float
    batches: int
    p50: float | None
    p95: float | None


@frozen
class Figures:
    """Everything measured at one size. `alone`: 1 client, `together`: 16; keys bare, noop, hybrid.

    `overhead` and `search_ratio` are medians of ratios inside rounds; `raw_files_per_s` is what four threads
    write of the same bytes. Memory in MiB, the rest in seconds.
    """

    notes: int
    index_s: float
    floor_s: Mapping[str, float]
    alone: Mapping[str, Latencies]
    together: Mapping[str, Latencies]
    overhead: float
    search_ratio: float
    resident_mib: float
    peak_mib: float
    write_alone: Latencies
    write_together: Latencies
    raw_files_per_s: float
    write_ratio: float
    starts: Starts
    actors: Sequence[Actor]

    @property
    def index_ratio(self) -> float:
        """The first start beside the libraries alone."""
        return self.index_s / sum(self.floor_s.values())


@frozen
class Target:
    """`share` is how much of what is allowed was used: met up to 1."""

    name: str
    limit: str
    measured: str
    share: float

    @property
    def is_met(self) -> bool:
        return self.share <= 1


def judge(sizes: Mapping[int, Figures]) -> list[Target]:
    """Every target that these sizes can tell of; the usual ones by 10,000 notes, else the largest size."""
    usual = sizes.get(USUAL) or sizes[max(sizes)]
    targets = [*_judge_calls(usual), *_judge_writes(usual), *_judge_starts(usual)]
    if LARGE in sizes:
        targets += _judge_large(sizes[LARGE])
    return targets


def _judge_calls(figures: Figures) -> list[Target]:
    notes, search, noop = figures.notes, figures.together["hybrid"], figures.together["noop"]
    bare = figures.alone["bare"].p50
    return [
        at_most(
            "no-op through the stack beside the bare SDK, 1 client",
            figures.overhead,
            OVERHEAD_LIMIT,
            "x",
            f"{figures.alone['noop'].p50:.2f} ms beside {bare:.2f} ms",
        ),
        at_most(
            f"hybrid search beside a no-op, {notes:,} notes, 1 client",
            figures.search_ratio,
            SEARCH_LIMIT,
            "x",
            f"{figures.alone['hybrid'].p50:.2f} ms beside {figures.alone['noop'].p50:.2f} ms",
        ),
        Target(
            f"hybrid searches, {notes:,} notes, 16 clients",
            f"at least {RATE_FLOOR:.0f} /s or {RATE_SHARE:.0%} of the no-op",
            f"{search.rate:.0f} /s, {search.rate / noop.rate:.0%} of {noop.rate:.0f} /s",
            min(RATE_FLOOR, RATE_SHARE * noop.rate) / search.rate,
        ),
    ]


def _judge_writes(figures: Figures) -> list[Target]:
    floor = sum(figures.floor_s.values())
    return [
        at_least(
            "acknowledged writes beside raw durable files by 4 threads, 16 clients",
            figures.write_ratio,
            WRITE_SHARE,
            "x",
            f"{figures.write_together.rate:.0f} /s beside {figures.raw_files_per_s:.0f} /s",
        ),
        at_most(
            f"first index of {figures.notes:,} notes beside the libraries alone",
            figures.index_ratio,
            INDEX_LIMIT,
            "x",
            f"{figures.index_s:.1f} s beside {floor:.1f} s",
        ),
    ]


def _judge_starts(figures: Figures) -> list[Target]:
    starts = figures.starts
    return [
        at_most(f"second start to the first answer, {figures.notes:,} notes", starts.first_answer, 1.0, " s"),
        at_most("`lithos --version`", starts.version, 0.15, " s"),
        at_most("stdio bridge greeted", starts.bridge, 0.5, " s"),
    ]


def _judge_large(figures: Figures) -> list[Target]:
    of = f"{figures.notes:,} notes"
    return [
        at_most(f"hybrid search p95, {of}, 1 client", figures.alone["hybrid"].p95, 60, " ms"),
        at_most(f"resident memory, {of}", figures.resident_mib / MIB_OF_GB, 1.2, " GB"),
        at_most(f"second start to the first answer, {of}", figures.starts.first_answer, 10, " s"),
    ]


def judge_installation(installed: Installation) -> list[Target]:
    """What a person waits for and gives room to before the first note."""
    return [
        at_most(
            "installed size", installed.mib * 1024**2 / 1e6, 350, " MB", f"{len(installed.packages)} packages"
        ),
        at_most("`lithos demo` done, from the first command on", installed.demo_s, 60, " s"),
    ]


def at_most(name: str, value: float, limit: float, unit: str, detail: str = "") -> Target:
    """A target that a small value meets."""
    return Target(name, f"at most {limit:g}{unit}", _tell(value, unit, detail), value / limit)


def at_least(name: str, value: float, limit: float, unit: str, detail: str = "") -> Target:
    """A target that a large value meets."""
    return Target(name, f"at least {limit:g}{unit}", _tell(value, unit, detail), limit / value)


def _tell(value: float, unit: str, detail: str) -> str:
    return f"{value:.3g}{unit}" + (f" ({detail})" if detail else "")
