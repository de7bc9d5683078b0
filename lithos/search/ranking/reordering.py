"""Corrections of a fused ranking for single notes, by top ranks, names in the question and missing text.

See docs/spec/search.md §5. Each rule moves few notes, and scores still fall from row to row. A note that
moves up gets a score just above the next note. A note that moves down gets a score just below the previous
note.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Final

from lithos.search.ranking.ranking import K, order_by_score

#: Number of top ranks of each ranking that are checked, and the best rank to which a note is moved.
NEAR_TOP: Final = 10
OWED: Final = 8


def keep_places(
    ranked: Sequence[tuple[K, float]], legs: tuple[Collection[K], Collection[K]]
) -> Sequence[tuple[K, float]]:
    """Return `ranked` after moving up the notes that are near the top of both rankings.

    Each of these notes moves up to the worse of its two ranks, unless it already has a better rank.

    A note is near the top if it is among the first ten. It is moved to rank eight at best. This is always
    possible, because k such notes need only the first k ranks. If several notes may be next, the note with
    the best score is.
    """
    first, second = ({key: at for at, key in enumerate(islice(leg, NEAR_TOP), start=1)} for leg in legs)
    places = {key: at for at, (key, _) in enumerate(ranked, start=1)}
    # Comprehensions without calls are used, because this code runs in every search.
    lower = {
        key: at if at > second[key] else second[key]
        for key, at in first.items()
        if key in second and key in places
    }
    due = {key: at if at > OWED else OWED for key, at in lower.items()}
    if not [key for key, at in due.items() if places[key] > at]:
        return ranked
    waiting: dict[K, float] = dict(ranked)
    kept: list[tuple[K, float]] = []
    while due:
        last = _latest(due.values(), len(kept))
        chosen = next(key for key in waiting if last is None or due.get(key, math.inf) <= last)
        due.pop(chosen, None)
        kept.append((chosen, waiting.pop(chosen)))
    kept.extend(waiting.items())
    return _raised(kept)


def _latest(due: Collection[int], filled: int) -> int | None:
    """Return the first rank up to which every free rank is reserved. Return None if there is no such rank."""
    for place in sorted(due):
        if sum(each <= place for each in due) >= place - filled:
            return place
    return None


def _raised(ranked: list[tuple[K, float]]) -> list[tuple[K, float]]:
    """Return the ranking with strictly falling scores. Scores that do not fall are raised."""
    behind = -math.inf
    for i in range(len(ranked) - 1, -1, -1):
        key, score = ranked[i]
        behind = score if score > behind else math.nextafter(behind, math.inf)
        ranked[i] = key, behind
    return ranked


def lift_named(ranked: Sequence[tuple[K, float]], named: Mapping[K, float]) -> Sequence[tuple[K, float]]:
    """Raise the scores of the notes whose names are in the question.

    The added score is the square of the name's share of the question (0..1). Scores may then be as high as
    `highest_named`. A note whose name is the whole question is first.
    """
    if not named:
        return ranked
    return order_by_score({key: score + named.get(key, 0.0) ** 2 for key, score in ranked})


def highest_named(named: Mapping[K, float]) -> float:
    """Return the highest possible score of a note with its name bonus, or 1 if the question names no note."""
    return 1 + max(named.values(), default=0.0) ** 2


def sink_bare(
    ranked: Sequence[tuple[K, float]], bare: Mapping[K, float], shares: Mapping[K, float]
) -> Sequence[tuple[K, float]]:
    """Move each note without text below all notes with text that contain as much of the question.

    `bare` has the notes without text, `shares` all other notes. Both give the share of the question's words,
    by idf, that the note contains.
    """
    if not bare:
        return ranked
    scores = dict(ranked)
    for key, share in bare.items():
        better = [scores[other] for other, has in shares.items() if has >= share > 0 and other in scores]
        if key in scores and better:
            scores[key] = min(scores[key], math.nextafter(min(better), -math.inf))
    return order_by_score(scores)
