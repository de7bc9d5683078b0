"""How rare words are among the notes of a full-text index."""

from __future__ import annotations

import math


def bm25_idf(count: int, found: int) -> float:
    """Return the inverse document frequency, as BM25 has it, of a term that `found` of `count` notes have."""
    # Until their segments are merged, deleted documents count among those found. No weight is 0 or less.
    count, found = max(1, count), min(count, found)
    return math.log(1 + (count - found + 0.5) / (found + 0.5)) if found else math.log(1 + count)
