"""The least similarity that counts, by mode and model.

The two defaults differ because they do different things. In a fusion, 0.3 excludes the many notes that are
only slightly similar to the question, which would stretch the scale of the semantic leg; full text finds the
others. A semantic search has nothing else: notes below its threshold are lost. Of the right answers to 1,000
questions (docs_dev, built-in model) 0.5 % are below 0.23, 1 % below 0.26 and 2 % below 0.30. Short notes,
and questions in another language, are lower still: hence 0.15. Of the accurate model 0.5 % are below 0.10
(docs_dev) and 0.12 (Cranfield): hence 0.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: The least similarity in a fusion; `match` is calibrated for it.
LEAST_OF_LEG: Final = 0.3
#: The least similarity of a semantic search, by whether the accurate tier answers.
LEAST_OF_MODEL: Final = {False: 0.15, True: 0.1}


def least_similarity(configured: float | None) -> float:
    """The least similarity in a fusion."""
    return LEAST_OF_LEG if configured is None else configured


def judged_part(
    scores: Sequence[tuple[int, float]], threshold: float
) -> tuple[list[tuple[int, float]], float]:
    """The rows of a semantic search that may be more than weak, and the threshold that their chances know."""
    least = max(threshold, LEAST_OF_LEG)
    return [row for row in scores if row[1] >= least], least
