"""Match strength for prompts: the probability that a note is about a part of a prompt.

See docs/spec/search.md §6.

A prompt is not a question: it has instructions, filler and perhaps a question, and it need not be answered.
So its parts are judged one by one. Two differences to `match_strength` follow. The words of the prompt that a
note lacks say nothing, so `missing` has no weight. Prompts about other subjects are easier to recognise than
questions of the same subject without an answer, so a lower probability is enough for `strong`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Final

from lithos.search.ranking.match_strength import Calibration
from lithos.search.ranking.prompt_words import LEAST_SHARED
from lithos.text.sentences import AFTER_END

#: Maximum number of characters of a part, of parts that are considered, and of parts that are ranked.
LONGEST_PART: Final = 600
MOST_PARTS: Final = 60
MOST_RANKED: Final = 8
#: Minimum probability of a second note, relative to the first. If one note is much better, a second one would
#: only repeat the same subject of another project.
SECOND_SHARE: Final = 0.5
_END: Final = re.compile(rf"(?<=[.!?])\s+|\n\s*\n|{AFTER_END}")

#: Fitted to the first two notes of every part of all prompts of `bench.reach`. Each kind of notes has equal
#: weight. `python -m bench.reach --fit` fits only to notes that share enough words with the part. Its
#: coefficients were compared: in both tiers they speak on up to 6 % fewer related prompts.
PROMPT_CALIBRATIONS: Final[Mapping[str, Calibration]] = {
    "static": Calibration(
        intercept=-5.012,
        weights={"cosine": 6.397, "above": 0.095, "margin": 3.601, "held": 2.880},
        threshold=0.5,
    ),
    "accurate": Calibration(
        intercept=-4.622,
        weights={"cosine": 6.006, "above": 0.304, "margin": 2.386, "held": 2.544},
        threshold=0.5,
    ),
    # Not fitted yet: the coefficients of the English model.
    "accurate-multi": Calibration(
        intercept=-4.622,
        weights={"cosine": 6.006, "above": 0.304, "margin": 2.386, "held": 2.544},
        threshold=0.5,
    ),
}


def parts_of(prompt: str) -> list[str]:
    """Return the whole prompt if it is short enough, and its sentences. No part is returned twice."""
    whole = " ".join(prompt.split())
    parts = [whole] if len(whole) <= LONGEST_PART else []
    for sentence in _sentences(prompt):
        parts.append(sentence)
        if len(parts) >= MOST_PARTS:
            break
    return list(dict.fromkeys(part for part in parts if part))


def _sentences(prompt: str) -> Iterator[str]:
    for sentence in _END.split(prompt):
        text = " ".join(sentence.split())
        for start in range(0, len(text), LONGEST_PART):
            yield text[start : start + LONGEST_PART]  # Only searched, so a grapheme may be cut.


def best_parts(idfs: Sequence[Mapping[str, float]], unknown: float) -> list[int]:
    """Return the positions of the parts to rank, in order.

    `idfs` has the idf of each part's content stems, and `unknown` is the idf of a stem that no note has. The
    parts with the highest sum of known idf are ranked. A part without two known stems is never strong.
    """
    known = [[idf for idf in idfs_of_part.values() if idf < unknown] for idfs_of_part in idfs]
    places = [place for place, values in enumerate(known) if len(values) >= LEAST_SHARED]
    return sorted(nlargest(MOST_RANKED, places, key=lambda place: sum(known[place])))
