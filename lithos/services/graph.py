"""What is related to a note: by links, by provenance, by typed edges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import trio
from attrs import frozen

from lithos.actors.catalogue import Catalogue, Entry
from lithos.core.edges import Edge, EdgeFilter
from lithos.core.errors import DocNotFound

#: What `lithos_related` can tell, in the order in which it tells it.
SECTIONS = ("links", "provenance", "edges")
DEEPEST = 3

#: Gives the typed edges that pass, oldest first.
ListEdges: TypeAlias = Callable[[EdgeFilter], Awaitable[Sequence[Edge]]]


async def no_edges(wanted: EdgeFilter) -> Sequence[Edge]:
    """The typed edges where nobody keeps any."""
    return ()


def clamp_depth(depth: int) -> int:
    """The nearest depth that is allowed, 1..3."""
    return max(1, min(depth, DEEPEST))


@frozen(kw_only=True)
class Related:
    """What surrounds a note; a section that was not asked for is `None`."""

    links: Links | None = None
    provenance: Provenance | None = None
    edges: TypedEdges | None = None


@frozen
class Links:
    """Notes that the note leads to, and that lead to it; nearest first."""

    outgoing: tuple[Entry, ...]
    incoming: tuple[Entry, ...]


@frozen
class Provenance:
    """Notes the note was derived from and that were derived from it, by id; its missing sources."""

    sources: tuple[Entry, ...]
    derived: tuple[Entry, ...]
    unresolved: tuple[str, ...]


@frozen
class TypedEdges:
    """Typed edges that leave the note, and that arrive at it."""

    outgoing: tuple[Edge, ...]
    incoming: tuple[Edge, ...]


class Graph:
    """Reads the graph that the catalogue keeps; changes nothing."""

    def __init__(self, catalogue: Catalogue, list_edges: ListEdges = no_edges) -> None:
        self._catalogue = catalogue
        self._list_edges = list_edges

    async def relate(
        self, note_id: str, sections: Iterable[str], depth: int, namespace: str | None
    ) -> Related:
        """What surrounds a note, as far as asked for. Raises `DocNotFound`."""
        if note_id not in self._catalogue:
            raise DocNotFound(
                f"No note has the id {note_id[:100]!r}. Find it with lithos_search or lithos_list."
            )
        depth = clamp_depth(depth)
        links = await self._links(note_id, depth) if "links" in sections else None
        provenance = await self._provenance(note_id, depth) if "provenance" in sections else None
        edges = await self._edges(note_id, namespace) if "edges" in sections else None
        return Related(links=links, provenance=provenance, edges=edges)

    async def _edges(self, note_id: str, namespace: str | None) -> TypedEdges:
        outgoing = await self._list_edges(EdgeFilter(from_id=note_id, namespace=namespace))
        incoming = await self._list_edges(EdgeFilter(to_id=note_id, namespace=namespace))
        return TypedEdges(tuple(outgoing), tuple(incoming))

    async def _links(self, note_id: str, depth: int) -> Links:
        outgoing = self._catalogue.graph.links.reach([note_id], depth, "outgoing")
        await trio.lowlevel.checkpoint()  # each way may take some milliseconds
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
        """The notes in order of steps, then id, without the one they surround."""
        order = sorted(steps, key=lambda other: (steps[other], other))
        entries = (self._catalogue.get(other) for other in order if other != note_id)
        return tuple(entry for entry in entries if entry is not None)
