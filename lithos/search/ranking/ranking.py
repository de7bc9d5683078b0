"""Ranking: score fusion of search legs, and the scaled scores and reasons of scouts.

`blend` (weighted sum) and `reciprocal_rank` (RRF) fuse the results of several searches
(docs/spec/search.md §5); all else is retrieval (docs/spec/memory.md §1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Final, TypeVar

from attrs import frozen

#: The key of a hit; ties are in its order.
K = TypeVar("K", int, str)

#: Hits that are sorted at once: ordinary searches take no more.
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
    """Return the contribution of each leg to the keys in `blend`, which is the sum of both."""
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
    """Return the contribution of one leg to the keys in `reciprocal_rank`, which is the sum of all legs."""
    return {key: 1 / (k + rank) for rank, key in enumerate(dict.fromkeys(leg), start=1)}


#: The reciprocal rank fusion of a note that both of two rankings have first.
HIGHEST_RECIPROCAL: Final = 2 / (FUSION_K + 1)
#: Number of best hits that lead coverage reorders.
LED: Final = 60


def add_lead(
    fused: Iterator[tuple[K, float]], coverage: Callable[[list[K]], Mapping[K, float]], weight: float
) -> tuple[list[tuple[K, float]], Iterator[tuple[K, float]]]:
    """Order the 60 best by `score + weight * coverage`, both 0..1; scores are scaled to 0..1 again.

    Returns these, and the rest unchanged: no score there is higher. `coverage` returns the lead coverage of
    keys, 0 if unknown. Ties by key.
    """
    best = list(islice(fused, LED))
    if not weight:
        return best, fused
    found = coverage([key for key, _ in best]) if best else {}
    led = {key: (score + weight * found.get(key, 0.0)) / (1 + weight) for key, score in best}
    return order_by_score(led), ((key, score / (1 + weight)) for key, score in fused)


#: Share of the better neighbour's score that a turn of a conversation gets.
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
    "source_url",
)


@frozen
class ScoutHit:
    """The raw score of one scout for one note, with the reason."""

    id: str
    score: float
    reason: str


def scale(candidates: Sequence[ScoutHit]) -> dict[str, float]:
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


def merge(found: Mapping[str, Sequence[ScoutHit]]) -> dict[str, float]:
    """The highest scaled score of each note that a scout found, by note id."""
    pool: dict[str, float] = {}
    for candidates in found.values():
        for note_id, score in scale(candidates).items():
            if score > pool.get(note_id, -1.0):
                pool[note_id] = score
    return pool


def explain(found: Mapping[str, Iterable[ScoutHit]], note_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The reasons of all scouts for each of these notes, in table order, each once."""
    reasons: dict[str, dict[str, None]] = {note_id: {} for note_id in note_ids}
    for scout in SCOUTS:
        for candidate in found.get(scout, ()):
            if candidate.id in reasons:
                reasons[candidate.id][candidate.reason] = None
    return {note_id: tuple(of_note) for note_id, of_note in reasons.items()}
