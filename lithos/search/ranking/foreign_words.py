"""Questions with words that no note of the vault has, such as questions in another language.

A question and its answer in another language have a lower similarity than in one language, and full-text
search finds only names and numbers. If the vault lacks many words of a question, its nearest notes therefore
count below the usual minimum. 1 % of the questions of the English collections are concerned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

#: Share of a question's idf from which the vault lacks many of its words.
FOREIGN: Final = 0.3
#: Minimum similarity of the nearest notes. Of the right answers among the ten nearest notes in eleven
#: languages, 7 to 39 % are below 0.3, and at most 1 % are below 0.15 (static model).
LEAST_ACROSS: Final = 0.15
#: Number of nearest notes that count down to `LEAST_ACROSS`.
NEAREST: Final = 10


def foreign_share(idf: Mapping[str, float], unknown: float) -> float:
    """Return the share (0..1) of a question's idf that is in stems without a note.

    `unknown` is the idf of such a stem.
    """
    total = sum(idf.values())
    return sum(each for each in idf.values() if each >= unknown) / total if total else 0.0


def count_near(similarities: Sequence[float], threshold: float, foreign: float) -> int:
    """Return how many of the nearest notes count. `similarities` must be in descending order."""
    if not similarities or similarities[-1] >= threshold:
        return len(similarities)
    near = sum(each >= threshold for each in similarities)
    return max(near, min(NEAREST, len(similarities))) if foreign >= FOREIGN else near
