"""Neighbourhoods in the note graph (notes around given notes, with their relations), and drawings of them.

Notes are ordered by distance, then by PageRank. Wiki-links, provenance and typed edges count alike. The
drawing is made in a worker thread. The layout is cached for a while, so that the same notes and lines always
look the same.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from hashlib import blake2b
from heapq import nsmallest
from itertools import islice
from typing import Final, Literal, TypeAlias

import trio
from attrs import define, frozen

from lithos.kernel.actors.threads import Blocking, slices
from lithos.kernel.values.graphemes import beginning
from lithos.memory.service.edges import Edges
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.index_links import LinkGraph
from lithos.notes.model.edges import Edge
from lithos.search.index.graph_layout import Point, lay_out
from lithos.search.service.graph_search import Centrality

WIDTH: Final = 1000.0
HEIGHT: Final = 660.0
#: Space in the drawing for labels around the outermost notes.
MARGIN: Final = 46.0
#: Radius of the least central note, and radius of the most central note.
SMALLEST: Final = 4.0
LARGEST: Final = 13.0
#: Maximum number of layouts in the cache.
KEPT: Final = 32
#: Number of colours. The last colour stands for all remaining values.
COLOURS: Final = 8
#: Maximum characters of a label.
LONGEST_LABEL: Final = 28
#: Number of most central notes. Their labels may cover other notes.
FOREMOST: Final = 6
#: Character width, line height and maximum number of labels on a wide screen, and on a narrow screen.
_WIDE: Final = (6.8, 15.0, 45)
_NARROW: Final = (17.5, 38.0, 9)

ColourBy = Literal["folder", "type", "namespace"]
#: Drawings in which the label of a note fits: all drawings, only wide drawings, or no drawing.
LineVisibility = Literal["always", "wide", "never"]


@frozen
class Spot:
    """A note in a drawing. `colour` is 1..8. With `is_left`, the label is to the left of the note."""

    node: Node
    x: int
    y: int
    radius: float
    colour: int
    label: str
    shown: LineVisibility
    is_left: bool


@frozen
class Colour:
    """A legend entry for one colour."""

    number: int
    name: str
    count: int


@frozen(kw_only=True)
class GraphDrawing:
    """The drawing of a neighbourhood.

    The spots are in the order of its nodes, and lines are SVG path data by kind.
    """

    spots: Sequence[Spot]
    paths: Mapping[LineKind, str]
    legend: Sequence[Colour]


class Drawings:
    """The drawings of neighbourhoods, with a cache of the latest layouts."""

    def __init__(self, drawing: Blocking) -> None:
        self._drawing = drawing
        self._kept: OrderedDict[bytes, Sequence[Point]] = OrderedDict()

    async def draw(self, picture: Neighbourhood, by: ColourBy, name: Callable[[str], str]) -> GraphDrawing:
        """Return the drawing of a neighbourhood. `name` converts a title to the displayed form."""
        key = _key(picture)
        known = self._kept.get(key)

        def work() -> tuple[Sequence[Point], GraphDrawing]:
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
    """Return a key. It is equal for neighbourhoods with the same layout."""
    hasher = blake2b(digest_size=16)
    for node in picture.nodes:
        hasher.update(f"{node.entry.note.id}\n".encode())
    for line in picture.lines:
        hasher.update(f"{line.start} {line.end}\n".encode())
    return hasher.digest()


def _draw(
    picture: Neighbourhood, places: Sequence[Point], by: ColourBy, name: Callable[[str], str]
) -> GraphDrawing:
    points = [(MARGIN + x * (WIDTH - 2 * MARGIN), MARGIN / 2 + y * (HEIGHT - MARGIN)) for x, y in places]
    highest = max((node.pagerank for node in picture.nodes), default=0.0) or 1.0
    radii = [SMALLEST + (LARGEST - SMALLEST) * math.sqrt(node.pagerank / highest) for node in picture.nodes]
    labels = [
        _label(name(node.entry.note.title) or node.entry.note.id[:8], node.folded) for node in picture.nodes
    ]
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
    return GraphDrawing(spots=spots, paths=_paths(picture.lines, spots), legend=legend)


def _label(title: str, folded: int) -> str:
    cut = title if len(title) <= LONGEST_LABEL else beginning(title, LONGEST_LABEL - 1).rstrip() + "…"
    return f"{cut} +{folded:,}" if folded else cut


def value_of(node: Node, by: ColourBy) -> str:
    """Return the value that determines the colour of a note. For folders, this is the top-level folder."""
    if by == "folder":
        folder, slash, _ = node.entry.path.partition("/")
        return folder if slash else "no folder"
    return (node.entry.namespace if by == "namespace" else node.entry.note.note_type) or "none"


def _colour(values: Sequence[str]) -> tuple[list[int], list[Colour]]:
    """Return a colour number for each value, and the legend. Frequent values get a colour of their own.

    The colour depends on the name of the value. It is the same in all pictures, unless two names collide.
    """
    counts = Counter(values)
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    own = ordered if len(ordered) <= COLOURS else ordered[: COLOURS - 1]
    free = list(range(1, (COLOURS if own is ordered else COLOURS - 1) + 1))
    numbers: dict[str, int] = {}
    for value in sorted(own):
        wanted = blake2b(value.encode(), digest_size=2).digest()[0] % COLOURS + 1
        numbers[value] = min(free, key=lambda number: (number - wanted) % COLOURS)
        free.remove(numbers[value])
    legend = [Colour(numbers[value], value, counts[value]) for value in own]
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
    """Return the notes with a label that fits, and whether each label is to the left of its note.

    Labels of earlier notes in `order` are placed first.

    `sides` contains the label sides that are already decided.
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


