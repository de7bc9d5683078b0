"""Measures of rankings, and confidence intervals of their differences."""

from __future__ import annotations

import math

import pytest

from bench.rankings import Score, paired_difference, score_ranking


def test_ranking_measures_equal_values_calculated_by_hand() -> None:
    """Documents with grades 2 and 1 have ranks 1 and 3. A third relevant document is missing."""
    score = score_ranking(["a", "x", "b"], {"a": 2, "b": 1, "c": 1})
    ideal = 3 + 1 / math.log2(3) + 1 / 2
    assert score.ndcg == pytest.approx((3 + 1 / 2) / ideal)
    assert (score.mrr, score.recall) == (1.0, pytest.approx(2 / 3))


def test_documents_below_rank_ten_do_not_count() -> None:
    ranking = [*map(str, range(10)), "a"]
    assert score_ranking(ranking, {"a": 1}) == Score(0.0, 0.0, 0.0)


def test_confidence_interval_of_a_constant_difference_has_no_width() -> None:
    assert paired_difference([0.5, 0.7, 0.9], [0.4, 0.6, 0.8]) == (10.0, 10.0, 10.0)


def test_bootstrap_interval_equals_the_normal_approximation() -> None:
    """400 differences of +1 and -1 in equal parts have a standard error of 1/20."""
    middle, low, high = paired_difference([1.0, 0.0] * 200, [0.0, 1.0] * 200)
    assert middle == 0
    assert low == pytest.approx(-9.8, abs=0.7)
    assert high == pytest.approx(9.8, abs=0.7)
