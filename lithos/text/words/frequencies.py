"""Word weights, which depend on how few notes of a full-text index contain the word."""

from __future__ import annotations

import math


def bm25_idf(count: int, found: int) -> float:
    """Return the BM25 inverse document frequency of a term. `found` of `count` notes contain the term."""
    # The index counts deleted documents as found until their segments are merged. Without limits, a weight
    # could be 0 or less.
    count, found = max(1, count), min(count, found)
    return math.log(1 + (count - found + 0.5) / (found + 0.5)) if found else math.log(1 + count)
