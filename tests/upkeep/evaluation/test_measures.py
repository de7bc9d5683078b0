"""Ranking measures, compared with numbers calculated by hand."""

from __future__ import annotations

import math

import pytest

from lithos.upkeep.evaluation.model_baseline import (
    Ranking,
    Scores,
    hit_at,
    ndcg_at,
    recall_at,
    reciprocal_rank,
)


def test_hits_count_only_up_to_rank_k() -> None:
    assert [hit_at(k, [3, 7]) for k in (1, 2, 3, 10)] == [0, 0, 1, 1]
    assert hit_at(5, []) == 0


def test_recall_is_the_found_share_of_expected_notes() -> None:
    assert recall_at(5, [1, 6], 4) == 0.25
    assert recall_at(6, [1, 6], 4) == 0.5
    assert recall_at(5, [], 0) == 0


def test_reciprocal_rank_uses_the_first_hit() -> None:
    assert reciprocal_rank([4, 2]) == 0.5
    assert reciprocal_rank([]) == 0


def test_ndcg_discounts_hits_by_the_logarithm_of_the_rank() -> None:
    assert ndcg_at(10, [1], 1) == 1
    assert ndcg_at(10, [3], 1) == pytest.approx(0.5)  # 1 / log2(4)
    ideal = 1 + 1 / math.log2(3)
    assert ndcg_at(10, [1, 3], 2) == pytest.approx(1.5 / ideal)
    assert ndcg_at(10, [11], 1) == 0
    assert ndcg_at(2, [1, 2], 5) == 1  # The ideal ranking is also cut off.
    assert ndcg_at(10, [], 0) == 0


def test_scores_are_means_over_all_questions() -> None:
    scores = Scores.of([Ranking((1,), 1), Ranking((2, 6), 2), Ranking((), 1)], k=5)
    assert (scores.hit, scores.recall, scores.mrr) == pytest.approx((2 / 3, 0.5, 0.5))
    assert Scores.of([], k=5) == Scores(0, 0, 0, 0)
