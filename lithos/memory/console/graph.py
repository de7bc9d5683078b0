"""Console page `/console/graph`: a drawing and tables of the notes around a note or around search results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen
from quart import Blueprint, Response, request

from lithos.kernel.actors.threads import Threads
from lithos.memory.service.neighbourhood import (
    DEEPEST,
    HEIGHT,
    MOST_NOTES,
    WIDTH,
    ColourBy,
    Drawings,
    Neighbourhood,
    Neighbourhoods,
    value_of,
)
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.server.console.console import Console, PageRefused
from lithos.server.console.formats import readable, whole

#: Maximum number of rows per table.
PAGE: Final = 100
#: Maximum number of search results at the centre of a graph.
FOUND: Final = 10
LONGEST_QUERY: Final = 2_000
KINDS: Final = {
    "link": "links", "derived": "derived from", "typed": "typed edges", "contradicts": "contradicts",
}  # fmt: skip
#: The ways in which notes can be coloured.
COLOURINGS: Final[Mapping[str, ColourBy]] = {"folder": "folder", "type": "type", "namespace": "namespace"}


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the routes of the page."""
    app.get("/graph", endpoint="graph")(GraphPage(console, Drawings(Threads())).show)


@frozen
class GraphPage:
    """The console page with the graph of notes."""

    _console: Console
    _drawings: Drawings

    async def show(self) -> Response:
        """Show the graph around `note`, around the results of `q`, or of the most central notes."""
        args = request.args
        note_id, query = args.get("note", "").strip(), args.get("q", "")[:LONGEST_QUERY]
        note_id = await self._console.note_id(note_id) if note_id else ""
        asked = whole(args.get("depth"), 1) or 1
        depth = asked if asked <= DEEPEST else 1
        by = COLOURINGS.get(args.get("by", ""), "folder")
        status, refusal = 200, ""
        try:
            picture = await self._picture(note_id, query, depth)
        except PageRefused as refused:
            picture, status, refusal = Neighbourhood(nodes=(), lines=()), refused.status, refused.message
        drawing = await self._drawings.draw(picture, by, readable)
        title = self._console.parts.get(Catalogue).title(note_id)
        total = max(len(picture.nodes), len(picture.lines))
        start = whole(args.get("offset"), 5) or 0
        return await self._console.show(
            "graph.html",
            status=status,
            refusal=refusal,
            note_id="" if title is None else note_id,
            note_title=title or "",
            query=query,
            depth=depth,
            by=by,
            picture=picture,
            drawing=drawing,
            pairs=" ".join(f"{line.start},{line.end}" for line in picture.lines),
            width=int(WIDTH),
            height=int(HEIGHT),
            kinds=KINDS,
            colourings=COLOURINGS,
            most=MOST_NOTES,
            depths=range(1, DEEPEST + 1),
            start=start if start < total else 0,
            page=PAGE,
            total=total,
            value_of=value_of,
        )

    async def _picture(self, note_id: str, query: str, depth: int) -> Neighbourhood:
        neighbourhoods = self._console.parts.get(Neighbourhoods)
        if note_id:
            if note_id not in self._console.parts.get(Catalogue):
                raise PageRefused(
                    "Unknown note id. The note was deleted or the id is wrong. Search for the note.", 404
                )
            return await neighbourhoods.around([note_id], depth)
        if query.strip():
            answer = await self._console.call(
                "lithos_search", query=query, limit=FOUND, agent_id=self._console.agent
            )
            return await neighbourhoods.around([row["id"] for row in answer.get("results", [])], depth)
        return await neighbourhoods.central()
