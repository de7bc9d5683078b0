"""What the two largest measured sizes say of a million notes: pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Final

from attrs import frozen

from bench.figures import Figures
from bench.targets import MIB_OF_GB, Target, at_most

MILLION: Final = 1_000_000
#: What is aimed at with a million notes of 2 KB.
MEMORY_LIMIT_GB, START_LIMIT_S, SEARCH_LIMIT_MS = 4.5, 20.0, 60.0
RULES: Final = (
    "From the two largest sizes that have the figure. *Linear*: a fixed part and a part for each note, the "
    "line through both; that is the rule for memory and for the second start, which read and keep something "
    "of every note. *Power*: the curve `a * n^b` through both; that is the rule for the search, whose "
    "vectors are looked at in lists from 400,000 of them on, so that it grows more slowly than the notes. "
    "Its line is beside it as an upper bound, for as long as the two sizes are on the same side of that "
    "threshold. A projection from sizes below 100,000 notes tells little."
)


@frozen
class Projection:
    """One figure at `MILLION` notes, by both rules; `target` judges by the rule that holds for it."""

    sizes: tuple[int, int]
    values: tuple[float, float]
    linear: float
    power: float
    rule: str
    target: Target


def extend_line(sizes: tuple[int, int], values: tuple[float, float], to: int) -> float:
    """The line through both points."""
    slope = (values[1] - values[0]) / (sizes[1] - sizes[0])
    return values[1] + slope * (to - sizes[1])


def extend_power(sizes: tuple[int, int], values: tuple[float, float], to: int) -> float:
    """The curve `a * n^b` through both points, which are positive."""
    exponent = log(values[1] / values[0]) / log(sizes[1] / sizes[0])
    return values[1] * (to / sizes[1]) ** exponent


def project(sizes: Mapping[int, Figures]) -> list[Projection]:
    """Memory, second start and hybrid p95, each where two sizes have it."""
    memory = {notes: of.memory.resident / MIB_OF_GB for notes, of in sizes.items() if of.memory}
    start = {notes: of.starts.first_answer for notes, of in sizes.items() if of.starts}
    search = {notes: of.front.alone["hybrid"].p95 for notes, of in sizes.items() if of.front}
    return [
        *_project("resident memory", memory, "linear", MEMORY_LIMIT_GB, " GB"),
        *_project("second start to the first answer", start, "linear", START_LIMIT_S, " s"),
        *_project("hybrid search p95, 1 client", search, "power", SEARCH_LIMIT_MS, " ms"),
    ]


def _project(name: str, points: Mapping[int, float], rule: str, limit: float, unit: str) -> list[Projection]:
    if len(points) < 2:
        return []
    one, two = sorted(points)[-2:]
    known = (points[one], points[two])
    linear, power = (extend((one, two), known, MILLION) for extend in (extend_line, extend_power))
    target = at_most(
        f"{name}, {MILLION:,} notes, projected", linear if rule == "linear" else power, limit, unit
    )
    return [Projection((one, two), known, linear, power, rule, target)]
