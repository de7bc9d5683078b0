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

from lithos.search.ranking.lead_coverage import Covered
from lithos.search.ranking.match_strength import Calibration

#: Maximum number of characters of a part, of parts that are considered, and of parts that are ranked.
LONGEST_PART: Final = 600
MOST_PARTS: Final = 60
MOST_RANKED: Final = 8
#: Minimum number of the part's content words that a note has, without common words. One rare word shows a
#: name, not a subject.
LEAST_SHARED: Final = 2
#: Words of any task or talk. In a small vault they are as rare as the words of a subject.
COMMON_WORDS: Final = """
add also always answer any ask back bad become begin best better big bring build call can cannot case change
check class clean close code come command complete continue convert copy correct create current data date
day default delete describe detail different do document easy edit end enough error even ever every
everything everywhere example exist expect explain fail fast feel few file find finish first fix follow
format found full function get give go good great handle happen hard help high idea implement import improve
include input issue item just keep kind know large last late learn leave left let level like line list
little load long look lot low main make many mean method might mind minute module month morning most move
much must name need never new next nice night none nothing now number object often old one only open option
order other output own page parameter part pass people person place plan please point possible problem
program project provide python put question quick quickly read real really reason remember remove rename
replace report result return right run same save say script second see seem select send sentence set several
short should show simple single size small some something sort start state step still stop string summary
support sure take talk tell test text thank thing think three time today together tomorrow tool top
translate true try turn two type understand unit until update use user value variable very view wait want
way week well whole word work world write wrong year yes yesterday
"""
#: Minimum probability of a second note, relative to the first. If one note is much better, a second one would
#: only repeat the same subject of another project.
SECOND_SHARE: Final = 0.5
_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n\s*\n")

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
            yield text[start : start + LONGEST_PART]


def best_parts(idfs: Sequence[Mapping[str, float]], unknown: float) -> list[int]:
    """Return the positions of the parts to rank, in order.

    `idfs` has the idf of each part's content stems, and `unknown` is the idf of a stem that no note has. The
    parts with the highest sum of known idf are ranked. A part without two known stems is never strong.
    """
    known = [[idf for idf in idfs_of_part.values() if idf < unknown] for idfs_of_part in idfs]
    places = [place for place, values in enumerate(known) if len(values) >= LEAST_SHARED]
    return sorted(nlargest(MOST_RANKED, places, key=lambda place: sum(known[place])))


def shares_enough(covered: Covered, stems: int) -> bool:
    """Return whether a note has `LEAST_SHARED` of this number of stems, given how it covers them."""
    return round(covered.words * stems) >= LEAST_SHARED
