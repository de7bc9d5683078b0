"""The decision of cache look-ups: the fit, the curve, and the halved collections."""

from __future__ import annotations

from random import Random

import attrs
import numpy as np
import pytest

from bench.judged import Chunk, Collection, JudgedQuery
from bench.logistic import Logistic, fit_logistic, threshold_at
from bench.lookup import Row, fit, halve, match_figures
from lithos.core.learning.match import Calibration, WordFeatures


def drawn(count: int, weights: dict[str, float], intercept: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows on different scales, and outcomes with the probabilities of a logistic function."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(count, len(weights))) * np.array([1.0, 0.1, 20.0]) + np.array([0.0, 0.5, -3.0])
    chances = Logistic(intercept, weights).probabilities(rows)
    return rows, rng.random(count) < chances


def test_a_fit_recovers_the_coefficients_that_made_the_outcomes() -> None:
    known = {"a": 1.5, "b": -8.0, "c": 0.05}
    rows, outcomes = drawn(40_000, known, intercept=2.0)
    fitted = fit_logistic(list(known), rows, outcomes, ridge=1.0)
    assert fitted.intercept == pytest.approx(2.0, abs=0.25)
    for name, weight in known.items():
        assert fitted.weights[name] == pytest.approx(weight, rel=0.1)


def test_at_the_maximum_the_gradient_of_the_penalised_likelihood_is_zero() -> None:
    rows, outcomes = drawn(500, {"a": 1.0, "b": 2.0, "c": 0.1}, intercept=0.0)
    fitted = fit_logistic(["a", "b", "c"], rows, outcomes, ridge=3.0)
    residuals = outcomes - fitted.probabilities(rows)
    scales = rows.std(axis=0)
    penalty = 3.0 * np.array(list(fitted.weights.values())) * scales
    assert residuals.sum() == pytest.approx(0, abs=1e-5)
    assert ((rows - rows.mean(axis=0)) / scales).T @ residuals == pytest.approx(penalty, abs=1e-5)


def test_separable_rows_and_constant_columns_have_finite_weights() -> None:
    rows = np.array([[0.0, 7.0], [1.0, 7.0], [2.0, 7.0], [3.0, 7.0]])
    fitted = fit_logistic(["a", "constant"], rows, np.array([False, False, True, True]))
    assert 0 < fitted.weights["a"] < 10
    assert fitted.weights["constant"] == 0


def test_one_outcome_alone_cannot_be_fitted() -> None:
    with pytest.raises(ValueError, match="both outcomes"):
        fit_logistic(["a"], np.ones((3, 1)), np.array([True, True, True]))


def test_coefficients_are_printed_as_a_table_that_can_be_read_back() -> None:
    code = Logistic(-4.8912, {"cosine": 6.05, "ahead": -4.04}).as_code("static", 0.65)
    (found,) = eval(f"{{{code}}}", {"Calibration": Calibration}).items()
    assert found == ("static", Calibration(-4.891, {"cosine": 6.05, "ahead": -4.04}, 0.65))


def test_a_row_that_counts_double_is_two_rows() -> None:
    rows, outcomes = np.array([[0.0], [1.0], [2.0]]), np.array([False, True, True])
    doubled = fit_logistic(["a"], rows[[0, 1, 2, 2]], outcomes[[0, 1, 2, 2]], ridge=1e-6)
    counted = fit_logistic(["a"], rows, outcomes, ridge=1e-6, counts=np.array([1.0, 1.0, 2.0]))
    assert counted.intercept == pytest.approx(doubled.intercept, rel=0.05)


@pytest.mark.parametrize(("share", "hits"), [(0.0, 0), (0.34, 1), (1.0, 3)])
def test_a_threshold_keeps_its_share_of_false_hits(share: float, hits: int) -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    answered = np.array([True, False, True, False, True, False])
    found = scores >= threshold_at(scores, answered, share)
    assert (found & ~answered).sum() == hits


def test_equal_scores_do_not_exceed_the_allowed_false_hits() -> None:
    scores, answered = np.full(10, 0.5), np.array([True, False] * 5)
    assert not (scores >= threshold_at(scores, answered, 0.2)).any()


def some_rows(count: int) -> list[Row]:
    """Rows that are right where their passage covers much; all other features are noise."""
    random = Random(3)
    rows = []
    for number in range(count):
        features = {name: random.random() for name in attrs.fields_dict(WordFeatures)}
        is_right = features["passage"] + random.gauss(0, 0.1) > 0.5
        rows.append(Row(("made", "pages"), str(number // 3), number % 3 == 0, True, is_right, features))
    return rows


def test_the_fit_finds_the_feature_that_decides() -> None:
    weights = fit(some_rows(600), "fulltext").weights
    assert max(weights, key=lambda name: abs(weights[name])) == "passage"


def test_strong_rows_are_counted_apart_for_questions_without_an_answer() -> None:
    asked = [(True, True), (True, False), (True, True), (False, False), (False, False)]
    rows = [Row(("docs", "pages"), "", True, *each, {}) for each in asked]
    figures = match_figures(rows, ["strong", "strong", "weak", "strong", "fair"])
    assert figures == {"strong": 50.0, "strong_right": 50.0, "false_strong": 50.0, "false_fair": 50.0}


def test_half_of_the_documents_go_and_questions_about_them_have_no_answer() -> None:
    chunks = tuple(Chunk(str(number), f"d{number // 2}", "text") for number in range(40))
    queries = tuple(JudgedQuery(f"q{number}", "", "", {f"d{number}": 1}) for number in range(20))
    halved, unanswered = halve(Collection("c", chunks, queries))
    kept = {chunk.doc for chunk in halved.chunks}
    assert len(kept) == 10
    assert unanswered == {f"q{number}" for number in range(20) if f"d{number}" not in kept}
