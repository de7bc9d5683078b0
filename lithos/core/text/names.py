"""The names that may stand in a question: its runs of words, as titles and aliases are compared."""

from __future__ import annotations

from typing import Final

from lithos.core.text.analysis import normalise

#: Words of a question that are looked at, and of one name.
MOST_WORDS: Final = 24
LONGEST_NAME: Final = 5
_AROUND: Final = ".,;:!?\"'()[]{}“”‘’«»…"


def name_spans(text: str) -> list[str]:
    """Each run of at most five words of the first 24, without regard to case; longer runs first.

    A text with more words than that is no question for a name.
    """
    words = [
        word for each in normalise("NFC", text[:1_000]).casefold().split() if (word := each.strip(_AROUND))
    ]
    if len(words) > MOST_WORDS:
        return []
    return [
        " ".join(words[start : start + length])
        for length in range(min(LONGEST_NAME, len(words)), 0, -1)
        for start in range(len(words) - length + 1)
    ]
