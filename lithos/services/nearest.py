"""Nearest notes by meaning, with the filters of a search."""

from __future__ import annotations

from collections.abc import Sequence

from outcome import Error, capture

from lithos.actors.catalogue import Catalogue, Entry
from lithos.actors.semantic import SemanticBackend
from lithos.actors.vector_queries import Asked
from lithos.core.matching import has_all
from lithos.stores.fulltext import Filters
from lithos.stores.vectors import VectorHit

#: Up to so many notes are worth naming one by one.
EXACT_NOTES = 2_000


class Nearest:
    """Asks the vector index; everything here raises `SemanticUnavailable` and `IndexFailed`."""

    def __init__(self, catalogue: Catalogue, semantic: SemanticBackend) -> None:
        self._catalogue = catalogue
        self._semantic = semantic

    async def search(self, query: str, filters: Filters, notes: int, threshold: float) -> list[VectorHit]:
        """The nearest notes that pass the filters."""
        return await self.ask(query, filters, notes, threshold).hits()

    def ask(self, query: str, filters: Filters, notes: int, threshold: float) -> Asked:
        """Begin a search; whatever goes wrong is raised by `hits`."""
        if filters == Filters():
            asked = capture(self._semantic.ask, query, notes, threshold)
            return Asked(asked) if isinstance(asked, Error) else asked.unwrap()
        passing = [entry.serial for entry in self._catalogue if passes(entry, filters)]
        return Asked(capture(self.search_among, query, passing, notes, threshold))

    def search_among(
        self, query: str, serials: Sequence[int], notes: int, threshold: float
    ) -> list[VectorHit]:
        """The nearest of these notes."""
        vector = self._semantic.encode(query)
        if vector is None:
            return []
        return self._semantic.search_among(vector, serials, notes, threshold)


def passes(entry: Entry, filters: Filters) -> bool:
    """True when a note passes all filters."""
    note = entry.note
    return (
        has_all(note.tags, filters.tags)
        and (filters.author is None or note.author == filters.author)
        and (filters.path_prefix is None or entry.path.startswith(filters.path_prefix))
        and has_all(note.entities, filters.entities)
    )
