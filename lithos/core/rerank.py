"""From the raw finds of the scouts to one order of notes (memory spec, section 1)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

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
#: Notes that are told apart from each other; what ranks lower keeps its place.
DIVERSIFIED: Final = 30
_RELEVANCE: Final = 0.7
_REPETITION: Final = 0.3
_WORD: Final = re.compile(r"[^\W_]+")


@frozen
class Candidate:
    """What one scout thinks of one note: a raw score on its own scale, and why, for people to read.

    `chunk` is the part of the note that fits best, if the scout knows.
    """

    id: str
    score: float
    reason: str
    chunk: int | None = None


@frozen
class Pooled:
    """One note and all scouts that found it, in table order: their scores scaled to 0..1, their reasons."""

    id: str
    scaled: Mapping[str, float]
    reasons: tuple[str, ...]

    @property
    def score(self) -> float:
        """The pool score: the highest scaled one."""
        return max(self.scaled.values())


@frozen(kw_only=True)
class Traits:
    """What counts of a note itself: its type, its salience and its use, both 0..1."""

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
    """A note with its final score."""

    pooled: Pooled
    score: float


def scale(candidates: Iterable[Candidate]) -> dict[str, float]:
    """Stretch the scores of one scout over 0..1; equal ones, or a single one, give 1.0.

    Of a repeated note the best score counts.
    """
    best: dict[str, float] = {}
    for candidate in candidates:
        best[candidate.id] = max(candidate.score, best.get(candidate.id, candidate.score))
    lowest, highest = min(best.values(), default=0.0), max(best.values(), default=0.0)
    if lowest == highest:
        return dict.fromkeys(best, 1.0)
    if not math.isfinite(highest - lowest):  # weights of edges may be as large as numbers get
        lowest, highest = lowest / 2, highest / 2
        best = {note_id: score / 2 for note_id, score in best.items()}
    return {note_id: (score - lowest) / (highest - lowest) for note_id, score in best.items()}


def merge(found: Mapping[str, Sequence[Candidate]]) -> list[Pooled]:
    """Unite what the scouts (by name) found, best pool score first.

    Among equal ones the note that more scouts found is first, as told by the sum of its scaled scores,
    then the id decides.
    """
    scaled: dict[str, dict[str, float]] = {}
    reasons: dict[str, dict[str, None]] = {}
    for scout in SCOUTS:
        candidates = found.get(scout, ())
        for note_id, score in scale(candidates).items():
            scaled.setdefault(note_id, {})[scout] = score
        for candidate in candidates:
            reasons.setdefault(candidate.id, {})[candidate.reason] = None
    pool = [Pooled(note_id, scores, tuple(reasons[note_id])) for note_id, scores in scaled.items()]
    return sorted(pool, key=lambda note: (-note.score, -sum(note.scaled.values()), note.id))


def final_score(note: Pooled, traits: Traits, weights: RerankWeights) -> float:
    """`sum of weight x scaled score + prior + salience + usage`, the last three by their own weights."""
    by_scouts = sum(weights.scouts[scout] * score for scout, score in note.scaled.items())
    prior = weights.priors.get(traits.note_type, weights.priors["other"])
    return (
        by_scouts
        + weights.note_type * prior
        + weights.salience * traits.salience
        + weights.usage * traits.usage
    )


def rank(scored: Iterable[Ranked]) -> list[Ranked]:
    """Best final score first; ties go to the higher pool score, then to the id."""
    return sorted(scored, key=lambda note: (-note.score, -note.pooled.score, note.pooled.id))


def name_words(title: str, path: str) -> frozenset[str]:
    """The lower-case words of a title and a path, by which repetitive results are known."""
    return frozenset(_WORD.findall(f"{title} {path}".lower()))


def diversify(ranked: Sequence[Ranked], words_of: Callable[[str], Collection[str]]) -> list[Ranked]:
    """Move notes back that are called much like better ones; `words_of` gives the words of an id.

    Among the first 30, after the best: always the one with the highest `0.7 x score - 0.3 x overlap`, its
    overlap being the highest Jaccard index with those picked before; among equal ones the better ranked.
    """
    waiting = [(note, frozenset(words_of(note.pooled.id))) for note in ranked[:DIVERSIFIED]]
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
    """The share of the words of both that both have; 0 without any."""
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0
