"""Measures of rankings, and intervals of their differences."""

from __future__ import annotations

import math

import pytest

from bench.judged import Chunk, Collection, JudgedQuery
from bench.quality import distinct_layouts
from bench.rankings import Score, paired_difference, score_ranking


def test_the_measures_of_a_ranking_are_those_computed_by_hand() -> None:
    """Grades 2 and 1 at places 1 and 3, a third relevant document missing."""
    score = score_ranking(["a", "x", "b"], {"a": 2, "b": 1, "c": 1})
    ideal = 3 + 1 / math.log2(3) + 1 / 2
    assert score.ndcg == pytest.approx((3 + 1 / 2) / ideal)
    assert (score.mrr, score.recall) == (1.0, pytest.approx(2 / 3))


def test_nothing_counts_after_the_tenth_place() -> None:
    ranking = [*map(str, range(10)), "a"]
    assert score_ranking(ranking, {"a": 1}) == Score(0.0, 0.0, 0.0)


def test_the_interval_of_a_constant_difference_has_no_width() -> None:
    assert paired_difference([0.5, 0.7, 0.9], [0.4, 0.6, 0.8]) == (10.0, 10.0, 10.0)


def test_the_bootstrap_interval_is_that_of_the_normal_approximation() -> None:
    """400 differences of +1 and -1 in equal parts: standard error 1/20."""
    middle, low, high = paired_difference([1.0, 0.0] * 200, [0.0, 1.0] * 200)
    assert middle == 0
    assert low == pytest.approx(-9.8, abs=0.7)
    assert high == pytest.approx(9.8, abs=0.7)


def test_the_interval_pairs_queries() -> None:
    """Values that vary much, all better by the same: unpaired intervals would be wide."""
    theirs = [number / 100 for number in range(90)]
    _, low, high = paired_difference([value + 0.05 for value in theirs], theirs)
    assert (low, high) == (5.0, 5.0)


def test_a_layout_that_makes_the_same_notes_is_measured_once() -> None:
    collection = Collection("one", (Chunk("1", "1", "a text"),), (JudgedQuery("q", "text", "q", {"1": 1}),))
    assert [layout for layout, _ in distinct_layouts(collection, ("passages", "pages", "titled"))] == [
        "passages"
    ]


def test_a_sample_keeps_the_queries_of_a_document_together() -> None:
    asked = [JudgedQuery(f"{page}-{n}", "", "", {f"p{page}": 1}) for page in range(40) for n in (0, 1)]
    sample = Collection("pages", (), tuple(asked)).sample(20)
    assert len(sample.queries) == 20
    assert len({doc for query in sample.queries for doc in query.grades}) == 10