def _paths(lines: Sequence[GraphLine], spots: Sequence[Spot]) -> dict[LineKind, str]:
    """Return the lines as SVG path data, by kind of line."""
    found: dict[LineKind, list[str]] = {}
    for line in lines:
        one, other = spots[line.start], spots[line.end]
        found.setdefault(line.kind, []).append(f"M{one.x} {one.y}L{other.x} {other.y}")
    return {kind: "".join(parts) for kind, parts in found.items()}


#: Maximum number of notes, and maximum number of lines, in one picture.
MOST_NOTES: Final = 300
MOST_LINES: Final = 1_200
#: Maximum number of notes in the picture of a whole vault.
CENTRAL: Final = 120
DEEPEST: Final = 3
#: Number of neighbours above which a note is a hub. A picture is extended from a hub only if the hub is a
#: starting note.
HUB: Final = 60
#: Number of notes whose neighbours are collected per turn of the event loop.
_AT_ONCE: Final = 25
CONTRADICTS: Final = "contradicts"

LineKind: TypeAlias = Literal["link", "derived", "typed", "contradicts"]


@frozen
class Node:
    """A note in a picture. It has a distance from the start, a PageRank, and a position by PageRank.

    `folded` is the number of neighbours of a hub that are not in the picture.
    """

    entry: Entry
    distance: int
    pagerank: float
    place: int
    folded: int = 0


@frozen
class GraphLine:
    """A relation between two notes, as positions in `Neighbourhood.nodes`.

    `name` is the readable name of the relation.
    """

    start: int
    end: int
    kind: LineKind
    name: str


@frozen(kw_only=True)
class Neighbourhood:
    """The notes of a picture, starting notes first, and the lines between the notes.

    `left_out` is a lower bound for the notes that were reached but left out. `lines_left_out` counts the
    omitted lines.
    """

    nodes: Sequence[Node]
    lines: Sequence[GraphLine]
    left_out: int = 0
    lines_left_out: int = 0


