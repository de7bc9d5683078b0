"""The candidates of a retrieval: access filter (gate, docs/spec/memory.md §1) and selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from lithos.notes.catalogue.catalogue import Entry
from lithos.search.ranking.match_strength import MatchVerdict
from lithos.text.snippet import Terms


@frozen
class Chosen:
    """A note in an answer, and the scouts that found it."""

    id: str
    score: float
    reasons: tuple[str, ...]
    scouts: frozenset[str]


@frozen(kw_only=True)
class Selection:
    """The notes of an answer, best first, and the number of `considered` notes.

    `seeds` are the notes from which the second phase started. `chunks` gives the chunk to show by serial, if
    known. `complete` is False if statistics could not be read.
    """

    notes: Sequence[Chosen]
    considered: int
    seeds: tuple[Entry, ...]
    chunks: Mapping[int, int]
    complete: bool
    #: Terms for snippets. Without terms, all words of the query have equal weights.
    terms: Terms = Terms()
    #: Match strengths by serial. A note without an entry matches weakly. None if the result rows contain no
    #: verdict.
    matches: Mapping[int, MatchVerdict] | None = None
