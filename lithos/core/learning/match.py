"""Match strength: the calibrated probability that a note answers a question (docs/spec/search.md §6).

A logistic regression on margins rather than on one similarity: some vector is always near, but a note that
answers stands out from the second one and has the question's words early. `python -m bench.lookup --fit`
fits the coefficients on the development collections and prints the table below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from typing import Final, Literal

from attrs import define, frozen

from lithos.core.learning.lead import Covered

#: Rows of a ranking whose probability is computed; all others are weak.
CANDIDATES: Final = 3
#: The mean score of the tenth row on the development collections; small vaults have fewer rows.
TENTH_SCORE: Final = 0.38
#: The rows, and the similarities, that say how crowded the place is where a question falls.
TENTH: Final = 10
THIRTIETH: Final = 30
FAIR: Final = 0.3
#: The most that BM25 gives a term is 2.2 times its idf (k1 = 1.2).
_BM25_BOUND: Final = 2.2

Strength = Literal["strong", "fair", "weak"]


@frozen(kw_only=True)
class Features:
    """What is known of one candidate, among the best notes of a hybrid search.

    `cosine` is its best passage's, `nearest` the highest of all notes, `ahead` how much that is above the
    second note's (or the threshold, if no second passed it). `share` and `words` are the shares of the
    question's content stems that the note has, by idf and by number; `lead` is the lead of the note alone,
    `passage` that of its best passage.
    `lexical` is its BM25 score by the highest possible, `lexical_ahead` how much the best BM25 score is above
    the second, by the best. `leads_words` and `leads_meaning` are 1 for the first of a leg. `margin` is its
    final score minus that of the next row, `depth` minus that of the tenth; `crowd` is the thirtieth highest
    similarity, high where many notes are about the same; `length` the logarithm of the number of stems.
    """

    cosine: float
    nearest: float
    ahead: float
    share: float
    words: float
    lead: float
    passage: float
    lexical: float
    lexical_ahead: float
    leads_words: float
    leads_meaning: float
    margin: float
    depth: float
    crowd: float
    length: float


@frozen
class Calibration:
    """Coefficients of one tier; from `threshold` on a probability is an answer.

    The threshold is the least with at most 5 % false hits on the development collections.
    """

    intercept: float
    weights: Mapping[str, float]
    threshold: float


#: Made by `python -m bench.lookup COLLECTIONS --fit --tier TIER` (see `bench/quality.md`).
CALIBRATIONS: Final[Mapping[str, Calibration]] = {
    "static": Calibration(
        intercept=-3.813,
        weights={
            "cosine": 3.112, "nearest": -0.140, "ahead": -0.337, "share": 0.433, "words": 0.603,
            "lead": 1.330, "passage": 1.258, "lexical": -0.886, "lexical_ahead": -0.727,
            "leads_words": -0.057, "leads_meaning": -0.156, "margin": 1.702, "depth": 4.136,
            "crowd": -5.766, "length": 0.302,
        },
        threshold=0.623,
    ),
    "accurate": Calibration(
        intercept=-4.304,
        weights={
            "cosine": 0.275, "nearest": 4.978, "ahead": -2.628, "share": 0.871, "words": -0.147,
            "lead": 1.021, "passage": 1.207, "lexical": -0.626, "lexical_ahead": -0.022,
            "leads_words": 0.012, "leads_meaning": 0.020, "margin": 2.162, "depth": 2.912,
            "crowd": -4.674, "length": -0.381,
        },
        threshold=0.646,
    ),
}  # fmt: skip


@frozen(kw_only=True)
class WordFeatures:
    """What is known of one candidate among the best notes of a full-text search, without vectors.

    Names as in `Features`, but `margin` and `depth` are differences of BM25 scores by the highest possible.
    """

    share: float
    words: float
    lead: float
    passage: float
    lexical: float
    margin: float
    depth: float
    length: float


#: The mean BM25 score of the tenth row of a full-text search, by the highest possible.
TENTH_WORDS: Final = 0.368
#: Fitted by `bench.word_matches` to the first three rows of full-text searches for the questions (plain
#: words) of the development collections, two halves of each. The threshold was chosen on the
#: cross-validated chances for 5 % false hits; on these same it has 1.4 to 5.2 %.
WORDS_CALIBRATION: Final = Calibration(
    intercept=-4.734,
    weights={
        "share": 0.736, "words": -0.698, "lead": 2.878, "passage": 3.281, "lexical": -3.503,
        "margin": 1.486, "depth": 6.246, "length": 0.709,
    },
    threshold=0.740,
)  # fmt: skip


def word_features(
    found: Sequence[tuple[int, float]], idf: Mapping[str, float], covered: Mapping[int, Covered]
) -> dict[int, WordFeatures]:
    """The features of the first three rows of a full-text search; `found` has ten, or all there are.

    A row that `covered` says nothing of has none, nor has a note without text of its own.
    """
    highest = _BM25_BOUND * sum(idf.values())
    if not found or not highest:
        return {}
    shares = [score / highest for _, score in found]
    tenth = shares[TENTH - 1] if len(shares) >= TENTH else min(TENTH_WORDS, shares[-1])
    length = math.log(max(1, len(idf)))
    features: dict[int, WordFeatures] = {}
    for i, (serial, _) in enumerate(found[:CANDIDATES]):
        of_note = covered.get(serial)
        if of_note is None or of_note.bare:
            continue
        features[serial] = WordFeatures(
            share=of_note.share,
            words=of_note.words,
            lead=of_note.lead,
            passage=of_note.passage,
            lexical=shares[i],
            margin=shares[i] - (shares[i + 1] if i + 1 < len(shares) else 0.0),
            depth=shares[i] - tenth,
            length=length,
        )
    return features


@frozen(kw_only=True)
class MeaningFeatures:
    """What is known of one candidate among the best notes of a semantic search, without BM25.

    Names as in `Features`, but `margin` and `depth` are differences of similarities; `passage_ahead` is how
    much `passage` is above that of the better of the other two candidates.
    """

    cosine: float
    nearest: float
    ahead: float
    margin: float
    depth: float
    share: float
    words: float
    lead: float
    passage: float
    passage_ahead: float
    crowd: float
    length: float


#: Made by `python -m bench.word_matches COLLECTIONS --mode semantic --tier TIER` (`--draws 1` of the accurate
#: one), as `WORDS_CALIBRATION`: by the questions as they are, on these same at most 5 % false hits.
MEANING_CALIBRATIONS: Final[Mapping[str, Calibration]] = {
    "static": Calibration(
        intercept=-3.911,
        weights={
            "cosine": -3.724, "nearest": 0.610, "ahead": 1.213, "margin": -0.584, "depth": 9.009,
            "share": 3.707, "words": -2.954, "lead": 3.384, "passage": -0.456, "passage_ahead": 2.164,
            "crowd": 2.085, "length": 0.458,
        },
        threshold=0.684,
    ),
    "accurate": Calibration(
        intercept=-3.747,
        weights={
            "cosine": -4.474, "nearest": 3.027, "ahead": -1.836, "margin": -2.185, "depth": 12.619,
            "share": 2.657, "words": -2.371, "lead": 3.580, "passage": -1.329, "passage_ahead": 2.111,
            "crowd": 1.559, "length": 0.069,
        },
        threshold=0.761,
    ),
}  # fmt: skip


def meaning_features(
    found: Sequence[tuple[int, float]], stems: int, covered: Mapping[int, Covered], threshold: float
) -> dict[int, MeaningFeatures]:
    """The features of the first three rows of a semantic search (serial, similarity) from a threshold on.

    `found` has thirty, or all there are; `stems` is the number of content stems of the question. A row that
    `covered` says nothing of has none.
    """
    similarities = dict(found[:THIRTIETH])
    nearest, ahead = semantic_margins(similarities, threshold)
    tenth = found[TENTH - 1][1] if len(found) >= TENTH else threshold
    around, length = crowd(similarities.values(), threshold), math.log(max(1, stems))
    best = [(serial, covered[serial]) for serial, _ in found[:CANDIDATES] if serial in covered]
    features: dict[int, MeaningFeatures] = {}
    for i, (serial, similarity) in enumerate(found[:CANDIDATES]):
        of_note = covered.get(serial)
        if of_note is None or of_note.bare:
            continue
        following = found[i + 1][1] if i + 1 < len(found) else threshold
        others = max((each.passage for other, each in best if other != serial), default=0.0)
        features[serial] = MeaningFeatures(
            cosine=similarity,
            nearest=nearest,
            ahead=ahead,
            margin=similarity - following,
            depth=similarity - tenth,
            share=of_note.share,
            words=of_note.words,
            lead=of_note.lead,
            passage=of_note.passage,
            passage_ahead=of_note.passage - others,
            crowd=around,
            length=length,
        )
    return features


def probability(features: Features | WordFeatures | MeaningFeatures, calibration: Calibration) -> float:
    """The probability that the candidate answers the question: the logistic function of a weighted sum."""
    total = calibration.intercept
    for name, weight in calibration.weights.items():
        total += weight * getattr(features, name)
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, total))))


@define
class Judged:
    """How well a row of an answer matches: the probability that it answers, 0..1, and what that is called.

    Not frozen: three are made in each search, and attrs makes those at a third of the cost.
    """

    match: Strength
    chance: float


#: What rows are of which nothing better is known.
WEAK: Final = Judged("weak", 0.0)


def judge(chances: Mapping[int, float], threshold: float) -> dict[int, Judged]:
    """What is known of rows by their probabilities; `threshold` is that of a cache hit."""
    return {serial: Judged(strength(chance, threshold), chance) for serial, chance in chances.items()}


def strength(chance: float | None, threshold: float) -> Strength:
    """`strong` from the threshold of a cache hit on, `fair` from 0.3, else `weak`; weak without a chance."""
    if chance is None or chance < min(FAIR, threshold):
        return "weak"
    return "strong" if chance >= threshold else "fair"


@frozen(kw_only=True)
class LexicalLeg:
    """The full-text leg of a search: BM25 by note, best first, and the idf of the content stems."""

    scores: Mapping[int, float]
    idf: Mapping[str, float]

    def share_of_highest(self, key: int) -> float:
        """The score of a note by the highest that any could have."""
        highest = _BM25_BOUND * sum(self.idf.values())
        return self.scores.get(key, 0.0) / highest if highest else 0.0

    def ahead(self) -> float:
        """How much the best score is above the second, by the best."""
        best, second = _two_best(islice(self.scores.values(), 2), 0.0)
        return (best - second) / best if best > 0 else 0.0

    def length(self) -> float:
        """The natural logarithm of the number of content stems, 0 without any."""
        return math.log(max(1, len(self.idf)))


def semantic_margins(similarities: Mapping[int, float], threshold: float) -> tuple[float, float]:
    """The highest similarity, and how much it is above the second note's, or the threshold without one."""
    best, second = _two_best(similarities.values(), threshold)
    return best, max(0.0, best - second)


def crowd(similarities: Iterable[float], threshold: float) -> float:
    """The thirtieth highest similarity, or the threshold when fewer notes passed it."""
    highest = nlargest(THIRTIETH, similarities)
    return highest[-1] if len(highest) == THIRTIETH else threshold


def _two_best(values: Iterable[float], least: float) -> tuple[float, float]:
    """The two highest values; 0 without any, and `least` without a second."""
    ordered = nlargest(2, values)
    return (ordered[0] if ordered else 0.0), (ordered[1] if len(ordered) > 1 else least)
