"""Joining the ranked lists of several searches into one (search spec, section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Protocol, TypeVar


class Ordered(Protocol):
    """What hits are told apart by: hashable, and comparable so that ties have an order."""

    def __hash__(self) -> int: ...

    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=Ordered)

#: Hits that are sorted at once; hardly anybody asks for more of them.
_SOON: Final = 60


def blend(
    lexical: Sequence[tuple[K, float]], semantic: Sequence[tuple[K, float]], weight: float
) -> Iterator[tuple[K, float]]:
    """Join BM25 scores and similarities: `(1 - weight) * lexical + weight * semantic`, each scaled to 0..1.

    Lexical scores (not negative) are divided by the highest, similarities stretched between the lowest and
    the highest; a leg with one distinct score counts 1 for its notes, a missing leg 0. Best first, ties by
    key; of a repeated key the best score counts.
    """
    words, meaning = _best_scores(lexical), _best_scores(semantic)
    words = _scale(words, 1 - weight, lowest=0.0)
    meaning = _scale(meaning, weight, lowest=min(meaning.values(), default=0.0))
    for key, score in meaning.items():
        words[key] = words.get(key, 0.0) + score
    return _sort_gradually(words)


def reciprocal_rank(legs: Sequence[Sequence[K]], k: int = 60) -> list[tuple[K, float]]:
    """Join rankings (best first) by the sum of `1 / (k + rank)`, ranks from 1. Best first, ties by key.

    Of a key repeated in one leg the first place counts.
    """
    scores: dict[K, float] = {}
    for leg in legs:
        for rank, key in enumerate(dict.fromkeys(leg), start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
    return _sort(scores)


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


def _sort(scores: Mapping[K, float]) -> list[tuple[K, float]]:
    ranked = sorted(scores.items(), key=itemgetter(0))
    ranked.sort(key=itemgetter(1), reverse=True)
    return ranked


def _sort_gradually(scores: Mapping[K, float]) -> Iterator[tuple[K, float]]:
    """Give what `_sort` does, sorting no more than is asked for."""
    least = _score_at(scores, _SOON)
    yield from _sort({key: score for key, score in scores.items() if score >= least})
    yield from _sort({key: score for key, score in scores.items() if score < least})


def _score_at(scores: Mapping[K, float], place: int) -> float:
    """Return the score at a place, counted from 1, the lowest one where there are fewer."""
    ordered = sorted(scores.values(), reverse=True)
    return ordered[min(place, len(ordered)) - 1] if ordered else 0.0
