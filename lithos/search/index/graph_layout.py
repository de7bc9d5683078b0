"""Positions for the nodes of a small graph: a deterministic force-directed layout (rustworkx).

A layout blocks for about 50 ms at 300 nodes, in calls of 2 ms. Rustworkx holds the interpreter lock during
each call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import rustworkx

Point: TypeAlias = tuple[float, float]
Edges: TypeAlias = Sequence[tuple[int, int]]

#: Number of nodes above which a component is large, calls for a large component, calls for a small component,
#: and steps per call.
_LARGE: Final = 12
_ROUNDS: Final = 28
_FEW_ROUNDS: Final = 10
_STEPS: Final = 3
#: Scale of the drawing in the first and in the last call. At first a step moves a node by about 0.1. As the
#: scale grows, the layout settles (simulated annealing).
_GROWTH: Final = (0.5, 30.0)
#: Angle in radians between consecutive nodes of the initial spiral (as in a sunflower).
_GOLDEN: Final = math.pi * (3 - math.sqrt(5))
_SEED: Final = 1
#: Weight of the empty space around a component. The unit is one node.
_AROUND: Final = 2.0
#: Share of a box side that stays empty around a component.
_FREE: Final = 0.06


class _Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float


def lay_out(count: int, edges: Edges, aspect: float = 1.5) -> list[Point]:
    """Return the positions, 0..1 x 0..1, of the nodes 0..count-1.

    `aspect` is the width of the drawing divided by its height.

    Each connected component gets a box whose size depends on its number of nodes. All single nodes share one
    box. Springs between the nodes of a component determine its layout.
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
    """Lay out a connected graph with springs. The first node stays at 0, 0."""
    ideal = 1 / math.sqrt(count)
    places = {i: _on_spiral(i, count) for i in range(count)} | {0: (0.0, 0.0)}
    first, last = _GROWTH
    rounds = _ROUNDS if count > _LARGE else _FEW_ROUNDS
    size = 1.0
    for number in range(rounds):
        growth = first * (last / first) ** (number / (rounds - 1))
        places = {i: (x * growth / size, y * growth / size) for i, (x, y) in places.items()}
        size = growth
        # A fixed node prevents rescaling of the positions to -1..1 after each call.
        found = rustworkx.spring_layout(
            graph, pos=places, fixed={0}, k=ideal * size, num_iter=_STEPS, tol=0.0, seed=_SEED
        )
        places = {i: (found[i][0], found[i][1]) for i in range(count)}
    return [places[i] for i in range(count)]


def _on_spiral(i: int, count: int) -> Point:
    radius = math.sqrt((i + 0.5) / count)
    return radius * math.cos(i * _GOLDEN), radius * math.sin(i * _GOLDEN)


def _rows(count: int, aspect: float) -> list[Point]:
    """Arrange `count` nodes in rows for a box with this ratio of width to height."""
    columns = max(1, round(math.sqrt(count * aspect)))
    return [(i % columns + 0.5 * (i // columns % 2), i // columns) for i in range(count)]


def _divide(box: _Box, weights: Sequence[float]) -> list[_Box]:
    """Divide a box into one box per weight, with proportional areas. Each cut divides the longer side."""
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
    """Stretch the positions to the unit square. Width and height are stretched separately."""
    xs, ys = _stretched([x for x, _ in places]), _stretched([y for _, y in places])
    return list(zip(xs, ys, strict=True))


def _stretched(values: Sequence[float]) -> list[float]:
    finite = [value if math.isfinite(value) else 0.0 for value in values]
    lowest, width = min(finite), max(finite) - min(finite)
    return [(value - lowest) / width if width > 1e-9 else 0.5 for value in finite]
