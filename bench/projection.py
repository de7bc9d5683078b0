"""What the two largest measured sizes say of a million notes: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from bench.figures import Figures
from bench.targets import MIB_OF_GB, Target, at_most

MILLION: Final = 1_000_000
#: What is aimed at with a million notes of 2 KB.
MEMORY_LIMIT_GB, START_LIMIT_S, SEARCH_LIMIT_MS = 4.5, 20.0, 60.0
RULES: Final = (
    "The line through the two largest sizes that have the figure: a fixed part and a part for each note. "
    "Memory and the second start keep or read something of every note, and a search compares every vector. "
    "A projection from sizes below 100,000 notes tells little."
)


@frozen
class Projection:
    """One figure at `MILLION` notes."""

    sizes: tuple[int, int]
    values: tuple[float, float]
    linear: float
    target: Target


def extend_line(sizes: tuple[int, int], values: tuple[float, float], to: int) -> float:
    """The line through both points."""
    slope = (values[1] - values[0]) / (sizes[1] - sizes[0])
    return values[1] + slope * (to - sizes[1])


def project(sizes: Mapping[int, Figures]) -> list[Projection]:
    """Memory, second start and hybrid p95, each where two sizes have it."""
    memory = {notes: of.memory.resident / MIB_OF_GB for notes, of in sizes.items() if of.memory}
    start = {notes: of.starts.first_answer for notes, of in sizes.items() if of.starts}
    search = {notes: of.front.alone["hybrid"].p95 for notes, of in sizes.items() if of.front}
    return [
        *_project("resident memory", memory, MEMORY_LIMIT_GB, " GB"),
        *_project("second start to the first answer", start, START_LIMIT_S, " s"),
        *_project("hybrid search p95, 1 client", search, SEARCH_LIMIT_MS, " ms"),
    ]


def _project(name: str, points: Mapping[int, float], limit: float, unit: str) -> list[Projection]:
    if len(points) < 2:
        return []
    one, two = sorted(points)[-2:]
    known = (points[one], points[two])
    linear = extend_line((one, two), known, MILLION)
    target = at_most(f"{name}, {MILLION:,} notes, projected", linear, limit, unit)
    return [Projection((one, two), known, linear, target)]
