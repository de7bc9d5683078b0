"""A directed graph of notes, and the file that remembers what links mean.

The graph is rustworkx's; here its nodes go by name. One thread uses a graph; `copy` gives another
thread its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import rustworkx
from attrs import frozen

from lithos.telemetry import get_logger

log = get_logger("lithos.graph")

#: Raised whenever links are found or resolved in another way; a file of another number is ignored.
FORMAT: Final = 1
DAMPING: Final = 0.85
#: Decimals of a PageRank that count: the rest is the noise of summing in another order.
DECIMALS: Final = 12


class Placeholder(NamedTuple):
    """The node of a link target that no note answers to."""

    target: str


#: A note by its id, or a placeholder.
Node: TypeAlias = str | Placeholder
Direction: TypeAlias = Literal["outgoing", "incoming", "both"]


class LinkGraph:
    """Nodes by name; an edge stays until it is removed as often as it was added."""

    def __init__(self) -> None:
        self._graph: rustworkx.PyDiGraph[Node, int] = rustworkx.PyDiGraph(multigraph=False)
        self._index: dict[Node, int] = {}
        #: Changes with nodes and edges.
        self.version = 0

    def __contains__(self, node: Node) -> bool:
        return node in self._index

    @property
    def node_count(self) -> int:
        """Notes and placeholders."""
        return len(self._index)

    @property
    def edge_count(self) -> int:
        """Pairs of nodes, however often they are linked."""
        return self._graph.num_edges()

    def edges(self) -> dict[tuple[Node, Node], int]:
        """How often each pair is linked."""
        graph = self._graph
        return {(graph[start], graph[end]): times for start, end, times in graph.weighted_edge_list()}

    def nodes(self) -> set[Node]:
        """All nodes."""
        return set(self._index)

    def add(self, node: Node) -> int:
        """Add a node unless it is there; its index in rustworkx."""
        index = self._index.get(node)
        if index is None:
            index = self._index[node] = self._graph.add_node(node)
            self.version += 1
        return index

    def discard_lonely(self, node: Node) -> None:
        """Remove a node without edges; one with edges, or an unknown one, stays as it is."""
        index = self._index.get(node)
        if index is None or self._graph.in_degree(index) or self._graph.out_degree(index):
            return
        self._graph.remove_node(index)
        del self._index[node]
        self.version += 1

    def link(self, start: Node, end: Node) -> None:
        """Add an edge; missing nodes are added too."""
        first, second = self.add(start), self.add(end)
        if self._graph.has_edge(first, second):
            self._graph.update_edge(first, second, self._graph.get_edge_data(first, second) + 1)
        else:
            self._graph.add_edge(first, second, 1)
            self.version += 1

    def link_all(self, pairs: Iterable[tuple[Node, Node]]) -> None:
        """`link` each pair of a graph that has no edges yet."""
        known = self._index.get
        counts: dict[tuple[int, int], int] = {}
        for start, end in pairs:
            first, second = known(start), known(end)
            pair = self.add(start) if first is None else first, self.add(end) if second is None else second
            counts[pair] = counts.get(pair, 0) + 1
        self._graph.add_edges_from([(start, end, times) for (start, end), times in counts.items()])
        self.version += len(counts)

    def unlink(self, start: Node, end: Node) -> None:
        """Take one `link` back; the nodes stay."""
        first, second = self._index[start], self._index[end]
        times = self._graph.get_edge_data(first, second)
        if times > 1:
            self._graph.update_edge(first, second, times - 1)
        else:
            self._graph.remove_edge(first, second)
            self.version += 1

    def reach(self, starts: Iterable[str], depth: int, direction: Direction) -> dict[str, int]:
        """Notes at most `depth` steps away, each with its least number of steps; starts have 0.

        Unknown starts are left out. No way leads through a placeholder.
        """
        graph = self._graph
        frontier = [self._index[start] for start in starts if start in self._index]
        found = {graph[index]: 0 for index in frontier}
        for steps in range(1, depth + 1):
            beside: set[int] = set()
            for index in frontier:
                if direction != "incoming":
                    beside.update(graph.successor_indices(index))
                if direction != "outgoing":
                    beside.update(graph.predecessor_indices(index))
            frontier = []
            for index in beside:
                node = graph[index]
                if isinstance(node, str) and node not in found:
                    found[node] = steps
                    frontier.append(index)
        return {node: steps for node, steps in found.items() if isinstance(node, str)}

    def copy(self) -> LinkGraph:
        """A graph of its own with the same nodes and edges; well under a millisecond per 10,000 nodes."""
        twin = LinkGraph()
        twin._graph, twin._index, twin.version = self._graph.copy(), self._index.copy(), self.version
        return twin

    def order_by_pagerank(self) -> list[str]:
        """Notes by PageRank, highest first, ties by id. Blocks for some milliseconds per 10,000 nodes."""
        if not self._index:
            return []
        scores = rustworkx.pagerank(self._graph, alpha=DAMPING)
        notes = [(-round(scores[index], DECIMALS), node) for node, index in self._index.items()
                 if isinstance(node, str)]  # fmt: skip
        return [node for _, node in sorted(notes)]


@frozen
class Remembered:
    """What every link target meant (None: no note) when the notes were those of `fingerprint`."""

    fingerprint: int
    targets: Mapping[str, str | None]


def write_remembered(path: Path, remembered: Remembered) -> None:
    """Replace the file in one step; it is not synced, since it can be made anew. Raises `OSError`."""
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_suffix(".tmp")
    content = {
        "format": FORMAT,
        "fingerprint": remembered.fingerprint,
        "targets": dict(remembered.targets),
    }
    fresh.write_text(json.dumps(content), encoding="utf-8")
    os.replace(fresh, path)


def read_remembered(path: Path) -> Remembered | None:
    """What was written; `None` when there is no file, or none of this format that can be read."""
    try:
        found: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as failure:
        log.warning("link graph cache ignored", path=str(path), reason=str(failure))
        return None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        log.info("link graph cache of another format ignored", path=str(path))
        return None
    fingerprint, targets = found.get("fingerprint"), found.get("targets")
    if not isinstance(fingerprint, int) or not isinstance(targets, dict) or not _is_text(targets.values()):
        log.warning("link graph cache ignored", path=str(path), reason="it lacks its keys")
        return None
    return Remembered(fingerprint, targets)


def _is_text(values: Iterable[object]) -> bool:
    return all(value is None or isinstance(value, str) for value in values)
