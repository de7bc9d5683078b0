"""How frequent words are among notes, of one full-text index or of several together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from attrs import frozen

#: A term of a full-text index: the field, and the token in it.
Term: TypeAlias = tuple[str, str]


@frozen
class Counts:
    """How many notes there are, and how many of them have each term."""

    notes: int
    having: Mapping[Term, int]

    @classmethod
    def together(cls, counted: Iterable[Counts]) -> Counts:
        """The sums over several indexes."""
        notes, having = 0, dict[Term, int]()
        for each in counted:
            notes += each.notes
            for term, found in each.having.items():
                having[term] = having.get(term, 0) + found
        return cls(notes, having)

    def idf(self, term: Term) -> float:
        """The inverse document frequency of a term; `ln(1 + N)` of an unknown one."""
        return bm25_idf(self.notes, self.having.get(term, 0))


def bm25_idf(count: int, found: int) -> float:
    """The inverse document frequency, as BM25 has it, of a term that `found` of `count` notes have."""
    # Until their segments are merged, deleted documents count among those found. No weight is 0 or less.
    count, found = max(1, count), min(count, found)
    return math.log(1 + (count - found + 0.5) / (found + 0.5)) if found else math.log(1 + count)
