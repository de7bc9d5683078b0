"""Detection of possible note names in a question: runs of words are compared with titles and aliases."""

from __future__ import annotations

from itertools import accumulate
from typing import Final

from lithos.text.words.analysis import normalise

#: Maximum number of words in a question to examine, and maximum number of words in a name.
MOST_WORDS: Final = 24
LONGEST_NAME: Final = 5
_AROUND: Final = ".,;:!?\"'()[]{}“”‘’«»…"
_LONGEST_TEXT: Final = 1_000


def name_spans(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a question in lower case with single spaces, and the bounds of its runs of at most five words.

    Longer runs come first. A text of more than 24 words has no runs, because it does not name a note.
    """
    given = normalise("NFC", text[:_LONGEST_TEXT]).casefold().split()
    words = [word for each in given if (word := each.strip(_AROUND))]
    if len(words) > MOST_WORDS:
        return "", []
    ends = list(accumulate(map(len, words)))
    ends = [end + place for place, end in enumerate(ends)]  # Add the space before each word except the first.
    starts = [0, *[end + 1 for end in ends]]
    spans = [
        (starts[first], ends[last])
        for length in range(min(LONGEST_NAME, len(words)), 0, -1)
        for first, last in enumerate(range(length - 1, len(words)))
    ]
    return " ".join(words), spans
