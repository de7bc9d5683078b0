"""The best hits of a full-text query, in an order that is the same for every run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from tantivy import Query, Searcher

#: Number of extra hits requested beyond the limit. One request then usually returns all hits that tie for the
#: last rank.
_LIKELY_TIES: Final = 32
#: A score counts as lower than another score only if it is below this share of that score. The margin allows
#: for rounding in single precision.
_LEAST_STEP: Final = 1 - 4e-7


def best_hits(searcher: Searcher, query: Query, limit: int) -> list[tuple[int, float]]:
    """Return the best hits as (serial, score) pairs.

    If hits tie for the last rank, more hits are requested, because ties must be ordered by serial.
    """
    asked = limit + _LIKELY_TIES
    while limit > 0:
        hits = searcher.search(query, asked, count=False).hits
        if len(hits) < asked or hits[-1][0] < hits[limit - 1][0] * _LEAST_STEP:
            serials = searcher.fast_field_values("serial", [address for _, address in hits])
            return _order(serials, [score for score, _ in hits])[:limit]
        asked *= 2
    return []


def _order(serials: Sequence[Any], scores: Sequence[float]) -> list[tuple[int, float]]:
    """Return the hits best first, with ties ordered by serial.

    Scores that differ only in their last digits all count as the highest of them. Such differences arise
    because tantivy adds the terms of a note in no fixed order.
    """
    found = np.array(scores)
    near = (found[1:] >= found[:-1] * _LEAST_STEP).nonzero()[0].tolist()
    hits = list(zip(serials, scores, strict=True))
    begin = end = 0  # Bounds of the last group of tied hits.
    for at in near:
        head = hits[at][1]
        if scores[at + 1] < head * _LEAST_STEP:
            continue
        hits[at + 1] = serials[at + 1], head
        if at >= end:
            hits[begin:end] = sorted(hits[begin:end])
            begin = at
        end = at + 2
    hits[begin:end] = sorted(hits[begin:end])
    return hits
