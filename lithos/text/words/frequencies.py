"""Weights of words by how rarely notes of a full-text index contain them."""

from __future__ import annotations

import math


def bm25_idf(count: int, found: int) -> float:
    """Return the BM25 inverse document frequency of a term that `found` of `count` notes contain."""
    # Deleted documents count as found until their segments are merged. No weight is 0 or less.
    count, found = max(1, count), min(count, found)
    return math.log(1 + (count - found + 0.5) / (found + 0.5)) if found else math.log(1 + count)
