"""A neighbourhood as a drawing: places, sizes, colours and labels of its notes, the lines by kind.

Made in a worker thread and kept for a while: the same notes and relations are always drawn alike.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, Literal

from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.services.search.neighbourhood import Line, LineKind, Neighbourhood, Node
from lithos.stores.indexes.graph_layout import Point, lay_out

WIDTH: Final = 1000.0
HEIGHT: Final = 660.0
#: Room for labels beside the outermost notes.
MARGIN: Final = 46.0
#: Radii of the least and of the most central note.
SMALLEST: Final = 4.0
LARGEST: Final = 13.0
#: Layouts that are kept.
KEPT: Final = 32
#: Colours for values; the last one is for all others.
COLOURS: Final = 8
#: Characters of a label.
LONGEST_LABEL: Final = 28
#: The most central notes, whose labels may cover others.
FOREMOST: Final = 6
#: Width of a character and height of a line, on a wide screen and on a narrow one; labels shown at most.
_WIDE: Final = (6.4, 15.0, 45)
_NARROW: Final = (16.0, 38.0, 9)

ColourBy = Literal["type", "namespace"]
#: In which drawings the label of a note has room: in all, only in wide ones, in none.
Shown = Literal["always", "wide", "never"]


@frozen
class Spot:
    """A note in a drawing; `colour` is 1..8, the label stands left of it where `is_left`."""

    node: Node
    x: int
    y: int
    radius: float
    colour: int
    label: str
    shown: Shown
    is_left: bool


@frozen
class Colour:
    """One entry of the legend."""

    number: int
    name: str
    count: int


@frozen(kw_only=True)
class Drawing:
    """The spots in the order of the neighbourhood's nodes, SVG path data by kind of line, the legend."""

    spots: Sequence[Spot]
    paths: Mapping[LineKind, str]
    legend: Sequence[Colour]


class Drawings:
    """Draws neighbourhoods, and keeps the last layouts."""

    def __init__(self, drawing: Blocking) -> None:
        self._drawing = drawing
        self._kept: OrderedDict[bytes, Sequence[Point]] = OrderedDict()

    async def draw(self, picture: Neighbourhood, by: ColourBy, name: Callable[[str], str]) -> Drawing:
        """The drawing of a neighbourhood; `name` makes a title fit to be shown."""
        key = _key(picture)
        known = self._kept.get(key)

        def work() -> tuple[Sequence[Point], Drawing]:
            edges = [(line.start, line.end) for line in picture.lines]
            places = lay_out(len(picture.nodes), edges, WIDTH / HEIGHT) if known is None else known
            return places, _draw(picture, places, by, name)

        places, drawing = await self._drawing.run(work)
        self._kept[key] = places
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return drawing


def _key(picture: Neighbourhood) -> bytes:
    """What tells whether two neighbourhoods have one layout."""
    hasher = blake2b(digest_size=16)
    for node in picture.nodes:
        hasher.update(f"{node.entry.note.id}\n".encode())
    for line in picture.lines:
        hasher.update(f"{line.start} {line.end}\n".encode())
    return hasher.digest()


def _draw(
    picture: Neighbourhood, places: Sequence[Point], by: ColourBy, name: Callable[[str], str]
) -> Drawing:
    points = [(MARGIN + x * (WIDTH - 2 * MARGIN), MARGIN / 2 + y * (HEIGHT - MARGIN)) for x, y in places]
    highest = max((node.pagerank for node in picture.nodes), default=0.0) or 1.0
    radii = [SMALLEST + (LARGEST - SMALLEST) * math.sqrt(node.pagerank / highest) for node in picture.nodes]
    labels = [name(node.entry.note.title)[:LONGEST_LABEL] or node.entry.note.id[:8] for node in picture.nodes]
    colours, legend = _colour([value_of(node, by) for node in picture.nodes])
    order = sorted(
        range(len(points)), key=lambda i: (picture.nodes[i].distance > 0, -picture.nodes[i].pagerank, i)
    )
    wide = _place_labels(order, points, radii, labels, _WIDE, {})
    narrow = _place_labels(order, points, radii, labels, _NARROW, wide)
    spots = [
        Spot(
            node,
            round(points[i][0]),
            round(points[i][1]),
            round(radii[i], 1),
            colours[i],
            labels[i],
            "always" if i in narrow else "wide" if i in wide else "never",
            is_left=wide.get(i, points[i][0] > WIDTH * 0.8),
        )
        for i, node in enumerate(picture.nodes)
    ]
    return Drawing(spots=spots, paths=_paths(picture.lines, spots), legend=legend)


def value_of(node: Node, by: ColourBy) -> str:
    """What a note is coloured by."""
    return (node.entry.namespace if by == "namespace" else node.entry.note.note_type) or "none"


def _colour(values: Sequence[str]) -> tuple[list[int], list[Colour]]:
    """A colour for each value, the frequent ones each their own; and the legend."""
    counts = Counter(values)
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    own = ordered if len(ordered) <= COLOURS else ordered[: COLOURS - 1]
    numbers = {value: number for number, value in enumerate(own, start=1)}
    legend = [Colour(number, value, counts[value]) for value, number in numbers.items()]
    if len(own) < len(ordered):
        legend.append(Colour(COLOURS, "others", sum(counts[value] for value in ordered[len(own) :])))
    return [numbers.get(value, COLOURS) for value in values], legend


def _place_labels(
    order: Sequence[int],
    points: Sequence[Point],
    radii: Sequence[float],
    labels: Sequence[str],
    size: tuple[float, float, int],
    sides: Mapping[int, bool],
) -> dict[int, bool]:
    """The notes whose labels have room, the first in `order` before others, with whether it stands left.

    `sides` says where a label must stand, where that is decided.
    """
    width, height, most = size
    taken: list[tuple[float, float, float, float]] = []
    circles = [(x - r, y - r, x + r, y + r) for (x, y), r in zip(points, radii, strict=True)]
    placed: dict[int, bool] = {}
    for place, i in enumerate(order):
        if len(placed) == most:
            break
        if sides and i not in sides:
            continue
        (x, y), length = points[i], width * len(labels[i]) + 4
        for is_left in (sides[i],) if i in sides else (x > WIDTH * 0.75, x <= WIDTH * 0.75):
            start = x - radii[i] - length if is_left else x + radii[i]
            box = (start, y - height / 2, start + length, y + height / 2)
            inside = box[0] >= 0 and box[2] <= WIDTH
            covers = place >= FOREMOST and any(_overlap(box, circle) for circle in circles)
            if inside and not covers and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                placed[i] = is_left
                break
    return placed


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _paths(lines: Sequence[Line], spots: Sequence[Spot]) -> dict[LineKind, str]:
    """The lines of each kind as SVG path data."""
    found: dict[LineKind, list[str]] = {}
    for line in lines:
        one, other = spots[line.start], spots[line.end]
        found.setdefault(line.kind, []).append(f"M{one.x} {one.y}L{other.x} {other.y}")
    return {kind: "".join(parts) for kind, parts in found.items()}
