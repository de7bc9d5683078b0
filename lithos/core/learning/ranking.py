"""Ranking: score fusion of search legs, and reranking of the scouts' candidates to one order of notes.

`blend` (weighted sum) and `reciprocal_rank` (RRF) fuse the results of several searches
(docs/spec/search.md §5); all else, from scaling to diversification, is retrieval (docs/spec/memory.md §1).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest, nsmallest
from itertools import islice
from operator import itemgetter
from typing import Final, TypeAlias, TypeVar

from attrs import frozen

#: The key of a hit; ties are in its order.
K = TypeVar("K", int, str)

#: Hits that are sorted at once: usual searches take no more of them.
_SOON: Final = 60


#: k of reciprocal rank fusion.
FUSION_K: Final = 60


def blend(
    lexical: Sequence[tuple[K, float]], semantic: Sequence[tuple[K, float]], weight: float
) -> Iterator[tuple[K, float]]:
    """Weighted fusion of BM25 and similarity: `(1 - weight) * lexical + weight * semantic`, scaled to 0..1.

    Lexical scores (not negative) are divided by the highest, similarities stretched between the lowest and
    the highest; a leg with one distinct score counts 1 for its notes, a missing leg 0. Best first, ties by
    key; of a repeated key the best score counts.
    """
    words, meaning = blend_parts(lexical, semantic, weight)
    for key, score in meaning.items():
        words[key] = words.get(key, 0.0) + score
    return _sort_gradually(words)


def blend_parts(
    lexical: Sequence[tuple[K, float]], semantic: Sequence[tuple[K, float]], weight: float
) -> tuple[dict[K, float], dict[K, float]]:
    """What each of the two legs gives its keys in `blend`, which is the sum of both."""
    words, meaning = _best_scores(lexical), _best_scores(semantic)
    return (
        _scale(words, 1 - weight, lowest=0.0),
        _scale(meaning, weight, lowest=min(meaning.values(), default=0.0)),
    )


def reciprocal_rank(legs: Sequence[Sequence[K]], k: int = FUSION_K) -> list[tuple[K, float]]:
    """Reciprocal rank fusion: the sum of `1 / (k + rank)`, ranks from 1. Best first, ties by key.

    Of a key repeated in one leg the first place counts.
    """
    scores: dict[K, float] = {}
    for leg in legs:
        for key, score in reciprocal_parts(leg, k).items():
            scores[key] = scores.get(key, 0.0) + score
    return order_by_score(scores)


def reciprocal_parts(leg: Sequence[K], k: int = FUSION_K) -> dict[K, float]:
    """What one leg gives its keys in `reciprocal_rank`, which is the sum of all legs."""
    return {key: 1 / (k + rank) for rank, key in enumerate(dict.fromkeys(leg), start=1)}


#: The reciprocal rank fusion of a note that both of two rankings have first.
HIGHEST_RECIPROCAL: Final = 2 / (FUSION_K + 1)
#: The best hits, which lead coverage orders anew.
LED: Final = 60


def add_lead(
    fused: Iterator[tuple[K, float]], coverage: Callable[[list[K]], Mapping[K, float]], weight: float
) -> tuple[list[tuple[K, float]], Iterator[tuple[K, float]]]:
    """Order the 60 best by `score + weight * coverage`, both 0..1; scores are scaled to 0..1 again.

    Returns these, and the rest as it was: no score there is higher. `coverage` gives the lead coverage of
    keys, 0 where it has none. Ties by key.
    """
    best = list(islice(fused, LED))
    if not weight:
        return best, fused
    found = coverage([key for key, _ in best]) if best else {}
    led = {key: (score + weight * found.get(key, 0.0)) / (1 + weight) for key, score in best}
    return order_by_score(led), ((key, score / (1 + weight)) for key, score in fused)


#: What a turn of a conversation has of the better one of its neighbours.
NEIGHBOUR: Final = 0.3


def add_neighbours(
    fused: Iterator[tuple[K, float]], beside: Callable[[K], Iterable[K]], turns: Container[K]
) -> tuple[Iterator[tuple[K, float]], dict[K, float], float]:
    """Fused scores to which turns of conversations have a share of the better of their neighbours added.

    `beside` gives the neighbours of one of the `turns`. Returns the scores, what was added, and by what both
    were divided: the highest sum, where that is more than 1. Where no turn was found nothing is added.
    """
    scores = dict(fused)
    found = [key for key in scores if key in turns]
    if not found:
        return iter(scores.items()), {}, 1.0
    added = {
        key: NEIGHBOUR * max((scores.get(other, 0.0) for other in beside(key)), default=0.0) for key in found
    }
    sums = {key: score + added.get(key, 0.0) for key, score in scores.items()}
    whole = max(1.0, *sums.values())
    ranked = _sort_gradually({key: score / whole for key, score in sums.items()})
    return ranked, {key: part / whole for key, part in added.items()}, whole


def _best_scores(leg: Sequence[tuple[K, float]]) -> dict[K, float]:
    best = dict(leg)
    if len(best) < len(leg):
        for key, score in leg:
            best[key] = max(score, best[key])
    return best


def _scale(scores: dict[K, float], share: float, lowest: float) -> dict[K, float]:
    """Scores between `lowest` and their highest as 0..`share`; all of `share` when they are equal."""
    highest = max(scores.values(), default=0.0)
    if highest == min(scores.values(), default=0.0):
        return dict.fromkeys(scores, share)
    width = highest - lowest
    if not lowest:
        return {key: share * (score / width) for key, score in scores.items()}
    return {key: share * ((score - lowest) / width) for key, score in scores.items()}


def order_by_score(scores: Mapping[K, float]) -> list[tuple[K, float]]:
    """Best first, ties by key."""
    ranked = sorted(scores.items(), key=itemgetter(0))
    ranked.sort(key=itemgetter(1), reverse=True)
    return ranked


def _sort_gradually(scores: Mapping[K, float]) -> Iterator[tuple[K, float]]:
    """Lazy `order_by_score`: sorts the first hits at once, the rest only when they are consumed."""
    least = _score_at(scores, _SOON)
    yield from order_by_score({key: score for key, score in scores.items() if score >= least})
    yield from order_by_score({key: score for key, score in scores.items() if score < least})


def _score_at(scores: Mapping[K, float], place: int) -> float:
    """Return the score at a place, counted from 1, the lowest one where there are fewer."""
    ordered = sorted(scores.values(), reverse=True)
    return ordered[min(place, len(ordered)) - 1] if ordered else 0.0


#: The scouts that yield candidates, in the order of the spec's table.
SCOUTS: Final = (
    "vector",
    "lexical",
    "exact_alias",
    "tags_recency",
    "freshness",
    "task_context",
    "provenance",
    "graph",
    "coactivation",
    "source_url",
)
#: Notes that are diversified; those ranked lower keep their places.
DIVERSIFIED: Final = 30
_RELEVANCE: Final = 0.7
_REPETITION: Final = 0.3
_WORD: Final = re.compile(r"[^\W_]+")


@frozen
class Candidate:
    """The raw score of one scout for one note, with the reason; `chunk` is its best one, if known."""

    id: str
    score: float
    reason: str
    chunk: int | None = None


#: The scores that scouts gave a note, scaled to 0..1, by scout in table order.
Scaled: TypeAlias = Mapping[str, float]


@frozen(kw_only=True)
class Traits:
    """Query-independent features of a note: its type, its salience and its usage, both 0..1."""

    note_type: str
    salience: float
    usage: float


@frozen(kw_only=True)
class RerankWeights:
    """The weights of the final score; `priors` has a value for `other` note types."""

    scouts: Mapping[str, float]
    priors: Mapping[str, float]
    note_type: float
    salience: float
    usage: float


@frozen
class Ranked:
    """A ranked note: its final score, with the scaled scores and traits it is made of."""

    id: str
    score: float
    scaled: Scaled
    traits: Traits


def scale(candidates: Sequence[Candidate]) -> dict[str, float]:
    """Min-max scale the scores of one scout to 0..1; equal ones, or a single one, give 1.0.

    Of a repeated note the best score counts.
    """
    # One of them may have found thousands, hence few calls per candidate here and below.
    best = {candidate.id: candidate.score for candidate in candidates}
    if len(best) < len(candidates):
        for candidate in candidates:
            best[candidate.id] = max(candidate.score, best[candidate.id])
    lowest, highest = min(best.values(), default=0.0), max(best.values(), default=0.0)
    if lowest == highest:
        return dict.fromkeys(best, 1.0)
    if not math.isfinite(highest - lowest):  # weights of edges may be as large as numbers get
        lowest, highest = lowest / 2, highest / 2
        best = {note_id: score / 2 for note_id, score in best.items()}
    return {note_id: (score - lowest) / (highest - lowest) for note_id, score in best.items()}


def merge(found: Mapping[str, Sequence[Candidate]]) -> dict[str, Scaled]:
    """Merge the candidates of all scouts (by name) to the pool: scaled scores by note id."""
    pool: dict[str, Scaled] = {}
    for scout in SCOUTS:
        alone: dict[float, Scaled] = {}  # shared by the notes that no other scout has found
        for note_id, score in scale(found.get(scout, ())).items():
            known = pool.get(note_id)
            if known is not None:
                pool[note_id] = {**known, scout: score}
            elif score in alone:
                pool[note_id] = alone[score]
            else:
                pool[note_id] = alone[score] = {scout: score}
    return pool


def pool_score(scaled: Scaled) -> float:
    """The highest scaled score."""
    return max(scaled.values())


def best_of(pool: Mapping[str, Scaled], most: int) -> list[str]:
    """Top-k of the pool: the ids with the best pool scores, at most `most`.

    Among equal ones the note that more scouts found is first, as told by the sum of its scaled scores,
    then the id decides.
    """

    def order(note_id: str) -> tuple[float, float, str]:
        scores = pool[note_id].values()
        return -max(scores), -sum(scores), note_id

    return nsmallest(most, pool, key=order)


def ground_scores(
    pool: Mapping[str, Scaled], types: Mapping[str, str], weights: RerankWeights
) -> dict[str, float]:
    """The part of the final score without statistics (scouts and type prior), of all ids in `types`."""
    # Plain dictionaries, and no call per note: there may be thousands.
    by_scout = dict(weights.scouts)
    by_type = {note_type: weights.note_type * prior for note_type, prior in weights.priors.items()}
    other = by_type["other"]
    scores: dict[str, float] = {}
    for note_id, note_type in types.items():
        score = by_type.get(note_type, other)
        for scout, value in pool[note_id].items():
            score += by_scout[scout] * value
        scores[note_id] = score
    return scores


def final_score(ground: float, traits: Traits, weights: RerankWeights) -> float:
    """`sum of weight x scaled score + prior + salience + usage`, the last two by their own weights.

    The first two are the ground score.
    """
    return ground + weights.salience * traits.salience + weights.usage * traits.usage


def promising(
    grounds: Mapping[str, float],
    saliences: Mapping[str, float],
    unused: Traits,
    weights: RerankWeights,
    most: int,
) -> list[str]:
    """Pruning by upper bounds: the ids that may be among the `most` best; all others cannot be.

    Of notes that the statistics do not know the final score is certain, their traits being those of
    `unused`; of known ones, which have `saliences`, only the use is left to find out, 0..1.
    """
    rest = weights.salience * unused.salience + weights.usage * unused.usage
    least = {
        note_id: ground + (weights.salience * saliences[note_id] if note_id in saliences else rest)
        for note_id, ground in grounds.items()
    }
    best = nlargest(most, least.values())
    # Sums in another order differ in the last digits.
    floor = best[-1] - 1e-9 if best else 0.0
    return [
        note_id
        for note_id, score in least.items()
        if score >= floor or (note_id in saliences and score + weights.usage >= floor)
    ]


def rank(scored: Iterable[Ranked], most: int) -> list[Ranked]:
    """The `most` best final scores, best first; ties go to the higher pool score, then to the id."""
    return nsmallest(most, scored, key=lambda note: (-note.score, -pool_score(note.scaled), note.id))


def explain(
    found: Mapping[str, Iterable[Candidate]], note_ids: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """The reasons of all scouts for each of these notes, in table order, each once."""
    reasons: dict[str, dict[str, None]] = {note_id: {} for note_id in note_ids}
    for scout in SCOUTS:
        for candidate in found.get(scout, ()):
            if candidate.id in reasons:
                reasons[candidate.id][candidate.reason] = None
    return {note_id: tuple(of_note) for note_id, of_note in reasons.items()}


def name_words(title: str, path: str) -> frozenset[str]:
    """The lower-case words of a title and a path, by which repetitive results are known."""
    return frozenset(_WORD.findall(f"{title} {path}".lower()))


def diversify(ranked: Sequence[Ranked], words_of: Callable[[str], Collection[str]]) -> list[Ranked]:
    """Diversify (maximal marginal relevance) by names: notes named much like better ones move back.

    Among the first 30, after the best: always the one with the highest `0.7 x score - 0.3 x overlap`, its
    overlap being the highest Jaccard index of `words_of` with those picked before; ties by rank.
    """
    waiting = [(note, frozenset(words_of(note.id))) for note in ranked[:DIVERSIFIED]]
    overlaps = [0.0] * len(waiting)
    picked: list[Ranked] = []
    while waiting:
        values = [
            _RELEVANCE * note.score - _REPETITION * overlap
            for (note, _), overlap in zip(waiting, overlaps, strict=True)
        ]
        place = values.index(max(values))
        note, words = waiting.pop(place)
        del overlaps[place]
        picked.append(note)
        overlaps = [
            max(overlap, jaccard(words, other)) for (_, other), overlap in zip(waiting, overlaps, strict=True)
        ]
    return [*picked, *ranked[DIVERSIFIED:]]


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """The Jaccard index: shared words by all words; 0 without any."""
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0
