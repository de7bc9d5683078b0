"""Mixing: where hits among other files of the vault stand between the notes of one answer.

Scores of two indexes cannot be compared: each has its own frequencies of words. How well a hit answers can
(`lithos.core.learning.match`): so a hit stands behind the notes that match as well, and before all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from lithos.core.learning.match import Strength

#: Of ten rows so many at most are no notes.
MOST_MIXED: Final = 3
#: Rows of a page whose last place is a weak one's.
FULL: Final = 10
_RANKS: Final[Mapping[Strength, int]] = {"strong": 2, "fair": 1, "weak": 0}


@frozen
class Standing:
    """A hit to be mixed: how well it matches (None: not known) and its score, 0..1."""

    match: Strength | None
    score: float


@frozen
class Place:
    """One row of a mixed answer: the hit with this number, which is a note or not, and its score."""

    number: int
    is_note: bool
    score: float


def mix(notes: Sequence[Standing], others: Sequence[Standing], limit: int) -> list[Place]:
    """The rows of an answer of at most `limit`, both kinds in their own order, best first.

    Among `others` those that are no more than weak come last, as in any ranking of match strengths.

    Three of ten rows are no notes at most, unless there are fewer notes. Scores never rise from row to row:
    that of a hit among notes is its own as far as its neighbours leave it.
    """
    most = max(1, limit * MOST_MIXED // 10)
    good = [each for each in others if _rank(each) > 0][:most]
    rest = others[len(good) :]
    rows: list[Place] = []
    waiting = list(enumerate(good))
    for number, note in enumerate(notes):
        while waiting and _rank(waiting[0][1]) > _best_from(notes, number):
            _append(rows, waiting.pop(0), note.score)
        rows.append(Place(number, True, note.score))
    for each in waiting:
        _append(rows, each, 0.0)
    del rows[limit:]
    room = limit - len(rows)
    if not room and rest and limit >= FULL and rows[-1].is_note and len(good) < most:
        del rows[-1]
        room = 1
    for each in enumerate(rest[:room], len(good)):
        _append(rows, each, 0.0)
    return rows


def _append(rows: list[Place], other: tuple[int, Standing], least: float) -> None:
    number, standing = other
    most = rows[-1].score if rows else 1.0
    rows.append(Place(number, False, min(most, max(least, standing.score))))


def _rank(standing: Standing) -> int:
    return 0 if standing.match is None else _RANKS[standing.match]


def _best_from(notes: Sequence[Standing], first: int) -> int:
    """The best match of a note from this place on; only the first three may be more than weak."""
    return max(_rank(each) for each in notes[first:])
