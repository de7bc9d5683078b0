"""Relations of a note: links, provenance, typed edges, and dependent notes (with quarantine)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput
from lithos.memory.tools.memory import edge_row
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.service.relations import SECTIONS, Graph
from lithos.notes.tools_rows import linked_row, warn
from lithos.server.tools.arguments import argument, check_choice
from lithos.server.tools.bounds import FILTERS, LOOKUP, NAME, TITLE
from lithos.server.tools.compacting import CompactForm
from lithos.server.tools.declaring import Answer, tool
from lithos.server.tools.fitting import MOST_BESIDE, CuttableAnswer
from lithos.server.tools.serialization import row_of, sliced_rows
from lithos.tasks.service.impact import Affected, Impact

PREVIEW, QUARANTINE, CLEAR = "preview", "quarantine", "clear"
ACTIONS: Final = (PREVIEW, QUARANTINE, CLEAR)


@tool(
    "lithos_impact",
    "standard",
    place=43,
    title="Show what depends on a note",
    paged=CuttableAnswer(rows=("dependents", "tasks", "readers"), totals="none", beside=("linked_from",)),
    sparing=CompactForm(always=("id", "status", "dependents")),
    preview=("action", PREVIEW),
)
class ImpactTool:
    """Show which notes, tasks and agents depend on a note. If the note is wrong, action=quarantine withdraws
    it and warns about its dependents.
    """

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    action: str = argument(
        "Action to take; default: preview, changes nothing.", PREVIEW, one_of=ACTIONS, bound=LOOKUP
    )
    agent: str | None = argument("Your agent id; required unless action=preview.", None, bound=NAME)
    reason: str | None = argument("Reason why the note is wrong; required for quarantine.", None, bound=TITLE)
    open_tasks: bool = argument("Also open tasks to verify the dependents.", False, is_rare=True)

    async def answer(self, using: Parts) -> Answer:
        check_choice("action", self.action, ACTIONS)
        if self.open_tasks and self.action != QUARANTINE:
            raise InvalidInput(
                f"open_tasks needs action=quarantine: {self.action} opens no tasks. Leave it out."
            )
        if self.action == PREVIEW:
            return _answer(await using.get(Impact).preview(self.id))
        if self.agent is None:
            raise InvalidInput(f"action={self.action} needs agent. Give your agent id.")
        if self.action == CLEAR:
            return _answer(await using.get(Impact).clear(self.id, self.agent))
        if self.reason is None:
            raise InvalidInput("action=quarantine needs reason. Explain what is wrong with the note.")
        return _answer(
            await using.get(Impact).quarantine(self.id, self.agent, self.reason, open_tasks=self.open_tasks)
        )


def _answer(found: Affected) -> dict[str, Any]:
    return {
        "id": found.entry.note.id,
        "status": found.entry.note.status,
        "dependents": [
            {
                "id": each.entry.note.id,
                "title": each.entry.note.title,
                "path": each.entry.path,
                "distance": each.distance,
                "via": each.via,
            }
            for each in found.dependents
        ],
        "tasks": [row_of(task) for task in found.tasks],
        "readers": [row_of(each) for each in found.readers],
        "task_ids": list(found.task_ids),
        "truncated": not found.is_whole,
        **linked_row(found.linked),
    }


_SECTIONS: Final = CuttableAnswer(
    rows=(
        "links.outgoing", "links.incoming", "provenance.sources", "provenance.derived",
        "provenance.unresolved_sources", "edges.outgoing", "edges.incoming", "related_ids",
    ),
    most=MOST_BESIDE,
    totals="each",
)  # fmt: skip


#: The sections of the answer name all ids.
_RELATED: Final = CompactForm(
    always=("id", "title", "links", "outgoing", "incoming"), unsaid=("included", "related_ids")
)


@tool(
    "lithos_related",
    "standard",
    "RI",
    place=11,
    title="Show related notes",
    paged=_SECTIONS,
    sparing=_RELATED,
    is_heavy=True,
)
class RelatedTool:
    """List the notes connected to a note by wiki-links, sources (derived_from_ids) or typed edges."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    include: tuple[str, ...] | None = argument(
        "Any of links, provenance, edges; default: all.", None, bound=FILTERS
    )
    depth: int = argument("Number of steps, 1 to 3.", 1)
    namespace: str | None = argument(
        "Only edges of this namespace; default: all.", None, bound=LOOKUP, is_rare=True
    )

    async def answer(self, using: Parts) -> Answer:
        wanted = SECTIONS if self.include is None else self.include
        included = [section for section in SECTIONS if section in wanted]
        related = await using.get(Graph).relate(self.id, included, self.depth, self.namespace)
        answer: dict[str, Any] = {"id": self.id, "included": included}
        links, provenance, edges = related.links, related.provenance, related.edges
        outgoing = [] if edges is None else await sliced_rows(edges.outgoing, edge_row)
        incoming = [] if edges is None else await sliced_rows(edges.incoming, edge_row)
        notes: list[dict[str, Any]] = []
        if links is not None:
            answer["links"] = {"outgoing": entry_rows(links.outgoing), "incoming": entry_rows(links.incoming)}
            notes += answer["links"]["outgoing"] + answer["links"]["incoming"]
        if provenance is not None:
            sources, derived = entry_rows(provenance.sources), entry_rows(provenance.derived)
            unresolved = list(provenance.unresolved)
            answer["provenance"] = {"sources": sources, "derived": derived, "unresolved_sources": unresolved}
            notes += sources + derived
        if edges is not None:
            answer["edges"] = {"outgoing": outgoing, "incoming": incoming}
        # For an edge, the warnings are about the note at its other end.
        shown = [*((row["id"], row) for row in notes), *((row["to_id"], row) for row in outgoing)]
        await warn(using, [*shown, *((row["from_id"], row) for row in incoming)])
        ids = {row["id"] for row in notes}
        ids.update(row[end] for row in (*outgoing, *incoming) for end in ("from_id", "to_id"))
        return answer | {"related_ids": sorted(ids - {self.id})}


def entry_rows(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Return rows with the id and the title of each note."""
    return [{"id": entry.note.id, "title": entry.note.title} for entry in entries]
