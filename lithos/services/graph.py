"""What is related to a note: by links, by provenance, by typed edges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from lithos.actors.catalogue import Catalogue, Entry
from lithos.core.errors import DocNotFound

#: What `lithos_related` can tell, in the order in which it tells it.
SECTIONS = ("links", "provenance", "edges")
DEEPEST = 3

#: A typed edge as `lithos_edge_list` shows it, with at least `from_id` and `to_id`.
EdgeRow: TypeAlias = Mapping[str, Any]
#: Gives the typed edges of (note id, namespace or None for all): those that leave it, those that arrive.
EdgesOf: TypeAlias = Callable[[str, str | None], Awaitable[tuple[Sequence[EdgeRow], Sequence[EdgeRow]]]]


async def no_edges(note_id: str, namespace: str | None) -> tuple[Sequence[EdgeRow], Sequence[EdgeRow]]:
    """The typed edges of every note while nobody keeps any."""
    return (), ()


def clamp_depth(depth: int) -> int:
    """The nearest depth that is allowed, 1..3."""
    return max(1, min(depth, DEEPEST))


@frozen(kw_only=True)
class Related:
    """What surrounds a note; a section that was not asked for is `None`."""

    links: Links | None = None
    provenance: Provenance | None = None
    edges: Edges | None = None


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
class Edges:
    """Typed edges that leave the note, and that arrive at it."""

    outgoing: tuple[EdgeRow, ...]
    incoming: tuple[EdgeRow, ...]


class Graph:
    """Reads the graph that the catalogue keeps; changes nothing."""

    def __init__(self, catalogue: Catalogue, edges_of: EdgesOf = no_edges) -> None:
        self._catalogue = catalogue
        self._edges_of = edges_of

    async def relate(
        self, note_id: str, sections: Iterable[str], depth: int, namespace: str | None
    ) -> Related:
        """What surrounds a note, as far as asked for. Raises `DocNotFound`."""
        if note_id not in self._catalogue:
            raise DocNotFound(
                f"No note has the id {note_id[:100]!r}. Find it with lithos_search or lithos_list."
            )
        depth = clamp_depth(depth)
        links = self._links(note_id, depth) if "links" in sections else None
        provenance = self._provenance(note_id, depth) if "provenance" in sections else None
        edges = None
        if "edges" in sections:
            outgoing, incoming = await self._edges_of(note_id, namespace)
            edges = Edges(tuple(outgoing), tuple(incoming))
        return Related(links=links, provenance=provenance, edges=edges)

    def _links(self, note_id: str, depth: int) -> Links:
        graph = self._catalogue.graph.links
        return Links(
            self._entries(note_id, graph.reach([note_id], depth, "outgoing")),
            self._entries(note_id, graph.reach([note_id], depth, "incoming")),
        )

    def _provenance(self, note_id: str, depth: int) -> Provenance:
        graph = self._catalogue.graph.provenance
        around = (graph.reach([note_id], depth, way) for way in ("outgoing", "incoming"))
        sources, derived = (self._entries(note_id, dict.fromkeys(found, 0)) for found in around)
        entry = self._catalogue.get(note_id)
        stated = entry.note.derived_from_ids if entry is not None else ()
        missing = {source for source in stated if source not in self._catalogue}
        return Provenance(sources, derived, tuple(sorted(missing)))

    def _entries(self, note_id: str, steps: Mapping[str, int]) -> tuple[Entry, ...]:
        """The notes in order of steps, then id, without the one they surround."""
        order = sorted(steps, key=lambda other: (steps[other], other))
        entries = (self._catalogue.get(other) for other in order if other != note_id)
        return tuple(entry for entry in entries if entry is not None)
