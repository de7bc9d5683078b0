"""Candidates of a retrieval: access control (the gate; docs/spec/memory.md §1), and the selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from lithos.notes.catalogue.catalogue import Entry
from lithos.search.ranking.match_strength import MatchVerdict
from lithos.text.snippet import Terms


@frozen
class Chosen:
    """One note of an answer, with the scouts that found it."""

    id: str
    score: float
    reasons: tuple[str, ...]
    scouts: frozenset[str]


@frozen(kw_only=True)
class Selection:
    """The notes of an answer, best first, and the number of notes that were `considered`.

    `seeds` are the notes from which the answer was widened, `chunks` the chunk to show by serial, if known;
    not `complete` when statistics could not be read.
    """

    notes: Sequence[Chosen]
    considered: int
    seeds: tuple[Entry, ...]
    chunks: Mapping[int, int]
    complete: bool
    #: Terms for snippets; if empty: the words of the query, with equal weights.
    terms: Terms = Terms()
    #: Match strengths by serial, all others are weak; None if the rows say nothing about it.
    matches: Mapping[int, MatchVerdict] | None = None
