"""Match strength: the calibrated probability that a note answers a question (docs/spec/search.md §6).

A logistic regression uses margins instead of a single similarity. Some vector is always near, but a note that
answers differs clearly from the other notes and contains the question's words early. `python -m bench.lookup
--fit` fits the coefficients on several kinds of notes and prints the table below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Final, Literal, NamedTuple

from attrs import define, frozen

from lithos.search.ranking.lead_coverage import Covered

#: Number of first rows of a ranking whose probability is computed. All later rows are rated weak.
CANDIDATES: Final = 3
#: Row number and number of similarities that show how many notes compete for a question.
TENTH: Final = 10
THIRTIETH: Final = 30
#: Minimum probability of a `fair` row. For nearly every kind of notes, three of four correct first rows reach
#: this probability.
FAIR: Final = 0.13
#: Values added to the standard deviation of similarities and to a note's share of a question. Features then
#: stay bounded if many notes are equal or a note lacks all words of the question.
_LEAST_SPREAD: Final = 0.03
_LEAST_HELD: Final = 0.1
#: Maximum margin. If no row follows, the score alone says little.
_MOST_MARGIN: Final = 0.5
#: Two rows count as equal in content if both their cosines and their leads differ by less than this value.
#: The second row then does not reduce the margin of the first.
_TWIN: Final = 0.05
#: Maximum BM25 score of a term, as a multiple of its idf (k1 = 1.2).
_BM25_BOUND: Final = 2.2

Strength = Literal["strong", "fair", "weak"]


@frozen(kw_only=True)
class Features:
    """The features of one of the best notes in a hybrid search.

    `cosine` is the cosine of the best passage. `above` is the distance of `cosine` from the mean of the
    thirty nearest notes, in standard deviations. A vault of similar notes is thus judged by its own spread.
    `margin` is the final score minus the score of the next row with different text, at most 0.5. `held` is
    the logarithm of the share of the question that the best passage has, by lead. `missing` is the part of
    the question that the note lacks. `held` and `missing` are measured in words that occur in no note.
    """

    cosine: float
    above: float
    margin: float
    held: float
    missing: float


class MatchSignals(NamedTuple):
    """The final score of a row, and the cosine and lead of its best passage."""

    score: float
    cosine: float
    passage: float

    def margin(self, following: Iterable[MatchSignals]) -> float:
        """Return how far the score is above that of the first later row with different content."""
        for row in following:
            if abs(row.cosine - self.cosine) >= _TWIN or abs(row.passage - self.passage) >= _TWIN:
                return min(_MOST_MARGIN, self.score - row.score)
        return min(_MOST_MARGIN, self.score)


@frozen
class Calibration:
    """The coefficients for one tier. A row counts as an answer if its probability is at least `threshold`.

    The threshold is the smallest value that meets two conditions. On each kind of notes, at most 5 % of the
    questions without an answer may get a strong row. If an answer exists, at least nine of ten strong rows
    must be correct. On Cranfield no threshold meets the second condition.
    """

    intercept: float
    weights: Mapping[str, float]
    threshold: float


#: Printed by `python -m bench.lookup COLLECTIONS --vault VAULT --fit --tier TIER` (see `bench/quality.md`).
CALIBRATIONS: Final[Mapping[str, Calibration]] = {
    "static": Calibration(
        intercept=-2.670,
        weights={"cosine": 1.136, "above": 0.567, "margin": 3.211, "held": 0.993, "missing": -0.445},
        threshold=0.790,
    ),
    "accurate": Calibration(
        intercept=-1.701,
        weights={"cosine": -0.603, "above": 0.888, "margin": 1.238, "held": 0.971, "missing": -0.609},
        threshold=0.740,
    ),
    # With `--languages tests/search/languages --sample 200 --draws 1`, and 2,000 chunks of docs_dev.
    "accurate-multi": Calibration(
        intercept=-3.491,
        weights={"cosine": -0.716, "above": 1.884, "margin": 3.461, "held": -0.198, "missing": -0.322},
        threshold=0.886,
    ),
}  # fmt: skip


@frozen(kw_only=True)
class WordFeatures:
    """The features of one of the best notes in a full-text search, without vectors.

    The names have the same meaning as in `Features`. However, `margin` and `depth` are differences of BM25
    scores, divided by the highest possible score.
    """

    share: float
    words: float
    lead: float
    passage: float
    lexical: float
    margin: float
    depth: float
    length: float


#: Mean BM25 score of the tenth row of a full-text search, divided by the highest possible score.
TENTH_WORDS: Final = 0.368
#: Fitted by `bench.lookup --mode fulltext` to the first three rows of each search. The searches use the plain
#: words of the questions of the development collections. Each collection was split into two halves. The
#: threshold was chosen for 5 % false hits on the cross-validated probabilities. On the collections themselves
#: it gives 1.4 to 5.2 %.
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
    """Return the features of the first three rows of a full-text search.

    `found` must have the first ten rows, or all rows if there are fewer. Rows that are missing in `covered`
    and notes without text of their own are left out.
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
    """The features of one of the best notes in a semantic search, without BM25.

    The names have the same meaning as in `Features`. However, `margin` and `depth` are differences of
    similarities. `passage_ahead` is `passage` minus the higher `passage` of the other two candidates.
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


#: Printed by `python -m bench.lookup COLLECTIONS --mode semantic --fit --tier TIER` (`--draws 1` for the
#: accurate tier). The fit is that of `WORDS_CALIBRATION`, but with unchanged questions and at most 5 % false
#: hits on the collections themselves.
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
    # With the options of `CALIBRATIONS["accurate-multi"]`.
    "accurate-multi": Calibration(
        intercept=-4.267,
        weights={
            "cosine": 22.675, "nearest": -9.071, "ahead": 15.794, "margin": 3.307, "depth": -2.057,
            "share": 5.255, "words": -4.751, "lead": 2.076, "passage": -2.300, "passage_ahead": 1.889,
            "crowd": -11.556, "length": -0.287,
        },
        threshold=0.927,
    ),
}  # fmt: skip


def meaning_features(
    found: Sequence[tuple[int, float]], stems: int, covered: Mapping[int, Covered], threshold: float
) -> dict[int, MeaningFeatures]:
    """Return the features of the first three (serial, similarity) rows of a semantic search.

    `found` must have the first thirty rows above `threshold`, or all rows if there are fewer. `stems` is the
    number of content stems in the question. Rows that are missing in `covered` are left out.
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
    """Return the probability that the candidate answers the question, by logistic regression."""
    total = calibration.intercept
    for name, weight in calibration.weights.items():
        total += weight * getattr(features, name)
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, total))))


