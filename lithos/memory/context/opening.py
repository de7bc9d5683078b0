"""The pinned notes and open tasks of a briefing (docs/spec/context.md §1)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Final

from attrs import evolve, frozen

from lithos.kernel.actors.threads import Threads
from lithos.memory.briefing.opening import MOST_PINNED, PinnedNote, PinnedNotes, first_paragraph
from lithos.memory.briefing.parts import AboutNote
from lithos.memory.briefing.passages import LEAST_TEXT, affordable
from lithos.memory.context.passage_cache import Splits
from lithos.memory.context.project_scope import ProjectScope
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.lineage import Lineage
from lithos.notes.service.texts import NoteTexts
from lithos.search.service.retrieval_filter import RetrievalFilter
from lithos.tasks.model.open_tasks import OpenTasks
from lithos.tasks.service.open_work import OpenWork

#: Sections that a briefing has only on request. They need no query.
OPENING: Final = ("pinned", "work")
#: Tag of pinned notes.
PINNED: Final = "pinned"
#: Warnings that keep a note out of a briefing.
WITHHOLDING: Final = frozenset(("quarantined", "superseded", "expired"))


@frozen
class Opening:
    """The pinned notes and open tasks, and warnings about pinned notes that are not shown."""

    pinned: PinnedNotes = PinnedNotes()
    work: OpenTasks = OpenTasks()
    warnings: Sequence[AboutNote] = ()
    is_wanted: bool = False

    def with_warnings(self, warnings: Sequence[AboutNote]) -> Sequence[AboutNote]:
        """Return warnings together with the own warnings about notes that the others do not mention."""
        known = {each.note_id for each in warnings}
        own = [each for each in self.warnings if each.note_id not in known]
        return [*warnings, *own] if own else warnings


#: Opening of a briefing without these sections.
NO_OPENING: Final = Opening()


@frozen(eq=False)
class OpeningReader:
    """Reads the pinned notes that a caller may see, and the open tasks."""

    _catalogue: Catalogue
    _lineage: Lineage
    _texts: NoteTexts
    _splits: Splits
    _working: Threads
    _work: OpenWork

    async def read(
        self,
        sections: Collection[str],
        gate: RetrievalFilter,
        scope: ProjectScope,
        now: datetime,
    ) -> Opening:
        """Return the opening with the wanted sections."""
        if not any(each in sections for each in OPENING):
            return NO_OPENING
        pinned, warnings, work = PinnedNotes(), list[AboutNote](), OpenTasks()
        if "pinned" in sections:
            pinned, warnings = await self._read_pinned(gate, scope, now)
        if "work" in sections:
            work = await self._work.open(scope.passes, gate.agent_id)
        return Opening(pinned, work, warnings, is_wanted=True)

    async def _read_pinned(
        self, gate: RetrievalFilter, scope: ProjectScope, now: datetime
    ) -> tuple[PinnedNotes, list[AboutNote]]:
        """Return the pinned notes in the order of their paths, and warnings about the others."""
        tagged = evolve(gate, filters=evolve(gate.filters, tags=(*gate.filters.tags, PINNED)))
        entries = sorted(await tagged.admit(self._catalogue), key=lambda entry: entry.path)
        await self._lineage.settle()
        withheld = {entry.note.id: list(self._withholding(entry, now)) for entry in entries}
        shown = [entry for entry in entries if not withheld[entry.note.id]]
        first = shown[:MOST_PINNED]
        contents = await self._texts.versioned(first)
        await self._texts.frames.learn(first)
        read = [(entry, one[0]) for entry, one in zip(first, contents, strict=True) if one is not None]
        notes = await self._working.run(lambda: [self._pinned(*each, scope) for each in read])
        missing = len(first) - len(read)  # These notes were deleted meanwhile.
        told = [warning for entry in entries for warning in withheld[entry.note.id]]
        return PinnedNotes(notes, len(shown) - missing), told

    def _withholding(self, entry: Entry, now: datetime) -> Iterator[AboutNote]:
        for warning in self._lineage.warnings(entry.note.id, now):
            if warning.kind in WITHHOLDING:
                yield AboutNote(entry.note.id, entry.note.title, warning, is_left_out=True)

    def _pinned(self, entry: Entry, content: str, scope: ProjectScope) -> PinnedNote:
        """Return a pinned note with its summary, or else with its first paragraph."""
        note = entry.note
        summaries = note.summaries or {}
        summary = (summaries.get("short") or summaries.get("long") or "").strip()
        text, end = summary, 0
        if not summary:
            content, _ = affordable(content, LEAST_TEXT)
            split = self._splits.split(entry.serial, note.title, content, self._texts.frames.of(entry))
            text, end = first_paragraph(split)
        project = scope.foreign(self._catalogue.projects.of(entry))
        return PinnedNote(note.id, note.title, entry.path, text, end, project)
