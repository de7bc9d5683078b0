"""The impact of a note (docs/spec/context.md §2): dependent notes, readers, tasks and quarantine.

The re-verification is created after the note is updated. If a call was interrupted, a repeated call creates
the missing tasks. The files of dependent notes are never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from typing import Final

import trio
from attrs import define, frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.actors.threads import SLICE, slices
from lithos.kernel.values.errors import DocNotFound, NoteNotFound
from lithos.kernel.values.limits import cut_name
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.lineage import Lineage
from lithos.notes.service.knowledge import Knowledge, LinkedFrom
from lithos.notes.writing.messages import PROPOSED, PatchNote, WriteOutcome
from lithos.tasks.model.task_commands import Dependent, OpenReverification, Reverification
from lithos.tasks.rows.board_rows import Reader, RestingTask
from lithos.tasks.service.coordination import Coordination

#: Maximum number of items in each list of an answer.
MOST: Final = 200
ACTIVE, QUARANTINED = "active", "quarantined"


@frozen
class Reached:
    """A note that depends on the queried note through `distance` relations.

    `via` is the relation of the last step: `derived_from_ids`, or the type of a typed edge.
    """

    entry: Entry
    distance: int
    via: str


@frozen
class Affected:
    """The impact of a note.

    `is_whole` is False if a list was truncated or some tasks could not be created yet.
    """

    entry: Entry
    dependents: Sequence[Reached]
    tasks: Sequence[RestingTask]
    readers: Sequence[Reader]
    linked: LinkedFrom
    task_ids: Sequence[str] = ()
    is_whole: bool = True


@define(eq=False)
class Impact:
    """The use cases of `lithos_impact`. All methods raise `DocNotFound`."""

    _catalogue: Catalogue
    _lineage: Lineage
    _coordinator: Coordinator
    _opening: Opening
    _knowledge: Knowledge
    _coordination: Coordination

    async def preview(self, note_id: str) -> Affected:
        """Return the impact of a note. Nothing is changed."""
        await self._opening.wait_known()
        return await self._look(note_id, Reverification(()))

    async def quarantine(self, note_id: str, agent: str, reason: str, *, open_tasks: bool) -> Affected:
        """Quarantine a note, then create the missing tasks.

        The note is rewritten only if the reason is new.
        """
        reason = cut_name(reason)
        note = (await self._find(note_id, agent)).note
        if (note.status, note.quarantine_reason) != (QUARANTINED, reason):
            outcome = await self._patch(
                PatchNote(id=note_id, agent=agent, status=QUARANTINED, quarantine_reason=reason)
            )
            open_tasks &= (
                outcome.status != PROPOSED
            )  # A proposal that waits for approval does not quarantine the note yet.
        opened = await self._reverify(note_id, agent, reason) if open_tasks else Reverification(())
        return await self._look(note_id, opened)

    async def clear(self, note_id: str, agent: str) -> Affected:
        """End the quarantine of a note. Other notes are not changed."""
        note = (await self._find(note_id, agent)).note
        if note.status == QUARANTINED or note.frontmatter_problem is not None:
            await self._patch(PatchNote(id=note_id, agent=agent, status=ACTIVE))
        return await self._look(note_id, Reverification(()))

    async def _find(self, note_id: str, agent: str) -> Entry:
        self._coordinator.touch(agent)
        await self._opening.wait_known()
        return self._catalogue.require(note_id)

    async def _patch(self, request: PatchNote) -> WriteOutcome:
        try:
            return await self._knowledge.write(request)
        except NoteNotFound as gone:
            raise DocNotFound(gone.message) from None

    async def _reverify(self, note_id: str, agent: str, reason: str) -> Reverification:
        entry = self._catalogue.require(note_id)
        dependents: list[Dependent] = []
        async for some in slices(self._lineage.dependents(note_id)):
            for kin in some:
                if (other := self._catalogue.get(kin.id)) is not None:
                    dependents.append(_as_dependent(other))
        command = OpenReverification(
            note=_as_dependent(entry), reason=reason, dependents=tuple(dependents), agent=agent
        )
        return await self._coordination.run(command)

    async def _look(self, note_id: str, opened: Reverification) -> Affected:
        entry = self._catalogue.require(note_id)
        reached, is_all = await self._walk(note_id)
        tasks, readers = await self._coordination.impact(note_id, MOST + 1)
        lists = (tasks, readers, opened.task_ids)
        return Affected(
            self._catalogue.get(note_id) or entry,
            reached,
            tasks[:MOST],
            readers[:MOST],
            await self._knowledge.linked_from(note_id, MOST),
            opened.task_ids[:MOST],
            is_whole=is_all and opened.is_complete and all(len(each) <= MOST for each in lists),
        )

    async def _walk(self, note_id: str) -> tuple[list[Reached], bool]:
        """Return the dependents of a note breadth-first, and whether the list is complete.

        Each level is completed before the next level begins, so that the nearest dependents are always
        included. Notes that are created or deleted meanwhile may be missing.
        """
        seen, found = {note_id}, list[tuple[str, int, str]]()
        level, distance, looked = [note_id], 0, 0
        while level and len(found) <= MOST:
            distance += 1
            fresh: dict[str, str] = {}
            for parent in level:
                kindred = self._lineage.dependents(parent)
                for kin in kindred:
                    if kin.id not in seen:
                        seen.add(kin.id)
                        fresh[kin.id] = kin.via
                looked += 1 + len(kindred)
                if looked >= SLICE:
                    looked = 0
                    await trio.lowlevel.checkpoint()
            level = nsmallest(MOST + 1 - len(found), fresh)
            found += [(each, distance, fresh[each]) for each in level]
        return self._reached(found[:MOST]), len(found) <= MOST

    def _reached(self, found: Sequence[tuple[str, int, str]]) -> list[Reached]:
        return [
            Reached(entry, distance, via)
            for note_id, distance, via in found
            if (entry := self._catalogue.get(note_id)) is not None
        ]


def _as_dependent(entry: Entry) -> Dependent:
    return Dependent(entry.note.id, entry.note.title, entry.path)
