"""Places for the nodes of a small graph: a force-directed layout (rustworkx), the same for the same graph.

Blocks for some 50 ms at 300 nodes, in calls of 2 ms: rustworkx keeps the interpreter to itself during a call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import rustworkx

Point: TypeAlias = tuple[float, float]
Edges: TypeAlias = Sequence[tuple[int, int]]

#: Number of nodes above which a part is large; calls for a large and a small part, and steps in each.
_LARGE: Final = 12
_ROUNDS: Final = 28
_FEW_ROUNDS: Final = 10
_STEPS: Final = 3
#: How much the drawing has grown in the first and in the last call. A step moves a node by some 0.1 at first,
#: so the growing is what lets it come to rest (simulated annealing).
_GROWTH: Final = (0.5, 30.0)
#: Radians from one node of the first spiral to the next: those of a sunflower.
_GOLDEN: Final = math.pi * (3 - math.sqrt(5))
_SEED: Final = 1
#: Number of nodes that the space around a part counts as.
_AROUND: Final = 2.0
#: Share of the side of a part's box that stays free.
_FREE: Final = 0.06


class _Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float


def lay_out(count: int, edges: Edges, aspect: float = 1.5) -> list[Point]:
    """Places in 0..1 x 0..1 of the nodes 0..count-1, in their order; `aspect`: the drawing's width by height.

    Parts that are not connected get boxes of their own, by their number of nodes, and all single nodes one
    together; a part is drawn by springs between its nodes.
    """
    graph: rustworkx.PyGraph[None, None] = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from([None] * count)
    graph.add_edges_from_no_data([(start, end) for start, end in edges if start != end])
    connected = [sorted(part) for part in rustworkx.connected_components(graph)]
    parts = sorted((part for part in connected if len(part) > 1), key=lambda part: (-len(part), part))
    singles = sorted(part[0] for part in connected if len(part) == 1)
    weights = [len(part) + _AROUND for part in [*parts, *([singles] if singles else [])]]
    places: list[Point] = [(0.5, 0.5)] * count
    for number, box in enumerate(_divide(_Box(0, 0, aspect, 1), weights)):
        nodes = parts[number] if number < len(parts) else singles
        shape = (
            _spring(graph.subgraph(nodes), len(nodes))
            if number < len(parts)
            else _rows(len(nodes), box.width / box.height)
        )
        for node, (x, y) in zip(nodes, _within_unit(shape), strict=True):
            places[node] = (
                (box.x + box.width * (_FREE + (1 - 2 * _FREE) * x)) / aspect,
                box.y + box.height * (_FREE + (1 - 2 * _FREE) * y),
            )
    return places


def _spring(graph: rustworkx.PyGraph[None, None], count: int) -> list[Point]:
    """The nodes of a connected graph, by springs; the first one is held at 0, 0."""
    ideal = 1 / math.sqrt(count)
    places = {i: _on_spiral(i, count) for i in range(count)} | {0: (0.0, 0.0)}
    first, last = _GROWTH
    rounds = _ROUNDS if count > _LARGE else _FEW_ROUNDS
    size = 1.0
    for number in range(rounds):
        growth = first * (last / first) ** (number / (rounds - 1))
        places = {i: (x * growth / size, y * growth / size) for i, (x, y) in places.items()}
        size = growth
        # With a fixed node the places are not scaled back to -1..1 after each call.
        found = rustworkx.spring_layout(
            graph, pos=places, fixed={0}, k=ideal * size, num_iter=_STEPS, tol=0.0, seed=_SEED
        )
        places = {i: (found[i][0], found[i][1]) for i in range(count)}
    return [places[i] for i in range(count)]


def _on_spiral(i: int, count: int) -> Point:
    radius = math.sqrt((i + 0.5) / count)
    return radius * math.cos(i * _GOLDEN), radius * math.sin(i * _GOLDEN)


def _rows(count: int, aspect: float) -> list[Point]:
    """Rows for a box of this aspect."""
    columns = max(1, round(math.sqrt(count * aspect)))
    return [(i % columns + 0.5 * (i // columns % 2), i // columns) for i in range(count)]


def _divide(box: _Box, weights: Sequence[float]) -> list[_Box]:
    """A box for each weight, of an area like it: halved along its longer side, again and again."""
    boxes: list[_Box] = [box] * len(weights)
    waiting = [(box, 0, len(weights))]
    while waiting:
        whole, start, end = waiting.pop()
        if end - start < 2:
            if end > start:
                boxes[start] = whole
            continue
        total, first, middle = sum(weights[start:end]), weights[start], start + 1
        while middle < end - 1 and first + weights[middle] / 2 < total / 2:
            first += weights[middle]
            middle += 1
        share = first / total
        x, y, width, height = whole
        if width >= height:
            waiting.append((_Box(x, y, width * share, height), start, middle))
            waiting.append((_Box(x + width * share, y, width * (1 - share), height), middle, end))
        else:
            waiting.append((_Box(x, y, width, height * share), start, middle))
            waiting.append((_Box(x, y + height * share, width, height * (1 - share)), middle, end))
    return boxes


def _within_unit(places: Sequence[Point]) -> list[Point]:
    """The places stretched to the unit square, each direction for itself."""
    xs, ys = _stretched([x for x, _ in places]), _stretched([y for _, y in places])
    return list(zip(xs, ys, strict=True))


def _stretched(values: Sequence[float]) -> list[float]:
    finite = [value if math.isfinite(value) else 0.0 for value in values]
    lowest, width = min(finite), max(finite) - min(finite)
    return [(value - lowest) / width if width > 1e-9 else 0.5 for value in finite]
