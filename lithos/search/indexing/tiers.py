"""Queries to two vector tiers: accurate vectors, and static vectors for notes without accurate vectors.

Comparing similarities of two models is acceptable only for the few notes of a vault that lack accurate
vectors (`Coverage`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from attrs import evolve, frozen

from lithos.kernel.values.errors import IndexFailed
from lithos.search.embedding.embedder import Embedder, Matrix
from lithos.search.index.chunk_rows import VectorHit
from lithos.search.index.vectors import VectorIndex
from lithos.search.indexing.ports import EmbeddedNotes, NearestQuery, search_all

#: Name of the accurate tier, whichever of its models answers.
TIER: Final = "accurate"


class QueryEmbedder(Embedder, Protocol):
    """An `Embedder` that caches the vectors of queries."""

    def encode_query(self, text: str) -> Matrix:
        """Return the vector of a query (dims,)."""


@frozen(eq=False)
class TieredNotes:
    """Accurate vectors, and static vectors for notes without current accurate vectors (`Searched`)."""

    embedder: QueryEmbedder
    vectors: VectorIndex
    static: EmbeddedNotes
    stale: Callable[[], frozenset[int]]
    on_failure: Callable[[IndexFailed], None]

    @property
    def calibration(self) -> str:
        """Return the key of the model in the calibrations."""
        return self.embedder.identity.name

    def find(self, wanted: Sequence[NearestQuery]) -> list[list[VectorHit]]:
        """Return the hits of each query. If the model fails, only the static vectors are used."""
        try:
            return self._find(wanted)
        except IndexFailed as failure:
            self.on_failure(failure)
            return self.static.find(wanted)

    def is_quick(self, wanted: NearestQuery) -> bool:
        """Return False, because a transformer takes milliseconds."""
        return False

    def _find(self, wanted: Sequence[NearestQuery]) -> list[list[VectorHit]]:
        # Each query is encoded separately. In a batch, int8 activations would make its vector depend on the
        # other queries.
        vectors = [self.embedder.encode_query(each.text) for each in wanted]
        # The set is read before the scan. Notes whose accurate vectors are completed during the scan then
        # still count by their static vectors.
        stale = self.stale()
        found = search_all(self.vectors, vectors, wanted, len(stale))
        if not stale:
            return found
        others = self.static.find([_only(each, stale) for each in wanted])
        return [_merge(found[i], others[i], stale, each.most) for i, each in enumerate(wanted)]


def _only(wanted: NearestQuery, stale: frozenset[int]) -> NearestQuery:
    """Return the query restricted to stale notes."""
    among = stale if wanted.among is None else stale.intersection(wanted.among)
    return evolve(wanted, among=list(among))


def _merge(
    accurate: Sequence[VectorHit], static: Sequence[VectorHit], stale: frozenset[int], most: int
) -> list[VectorHit]:
    """Merge static hits of stale notes with accurate hits of all other notes.

    The best hit is first, and ties are ordered by serial.
    """
    hits = [*(hit for hit in accurate if hit.serial not in stale), *static]
    return sorted(hits, key=lambda hit: (-hit.similarity, hit.serial))[:most]
