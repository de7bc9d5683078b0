"""Questions with words that no note of the vault has, such as questions in another language.

A question and its answer in another language have a lower similarity than in one language, and full-text
search finds only names and numbers. If the vault lacks many words of a question, its nearest notes therefore
count below the usual minimum. 1 % of the questions of the English collections are concerned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Share of a question's idf from which the vault lacks many of its words.
FOREIGN: Final = 0.3
#: Minimum number of these words. A single unknown word is a name or a typing error, not another language.
LEAST_MISSING: Final = 2
#: Minimum similarity of the nearest notes. Of the right answers among the ten nearest notes in eleven
#: languages, 7 to 39 % are below 0.3, and at most 1 % are below 0.15 (static model).
LEAST_ACROSS: Final = 0.15
#: Number of nearest notes that count down to `LEAST_ACROSS`.
NEAREST: Final = 10


def lacks_words(idf: Mapping[str, float], unknown: float) -> bool:
    """Return whether the vault lacks many words of a question.

    `idf` has the stems of the question, and `unknown` is the idf of a stem that is in no note.
    """
    missing = [each for each in idf.values() if each >= unknown]
    return len(missing) >= LEAST_MISSING and sum(missing) >= FOREIGN * sum(idf.values())