@define
class MatchVerdict:
    """Match strength of a row, and the probability (0..1) that its note answers the question.

    The class is not frozen, because every search creates three instances. attrs creates unfrozen instances in
    a third of the time.
    """

    match: Strength
    chance: float


#: The verdict for rows without features.
WEAK: Final = MatchVerdict("weak", 0.0)


def judge(chances: Mapping[int, float], threshold: float) -> dict[int, MatchVerdict]:
    """Return the verdict for each probability. `threshold` is the minimum probability of a cache hit."""
    return {serial: MatchVerdict(strength(chance, threshold), chance) for serial, chance in chances.items()}


def strength(chance: float | None, threshold: float) -> Strength:
    """Return `strong` from `threshold` on, `fair` from 0.13 on, otherwise `weak`.

    If `chance` is None, return `weak`.
    """
    if chance is None or chance < min(FAIR, threshold):
        return "weak"
    return "strong" if chance >= threshold else "fair"


@frozen(kw_only=True)
class LexicalLeg:
    """Full-text results of a search: BM25 by note, best first, and the idf of the content stems.

    `unknown` is the idf of a stem that no note contains.
    """

    scores: Mapping[int, float]
    idf: Mapping[str, float]
    unknown: float

    def held(self, passage: float) -> float:
        """Return the logarithm of the share of the question that a passage has, given its lead (0..1).

        A question counts as at least one unknown word, because no word is rare in a vault of three notes.
        """
        return math.log(_LEAST_HELD + passage * max(1.0, self._total() / self.unknown))

    def missing(self, share: float) -> float:
        """Return the part of the question that a note lacks, given its share by idf."""
        return (1 - share) * self._total() / self.unknown

    def _total(self) -> float:
        return sum(self.idf.values())


def spread(similarities: Iterable[float], threshold: float) -> tuple[float, float]:
    """Return the mean and the standard deviation of the thirty highest similarities.

    If fewer notes passed the threshold, each missing similarity counts as equal to the threshold.
    """
    highest = nlargest(THIRTIETH, similarities)
    lacking = THIRTIETH - len(highest)
    mean = (sum(highest) + lacking * threshold) / THIRTIETH
    squares = sum([(each - mean) ** 2 for each in highest]) + lacking * (threshold - mean) ** 2
    return mean, math.sqrt(squares / THIRTIETH)


def above(similarity: float, mean: float, deviation: float) -> float:
    """Return by how many deviations a similarity is above the mean.

    Return 0 for a note without a similarity.
    """
    return (similarity - mean) / (deviation + _LEAST_SPREAD) if similarity else 0.0


def semantic_margins(similarities: Mapping[int, float], threshold: float) -> tuple[float, float]:
    """Return the highest similarity and its distance to the second highest.

    If there is only one similarity, the distance is to the threshold.
    """
    best, second = _two_best(similarities.values(), threshold)
    return best, max(0.0, best - second)


def crowd(similarities: Iterable[float], threshold: float) -> float:
    """Return the thirtieth highest similarity, or the threshold if fewer notes passed it."""
    highest = nlargest(THIRTIETH, similarities)
    return highest[-1] if len(highest) == THIRTIETH else threshold


def _two_best(values: Iterable[float], least: float) -> tuple[float, float]:
    """Return the two highest values.

    A missing first value is 0, and a missing second value is `least`.
    """
    ordered = nlargest(2, values)
    return (ordered[0] if ordered else 0.0), (ordered[1] if len(ordered) > 1 else least)
