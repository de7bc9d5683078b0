"""The tool of related notes: links, provenance, typed edges (`lithos_related`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from lithos.catalogue.catalogue import Entry
from lithos.services.notes.relations import SECTIONS, Related
from lithos.tools.contract.arguments import argument
from lithos.tools.contract.bounds import FILTERS, LOOKUP
from lithos.tools.contract.declaring import Answer, Services, tool
from lithos.tools.contract.fitting import MOST_BESIDE, Paged
from lithos.tools.contract.rows import sliced_rows
from lithos.tools.contract.warnings import warn
from lithos.tools.memory import edge_row

_SECTIONS: Final = Paged(
    rows=(
        "links.outgoing", "links.incoming", "provenance.sources", "provenance.derived",
        "provenance.unresolved_sources", "edges.outgoing", "edges.incoming", "related_ids",
    ),
    most=MOST_BESIDE,
    totals="each",
)  # fmt: skip


@tool("lithos_related", "standard", "RI", place=11, paged=_SECTIONS, is_heavy=True)
class RelatedTool:
    """Notes around a note: wiki-links, what it was derived from, typed edges."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    include: tuple[str, ...] | None = argument(
        "Of links, provenance, edges; default all.", None, bound=FILTERS
    )
    depth: int = argument("Steps, 1..3.", 1)
    namespace: str | None = argument("Edges of this namespace.", None, bound=LOOKUP)

    async def answer(self, using: Services) -> Answer:
        wanted = SECTIONS if self.include is None else self.include
        included = [section for section in SECTIONS if section in wanted]
        related = await using.graph.relate(self.id, included, self.depth, self.namespace)
        answer: dict[str, Any] = {"id": self.id, "included": included, **_sections(related)}
        edges = related.edges
        if edges is not None:
            outgoing, incoming = (
                await sliced_rows(edges.outgoing, edge_row),
                await sliced_rows(edges.incoming, edge_row),
            )
            answer["edges"] = {"outgoing": outgoing, "incoming": incoming}
        await warn(using, _shown(answer))
        return answer | {"related_ids": sorted({*_ids(related)} - {self.id})}


def _sections(related: Related) -> dict[str, Any]:
    """What notes say themselves, as far as asked for."""
    links, provenance = related.links, related.provenance
    sections: dict[str, Any] = {}
    if links is not None:
        sections["links"] = {"outgoing": _rows(links.outgoing), "incoming": _rows(links.incoming)}
    if provenance is not None:
        sections["provenance"] = {
            "sources": _rows(provenance.sources),
            "derived": _rows(provenance.derived),
            "unresolved_sources": list(provenance.unresolved),
        }
    return sections


def _shown(answer: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every row with the note it shows, that of an edge with the note at its other end."""
    for section, ways in (("links", ("outgoing", "incoming")), ("provenance", ("sources", "derived"))):
        for way in ways if section in answer else ():
            yield from ((row["id"], row) for row in answer[section][way])
    edges = answer.get("edges", {})
    yield from ((row["to_id"], row) for row in edges.get("outgoing", ()))
    yield from ((row["from_id"], row) for row in edges.get("incoming", ()))


def _rows(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    return [{"id": entry.note.id, "title": entry.note.title} for entry in entries]


def _ids(related: Related) -> Iterator[str]:
    """Every note named, those that only an edge knows included."""
    if related.links is not None:
        yield from (entry.note.id for entry in related.links.outgoing + related.links.incoming)
    if related.provenance is not None:
        yield from (entry.note.id for entry in related.provenance.sources + related.provenance.derived)
    if related.edges is not None:
        for edge in related.edges.outgoing + related.edges.incoming:
            yield from (edge.from_id, edge.to_id)
