"""Ports of hybrid search to the indexes and the catalogue, for notes or for attachments.

Notes are identified by integer serials.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Protocol

from lithos.search.index.chunk_rows import VectorHit
from lithos.search.index.fulltext_schema import Filters
from lithos.search.ranking.lead_coverage import Covered
from lithos.text.query import Node
from lithos.text.words.languages import WordForms


class PendingQueryPort(Protocol):
    """A running query to the vector index."""

    @property
    def calibration(self) -> str:
        """Return the key of the model that answers the query in the calibrations."""

    async def hits(self) -> list[VectorHit]:
        """Return the nearest notes, best first. Raises `IndexFailed` and `SemanticUnavailable`."""


class NearestPort(Protocol):
    """The vector index for queries with filters."""

    def ask(self, query: str, filters: Filters, notes: int, threshold: float) -> PendingQueryPort:
        """Start a nearest-neighbour query. Its errors are raised by `hits`."""


class MeaningPort(Protocol):
    """The semantic index, and whether it contains every note."""

    @property
    def is_answering(self) -> bool: ...


class WordsPort(Protocol):
    """The full-text index, with the methods of `FulltextIndex`. `search` and `idf` raise `IndexFailed`."""

    def search(self, node: Node, limit: int, filters: Filters) -> list[tuple[int, float]]: ...

    def content_stems(self, text: str) -> list[str]: ...

    def word_forms(self, text: str) -> WordForms: ...

    def idf(self, stems: Iterable[str]) -> dict[str, float]: ...

    def idf_of_unknown(self) -> float:
        """Return the idf of a stem that no note contains, above 0."""

    def coverage(self, idf: Mapping[str, float], serials: Sequence[int]) -> Mapping[int, Covered]: ...

    def terms(self, text: str) -> frozenset[str]: ...

    def terms_in(self, language: str, text: str) -> frozenset[str]: ...


class TurnsPort(Container[int], Protocol):
    """The turns of conversations."""

    def __len__(self) -> int: ...

    def beside(self, serial: int) -> list[int]:
        """Return the serials of the turns just before and after a turn."""


class NotesPort(Protocol):
    """The part of the catalogue that a ranking needs."""

    @property
    def turns(self) -> TurnsPort: ...

    def named_in(self, text: str) -> dict[int, str]:
        """Return by serial the notes whose title or alias occurs in a text, with the matching name."""
