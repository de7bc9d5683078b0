"""Related notes: neighbours by wiki-links, by provenance and by typed edges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import trio
from attrs import frozen

from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.model.edges import Edge, EdgeFilter

#: The sections of a `lithos_related` reply, in order.
SECTIONS = ("links", "provenance", "edges")
DEEPEST = 3

#: Returns the typed edges that pass each filter, oldest first.
ListEdges: TypeAlias = Callable[..., Awaitable[Sequence[Sequence[Edge]]]]


async def no_edges(*wanted: EdgeFilter) -> Sequence[Sequence[Edge]]:
    """Return an empty result, as the `ListEdges` of a server without an edge store."""
    return [() for _ in wanted]


def clamp_depth(depth: int) -> int:
    """Return the nearest allowed depth, 1..3."""
    return max(1, min(depth, DEEPEST))


@frozen(kw_only=True)
class Related:
    """The related notes of one note. A section that was not requested is `None`."""

    links: Links | None = None
    provenance: Provenance | None = None
    edges: EdgesOfNote | None = None


@frozen
class Links:
    """Outgoing and incoming links (backlinks) by distance, nearest first."""

    outgoing: tuple[Entry, ...]
    incoming: tuple[Entry, ...]


@frozen
class Provenance:
    """Notes that the note is derived from and notes derived from it, by id, and its missing sources."""

    sources: tuple[Entry, ...]
    derived: tuple[Entry, ...]
    unresolved: tuple[str, ...]


@frozen
class EdgesOfNote:
    """Typed edges that start at the note, and typed edges that end at it."""

    outgoing: tuple[Edge, ...]
    incoming: tuple[Edge, ...]


class Graph:
    """Read-only queries on the link graph, the provenance graph and the typed edges."""

    def __init__(self, catalogue: Catalogue, list_edges: ListEdges = no_edges) -> None:
        self._catalogue = catalogue
        self._list_edges = list_edges

    async def relate(
        self, note_id: str, sections: Iterable[str], depth: int, namespace: str | None
    ) -> Related:
        """Return the requested sections of related notes. Raises `DocNotFound`."""
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
        await trio.lowlevel.checkpoint()  # Each direction may take a few milliseconds.
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
        """Return the notes by number of steps, then by id, without the starting note."""
        order = sorted(steps, key=lambda other: (steps[other], other))
        entries = (self._catalogue.get(other) for other in order if other != note_id)
        return tuple(entry for entry in entries if entry is not None)
