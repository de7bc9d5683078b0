"""Ingest of changes: examine touched paths, pass their files to the writer, and drop missing notes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import TypeVar

import trio

from lithos.kernel.actors.threads import slices
from lithos.kernel.log import get_logger
from lithos.notes.catalogue.catalogue import ConflictCopy, Entry
from lithos.notes.catalogue.note_reading import Examined, examine
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import compare_attachments, folder_identity
from lithos.notes.files.values import FileState, FoundFile
from lithos.notes.watching.debounce import Pending, TouchedBatch
from lithos.notes.watching.folder_comparison import TouchedFiles, find_moved, survey_paths, survey_tree
from lithos.notes.watching.guard import DeletionGuard
from lithos.notes.writing.actor_writer import WriterMailbox
from lithos.notes.writing.external_changes import (
    ExternalReply,
    OutsideFiles,
    OutsideRemovals,
    OutsideRequest,
    held_notes,
)
from lithos.text.yaml.vault_style import VaultStyle

log = get_logger("lithos.watcher")

T = TypeVar("T")

#: Maximum number of files in one request to the writer. Writes by tools can run between two requests.
SLICE = 32
#: Maximum number of entries that are checked in one turn of the event loop. This takes a few milliseconds.
LOOK_SLICE = 1_000
WRITER_DEADLINE = 120.0


class Ingest:
    """The ingest of one batch of touched paths.

    Paths that must be checked later return to the queue `pending`.
    """

    def __init__(
        self, guard: DeletionGuard, writer: WriterMailbox, pending: Pending, count: Callable[[str], None]
    ) -> None:
        self._catalogue = guard.catalogue
        self._files = guard.files
        self._writer = writer
        self._guard = guard
        self._blocking = guard.blocking
        self._pending = pending
        self._count = count
        #: Files that seem to have lost their id, with the hash of the file at that time.
        self._doubtful: dict[str, str] = {}
        #: Paths of new files that were empty when they were found.
        self._empty: set[str] = set()

    async def settle(self, noticed: TouchedBatch) -> None:
        """Process one batch, then drop the missing notes whose wait is over."""
        survey = await self._survey(noticed)
        await self._take_survey(survey, noticed)
        await self._take_waiting(noticed)
        await self._drop_missing()

    async def drop(self, note_ids: Sequence[str]) -> None:
        """Remove notes whose files no longer exist."""
        for some in _slices(note_ids):
            taken = await self._ask(OutsideRemovals(tuple(some)))
            self._pending.find(some)
            self._report(taken)

    async def _survey(self, noticed: TouchedBatch) -> TouchedFiles:
        paths = sorted(noticed.touched)
        survey = await self._blocking.run(lambda: survey_paths(self._files, paths))
        compares = noticed.compare or survey.is_unclear
        others = await self._compare_others() if compares else survey.others
        if others:
            await self._ask(OutsideFiles((), others=others))
        if not compares:
            return survey
        known = await self._known()
        return await self._blocking.run(lambda: survey_tree(self._files, known, survey))

    async def _compare_others(self) -> tuple[tuple[str, bool], ...]:
        """Return the added and removed files that are not notes."""
        known = self._catalogue.files.paths()
        return await self._blocking.run(lambda: compare_attachments(str(self._files.root), known))

    async def _known(self) -> dict[str, FileState]:
        """Return the last examined state (size, mtime) of all known files, by path.

        Skipped files are included.
        """
        known: dict[str, FileState] = {}
        async for some in slices(self._catalogue.serials(), LOOK_SLICE):
            for entry in self._catalogue.at_serials(some):
                if self._catalogue.at_path(entry.path) is entry:
                    known[entry.path] = entry.state
        return known | {path: skipped.state for path, skipped in self._catalogue.skipped.items()}

    async def _take_survey(self, survey: TouchedFiles, noticed: TouchedBatch) -> None:
        now = trio.current_time()
        for path in survey.absent:
            self._doubtful.pop(path, None)
            self._empty.discard(path)
            entry = self._catalogue.at_path(path)
            if entry is not None and entry.note.id not in self._guard.kept:
                self._pending.miss(entry.note.id, noticed.touched.get(path, now))
        forgotten = tuple(path for path in survey.absent if path in self._catalogue.skipped)
        if forgotten:
            await self._ask(OutsideFiles((), forgotten))
        for some in _slices(self._put_off_empty(survey.found, now)):
            await self._take_files(some)

    def _put_off_empty(self, found: Sequence[FoundFile], now: float) -> list[FoundFile]:
        """Put empty new files back into the queue, because most programs create a file before they write it.

        Return the remaining files.

        If a file is still empty at the second check, it counts as a note.
        """
        put_off = {
            file.path
            for file in found
            if file.state.size == 0
            and file.path not in self._empty
            and self._catalogue.at_path(file.path) is None
        }
        taken = [file for file in found if file.path not in put_off]
        self._empty.difference_update(file.path for file in taken)
        self._empty |= put_off
        self._pending.touch(put_off, now)
        return taken

    async def _take_files(self, found: Sequence[FoundFile]) -> None:
        known = [self._catalogue.at_path(file.path) for file in found]
        ids = [self._catalogue.stand_in(file.path) for file in found]
        examined = await self._blocking.run(
            lambda: _examine_all(self._files, found, known, ids, self._catalogue.style)
        )
        examined = self._put_off_doubtful(examined, known)
        taken = await self._ask(OutsideFiles(tuple(examined)))
        now = trio.current_time()
        self._pending.touch(taken.again, now)
        for note_id in taken.displaced:
            self._pending.miss(note_id, now)
        self._pending.find(change.entry.note.id for change in taken.changes)
        self._report(taken)

    def _put_off_doubtful(
        self, examined: Sequence[Examined], known: Sequence[Entry | None]
    ) -> list[Examined]:
        """Put files that seem to have lost their id back into the queue. Return the remaining files.

        Another program may still be saving such a file. If the file has not changed by the next check, it is
        accepted.
        """
        believed: list[Examined] = []
        for each, entry in zip(examined, known, strict=True):
            lost = entry is not None and entry.identified and each.document and not each.identified
            if lost and self._doubtful.get(each.path) != each.digest:
                self._doubtful[each.path] = each.digest
                self._pending.touch([each.path], trio.current_time())
                continue
            self._doubtful.pop(each.path, None)
            believed.append(each)
        return believed

    async def _take_waiting(self, noticed: TouchedBatch) -> None:
        """Process skipped files with the id of another file that no longer has this id."""
        ripe = frozenset(self._pending.ripe(trio.current_time()))
        catalogue = self._catalogue
        waiting = [
            path
            for note_id, paths in catalogue.doubles.items()
            for path in paths
            if self._is_free(note_id, catalogue.skipped[path].copy, ripe)
        ]
        if waiting:
            survey = await self._blocking.run(lambda: survey_paths(self._files, sorted(waiting)))
            await self._take_survey(survey, noticed)

    def _is_free(self, note_id: str, copy: ConflictCopy | None, ripe: Container[str]) -> bool:
        """Return whether an id is free because its file is gone or no longer contains the id.

        For a conflict copy that was recognised by its lines, return whether the note of the copy has moved.

        A note that has just vanished may appear at another path. Its id is not free until its wait is over.
        """
        entry = self._catalogue.get(note_id)
        if copy is not None and not copy.names_id:
            return entry is None or entry.path != copy.original
        return entry is None or not entry.may_name_id or note_id in ripe or note_id in self._guard.kept

    async def _drop_missing(self) -> None:
        ripe = self._pending.ripe(trio.current_time())
        gone = await self._find_gone([entry for note_id in ripe if (entry := self._present(note_id))])
        if not gone:
            return
        identity = await self._blocking.run(lambda: folder_identity(self._files))
        owned = [entry for entry in gone if self._catalogue.at_path(entry.path) is entry]
        displaced = [entry.note.id for entry in gone if self._catalogue.at_path(entry.path) is not entry]
        admitted = await self._guard.admit(owned, trio.current_time(), is_folder_gone=identity is None)
        self._pending.find(entry.note.id for entry in owned)
        await self.drop([*admitted, *displaced])

    async def _find_gone(self, ripe: Sequence[Entry]) -> list[Entry]:
        """Return the missing notes whose files are not found anywhere in the tree.

        Moved notes return to the queue with their new paths.
        """
        owned = [entry for entry in ripe if self._catalogue.at_path(entry.path) is entry]
        there = await self._blocking.run(lambda: held_notes(self._files, owned, self._catalogue.style))
        self._pending.find(there)
        gone = [entry for entry in ripe if entry.note.id not in there]
        if not gone:
            return gone
        wanted = {entry.note.id: entry.state for entry in gone}
        nameless = {entry.note.id: entry.digest for entry in gone if not entry.identified}
        known = await self._known()
        twins = {
            twin.path
            for digest in nameless.values()
            for twin in self._catalogue.nameless(digest)
            if twin.note.id not in wanted and self._catalogue.at_path(twin.path) is twin
        }
        moved = await self._blocking.run(lambda: find_moved(self._files, wanted, known, nameless, twins))
        now = trio.current_time()
        self._pending.touch(moved.values(), now)
        self._pending.put_off(moved, now)
        return [entry for entry in gone if entry.note.id not in moved]

    def _present(self, note_id: str) -> Entry | None:
        entry = self._catalogue.get(note_id)
        if entry is None:
            self._pending.find([note_id])
        return entry

    async def _ask(self, request: OutsideRequest) -> ExternalReply:
        return await self._writer.ask(request, within=WRITER_DEADLINE)

    def _report(self, taken: ExternalReply) -> None:
        for change in taken.changes:
            self._count(change.event.type.removeprefix("note."))
        if taken.changes:
            log.info("outside changes", **_kinds(taken))


def _slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[begin : begin + SLICE] for begin in range(0, len(items), SLICE))


def _kinds(taken: ExternalReply) -> dict[str, int]:
    kinds = [change.event.type.removeprefix("note.") for change in taken.changes]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def _examine_all(
    files: NoteFiles,
    found: Sequence[FoundFile],
    known: Sequence[Entry | None],
    ids: Sequence[str | None],
    style: VaultStyle,
) -> list[Examined]:
    return [examine(files, *each, style, keeps_data=True) for each in zip(found, known, ids, strict=True)]
