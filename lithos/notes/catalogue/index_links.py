"""A directed graph of notes, which rustworkx ranks.

Each graph belongs to one thread. `copy` returns a separate graph for another thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

import rustworkx

from lithos.kernel.values.multiset import Multiset, count, with_count

DAMPING: Final = 0.85
#: Number of decimals to which a PageRank is rounded. Further decimals depend on the order of summation.
DECIMALS: Final = 12


class Placeholder(NamedTuple):
    """The node for an unresolved link target."""

    target: str


#: A note (given by its id) or a placeholder.
Node: TypeAlias = str | Placeholder
Direction: TypeAlias = Literal["outgoing", "incoming", "both"]


class LinkGraph:
    """A graph of nodes. An edge that was added several times must be removed the same number of times.

    Adding or removing an edge takes constant time, even if a note has tens of thousands of edges. rustworkx
    would search an edge among all edges of its node, so this class uses rustworkx only for ranking.
    """

    def __init__(self) -> None:
        #: Maps each node to the nodes that it links to, and to the number of links.
        self._ends: dict[Node, Multiset[Node]] = {}
        #: Maps each node to the nodes that link to it. Each linking node occurs once.
        self._starts: dict[Node, Multiset[Node]] = {}
        #: Number of linked pairs of nodes, regardless of the number of links.
        self.edge_count = 0
        #: Increases with each change of a node or edge.
        self.version = 0

    def __contains__(self, node: Node) -> bool:
        return node in self._ends

    @property
    def node_count(self) -> int:
        """The number of nodes, that is, of notes and placeholders."""
        return len(self._ends)

    def edges(self) -> dict[tuple[Node, Node], int]:
        """Return the number of links for each linked pair of nodes."""
        return {(start, end): count(ends, end) for start, ends in self._ends.items() for end in ends}

    def nodes(self) -> set[Node]:
        """Return all nodes."""
        return set(self._ends)

    def add(self, node: Node) -> None:
        """Add a node unless it exists."""
        if node not in self._ends:
            self._ends[node] = self._starts[node] = ()
            self.version += 1

    def discard_lonely(self, node: Node) -> None:
        """Remove a node without edges. Ignore nodes with edges and unknown nodes."""
        if node in self._ends and not self._ends[node] and not self._starts[node]:
            del self._ends[node], self._starts[node]
            self.version += 1

    def link(self, start: Node, end: Node) -> None:
        """Add an edge. Missing nodes are added as well."""
        self.add(start)
        self.add(end)
        ends = self._ends[start]
        times = count(ends, end)
        self._ends[start] = with_count(ends, end, times + 1)
        if not times:
            self._starts[end] = with_count(self._starts[end], start, 1)
            self.edge_count += 1
            self.version += 1

    def unlink(self, start: Node, end: Node) -> None:
        """Remove one edge, as the inverse of `link`. The nodes are not removed.

        Raises `KeyError` if the edge does not exist.
        """
        ends = self._ends[start]
        times = count(ends, end)
        if not times:
            raise KeyError((start, end))
        self._ends[start] = with_count(ends, end, times - 1)
        if times > 1:
            return
        self._starts[end] = with_count(self._starts[end], start, 0)
        self.edge_count -= 1
        self.version += 1

    def reach(self, starts: Iterable[str], depth: int, direction: Direction) -> dict[str, int]:
        """Return the notes at most `depth` edges away, with their distances, by breadth-first search.

        The starts have distance 0. Unknown starts are left out. The search does not pass through
        placeholders.
        """
        found = {start: 0 for start in starts if start in self._ends}
        frontier = list(found)
        for steps in range(1, depth + 1):
            beside: dict[str, int] = {}
            for node in frontier:
                if direction != "incoming":
                    beside.update((end, steps) for end in self._ends[node] if isinstance(end, str))
                if direction != "outgoing":
                    beside.update((start, steps) for start in self._starts[node] if isinstance(start, str))
            frontier = [node for node in beside if node not in found]
            found.update((node, steps) for node in frontier)
        return found

    def neighbours(self, node: Node) -> tuple[Collection[Node], Collection[Node]]:
        """Return the nodes that a node links to, and the nodes that link to it.

        For an unknown node, both returned collections are empty.
        """
        return _items(self._ends.get(node, ())), _items(self._starts.get(node, ()))

    def copy(self) -> LinkGraph:
        """Return a separate graph with the same nodes and edges.

        Copying takes a few milliseconds per 10,000 nodes.
        """
        twin = LinkGraph()
        twin._ends = {node: _copy(ends) for node, ends in self._ends.items()}
        twin._starts = {node: _copy(starts) for node, starts in self._starts.items()}
        twin.edge_count, twin.version = self.edge_count, self.version
        return twin

    def pagerank(self) -> dict[str, float]:
        """Return the PageRank of each note, highest first.

        Equal ranks are sorted by id. Placeholders are left out.

        Blocks for a few milliseconds per 10,000 nodes.
        """
        if not self._ends:
            return {}
        # The graph has no parallel edges, but is declared as a multigraph. Otherwise rustworkx would search
        # for each edge before adding it.
        graph: rustworkx.PyDiGraph[Node, None] = rustworkx.PyDiGraph(multigraph=True)
        index = dict(zip(self._ends, graph.add_nodes_from(list(self._ends)), strict=True))
        graph.add_edges_from_no_data([
            (index[start], index[end]) for start, ends in self._ends.items() for end in ends
        ])  # fmt: skip
        scores = rustworkx.pagerank(graph, alpha=DAMPING)
        notes = [(-round(scores[number], DECIMALS), node) for node, number in index.items()
                 if isinstance(node, str)]  # fmt: skip
        return {node: -score for score, node in sorted(notes)}


def _items(nodes: Multiset[Node]) -> Collection[Node]:
    return nodes if isinstance(nodes, tuple) else nodes.keys()


def _copy(nodes: Multiset[Node]) -> Multiset[Node]:
    return nodes if isinstance(nodes, tuple) else nodes.copy()
