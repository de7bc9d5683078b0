"""Mixing: where hits in other files of the vault rank between the notes of an answer.

Scores of two indexes cannot be compared, because each index has its own word frequencies. The probabilities
that hits answer the question (`lithos.search.ranking.match_strength`) can be compared. The numbers below were
chosen on the development collections and on questions about other files (`bench/attachments.py` of ee169747).
Of 100 such questions, 76 are answered within ten rows and 50 by the first row. The three rows that may be
mixed in could answer 85. The nDCG of questions about notes falls by 0.2 and 0.3 of 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from lithos.search.ranking.match_strength import CANDIDATES

#: Maximum number of hits in other files per ten rows.
MOST_MIXED: Final = 3
#: A hit ranks before a note if its probability is at least `LEAST` and more than `LEAD` times that of the
#: note.
LEAD: Final = 1.5
LEAST: Final = 0.06
#: Page size from which hits replace the last notes, maximum number of such hits, and their minimum
#: probability. Their probability must also reach that of the best note.
FULL: Final = 10
MOST_LAST: Final = 2
SLIGHT: Final = 0.02


@frozen
class MixCandidate:
    """A hit to be mixed, with its score and the probability (None if unknown) that it answers.

    The score and the probability are 0..1.

    A hit without `leads` never ranks before a note.
    """

    chance: float | None
    score: float
    leads: bool = True


@frozen
class MixedHit:
    """One row of a mixed answer: the number of the note or of the other hit, and the score."""

    number: int
    is_note: bool
    score: float


def mix(notes: Sequence[MixCandidate], others: Sequence[MixCandidate], limit: int) -> list[MixedHit]:
    """Return at most `limit` rows of notes and other hits, best first.

    The order of the notes does not change.

    At most three of ten rows are other hits, unless there are too few notes. Scores never rise from row to
    row, so the score of a hit among notes is limited by its neighbours.
    """
    most = max(1, limit * MOST_MIXED // 10)
    first = list(enumerate(others[:CANDIDATES]))
    waiting = [each for each in first if each[1].leads and _chance(each[1]) >= LEAST][:most]
    # If the match strength of the notes is unknown, no other hit ranks before the notes.
    best = [1.0 if note.chance is None else note.chance for note in notes]
    for number in range(len(best) - 2, -1, -1):
        best[number] = max(best[number], best[number + 1])
    rows: list[MixedHit] = []
    for number, note in enumerate(notes[:limit]):
        while waiting and _chance(waiting[0][1]) > LEAD * best[number]:
            _append(rows, waiting.pop(0), note.score)
        rows.append(MixedHit(number, True, note.score))
    del rows[limit:]
    shown = {row.number for row in rows if not row.is_note}
    slight = [each for each in first if _chance(each[1]) >= max((SLIGHT, *best[:1]))]
    last = [each for each in (*waiting, *slight) if each[0] not in shown]
    for each in dict.fromkeys(last[: min(MOST_LAST, most - len(shown))] if limit >= FULL else ()):
        if len(rows) == limit:
            del rows[max(place for place, row in enumerate(rows) if row.is_note)]
        shown.add(each[0])
        _append(rows, each, 0.0)
    rest = (each for each in enumerate(others) if each[0] not in shown)
    for each, _ in zip(rest, range(limit - len(rows)), strict=False):
        _append(rows, each, 0.0)
    return rows


def _append(rows: list[MixedHit], other: tuple[int, MixCandidate], least: float) -> None:
    number, standing = other
    most = rows[-1].score if rows else 1.0
    rows.append(MixedHit(number, False, min(most, max(least, standing.score))))


def _chance(standing: MixCandidate) -> float:
    return standing.chance or 0.0
