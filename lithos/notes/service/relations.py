"""Related notes: neighbours in wiki-links, provenance and typed edges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import trio
from attrs import frozen

from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.model.edges import Edge, EdgeFilter

#: The sections of a `lithos_related` reply, in this order.
SECTIONS = ("links", "provenance", "edges")
DEEPEST = 3

#: Function that returns, for each filter, the typed edges that pass the filter, oldest first.
ListEdges: TypeAlias = Callable[..., Awaitable[Sequence[Sequence[Edge]]]]


async def no_edges(*wanted: EdgeFilter) -> Sequence[Sequence[Edge]]:
    """Return an empty result. A server without an edge store uses this function as `ListEdges`."""
    return [() for _ in wanted]


def clamp_depth(depth: int) -> int:
    """Return the allowed depth (1 to 3) that is nearest to `depth`."""
    return max(1, min(depth, DEEPEST))


@frozen(kw_only=True)
class Related:
    """The notes that are related to one note. A section that was not requested is `None`."""

    links: Links | None = None
    provenance: Provenance | None = None
    edges: EdgesOfNote | None = None


@frozen
class Links:
    """Outgoing links and incoming links (backlinks), by distance, nearest first."""

    outgoing: tuple[Entry, ...]
    incoming: tuple[Entry, ...]


@frozen
class Provenance:
    """The sources of a note, the notes derived from it, and the ids of missing sources."""

    sources: tuple[Entry, ...]
    derived: tuple[Entry, ...]
    unresolved: tuple[str, ...]


@frozen
class EdgesOfNote:
    """The typed edges that start at a note, and the typed edges that end at this note."""

    outgoing: tuple[Edge, ...]
    incoming: tuple[Edge, ...]


class Graph:
    """Read-only queries on the graphs of links, provenance and typed edges."""

    def __init__(self, catalogue: Catalogue, list_edges: ListEdges = no_edges) -> None:
        self._catalogue = catalogue
        self._list_edges = list_edges

    async def relate(
        self, note_id: str, sections: Iterable[str], depth: int, namespace: str | None
    ) -> Related:
        """Return the requested sections of related notes. Raises `DocNotFound` for an unknown note."""
        self._catalogue.require(note_id)
        depth = clamp_depth(depth)
        links = await self._links(note_id, depth) if "links" in sections else None
        provenance = await self._provenance(note_id, depth) if "provenance" in sections else None
        edges = await self._edges(note_id, namespace) if "edges" in sections else None
        return Related(links=links, provenance=provenance, edges=edges)

    async def _edges(self, note_id: str, namespace: str | None) -> EdgesOfNote:
        leaving = EdgeFilter(from_id=note_id, namespace=namespace)
        arriving = EdgeFilter(to_id=note_id, namespace=namespace)
        outgoing, incoming = await self._list_edges(leaving, arriving)
        return EdgesOfNote(tuple(outgoing), tuple(incoming))

    async def _links(self, note_id: str, depth: int) -> Links:
        outgoing = self._catalogue.graph.links.reach([note_id], depth, "outgoing")
        await trio.lowlevel.checkpoint()  # The queries in each direction may take a few milliseconds.
        incoming = self._catalogue.graph.links.reach([note_id], depth, "incoming")
        return Links(self._entries(note_id, outgoing), self._entries(note_id, incoming))

    async def _provenance(self, note_id: str, depth: int) -> Provenance:
        graph = self._catalogue.graph.provenance
        sources = dict.fromkeys(graph.reach([note_id], depth, "outgoing"), 0)
        derived = dict.fromkeys(graph.reach([note_id], depth, "incoming"), 0)
        await trio.lowlevel.checkpoint()
        entry = self._catalogue.get(note_id)
        stated = entry.note.derived_from_ids if entry is not None else ()
        missing = {source for source in stated if source not in self._catalogue}
        return Provenance(
            self._entries(note_id, sources), self._entries(note_id, derived), tuple(sorted(missing))
        )

    def _entries(self, note_id: str, steps: Mapping[str, int]) -> tuple[Entry, ...]:
        """Return the notes by number of steps, then by id. The starting note is left out."""
        order = sorted(steps, key=lambda other: (steps[other], other))
        entries = (self._catalogue.get(other) for other in order if other != note_id)
        return tuple(entry for entry in entries if entry is not None)
