"""Search along links: what is near some notes, in an order that minds meaning and standing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Catalogue
from lithos.actors.semantic import SemanticUnavailable
from lithos.core.fusion import reciprocal_rank
from lithos.services.graph import clamp_depth
from lithos.services.nearest import Nearest, passes
from lithos.services.slices import slices
from lithos.stores.fulltext import Filters
from lithos.stores.index_failure import IndexFailed

#: Notes that the ranking by meaning gives at most, as each leg of a fusion does.
NEAREST = 200
#: Up to so many notes are compared with the query one by one, some 4 ms on the event loop.
COMPARED = 500


class GraphSearch:
    """Reads the graph that the catalogue keeps; long computations leave the event loop."""

    def __init__(self, catalogue: Catalogue, nearest: Nearest, reading: Blocking) -> None:
        self._catalogue = catalogue
        self._nearest = nearest
        self._reading = reading
        self._places: Mapping[str, int] = {}
        self._placed_version = -1

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
        """Notes with their number of steps.

        Links lead both ways; they lead through notes that do not pass, but not through missing ones.
        """
        steps = self._catalogue.graph.links.reach(seeds, clamp_depth(depth), "both")
        if filters == Filters():
            return steps
        entries = [entry for note_id in steps if (entry := self._catalogue.get(note_id)) is not None]
        passing: dict[str, int] = {}
        async for some in slices(entries):
            passing |= {entry.note.id: steps[entry.note.id] for entry in some if passes(entry, filters)}
        return passing

    async def _order_by_meaning(self, query: str, serials: Sequence[int], threshold: float) -> list[int]:
        """Those of the notes that are near to the query, nearest first; none while there is no model."""
        if not query.strip() or not serials:
            return []
        try:
            if len(serials) <= COMPARED:
                found = self._nearest.search_among(query, serials, NEAREST, threshold)
            else:
                found = await self._nearest.search(query, Filters(), 5 * NEAREST, threshold)
        except (SemanticUnavailable, IndexFailed):
            return []
        wanted = frozenset(serials)
        return [hit.serial for hit in found if hit.serial in wanted][:NEAREST]

    async def _rank(self, steps: Mapping[str, int], by_meaning: Sequence[str]) -> list[tuple[str, float]]:
        """Fuse the rankings by PageRank, by steps (among as many steps PageRank decides) and by meaning."""
        places = await self._pagerank_places()
        last = len(places) + 1

        def fuse() -> list[tuple[str, float]]:
            central = sorted(steps, key=lambda note_id: (places.get(note_id, last), note_id))
            near = sorted(central, key=steps.__getitem__)
            return reciprocal_rank([central, near, by_meaning])

        return await self._reading.run(fuse)

    async def _pagerank_places(self) -> Mapping[str, int]:
        """Computed once per state of the graph, on a copy: the original changes with every write."""
        graph = self._catalogue.graph.links
        if self._placed_version != graph.version:
            copied = graph.copy()
            order = await self._reading.run(copied.order_by_pagerank)
            self._places = {note_id: place for place, note_id in enumerate(order, start=1)}
            self._placed_version = copied.version
        return self._places
