"""A part of the graph of notes to look at: notes around others, with all that relates them.

Nearest first, among equally near ones by PageRank; wiki-links, provenance and typed edges count alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Final, Literal, Protocol, TypeAlias

import trio
from attrs import frozen

from lithos.actors.blocking import slices
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.core.learning.edges import Edge
from lithos.services.search.graph_search import Centrality
from lithos.stores.indexes.linkgraph import LinkGraph

#: Notes of one picture, and lines between them.
MOST_NOTES: Final = 300
MOST_LINES: Final = 1_200
#: Notes of the picture of a whole vault.
CENTRAL: Final = 120
DEEPEST: Final = 3
#: Nodes whose neighbours are collected in one turn of the event loop.
_AT_ONCE: Final = 25
CONTRADICTS: Final = "contradicts"

LineKind: TypeAlias = Literal["link", "derived", "typed", "contradicts"]


class TypedEdges(Protocol):
    """The typed edges between notes."""

    async def touching(self, note_ids: Sequence[str]) -> Sequence[Edge]:
        """Those that leave or reach any of these notes. Raises `DatabaseFailed`."""
        ...


@frozen
class Node:
    """One note of a picture: its distance from the start in steps, its PageRank and its place by that."""

    entry: Entry
    distance: int
    pagerank: float
    place: int


@frozen
class Line:
    """A relation between notes, by their places in `Neighbourhood.nodes`; `name` as people say it."""

    start: int
    end: int
    kind: LineKind
    name: str


@frozen(kw_only=True)
class Neighbourhood:
    """The notes of a picture, the start first, and the lines between them.

    `left_out` are notes that were reached and not taken, at the least; `lines_left_out` lines likewise.
    """

    nodes: Sequence[Node]
    lines: Sequence[Line]
    left_out: int = 0
    lines_left_out: int = 0


class Neighbourhoods:
    """Finds the neighbourhoods of notes."""

    def __init__(self, catalogue: Catalogue, edges: TypedEdges, centrality: Centrality) -> None:
        self._catalogue = catalogue
        self._edges = edges
        self._centrality = centrality

    async def around(self, starts: Sequence[str], depth: int, most: int = MOST_NOTES) -> Neighbourhood:
        """Notes at most `depth` steps (1..3) from these, which come first; unknown ones are left out."""
        ranks = await self._centrality.scores()
        places = await self._centrality.places()
        distances = {note_id: 0 for note_id in starts[:most] if note_id in self._catalogue}
        frontier, left_out = list(distances), 0
        for distance in range(1, max(1, min(depth, DEEPEST)) + 1):
            beside = await self._beside(frontier, distances)
            room = most - len(distances)
            frontier = nsmallest(room, beside, key=lambda one: (places.get(one, len(places) + 1), one))
            distances.update(dict.fromkeys(frontier, distance))
            left_out = len(beside) - len(frontier)
            if left_out or not frontier:
                break
        return await self._picture(distances, ranks, places, left_out)

    async def central(self, most: int = CENTRAL) -> Neighbourhood:
        """The notes with the highest PageRank, of those that others are linked with where there are such."""
        ranks = await self._centrality.scores()
        places = await self._centrality.places()
        chosen: list[str] = []
        async for some in slices(list(ranks)):
            chosen += [one for one in some if one in self._catalogue and self._is_linked(one)]
            if len(chosen) >= most:
                break
        chosen = (chosen or [one for one in islice(ranks, most) if one in self._catalogue])[:most]
        left_out = max(0, len(self._catalogue) - len(chosen))
        return await self._picture(dict.fromkeys(chosen, 0), ranks, places, left_out)

    def _is_linked(self, note_id: str) -> bool:
        graph = self._catalogue.graph
        return any(
            isinstance(other, str) and other in self._catalogue
            for way in (graph.links, graph.provenance)
            for side in way.neighbours(note_id)
            for other in islice(side, 3)
        )

    async def _beside(self, frontier: Sequence[str], known: Mapping[str, int]) -> set[str]:
        """The notes one step from a frontier that are not known yet."""
        found: set[str] = set()
        for edge in await self._edges.touching(frontier):
            found |= {edge.from_id, edge.to_id}
        graph = self._catalogue.graph
        async for some in slices(frontier, _AT_ONCE):
            for one in some:
                for way in (graph.links, graph.provenance):
                    for side in way.neighbours(one):
                        found.update(other for other in side if isinstance(other, str))
        return {one for one in found if one not in known and one in self._catalogue}

    async def _picture(
        self,
        distances: Mapping[str, int],
        ranks: Mapping[str, float],
        places: Mapping[str, int],
        left_out: int,
    ) -> Neighbourhood:
        """The notes with the lines between them."""
        typed = await self._edges.touching(list(distances))
        nodes = [
            Node(entry, distance, ranks.get(note_id, 0.0), places.get(note_id, len(places) + 1))
            for note_id, distance in distances.items()
            if (entry := self._catalogue.get(note_id)) is not None
        ]
        numbers = {node.entry.note.id: number for number, node in enumerate(nodes)}
        lines = list(_typed_lines(typed, numbers))
        graph = self._catalogue.graph
        lines += _lines_of(graph.provenance, numbers, "derived", "derived from")
        await trio.lowlevel.checkpoint()
        async for some in slices(list(numbers), _AT_ONCE):
            lines += _lines_of(graph.links, numbers, "link", "links to", some)
        shown = lines[:MOST_LINES]
        return Neighbourhood(
            nodes=nodes, lines=shown, left_out=left_out, lines_left_out=len(lines) - len(shown)
        )


def _typed_lines(edges: Iterable[Edge], numbers: Mapping[str, int]) -> Iterator[Line]:
    """Typed edges between notes of a picture; those that only repeat the provenance are left out."""
    seen: set[tuple[int, int, str]] = set()
    for edge in edges:
        start, end = numbers.get(edge.from_id), numbers.get(edge.to_id)
        if start is None or end is None or start == end or edge.provenance_type == "frontmatter":
            continue
        if (start, end, edge.type) not in seen:
            seen.add((start, end, edge.type))
            yield Line(start, end, "contradicts" if edge.type == CONTRADICTS else "typed", edge.type)


def _lines_of(
    graph: LinkGraph,
    numbers: Mapping[str, int],
    kind: LineKind,
    name: str,
    starts: Iterable[str] | None = None,
) -> Iterator[Line]:
    """The edges of a graph between notes of a picture, from some of them or all."""
    for start in numbers if starts is None else starts:
        ends = graph.neighbours(start)[0]
        few = numbers if len(ends) > len(numbers) else ends
        for end in few:
            if end in ends and isinstance(end, str) and end in numbers and end != start:
                yield Line(numbers[start], numbers[end], kind, name)
