"""Measures of rankings with binary relevance: a note is expected or it is not.

A ranking is given as the ranks, from 1, at which the expected notes were found; of `relevant` expected notes
those that were not found have no rank. Each measure is 0..1 per question, and its mean over the questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from attrs import frozen

#: The cut of nDCG.
NDCG_CUT: Final = 10


def hit_at(k: int, ranks: Iterable[int]) -> float:
    """1 when an expected note is among the first k, else 0 (success@k; trec_eval `success_k`)."""
    return float(any(rank <= k for rank in ranks))


def recall_at(k: int, ranks: Iterable[int], relevant: int) -> float:
    """The share of the expected notes among the first k (Manning, Raghavan, Schütze 2008, section 8.3)."""
    return sum(rank <= k for rank in ranks) / relevant if relevant else 0.0


def reciprocal_rank(ranks: Iterable[int]) -> float:
    """1 / the first rank, 0 when nothing was found; its mean is MRR (Voorhees, TREC-8, 1999)."""
    return 1 / min(ranks, default=math.inf)


def ndcg_at(k: int, ranks: Iterable[int], relevant: int) -> float:
    """nDCG@k: sum of 1/log2(1 + rank) over that of the ideal ranking.

    Järvelin and Kekäläinen 2002, ACM TOIS 20(4), with the discount of Burges et al. 2005; for binary
    relevance both kinds of gain are the same. The ideal ranking has min(relevant, k) notes at the top.
    """
    ideal = sum(1 / math.log2(1 + rank) for rank in range(1, min(relevant, k) + 1))
    return sum(1 / math.log2(1 + rank) for rank in ranks if rank <= k) / ideal if ideal else 0.0


@frozen
class Ranking:
    """The ranks of the expected notes of one question, and how many were expected."""

    ranks: tuple[int, ...]
    relevant: int


@frozen
class Scores:
    """Means over the questions."""

    hit: float
    recall: float
    mrr: float
    ndcg: float

    @classmethod
    def of(cls, rankings: Sequence[Ranking], k: int) -> Scores:
        """The means; hit and recall among the first `k`, nDCG among the first 10, MRR over all ranks."""
        count = len(rankings)

        def mean(values: Iterable[float]) -> float:
            return math.fsum(values) / count if count else 0.0

        return cls(
            hit=mean(hit_at(k, each.ranks) for each in rankings),
            recall=mean(recall_at(k, each.ranks, each.relevant) for each in rankings),
            mrr=mean(reciprocal_rank(each.ranks) for each in rankings),
            ndcg=mean(ndcg_at(NDCG_CUT, each.ranks, each.relevant) for each in rankings),
        )
