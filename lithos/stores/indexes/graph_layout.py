"""Places for the nodes of a small graph: a force-directed layout (rustworkx), the same for the same graph.

Blocks for some 70 ms at 300 nodes, in calls of 2 ms: rustworkx keeps the interpreter to itself during a call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeAlias

import rustworkx

Point: TypeAlias = tuple[float, float]

#: Calls, and steps of the simulation in each.
_ROUNDS: Final = 40
_STEPS: Final = 3
#: How much the drawing has grown in the first and in the last call. A step moves a node by some 0.1 at first,
#: so the growing is what lets it come to rest (simulated annealing).
_GROWTH: Final = (0.5, 30.0)
#: Radians from one node of the first spiral to the next: those of a sunflower.
_GOLDEN: Final = math.pi * (3 - math.sqrt(5))
_SEED: Final = 1


def lay_out(count: int, edges: Sequence[tuple[int, int]]) -> list[Point]:
    """Places in 0..1 x 0..1 of the nodes 0..count-1, in their order; the first lies near the middle.

    Parts that are not connected stay near each other: a node that is not shown holds one node of each.
    """
    if count < 2:
        return [(0.5, 0.5)] * count
    graph: rustworkx.PyGraph[None, None] = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from([None] * count)
    graph.add_edges_from_no_data([(start, end) for start, end in edges if start != end])
    parts = rustworkx.connected_components(graph)
    hub = graph.add_node(None)
    graph.add_edges_from_no_data([(hub, min(part)) for part in parts])
    ideal = 1 / math.sqrt(count)
    places = {i: _on_spiral(i, count) for i in range(count)} | {hub: (0.0, 0.0)}
    first, last = _GROWTH
    size = 1.0
    for number in range(_ROUNDS):
        growth = first * (last / first) ** (number / (_ROUNDS - 1))
        places = {i: (x * growth / size, y * growth / size) for i, (x, y) in places.items()}
        size = growth
        # With a fixed node the places are not scaled back to -1..1 after each call.
        found = rustworkx.spring_layout(
            graph, pos=places, fixed={hub}, k=ideal * size, num_iter=_STEPS, tol=0.0, seed=_SEED
        )
        places = {i: (found[i][0], found[i][1]) for i in found}
    return _within_unit([places[i] for i in range(count)])


def _on_spiral(i: int, count: int) -> Point:
    radius = math.sqrt((i + 0.5) / count)
    return radius * math.cos(i * _GOLDEN), radius * math.sin(i * _GOLDEN)


def _within_unit(places: Sequence[Point]) -> list[Point]:
    """The places stretched to the unit square, each direction for itself."""
    xs, ys = _stretched([x for x, _ in places]), _stretched([y for _, y in places])
    return list(zip(xs, ys, strict=True))


def _stretched(values: Sequence[float]) -> list[float]:
    finite = [value if math.isfinite(value) else 0.0 for value in values]
    lowest, width = min(finite), max(finite) - min(finite)
    return [(value - lowest) / width if width > 1e-9 else 0.5 for value in finite]
