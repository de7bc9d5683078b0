"""Measures of a ranking against judgements, and how sure a difference between two of them is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

DEPTH = 10
RESAMPLINGS = 10_000


@frozen
class Score:
    """Of one query, each 0..1: nDCG with gain 2^grade - 1, reciprocal rank and recall, all at 10."""

    ndcg: float
    mrr: float
    recall: float


def score_ranking(ranking: Sequence[str], grades: Mapping[str, int]) -> Score:
    """Measure the first ten documents of a ranking without repetition."""
    top = ranking[:DEPTH]
    ideal = _discounted(sorted(grades.values(), reverse=True)[:DEPTH])
    places = [place for place, doc in enumerate(top, start=1) if doc in grades]
    return Score(
        ndcg=_discounted([grades.get(doc, 0) for doc in top]) / ideal,
        mrr=1 / places[0] if places else 0.0,
        recall=len(places) / len(grades),
    )


def _discounted(grades: Sequence[int]) -> float:
    return math.fsum((2**grade - 1) / math.log2(place + 1) for place, grade in enumerate(grades, start=1))


def mean(values: Sequence[float]) -> float:
    """The mean times 100, which is how such figures are usually told."""
    return round(100 * math.fsum(values) / len(values), 2) if values else math.nan


def paired_difference(
    ours: Sequence[float], theirs: Sequence[float], seed: int = 7
) -> tuple[float, float, float]:
    """The mean of `ours - theirs` times 100 with its 95 % interval (paired bootstrap).

    Both are values of the same queries in the same order. Queries are drawn anew 10,000 times.
    """
    differences: NDArray[np.float64] = 100 * (np.asarray(ours, float) - np.asarray(theirs, float))
    if not len(differences):
        return math.nan, math.nan, math.nan
    rng = np.random.default_rng(seed)
    drawn = [
        differences[rng.integers(0, len(differences), len(differences))].mean() for _ in range(RESAMPLINGS)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return round(float(differences.mean()), 2), round(float(low), 2), round(float(high), 2)
