"""Hits in other files of the vault, and their ranks among the notes of an answer."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, Final, Protocol, TypeVar

from attrs import field, frozen

from lithos.search.index.fulltext_schema import Filters
from lithos.search.ranking.match_strength import CANDIDATES, MatchVerdict
from lithos.search.ranking.mixing import MixCandidate, mix
from lithos.search.service.search import Hit

T = TypeVar("T")

#: Maximum number of file hits mixed with notes. Only this many hits can be rated strong or fair.
BESIDE: Final = CANDIDATES


@frozen(kw_only=True)
class OtherQuery:
    """A query to the other files of the vault. Of the `filters`, only path and project apply."""

    query: str
    mode: str = "hybrid"
    filters: Filters = field(factory=Filters)
    threshold: float = 0.0
    limit: int = 10
    offset: int = 0
    prefix: bool = False


@frozen(kw_only=True)
class OtherHit:
    """A hit in another file. `judged` is its match strength, or None if unknown.

    `number` identifies the file. `changed_ns` is the modification time of the file in nanoseconds. A hit
    without `leads` never ranks before a note.
    """

    id: str
    number: int
    name: str
    path: str
    changed_ns: int
    place: str
    #: Page number in a PDF, from 1.
    page: int | None
    text: str
    score: float
    snippet: str
    judged: MatchVerdict | None
    leads: bool = True


class OtherHits(Protocol):
    """Searches the other files of the vault."""

    @property
    def is_enabled(self) -> bool:
        """Return whether other files are searched at all."""

    def has_any(self, filters: Filters) -> bool:
        """Return whether the vault may have a file that passes the filters."""

    async def search(self, query: OtherQuery) -> Sequence[OtherHit]:
        """Return the matching passages, best first. Raises `SearchBackendFailed` if no index answers."""

    async def beside(self, query: OtherQuery) -> Sequence[OtherHit]:
        """Return the first few hits for mixing with notes.

        The result is empty if the files cannot be searched now.
        """

    def row(self, hit: OtherHit, score: float) -> dict[str, Any]:
        """Return the result row of a hit."""


def mix_rows(
    notes: Sequence[T], standings: Sequence[MixCandidate], hits: Sequence[OtherHit], limit: int
) -> list[tuple[T | OtherHit, float]]:
    """Mix notes with hits in files and return the rows with their scores (`search.ranking.mixing`)."""
    return [
        (notes[each.number] if each.is_note else hits[each.number], each.score)
        for each in mix(standings, _standings(hits), limit)
    ]


def mix_hits(
    others: OtherHits,
    rows: Sequence[dict[str, Any]],
    standings: Sequence[MixCandidate],
    hits: Sequence[OtherHit],
    limit: int,
) -> list[dict[str, Any]]:
    """Mix note rows with hits in files. A drawing that is already shown as a note is not repeated."""
    unshown = _not_shown(hits, {row["path"] for row in rows})
    return [
        others.row(row, score) if isinstance(row, OtherHit) else row
        for row, score in mix_rows(rows, standings, unshown, limit)
    ]


def skipped(shown: Sequence[Hit], hits: Sequence[OtherHit], limit: int, offset: int) -> int:
    """Return the number of notes before an offset. `shown` has the notes of the first page without hits."""
    others = _not_shown(hits, {hit.entry.path for hit in shown})
    first = mix_rows(shown, standings_of(shown), others, limit)
    return max(0, offset - sum(isinstance(row, OtherHit) for row, _ in first))


def standings_of(hits: Sequence[Hit]) -> list[MixCandidate]:
    """Return the match strengths of notes in the form that mixing needs."""
    return [MixCandidate(None if hit.judged is None else hit.judged.chance, hit.score) for hit in hits]


def _not_shown(hits: Sequence[OtherHit], paths: Set[str]) -> list[OtherHit]:
    return [hit for hit in hits if hit.path not in paths]


def _standings(hits: Sequence[OtherHit]) -> list[MixCandidate]:
    return [MixCandidate(hit.judged.chance if hit.judged else 0.0, hit.score, hit.leads) for hit in hits]
