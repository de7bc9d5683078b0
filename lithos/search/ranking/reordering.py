"""Corrections of a fused ranking for single notes: ranks in both legs, names in the question, empty notes.

docs/spec/search.md §5. Each rule moves few notes, and keeps scores in order: a note that moves up gets a
score just above the note below it, a note that moves down one just below the note above it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Final

from lithos.search.ranking.ranking import K, order_by_score

#: Ranks of each leg that are checked, and the rank above which no place is reserved.
NEAR_TOP: Final = 10
OWED: Final = 8


def keep_places(
    ranked: Sequence[tuple[K, float]], legs: tuple[Collection[K], Collection[K]]
) -> Sequence[tuple[K, float]]:
    """Return `ranked` with each note among the first ten of both legs no lower than its lower place there.

    Or than eighth, if both its places are better. Always possible: for k such notes the first k places
    suffice. Of several notes that may come next the one with the best score does.
    """
    first, second = ({key: at for at, key in enumerate(islice(leg, NEAR_TOP), start=1)} for leg in legs)
    places = {key: at for at, (key, _) in enumerate(ranked, start=1)}
    # In comprehensions without calls, as this is part of every search.
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
    """Return the first place up to which every free one is reserved; None while some are free."""
    for place in sorted(due):
        if sum(each <= place for each in due) >= place - filled:
            return place
    return None


def _raised(ranked: list[tuple[K, float]]) -> list[tuple[K, float]]:
    """Scores that fall from each note to the next, by raising those that do not."""
    behind = -math.inf
    for i in range(len(ranked) - 1, -1, -1):
        key, score = ranked[i]
        behind = score if score > behind else math.nextafter(behind, math.inf)
        ranked[i] = key, behind
    return ranked


def lift_named(ranked: Sequence[tuple[K, float]], named: Mapping[K, float]) -> Sequence[tuple[K, float]]:
    """Notes that the question names get the square of the share of it that the name is (0..1) added.

    Scores may be up to `highest_named` then. A note whose name is all of the question comes first.
    """
    if not named:
        return ranked
    return order_by_score({key: score + named.get(key, 0.0) ** 2 for key, score in ranked})


def highest_named(named: Mapping[K, float]) -> float:
    """Return the highest score of a note including its name bonus; 1 if the question names no note."""
    return 1 + max(named.values(), default=0.0) ** 2


def sink_bare(
    ranked: Sequence[tuple[K, float]], bare: Mapping[K, float], shares: Mapping[K, float]
) -> Sequence[tuple[K, float]]:
    """Notes without text of their own go behind all with text that have as much of the question.

    `bare` and `shares` (of all others) are the shares of the question's words, by idf, that notes have.
    """
    if not bare:
        return ranked
    scores = dict(ranked)
    for key, share in bare.items():
        better = [scores[other] for other, has in shares.items() if has >= share > 0 and other in scores]
        if key in scores and better:
            scores[key] = min(scores[key], math.nextafter(min(better), -math.inf))
    return order_by_score(scores)
