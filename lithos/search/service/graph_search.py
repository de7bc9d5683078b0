"""Graph search: notes linked from seed notes, ranked by PageRank, distance and semantic similarity.

The module also has `Nearest`, which queries the vector index with search filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen
from outcome import Error, capture

from lithos.kernel.actors.threads import Blocking, slices
from lithos.kernel.values.errors import IndexFailed
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.facets import FacetFilter
from lithos.notes.service.relations import clamp_depth
from lithos.search.index.chunk_rows import VectorHit
from lithos.search.index.fulltext_schema import Filters
from lithos.search.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.search.indexing.vector_queries import PendingQuery
from lithos.search.ranking.ranking import FUSION_K, reciprocal_rank
from lithos.text.words.list_filters import has_all, has_tags


class Nearest:
    """Nearest-neighbour queries to the vector index.

    All methods raise `SemanticUnavailable` and `IndexFailed`.
    """

    def __init__(self, catalogue: Catalogue, semantic: SemanticBackend) -> None:
        self._catalogue = catalogue
        self._semantic = semantic

    async def search(self, query: str, filters: Filters, notes: int, threshold: float) -> list[VectorHit]:
        """Return the nearest neighbours of the query among the notes that pass the filters."""
        return await self.ask(query, filters, notes, threshold).hits()

    def ask(self, query: str, filters: Filters, notes: int, threshold: float) -> PendingQuery:
        """Start a nearest-neighbour query. Its errors are raised by `hits`."""
        among = None
        if filters != Filters():
            among = self._among(filters)
        asked = capture(self._semantic.ask, query, notes, threshold, among)
        return PendingQuery(asked) if isinstance(asked, Error) else asked.unwrap()

    def _among(self, filters: Filters) -> list[int]:
        """Return the serials of the notes that pass the filters."""
        wanted = FacetFilter(
            tags=filters.tags, author=filters.author, path_prefix=filters.path_prefix, project=filters.project
        )
        found = self._catalogue.page(wanted)
        if found.is_exact and not filters.entities:
            return found.serials
        entries = self._catalogue.at_serials(found.serials)
        return [entry.serial for entry in entries if passes(entry, filters, self._catalogue)]

    async def search_among(
        self, query: str, serials: Sequence[int], notes: int, threshold: float
    ) -> list[VectorHit]:
        """Return the nearest neighbours of the query among the given notes."""
        return await self._semantic.ask(query, notes, threshold, serials).hits()


def passes(entry: Entry, filters: Filters, catalogue: Catalogue) -> bool:
    """Return whether a note passes all filters."""
    note = entry.note
    return (
        has_tags(note.all_tags, filters.tags)
        and (filters.author is None or note.author == filters.author)
        and (filters.path_prefix is None or entry.path.startswith(filters.path_prefix))
        and (not filters.entities or has_all(catalogue.entities.of(note), filters.entities))
        and catalogue.projects.passes(entry, filters.project)
    )


#: Maximum number of notes in the semantic ranking, as in a hybrid search.
NEAREST = 200
#: Maximum number of notes that are compared with the query one by one.
COMPARED = 500


@frozen
class Walk:
    """The results of a note in a graph search.

    The results are the distance in links from a seed, and the rank in each ranking.

    `meaning` is None if the note is not in the semantic ranking.
    """

    distance: int
    central: int
    near: int
    meaning: int | None

    @property
    def parts(self) -> tuple[float, float, float]:
        """Return the parts of the score by PageRank, distance and semantic similarity.

        The sum of the parts is the score.
        """
        of_meaning = 0.0 if self.meaning is None else 1 / (FUSION_K + self.meaning)
        return 1 / (FUSION_K + self.central), 1 / (FUSION_K + self.near), of_meaning


class Centrality:
    """PageRank of all notes. It is computed on demand, once per version of the link graph."""

    def __init__(self, catalogue: Catalogue, reading: Blocking) -> None:
        self._catalogue = catalogue
        self._reading = reading
        self._scores: Mapping[str, float] = {}
        self._places: Mapping[str, int] = {}
        self._version = -1

    async def scores(self) -> Mapping[str, float]:
        """Return the PageRank by note id, highest first."""
        graph = self._catalogue.graph.links
        if self._version != graph.version:
            copied = graph.copy()  # writes change the original graph
            scores = await self._reading.run(copied.pagerank)
            self._scores, self._version = scores, copied.version
            self._places = {note_id: place for place, note_id in enumerate(scores, start=1)}
        return self._scores

    async def places(self) -> Mapping[str, int]:
        """Return the rank of each note by PageRank, from 1."""
        await self.scores()
        return self._places


class GraphSearch:
    """Graph search over the catalogue's link graph. Long computations run in a worker thread."""

    def __init__(self, catalogue: Catalogue, nearest: Nearest, reading: Blocking) -> None:
        self._catalogue = catalogue
        self._nearest = nearest
        self._reading = reading
        self.centrality = Centrality(catalogue, reading)

    async def search(
        self, query: str, seeds: Sequence[str], depth: int, filters: Filters, threshold: float
    ) -> list[tuple[int, float]]:
        """Return the serials and scores of the notes that are linked to a seed.

        A note must pass the filters and be at most `depth` links away.

        The best note is first, and ties are ordered by id. Unknown seeds are left out. If the query is blank
        or no model is loaded, only links determine the ranking.
        """
        steps = await self._reach(seeds, depth, filters)
        ids = {entry.serial: note_id for note_id in steps if (entry := self._catalogue.get(note_id))}
        by_meaning = [ids[serial] for serial in await self._order_by_meaning(query, list(ids), threshold)]
        ranked = await self._rank(steps, by_meaning)
        return [(entry.serial, score) for note_id, score in ranked if (entry := self._catalogue.get(note_id))]

    async def _reach(self, seeds: Sequence[str], depth: int, filters: Filters) -> dict[str, int]:
        """Traverse the links breadth-first. Return the reached notes with their distance in links.

        Links count in both directions. Paths may lead through notes that do not pass the filters, but not
        through missing notes.
        """
        steps = self._catalogue.graph.links.reach(seeds, clamp_depth(depth), "both")
        if filters == Filters():
            return steps
        entries = [entry for note_id in steps if (entry := self._catalogue.get(note_id)) is not None]
        passing: dict[str, int] = {}
        async for some in slices(entries):
            passing |= {
                entry.note.id: steps[entry.note.id]
                for entry in some
                if passes(entry, filters, self._catalogue)
            }
        return passing

    async def _order_by_meaning(self, query: str, serials: Sequence[int], threshold: float) -> list[int]:
        """Return the notes that are similar to the query, nearest first.

        The result is empty without a model.
        """
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
        """Return the reciprocal rank fusion of PageRank, distance and similarity.

        Notes at the same distance are ordered by PageRank.
        """
        places = await self.centrality.places()
        return await self._reading.run(lambda: reciprocal_rank([*_order(steps, places), by_meaning]))

    async def explain(
        self, query: str, seeds: Sequence[str], depth: int, filters: Filters, threshold: float
    ) -> dict[str, Walk]:
        """Return by note id the results from which `search` computes its ranking."""
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
    """Return the reached notes twice: ordered by PageRank, and ordered by distance."""
    last = len(places) + 1
    central = sorted(steps, key=lambda note_id: (places.get(note_id, last), note_id))
    return central, sorted(central, key=steps.__getitem__)


def _ranks(order: Sequence[str]) -> dict[str, int]:
    return {note_id: rank for rank, note_id in enumerate(order, start=1)}
