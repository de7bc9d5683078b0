"""Ranking: fusion of full-text and semantic scores, and the scaled scores and reasons of scouts.

`blend` (weighted sum) and `reciprocal_rank` (RRF) fuse the results of several searches (docs/spec/search.md
§5). The other functions are for retrieval (docs/spec/memory.md §1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Final, TypeVar

from attrs import frozen

#: The type of a hit's key. Hits with equal scores are ordered by key.
K = TypeVar("K", int, str)

#: Number of best hits sorted at first. Ordinary searches use no more.
_SOON: Final = 60


#: Constant k of reciprocal rank fusion.
FUSION_K: Final = 60


def blend(
    lexical: Sequence[tuple[K, float]], semantic: Sequence[tuple[K, float]], weight: float
) -> Iterator[tuple[K, float]]:
    """Fuse BM25 and similarity: `(1 - weight) * lexical + weight * semantic`, scaled to 0..1.

    Lexical scores (not negative) are divided by the highest score. Similarities are scaled from the range
    between the lowest and the highest to 0..1. If all scores of a ranking are equal, each counts as 1. A
    missing ranking counts as 0. The best key is first, and ties are ordered by key. If a key is repeated, its
    best score counts.
    """
    words, meaning = blend_parts(lexical, semantic, weight)
    for key, score in meaning.items():
        words[key] = words.get(key, 0.0) + score
    return _sort_gradually(words)


def blend_parts(
    lexical: Sequence[tuple[K, float]], semantic: Sequence[tuple[K, float]], weight: float
) -> tuple[dict[K, float], dict[K, float]]:
    """Return the contributions of both rankings to the score of each key. `blend` adds them."""
    words, meaning = _best_scores(lexical), _best_scores(semantic)
    return (
        _scale(words, 1 - weight, lowest=0.0),
        _scale(meaning, weight, lowest=min(meaning.values(), default=0.0)),
    )


def reciprocal_rank(legs: Sequence[Sequence[K]], k: int = FUSION_K) -> list[tuple[K, float]]:
    """Fuse rankings by reciprocal rank.

    The best key is first, and ties are ordered by key. The score of a key is the sum of `1 / (k + rank)` over
    the rankings, with ranks from 1.

    If a key is repeated in one ranking, its first rank counts.
    """
    scores: dict[K, float] = {}
    for leg in legs:
        for key, score in reciprocal_parts(leg, k).items():
            scores[key] = scores.get(key, 0.0) + score
    return order_by_score(scores)


def reciprocal_parts(leg: Sequence[K], k: int = FUSION_K) -> dict[K, float]:
    """Return the contribution of one ranking to each key.

    `reciprocal_rank` adds the contributions of all rankings.
    """
    return {key: 1 / (k + rank) for rank, key in enumerate(dict.fromkeys(leg), start=1)}


#: Reciprocal rank fusion score of a note that is first in both rankings. This is the highest possible score.
HIGHEST_RECIPROCAL: Final = 2 / (FUSION_K + 1)
#: Number of best hits that lead coverage reorders.
LED: Final = 60


def add_lead(
    fused: Iterator[tuple[K, float]], coverage: Callable[[list[K]], Mapping[K, float]], weight: float
) -> tuple[list[tuple[K, float]], Iterator[tuple[K, float]]]:
    """Order the 60 best keys by `score + weight * coverage` and scale the scores to 0..1.

    Score and coverage are 0..1.

    Returns the ordered keys, and the remaining keys in their old order. No remaining key has a higher score.
    `coverage` returns the lead coverage of keys, and 0 if unknown. Ties are ordered by key.
    """
    best = list(islice(fused, LED))
    if not weight:
        return best, fused
    found = coverage([key for key, _ in best]) if best else {}
    led = {key: (score + weight * found.get(key, 0.0)) / (1 + weight) for key, score in best}
    return order_by_score(led), ((key, score / (1 + weight)) for key, score in fused)


#: Share of the better neighbour's score that a conversation turn gets in addition to its own score.
NEIGHBOUR: Final = 0.3


def add_neighbours(
    fused: Iterator[tuple[K, float]], beside: Callable[[K], Iterable[K]], turns: Container[K]
) -> tuple[Iterator[tuple[K, float]], dict[K, float], float]:
    """Add to each conversation turn a share of the score of its better neighbour.

    `beside` returns the neighbours of one of the `turns`. The function returns the scores, the added parts
    and the divisor of both. The divisor is the highest sum, or 1 if no sum is higher. Without turns nothing
    is added.
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
    """Scale scores from the range between `lowest` and the highest to 0..`share`.

    If all scores are equal, each becomes `share`.
    """
    highest = max(scores.values(), default=0.0)
    if highest == min(scores.values(), default=0.0):
        return dict.fromkeys(scores, share)
    width = highest - lowest
    if not lowest:
        return {key: share * (score / width) for key, score in scores.items()}
    return {key: share * ((score - lowest) / width) for key, score in scores.items()}


