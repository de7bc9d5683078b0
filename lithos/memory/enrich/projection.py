"""Projection of provenance (`derived_from_ids` of notes) to typed edges in `edges.db`.

Specified in docs/spec/memory.md §3.

The notes are the source of truth. If a source is not an existing note, it gets no edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import trio

from lithos.kernel.actors.threads import slices
from lithos.kernel.log import get_logger
from lithos.memory.model.memory import ProjectionOutcome, ProjectProvenance
from lithos.memory.retrieve.feedback import Learning
from lithos.notes.catalogue.catalogue import Catalogue, Entry

log = get_logger("lithos.projection")

#: Notes, each with its namespace and its resolved sources.
Desired: TypeAlias = Mapping[str, tuple[str, tuple[str, ...]]]


class IncompleteScan(Exception):
    """Error for a scan with unreadable files. Stale edges are then unknown, and nothing was changed."""


class Projection:
    """The reconciliation of provenance edges with the catalogue, for some notes or for all notes."""

    def __init__(self, catalogue: Catalogue, learning: Learning) -> None:
        self._catalogue = catalogue
        self._learning = learning
        #: Lock that prevents an earlier result from overwriting a later result.
        self._turn = trio.Lock()

    async def project(
        self, note_ids: Iterable[str], *, appeared_or_gone: Iterable[str] = ()
    ) -> ProjectionOutcome:
        """Project the provenance of these notes. Deleted notes lose their edges.

        Notes that are derived from `appeared_or_gone` are checked too, because their sources must be resolved
        again.
        """
        async with self._turn:
            wanted = dict.fromkeys([*note_ids, *self._derived_from(appeared_or_gone)])
            entries = {note_id: self._catalogue.get(note_id) for note_id in wanted}
            desired = await self._desire([entry for entry in entries.values() if entry is not None])
            gone = tuple(note_id for note_id, entry in entries.items() if entry is None)
            return await self._submit(ProjectProvenance(desired=desired, gone=gone))

    async def reconcile(self, *, dry_run: bool = False) -> ProjectionOutcome:
        """Project the provenance of all notes. Raises `IncompleteScan`."""
        async with self._turn:
            check_complete(self._catalogue)
            desired = await self._desire([entry for entry in self._catalogue if entry.note.derived_from_ids])
            command = ProjectProvenance(desired=desired, complete=True, dry_run=dry_run)
            return await self._submit(command)

    async def _submit(self, command: ProjectProvenance) -> ProjectionOutcome:
        outcome = await self._learning.submit(command)
        if outcome != ProjectionOutcome() and not command.dry_run:
            log.info(
                "provenance projected",
                created=outcome.created,
                removed=outcome.removed,
                resynced=outcome.resynced,
            )
        return outcome

    def _derived_from(self, sources: Iterable[str]) -> Iterable[str]:
        return self._catalogue.graph.provenance.reach(list(sources), 1, "incoming")

    async def _desire(self, entries: Sequence[Entry]) -> Desired:
        desired: dict[str, tuple[str, tuple[str, ...]]] = {}
        async for some in slices(entries):
            desired |= desired_edges(self._catalogue, some)
        return desired


def check_complete(catalogue: Catalogue) -> None:
    """Raise `IncompleteScan` if a file could not be read.

    A second file with the same id counts as read, because the first file is the note.
    """
    unread = [path for path, skipped in catalogue.skipped.items() if skipped.note_id is None]
    if unread:
        raise IncompleteScan(
            f"{len(unread)} files could not be read, {min(unread)} among them. The provenance "
            "edges are unchanged. Run `lithos validate`, then repair the files or make them "
            "readable."
        )


def desired_edges(catalogue: Catalogue, entries: Iterable[Entry]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the namespace and the resolved sources of each note, by note id."""
    return {entry.note.id: (entry.namespace, _resolve_sources(catalogue, entry)) for entry in entries}


def _resolve_sources(catalogue: Catalogue, entry: Entry) -> tuple[str, ...]:
    own, stated = entry.note.id, entry.note.derived_from_ids
    return tuple(source for source in stated if source != own and source in catalogue)
