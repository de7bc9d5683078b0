"""The console page on which a person settles a contradiction.

The page shows two notes, the reasons, and the possible outcomes.

`lithos_conflict_resolve` settles all open `contradicts` edges between the two notes at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from attrs import frozen
from quart import Blueprint, Response

from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.edges import CONTRADICTS, RESOLUTIONS, SUPERSEDED
from lithos.notes.service.knowledge import Knowledge, ReadNote
from lithos.server.console.console import Console, Form, PageRefused, given
from lithos.server.console.formats import query_with, readable

ADDRESS: Final = "/console/contradictions"
#: Maximum characters that the page shows of each note.
LONGEST: Final = 4_000
#: Maximum number of edges between two notes that one form can settle.
MOST_EDGES: Final = 50
#: Maximum number of displayed reasons per edge, and maximum characters per reason.
MOST_REASONS, LONGEST_REASON = 5, 400
#: Outcomes in which neither note replaces the other note: name and consequence.
OTHER_ENDINGS: Final[Mapping[str, tuple[str, str]]] = {
    "accepted_dual": (
        "Both are right",
        "Both notes stay as they are, without the warning. Retrieval still shows agents that they differ.",
    ),
    "refuted": (
        "The notes do not contradict each other",
        "Both notes stay as they are, without the warning.",
    ),
    "merged": (
        "The texts were merged",
        "Both notes stay as they are, without the warning. Merge the texts yourself, before or afterwards.",
    ),
}


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the routes of the page."""
    pages = Contradictions(console)
    console.asking(app, "/contradictions", pages.ask, pages.settle)


@frozen
class ContradictionEdge:
    """A contradicting edge: its id, its author, and its reasons as pairs of name and text."""

    edge_id: str
    by: str | None
    at: str
    reasons: Sequence[tuple[str, str]]


@frozen
class Contradictions:
    """The console page on which a person settles a contradiction between two notes."""

    _console: Console

    async def ask(self) -> Response:
        """Show both notes, the authors of the contradiction, and the possible outcomes."""
        ids = given("one", 200), given("other", 200)
        notes = [await self._read(note_id) for note_id in ids]
        claims = await self._claims(*ids)
        if not claims:
            raise PageRefused(
                "These notes have no open contradiction. It was settled or withdrawn. Check the notes.",
                404,
            )
        return await self._console.show(
            "contradiction.html",
            path="/console/notes",
            notes=notes,
            claims=claims,
            seen=_seen(claims),
            endings=OTHER_ENDINGS,
            cancel=f"/console/notes/{quote(ids[0], safe='')}",
        )

    async def settle(self, form: Form) -> str:
        """Settle the contradiction in the name of the person.

        The next page shows the note that stays valid, or the first note.
        """
        one, other, ending = form.get("one", ""), form.get("other", ""), form.get("ending", "")
        winner = {"one": one, "other": other}.get(ending)
        if winner is None and ending not in OTHER_ENDINGS:
            raise PageRefused("Nothing was settled. Choose an outcome of the contradiction.")
        page = f"/console/notes/{quote(winner or one, safe='')}"
        claims = await self._claims(one, other)
        if _seen(claims) != form.get("seen"):
            self._console.tell(
                "Nothing was settled. The contradiction was changed or settled meanwhile. Check it again."
            )
            return _address(one, other) if claims else page
        warnings: list[str] = []
        for claim in claims:
            done = await self._console.call(
                "lithos_conflict_resolve",
                edge_id=claim.edge_id,
                resolution=ending if winner is None else SUPERSEDED,
                winner_id=winner,
                resolver=self._console.agent,
            )
            warnings += done.get("warnings", ())
        told = f"“{self._title(winner)}” holds" if winner else OTHER_ENDINGS[ending][0]
        self._console.tell(
            f"The contradiction was settled: {told}. It is recorded under {self._console.agent}."
        )
        for warning in dict.fromkeys(warnings):
            self._console.tell(warning)
        return page

    def _title(self, note_id: str) -> str:
        return readable(self._console.parts.get(Catalogue).title(note_id) or note_id, 100)

    async def _read(self, note_id: str) -> ReadNote:
        return await self._console.parts.get(Knowledge).read(
            note_id=note_id, path=None, max_length=LONGEST, agent_id=self._console.agent
        )

    async def _claims(self, one: str, other: str) -> list[ContradictionEdge]:
        """Return the open contradictions between two notes in both directions, oldest first."""
        found: list[Mapping[str, Any]] = []
        for start, end in ((one, other), (other, one)):
            answer = await self._console.call("lithos_edge_list", from_id=start, to_id=end, type=CONTRADICTS)
            found += [edge for edge in answer["edges"] if edge.get("conflict_state") not in RESOLUTIONS]
        return [_claim_of(edge) for edge in found[:MOST_EDGES]]


def _address(one: str, other: str) -> str:
    return f"{ADDRESS}{query_with({}, one=one, other=other)}"


def _claim_of(edge: Mapping[str, Any]) -> ContradictionEdge:
    return ContradictionEdge(
        edge["edge_id"],
        edge.get("provenance_actor"),
        edge["updated_at"],
        _reasons_of(edge.get("evidence")),
    )


def _reasons_of(evidence: object) -> list[tuple[str, str]]:
    """Return the evidence of an edge as pairs of name and text.

    Evidence that is not an object becomes a single text without a name.
    """
    try:
        told = json.loads(evidence) if isinstance(evidence, str) else evidence
    except ValueError:
        told = evidence
    if told in (None, "", {}, []):
        return []
    rows = told.items() if isinstance(told, dict) else [("", told)]
    return [
        (str(name), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in list(rows)[:MOST_REASONS]
    ]


def _seen(claims: Sequence[ContradictionEdge]) -> str:
    """Return a fingerprint of the current state of the edges."""
    return " ".join(f"{claim.edge_id}@{claim.at}" for claim in claims)