@define(eq=False)
class Neighbourhoods:
    """The search for notes around given notes."""

    _catalogue: Catalogue
    _edges: Edges
    _centrality: Centrality

    async def around(self, starts: Sequence[str], depth: int, most: int = MOST_NOTES) -> Neighbourhood:
        """Return the notes at most `depth` steps (1..3) from the starting notes.

        The starting notes come first.

        Unknown ids are ignored.
        """
        ranks = await self._centrality.scores()
        places = await self._centrality.places()
        distances = {note_id: 0 for note_id in starts[:most] if note_id in self._catalogue}
        frontier, left_out = list(distances), 0
        for distance in range(1, max(1, min(depth, DEEPEST)) + 1):
            beside = await self._beside(frontier, distances, folds=distance > 1)
            room = most - len(distances)
            frontier = nsmallest(room, beside, key=lambda one: (places.get(one, len(places) + 1), one))
            distances.update(dict.fromkeys(frontier, distance))
            left_out = len(beside) - len(frontier)
            if left_out or not frontier:
                break
        return await self._picture(distances, ranks, places, left_out)

    async def central(self, most: int = CENTRAL) -> Neighbourhood:
        """Return the notes with the highest PageRank.

        If any note has links, notes without links are left out.
        """
        ranks = await self._centrality.scores()
        places = await self._centrality.places()
        chosen: list[str] = []
        async with aclosing(slices(list(ranks))) as parts:
            async for some in parts:
                chosen += [one for one in some if one in self._catalogue and self._is_linked(one)]
                if len(chosen) >= most:
                    break
        chosen = (chosen or [one for one in islice(ranks, most) if one in self._catalogue])[:most]
        left_out = max(0, len(self._catalogue) - len(chosen))
        return await self._picture(dict.fromkeys(chosen, 0), ranks, places, left_out)

    def _is_linked(self, note_id: str) -> bool:
        graph = self._catalogue.graph
        return any(
            isinstance(other, str) and other in self._catalogue
            for way in (graph.links, graph.provenance)
            for side in way.neighbours(note_id)
            for other in islice(side, 3)
        )

    async def _beside(self, frontier: Sequence[str], known: Mapping[str, int], *, folds: bool) -> set[str]:
        """Return the notes that are one step from a frontier and not in `known`.

        With `folds`, links and provenance of hubs are not followed.
        """
        found: set[str] = set()
        for edge in await self._edges.touching(frontier):
            found |= {edge.from_id, edge.to_id}
        async for some in slices(frontier, _AT_ONCE):
            for one in some:
                if not folds or self._degree(one) <= HUB:
                    found |= self._linked(one)
        return {one for one in found if one not in known and one in self._catalogue}

    def _linked(self, note_id: str) -> set[str]:
        """Return the notes that a link or provenance connects with a note, in either direction."""
        graph = self._catalogue.graph
        ways = (side for way in (graph.links, graph.provenance) for side in way.neighbours(note_id))
        return {other for side in ways for other in side if isinstance(other, str)}

    def _degree(self, note_id: str) -> int:
        """Return the number of links and sources of a note, counted in both directions."""
        graph = self._catalogue.graph
        return sum(len(side) for way in (graph.links, graph.provenance) for side in way.neighbours(note_id))

    def _folded(self, note_id: str, shown: Mapping[str, int]) -> int:
        """Return how many neighbours of a hub are not shown."""
        if self._degree(note_id) <= HUB:
            return 0
        return sum(one not in shown and one in self._catalogue for one in self._linked(note_id))

    async def _picture(
        self,
        distances: Mapping[str, int],
        ranks: Mapping[str, float],
        places: Mapping[str, int],
        left_out: int,
    ) -> Neighbourhood:
        """Return the notes with the lines between them."""
        typed = await self._edges.touching(list(distances))
        nodes = [
            Node(
                entry,
                distance,
                ranks.get(note_id, 0.0),
                places.get(note_id, len(places) + 1),
                self._folded(note_id, distances),
            )
            for note_id, distance in distances.items()
            if (entry := self._catalogue.get(note_id)) is not None
        ]
        numbers = {node.entry.note.id: number for number, node in enumerate(nodes)}
        lines = list(_typed_lines(typed, numbers))
        graph = self._catalogue.graph
        lines += _lines_of(graph.provenance, numbers, "derived", "derived from")
        await trio.lowlevel.checkpoint()
        async for some in slices(list(numbers), _AT_ONCE):
            lines += _lines_of(graph.links, numbers, "link", "links to", some)
        shown = lines[:MOST_LINES]
        return Neighbourhood(
            nodes=nodes, lines=shown, left_out=left_out, lines_left_out=len(lines) - len(shown)
        )


def _typed_lines(edges: Iterable[Edge], numbers: Mapping[str, int]) -> Iterator[GraphLine]:
    """Yield the typed edges between notes of a picture.

    Edges that only repeat the provenance are left out.
    """
    seen: set[tuple[int, int, str]] = set()
    for edge in edges:
        start, end = numbers.get(edge.from_id), numbers.get(edge.to_id)
        if start is None or end is None or start == end or edge.provenance_type == "frontmatter":
            continue
        if (start, end, edge.type) not in seen:
            seen.add((start, end, edge.type))
            yield GraphLine(start, end, "contradicts" if edge.type == CONTRADICTS else "typed", edge.type)


def _lines_of(
    graph: LinkGraph,
    numbers: Mapping[str, int],
    kind: LineKind,
    name: str,
    starts: Iterable[str] | None = None,
) -> Iterator[GraphLine]:
    """Yield the graph's edges between notes of a picture, from some or all of them."""
    for start in numbers if starts is None else starts:
        ends = graph.neighbours(start)[0]
        few = numbers if len(ends) > len(numbers) else ends
        for end in few:
            if end in ends and isinstance(end, str) and end in numbers and end != start:
                yield GraphLine(numbers[start], numbers[end], kind, name)
