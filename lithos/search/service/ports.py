"""Ports of a hybrid search to indexes and the catalogue: those of notes, or those of attachments.

Notes are identified by whole numbers, their serials.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Protocol

from lithos.search.index.chunk_rows import VectorHit
from lithos.search.index.fulltext_schema import Filters
from lithos.search.ranking.lead_coverage import Covered
from lithos.text.query import Node


class PendingQueryPort(Protocol):
    """A query to vectors that is under way."""

    @property
    def is_accurate(self) -> bool:
        """Whether the accurate tier answers it."""

    async def hits(self) -> list[VectorHit]:
        """The nearest notes, best first; raises `IndexFailed` and `SemanticUnavailable`."""


class NearestPort(Protocol):
    """Vectors that queries with filters go to."""

    def ask(self, query: str, filters: Filters, notes: int, threshold: float) -> PendingQueryPort:
        """Start a nearest-neighbour query; its errors are raised by `hits`."""


class MeaningPort(Protocol):
    """Whether the vectors are of everything that there is."""

    @property
    def is_answering(self) -> bool: ...


class WordsPort(Protocol):
    """The full-text index, as `FulltextIndex` has each of these; `search` and idf raise `IndexFailed`."""

    def search(self, node: Node, limit: int, filters: Filters) -> list[tuple[int, float]]: ...

    def content_stems(self, text: str) -> list[str]: ...

    def idf(self, stems: Iterable[str]) -> dict[str, float]: ...

    def idf_of_unknown(self) -> float:
        """The idf of a stem that no note has, above 0."""

    def coverage(self, idf: Mapping[str, float], serials: Sequence[int]) -> Mapping[int, Covered]: ...

    def terms(self, text: str) -> frozenset[str]: ...


class TurnsPort(Container[int], Protocol):
    """The turns of conversations."""

    def __len__(self) -> int: ...

    def beside(self, serial: int) -> list[int]:
        """The turns just before and after one."""


class NotesPort(Protocol):
    """The part of the catalogue that a ranking needs."""

    @property
    def turns(self) -> TurnsPort: ...

    def named_in(self, text: str) -> dict[int, str]:
        """Return the notes whose title or alias occurs in a text, with that name."""
