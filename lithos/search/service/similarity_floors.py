"""Minimum similarities of semantic results, by mode and model.

The two defaults differ because they have different purposes. In a hybrid search, 0.3 excludes the many notes
that are only slightly similar to the question. These notes would stretch the scale of the semantic scores.
Full-text search still finds them. In a semantic search, notes below the threshold are lost. Of the correct
answers to 1,000 questions (docs_dev, built-in model), 0.5 % are below 0.23, 1 % below 0.26 and 2 % below
0.30. Short notes and questions in another language have even lower similarities, hence 0.15. With the
English accurate model, 0.5 % are below 0.10 (docs_dev) and 0.12 (Cranfield), hence 0.1. With the multilingual
model, no right answer in one language is below 0.3, and 0 to 0.9 % of those in another language are below
0.15 (tests/search/languages), hence 0.15. Half of all other notes are below 0.29.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lithos.search.ranking.calibrations import ACCURATE, MULTILINGUAL, STATIC

#: Minimum similarity in a hybrid search. `match` is calibrated for this value.
LEAST_OF_LEG: Final = 0.3
#: Minimum similarity in a semantic search, by the model that answers.
LEAST_OF_MODEL: Final = {STATIC: 0.15, ACCURATE: 0.1, MULTILINGUAL: 0.15}


def least_similarity(configured: float | None) -> float:
    """Return the minimum similarity in a hybrid search."""
    return LEAST_OF_LEG if configured is None else configured


def judged_part(
    scores: Sequence[tuple[int, float]], threshold: float
) -> tuple[list[tuple[int, float]], float]:
    """Return the rows of a semantic search that may rate above weak, with the threshold for the rating."""
    least = max(threshold, LEAST_OF_LEG)
    return [row for row in scores if row[1] >= least], least
