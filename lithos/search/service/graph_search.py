"""Graph search: traversal from seed notes, ranked by PageRank, distance and semantic similarity.

Also `Nearest`: nearest-neighbour queries to the vector index with the filters of a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen
from outcome import Error, capture

from lithos.kernel.actors.threads import Blocking, slices
from lithos.kernel.values.errors import IndexFailed
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.facets import FacetFilter
from lithos.notes.catalogue.note_records import KeptEntities
from lithos.notes.service.relations import clamp_depth
from lithos.search.index.chunk_rows import VectorHit
from lithos.search.index.fulltext_schema import Filters
from lithos.search.indexing.ports import PendingQuery
from lithos.search.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.search.ranking.ranking import FUSION_K, reciprocal_rank
from lithos.text.words.list_filters import has_all, has_tags


class Nearest:
    """Nearest-neighbour queries to the vector index; all raise `SemanticUnavailable` and `IndexFailed`."""

    def __init__(self, catalogue: Catalogue, semantic: SemanticBackend) -> None:
        self._catalogue = catalogue
        self._semantic = semantic

    async def search(self, query: str, filters: Filters, notes: int, threshold: float) -> list[VectorHit]:
        """The nearest neighbours of the query among the notes that pass the filters."""
        return await self.ask(query, filters, notes, threshold).hits()

    def ask(self, query: str, filters: Filters, notes: int, threshold: float) -> PendingQuery:
        """Start a nearest-neighbour query; its errors are raised by `hits`."""
        among = None
        if filters != Filters():
            among = self._among(filters)
        asked = capture(self._semantic.ask, query, notes, threshold, among)
        return PendingQuery(asked) if isinstance(asked, Error) else asked.unwrap()

    def _among(self, filters: Filters) -> list[int]:
        """The notes that pass the filters."""
        wanted = FacetFilter(tags=filters.tags, author=filters.author, path_prefix=filters.path_prefix)
        found = self._catalogue.page(wanted)
        if found.is_exact and not filters.entities:
            return found.serials
        entries = self._catalogue.at_serials(found.serials)
        return [entry.serial for entry in entries if passes(entry, filters, self._catalogue.entities)]

    async def search_among(
        self, query: str, serials: Sequence[int], notes: int, threshold: float
    ) -> list[VectorHit]:
        """The nearest neighbours of the query among these notes."""
        return await self._semantic.ask(query, notes, threshold, serials).hits()


def passes(entry: Entry, filters: Filters, kept: KeptEntities) -> bool:
    """True when a note passes all filters."""
    note = entry.note
    return (
        has_tags(note.all_tags, filters.tags)
        and (filters.author is None or note.author == filters.author)
        and (filters.path_prefix is None or entry.path.startswith(filters.path_prefix))
        and (not filters.entities or has_all(kept.of(note), filters.entities))
    )


#: The most notes of the semantic ranking, as in a hybrid search.
NEAREST = 200
#: Up to this many notes are compared with the query one by one.
COMPARED = 500


@frozen
class Walk:
    """The ranks of a note in a graph search: its distance in links from a seed, and its rank in each ranking.

    `meaning`: None if the semantic ranking has not found it.
    """

    distance: int
    central: int
    near: int
    meaning: int | None

    @property
    def parts(self) -> tuple[float, float, float]:
        """Return the parts of PageRank, distance and semantic similarity; their sum is the score."""
        of_meaning = 0.0 if self.meaning is None else 1 / (FUSION_K + self.meaning)
        return 1 / (FUSION_K + self.central), 1 / (FUSION_K + self.near), of_meaning


class Centrality:
    """PageRank of all notes, computed on demand, once per version of the link graph."""

    def __init__(self, catalogue: Catalogue, reading: Blocking) -> None:
        self._catalogue = catalogue
        self._reading = reading
        self._scores: Mapping[str, float] = {}
        self._places: Mapping[str, int] = {}
        self._version = -1

    async def scores(self) -> Mapping[str, float]:
        """PageRank by id, highest first."""
        graph = self._catalogue.graph.links
        if self._version != graph.version:
            copied = graph.copy()  # writes change the original
            scores = await self._reading.run(copied.pagerank)
            self._scores, self._version = scores, copied.version
            self._places = {note_id: place for place, note_id in enumerate(scores, start=1)}
        return self._scores

    async def places(self) -> Mapping[str, int]:
        """Ranks by PageRank, from 1."""
        await self.scores()
        return self._places


class GraphSearch:
    """Graph search over the catalogue's link graph; long computations run in a worker thread."""

    def __init__(self, catalogue: Catalogue, nearest: Nearest, reading: Blocking) -> None:
        self._catalogue = catalogue
        self._nearest = nearest
        self._reading = reading
        self.centrality = Centrality(catalogue, reading)

    async def search(
        self, query: str, seeds: Sequence[str], depth: int, filters: Filters, threshold: float
    ) -> list[tuple[int, float]]:
        """Serials and scores of the notes at most `depth` links from a seed that pass the filters.

        Best first, ties by id. Unknown seeds are left out. A blank query, or one without a model, ranks
        by links alone.
        """
        steps = await self._reach(seeds, depth, filters)
        ids = {entry.serial: note_id for note_id in steps if (entry := self._catalogue.get(note_id))}
        by_meaning = [ids[serial] for serial in await self._order_by_meaning(query, list(ids), threshold)]
        ranked = await self._rank(steps, by_meaning)
        return [(entry.serial, score) for note_id, score in ranked if (entry := self._catalogue.get(note_id))]

    async def _reach(self, seeds: Sequence[str], depth: int, filters: Filters) -> dict[str, int]:
        """Breadth-first traversal: the reached notes with their distance in links.

        Links count in both directions, also through notes that do not pass, but not through missing ones.
        """
        steps = self._catalogue.graph.links.reach(seeds, clamp_depth(depth), "both")
        if filters == Filters():
            return steps
        entries = [entry for note_id in steps if (entry := self._catalogue.get(note_id)) is not None]
        passing: dict[str, int] = {}
        kept = self._catalogue.entities
        async for some in slices(entries):
            passing |= {entry.note.id: steps[entry.note.id] for entry in some if passes(entry, filters, kept)}
        return passing

    async def _order_by_meaning(self, query: str, serials: Sequence[int], threshold: float) -> list[int]:
        """Return the semantic ranking: notes similar to the query, nearest first; empty without a model."""
        if not query.strip() or not serials:
            return []
        try:
            if len(serials) <= COMPARED:
                found = await self._nearest.search_among(query, serials, NEAREST, threshold)
            else:
                found = await self._nearest.search(query, Filters(), 5 * NEAREST, threshold)
        except (SemanticUnavailable, IndexFailed):
            return []
        wanted = frozenset(serials)
        return [hit.serial for hit in found if hit.serial in wanted][:NEAREST]

    async def _rank(self, steps: Mapping[str, int], by_meaning: Sequence[str]) -> list[tuple[str, float]]:
        """Reciprocal rank fusion of PageRank, distance (ties by PageRank) and semantic ranking."""
        places = await self.centrality.places()
        return await self._reading.run(lambda: reciprocal_rank([*_order(steps, places), by_meaning]))

    async def explain(
        self, query: str, seeds: Sequence[str], depth: int, filters: Filters, threshold: float
    ) -> dict[str, Walk]:
        """How `search` ranks each note, by id."""
        steps = await self._reach(seeds, depth, filters)
        ids = {entry.serial: note_id for note_id in steps if (entry := self._catalogue.get(note_id))}
        nearest = await self._order_by_meaning(query, list(ids), threshold)
        by_meaning = _ranks([ids[serial] for serial in nearest])
        places = await self.centrality.places()

        def tell() -> dict[str, Walk]:
            central, near = map(_ranks, _order(steps, places))
            return {
                note_id: Walk(steps[note_id], central[note_id], near[note_id], by_meaning.get(note_id))
                for note_id in steps
            }

        return await self._reading.run(tell)


def _order(steps: Mapping[str, int], places: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Reached notes by PageRank, and by distance."""
    last = len(places) + 1
    central = sorted(steps, key=lambda note_id: (places.get(note_id, last), note_id))
    return central, sorted(central, key=steps.__getitem__)


def _ranks(order: Sequence[str]) -> dict[str, int]:
    return {note_id: rank for rank, note_id in enumerate(order, start=1)}
