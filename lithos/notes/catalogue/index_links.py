"""A directed graph of notes, ranked by rustworkx.

One thread uses a graph; `copy` gives another thread its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

import rustworkx

from lithos.kernel.values.multiset import Multiset, count, with_count

DAMPING: Final = 0.85
#: Decimals of a PageRank that count: the rest is the noise of summing in another order.
DECIMALS: Final = 12


class Placeholder(NamedTuple):
    """The node of an unresolved link target."""

    target: str


#: A note by its id, or a placeholder.
Node: TypeAlias = str | Placeholder
Direction: TypeAlias = Literal["outgoing", "incoming", "both"]


class LinkGraph:
    """Nodes by name; an edge stays until it is removed as often as it was added.

    Adding or removing an edge takes the same time however many edges its nodes have: a note may have tens of
    thousands. (In rustworkx, which only ranks here, an edge is looked for among all of its node.)
    """

    def __init__(self) -> None:
        #: Every node, with the nodes it links to and how often.
        self._ends: dict[Node, Multiset[Node]] = {}
        #: Every node, with the nodes that link to it, each once.
        self._starts: dict[Node, Multiset[Node]] = {}
        #: Pairs of nodes, however often they are linked.
        self.edge_count = 0
        #: Changes with nodes and edges.
        self.version = 0

    def __contains__(self, node: Node) -> bool:
        return node in self._ends

    @property
    def node_count(self) -> int:
        """Notes and placeholders."""
        return len(self._ends)

    def edges(self) -> dict[tuple[Node, Node], int]:
        """Return the number of links of each pair."""
        return {(start, end): count(ends, end) for start, ends in self._ends.items() for end in ends}

    def nodes(self) -> set[Node]:
        """Return all nodes."""
        return set(self._ends)

    def add(self, node: Node) -> None:
        """Add a node unless it is there."""
        if node not in self._ends:
            self._ends[node] = self._starts[node] = ()
            self.version += 1

    def discard_lonely(self, node: Node) -> None:
        """Remove a node without edges; one with edges, or an unknown one, stays as it is."""
        if node in self._ends and not self._ends[node] and not self._starts[node]:
            del self._ends[node], self._starts[node]
            self.version += 1

    def link(self, start: Node, end: Node) -> None:
        """Add an edge; missing nodes are added too."""
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
        """Remove one edge, the inverse of `link`; the nodes stay.

        Raises `KeyError` if there is no such edge.
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
        """Breadth-first search: notes at most `depth` steps away with their distance; starts have 0.

        Unknown starts are left out. No way leads through a placeholder.
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
        """Return the nodes that one links to, and those that link to it; empty for an unknown one."""
        return _items(self._ends.get(node, ())), _items(self._starts.get(node, ()))

    def copy(self) -> LinkGraph:
        """Return a graph of its own with the same nodes and edges; a few milliseconds per 10,000 nodes."""
        twin = LinkGraph()
        twin._ends = {node: _copy(ends) for node, ends in self._ends.items()}
        twin._starts = {node: _copy(starts) for node, starts in self._starts.items()}
        twin.edge_count, twin.version = self.edge_count, self.version
        return twin

    def pagerank(self) -> dict[str, float]:
        """PageRank of notes, highest first, ties by id; placeholders are left out.

        Blocks for some milliseconds per 10,000 nodes.
        """
        if not self._ends:
            return {}
        # A graph without parallel edges that may have them: one that may not would look for each first.
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
