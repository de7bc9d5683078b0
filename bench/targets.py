"""What the server must be able to do, and whether it was: pure. Ratios are against floors of the same run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from bench.figures import Figures
from bench.install import Installation

#: The size that targets without a size of their own mean, and the large one.
USUAL, LARGE = 10_000, 100_000
#: Searchers beside writers are judged in so many notes, where each search is short and many wait.
MIXED = 1_000
OVERHEAD_LIMIT: Final = 1.15
#: Hybrid searches a second by 16 clients, in the small size.
SEARCH_RATE: Final = 500.0
WRITE_SHARE: Final = 0.5
INDEX_LIMIT: Final = 2.5
MIB_OF_GB: Final = 1e9 / 1024**2
#: p50 beside the no-op's, by the kinds of `bench.calls`.
CALL_LIMITS: Final = {
    "read": ("`lithos_read` of 2 KB", 1.5),
    "list": ("`lithos_list`, 50 rows", 2.5),
    "list_tag": ("the same with a tag", 2.5),
    "list_folder": ("the same in a folder", 2.5),
    "list_since": ("the same since a time", 2.5),
    "list_title": ("the same with words in the title", 2.5),
    "hybrid": ("hybrid search, static tier", 3.0),
}
#: The aim of a hybrid search beside the no-op in the large size.
LARGE_SEARCH_LIMIT: Final = 5.0
#: Milliseconds of the slowest twentieth of briefings.
CONTEXT_P95: Final = 40.0
#: p50 beside that of a hybrid search.
RETRIEVE_LIMIT: Final = 2.0
WRITE_LIMIT, WRITE_RATE = 6.0, 400.0
#: Creations and updates a second by one client.
ALONE_RATE, UPDATE_RATE = 150.0, 130.0
#: Milliseconds a write may take beside 14 searchers: p50, p95.
MIXED_P50, MIXED_P95 = 40.0, 100.0


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
    usual = usual_of(sizes)
    targets = [*_judge_calls(usual), *_judge_front(usual), *_judge_writes(usual)]
    targets += [*_judge_rate(sizes.get(MIXED, usual)), *_judge_mix(sizes.get(MIXED, usual))]
    targets += [*_judge_index(usual), *_judge_starts(usual)]
    if LARGE in sizes:
        targets += _judge_large(sizes[LARGE])
    return targets


def usual_of(sizes: Mapping[int, Figures]) -> Figures:
    """The figures of the usual size, else of the largest."""
    return sizes.get(USUAL) or sizes[max(sizes)]


def _judge_calls(figures: Figures) -> list[Target]:
    calls = figures.calls
    if calls is None:
        return []
    noop = calls.kinds["noop"].p50
    targets = [
        at_most(
            f"{name} beside a no-op, {figures.notes:,} notes",
            calls.to_noop[kind],
            limit,
            "x",
            f"{calls.kinds[kind].p50:.2f} ms beside {noop:.2f} ms",
        )
        for kind, (name, limit) in CALL_LIMITS.items()
        if kind in calls.to_noop
    ]
    if "retrieve" in calls.to_hybrid:
        targets.append(
            at_most(
                f"`lithos_retrieve` beside a hybrid search, {figures.notes:,} notes",
                calls.to_hybrid["retrieve"],
                RETRIEVE_LIMIT,
                "x",
                f"{calls.kinds['retrieve'].p50:.2f} ms beside {calls.kinds['hybrid'].p50:.2f} ms",
            )
        )
    if "context" in calls.kinds:
        name = f"`lithos_context` p95, {figures.notes:,} notes"
        targets.append(at_most(name, calls.kinds["context"].p95, CONTEXT_P95, " ms"))
    return targets


def _judge_front(figures: Figures) -> list[Target]:
    front = figures.front
    if front is None:
        return []
    return [
        at_most(
            "no-op through the stack beside the bare SDK, 1 client",
            front.overhead,
            OVERHEAD_LIMIT,
            "x",
            f"{front.alone['noop'].p50:.2f} ms beside {front.alone['bare'].p50:.2f} ms",
        ),
    ]


def _judge_rate(figures: Figures) -> list[Target]:
    if figures.front is None:
        return []
    name = f"hybrid searches, {figures.notes:,} notes, 16 clients"
    return [at_least(name, figures.front.together["hybrid"].rate, SEARCH_RATE, " /s")]


def _judge_writes(figures: Figures) -> list[Target]:
    writes, of = figures.writes, f"{figures.notes:,} notes"
    if writes is None:
        return []
    return [
        at_most(
            f"write beside a no-op, {of}, 1 client",
            writes.to_noop,
            WRITE_LIMIT,
            "x",
            f"{writes.alone.p50:.2f} ms",
        ),
        at_least(f"writes, {of}, 1 client", writes.alone.rate, ALONE_RATE, " /s"),
        at_least(f"updates, {of}, 1 client", writes.update.rate, UPDATE_RATE, " /s"),
        at_least(f"writes, {of}, 16 clients", writes.together.rate, WRITE_RATE, " /s"),
        at_least(
            "acknowledged writes beside raw durable files by 4 threads, 16 clients",
            writes.ratio,
            WRITE_SHARE,
            "x",
            f"{writes.together.rate:.0f} /s beside {writes.raw:.0f} /s",
        ),
    ]


def _judge_mix(figures: Figures) -> list[Target]:
    if figures.mix is None:
        return []
    mix, of = figures.mix, f"{figures.notes:,} notes"
    told = f"{mix.searches.rate:.0f} searches /s, {mix.writes.rate:.0f} writes /s"
    return [
        at_most(f"a write beside 14 searchers, 2 writers, {of}, p50", mix.writes.p50, MIXED_P50, " ms", told),
        at_most(f"a write beside 14 searchers, 2 writers, {of}, p95", mix.writes.p95, MIXED_P95, " ms"),
    ]


def _judge_index(figures: Figures) -> list[Target]:
    ratio = figures.index_ratio
    if ratio is None or figures.floor_s is None:
        return []
    floor = sum(figures.floor_s.values())
    return [
        at_most(
            f"first index of {figures.notes:,} notes beside the libraries alone",
            ratio,
            INDEX_LIMIT,
            "x",
            f"{figures.index_s:.1f} s beside {floor:.1f} s",
        ),
    ]


def _judge_starts(figures: Figures) -> list[Target]:
    starts = figures.starts
    if starts is None:
        return []
    return [
        at_most(f"second start to the first answer, {figures.notes:,} notes", starts.first_answer, 1.0, " s"),
        at_most("`lithos --version`", starts.version, 0.15, " s"),
        at_most("stdio bridge greeted", starts.bridge, 0.5, " s"),
    ]


def _judge_large(figures: Figures) -> list[Target]:
    of, targets = f"{figures.notes:,} notes", []
    if (front := figures.front) is not None:
        targets += [
            at_most(
                f"hybrid search beside a no-op, {of}",
                front.search_ratio,
                LARGE_SEARCH_LIMIT,
                "x",
                f"{front.alone['hybrid'].p50:.2f} ms beside {front.alone['noop'].p50:.2f} ms",
            ),
            at_most(f"hybrid search p95, {of}, 1 client", front.alone["hybrid"].p95, 60, " ms"),
        ]
    if figures.memory is not None:
        targets.append(at_most(f"resident memory, {of}", figures.memory.resident / MIB_OF_GB, 1.2, " GB"))
    if figures.starts is not None:
        second = figures.starts.first_answer
        targets.append(at_most(f"second start to the first answer, {of}", second, 10, " s"))
    return targets


def judge_installation(installed: Installation) -> list[Target]:
    """What a person waits for and gives room to before the first note."""
    return [
        at_most(
            "installed size",
            installed.mib * 1024**2 / 1e6,
            350,
            " MB",
            f"{len(installed.packages)} packages, without the {installed.empty_mib:.0f} MiB of pip",
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
