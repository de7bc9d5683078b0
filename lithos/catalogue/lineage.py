"""Lineage of notes: what a note rests on, what rests on it, and the warnings that follow (context spec, 2)."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from lithos.catalogue.catalogue import Catalogue
from lithos.core.notes.trust import NoteWarning
from lithos.core.times import format_time


@frozen
class Kin:
    """A note one step along the lineage, and by what: `derived_from_ids`, or the type of a typed edge."""

    id: str
    via: str


class Lineage:
    """Reads the lineage as it is at the moment of each call; nothing is awaited."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def settle(self) -> None:
        """Find out who may be suspect; here each call looks for itself."""

    def sources(self, note_id: str) -> list[Kin]:
        """What a note rests on directly, only notes that exist, by id."""
        found = self._catalogue.graph.provenance.reach([note_id], 1, "outgoing")
        return [
            Kin(each, "derived_from_ids")
            for each in sorted(found)
            if each in self._catalogue and each != note_id
        ]

    def dependents(self, note_id: str) -> list[Kin]:
        """What rests on a note directly, by id."""
        found = self._catalogue.graph.provenance.reach([note_id], 1, "incoming")
        return [
            Kin(each, "derived_from_ids")
            for each in sorted(found)
            if each in self._catalogue and each != note_id
        ]

    def is_suspect(self, note_id: str) -> bool:
        """Whether a note of its lineage is quarantined or superseded."""
        return any(
            entry.note.status == "quarantined"
            for kin in self.sources(note_id)
            if (entry := self._catalogue.get(kin.id)) is not None
        )

    def warnings(self, note_id: str, now: datetime) -> tuple[NoteWarning, ...]:
        """The warnings about a note, in the order of the kinds; none for one that does not exist."""
        entry = self._catalogue.get(note_id)
        if entry is None:
            return ()
        note, found = entry.note, list[NoteWarning]()
        if note.status == "quarantined":
            found.append(NoteWarning("quarantined", note.id, note.title, "quarantined", 0))
        if note.expires_at is not None and note.is_stale(now):
            found.append(
                NoteWarning("expired", note.id, note.title, f"expired at {format_time(note.expires_at)}", 0)
            )
        return tuple(found)
