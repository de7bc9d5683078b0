"""The fit of the strength of full-text rows, from rows whose truth is known."""

from __future__ import annotations

from random import Random

import attrs

from bench.word_matches import Row, fit, predict_held_out
from lithos.core.learning.match import WordFeatures


def some_rows(count: int) -> list[Row]:
    """Rows that are right where their passage covers much; all other features are noise."""
    random = Random(3)
    rows = []
    for number in range(count):
        features = {name: random.random() for name in attrs.fields_dict(WordFeatures)}
        is_right = features["passage"] + random.gauss(0, 0.1) > 0.5
        rows.append(Row("made", "documents", str(number // 3), number % 3 == 0, True, is_right, features))
    return rows


def test_the_fit_finds_the_feature_that_tells():
    weights = fit(some_rows(600)).weights
    assert max(weights, key=lambda name: abs(weights[name])) == "passage"


def test_a_row_is_judged_without_its_own_question():
    rows = some_rows(600)
    chances = predict_held_out(rows)
    right = [chance for row, chance in zip(rows, chances, strict=True) if row.is_right]
    wrong = [chance for row, chance in zip(rows, chances, strict=True) if not row.is_right]
    assert right
    assert wrong
    assert sum(right) / len(right) > 0.8 > 0.2 > sum(wrong) / len(wrong)
