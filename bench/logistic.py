"""Logistic regression with Newton's method, and the threshold for a given share of false hits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
#: Maximum number of steps in Newton's method, and largest change of a coefficient that counts as convergence.
_STEPS, _CLOSE = 100, 1e-10


@frozen
class Logistic:
    """`1 / (1 + exp(-(intercept + sum of weight x feature)))`, with the weights by feature name."""

    intercept: float
    weights: dict[str, float]

    def probabilities(self, rows: Matrix) -> Matrix:
        """Return one probability per row. The columns must be in the order of `weights`."""
        return _sigmoid(self.intercept + rows @ np.array(list(self.weights.values())))

    def as_code(self, name: str, threshold: float) -> str:
        """Return the coefficients as an entry for `lithos.search.ranking.match_strength.CALIBRATIONS`."""
        weights = ", ".join(f'"{feature}": {weight:.3f}' for feature, weight in self.weights.items())
        of = f"intercept={self.intercept:.3f}, weights={{{weights}}}, threshold={threshold:.3f}"
        return f'"{name}": Calibration({of}),'


def fit_logistic(
    names: Sequence[str],
    rows: Matrix,
    is_true: NDArray[np.bool_],
    ridge: float = 1.0,
    counts: Matrix | None = None,
) -> Logistic:
    """Return the maximum-likelihood fit. A ridge penalty applies to the weights of standardised columns.

    `ridge` counts as that number of rows, and a row counts by its weight in `counts` (None: 1). The intercept
    is not penalised. A column with only one value gets the weight 0. Raises `ValueError` unless both outcomes
    occur.
    """
    if is_true.all() or not is_true.any():
        raise ValueError("both outcomes must occur to fit a probability")
    means, scales = rows.mean(axis=0), rows.std(axis=0)
    scales = np.where(scales > 0, scales, 1.0)
    design = np.column_stack([np.ones(len(rows)), (rows - means) / scales])
    penalty = np.diag([0.0, *[ridge] * rows.shape[1]])
    penalty += 1e-9 * np.eye(len(penalty))
    found = np.zeros(design.shape[1])
    repeated = np.ones(len(rows)) if counts is None else counts
    for _ in range(_STEPS):
        chances = _sigmoid(design @ found)
        gradient = design.T @ (repeated * (is_true - chances)) - penalty @ found
        curvature = (design * (repeated * chances * (1 - chances))[:, None]).T @ design + penalty
        step = np.linalg.solve(curvature, gradient)
        found += step
        if np.abs(step).max() < _CLOSE:
            break
    weights = found[1:] / scales
    named = dict(zip(names, map(float, weights), strict=True))
    return Logistic(float(found[0] - weights @ means), named)


def _sigmoid(values: Matrix) -> Matrix:
    return 1 / (1 + np.exp(-np.clip(values, -500, 500)))


def threshold_at(scores: Matrix, is_answered: NDArray[np.bool_], false_hits: float) -> float:
    """Return the lowest threshold whose share (0..1) of false hits at or above it is at most `false_hits`."""
    unanswered = np.sort(scores[~is_answered])[::-1]
    allowed = int(false_hits * len(unanswered))
    return float(np.nextafter(unanswered[allowed], 1)) if allowed < len(unanswered) else 0.0