def order_by_score(scores: Mapping[K, float]) -> list[tuple[K, float]]:
    """Return the keys with scores, best first, ties by key."""
    ranked = sorted(scores.items(), key=itemgetter(0))
    ranked.sort(key=itemgetter(1), reverse=True)
    return ranked


def _sort_gradually(scores: Mapping[K, float]) -> Iterator[tuple[K, float]]:
    """Sort like `order_by_score`, but lazily: sort the first hits at once, and the rest only on demand."""
    least = _score_at(scores, _SOON)
    yield from order_by_score({key: score for key, score in scores.items() if score >= least})
    yield from order_by_score({key: score for key, score in scores.items() if score < least})


def _score_at(scores: Mapping[K, float], place: int) -> float:
    """Return the score at a rank, counted from 1. If there are fewer ranks, return the lowest score."""
    ordered = sorted(scores.values(), reverse=True)
    return ordered[min(place, len(ordered)) - 1] if ordered else 0.0


#: The scouts, which find candidates, in the order of the table in the spec.
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
    """The unscaled score that a scout gave a note, with the reason."""

    id: str
    score: float
    reason: str


def scale(candidates: Sequence[ScoutHit]) -> dict[str, float]:
    """Scale the scores of one scout to 0..1 (min-max). If all scores are equal, each becomes 1.0.

    If a note is repeated, its best score counts.
    """
    # A scout may find thousands of notes. The code here and below therefore makes few calls per candidate.
    best = {candidate.id: candidate.score for candidate in candidates}
    if len(best) < len(candidates):
        for candidate in candidates:
            best[candidate.id] = max(candidate.score, best[candidate.id])
    lowest, highest = min(best.values(), default=0.0), max(best.values(), default=0.0)
    if lowest == highest:
        return dict.fromkeys(best, 1.0)
    if not math.isfinite(highest - lowest):  # edge weights may be as large as floats allow
        lowest, highest = lowest / 2, highest / 2
        best = {note_id: score / 2 for note_id, score in best.items()}
    return {note_id: (score - lowest) / (highest - lowest) for note_id, score in best.items()}


def merge(found: Mapping[str, Sequence[ScoutHit]]) -> dict[str, float]:
    """Return by note id the highest scaled score that any scout gave to the note."""
    pool: dict[str, float] = {}
    for candidates in found.values():
        for note_id, score in scale(candidates).items():
            if score > pool.get(note_id, -1.0):
                pool[note_id] = score
    return pool


def explain(found: Mapping[str, Iterable[ScoutHit]], note_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the reasons of all scouts for each of the notes.

    The reasons are in table order and without duplicates.
    """
    reasons: dict[str, dict[str, None]] = {note_id: {} for note_id in note_ids}
    for scout in SCOUTS:
        for candidate in found.get(scout, ()):
            if candidate.id in reasons:
                reasons[candidate.id][candidate.reason] = None
    return {note_id: tuple(of_note) for note_id, of_note in reasons.items()}
