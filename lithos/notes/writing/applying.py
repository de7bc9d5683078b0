"""The application of one writer round. Intents, versions and files are each stored in one step.

Intents (notes/catalogue/note_records.py) and version rows are committed while the files are written. Both are
on disk before a reader or caller sees the change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import trio
from attrs import define

from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.databases.database import Database
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import StorageFailed
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.files.displaced import Moves
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import FileState, Put
from lithos.notes.model.versions import HistoryFailed, NewVersion
from lithos.notes.writing.ports import VersionRecorder, VersionStore
from lithos.notes.writing.preparation import Passed, Prepared
from lithos.notes.writing.recording import NotKept, is_undone

log = get_logger("lithos.writer")

#: Function that waits until a started commit is finished.
Committed = Callable[[], Awaitable[object]]
_UNSAVED = (trio.TooSlowError, ActorDown, ShuttingDown)


@define(eq=False)
class Applying:
    """Service that changes note files. Only the writer may call it."""

    _records: NoteRecords
    files: NoteFiles
    _moves: Moves
    blocking: Blocking
    recorder: VersionRecorder
    #: Databases that must work before Lithos changes a note.
    needed: Sequence[Database | VersionStore] = ()

    async def apply(
        self, prepared: Sequence[Prepared], versions: Sequence[NewVersion]
    ) -> Sequence[FileState | Exception | None]:
        """Change the files. Return the result for each file, in order.

        Intents and versions are committed in parallel, and they are on disk before a reader sees them. States
        that exist only in their files are recorded before the files change. If recording failed recently, all
        versions are recorded first, because no file may change without its version. For notes from another
        vault, all versions are recorded first too, because their past must precede the new version.
        """
        if not prepared:
            return []
        try:
            await self.recorder.keep_former(versions)
            has_past = bool(versions) and any(each.past for each in prepared)
            if not (self.recorder.is_failing or has_past):
                return await self._apply_at_once(prepared, versions)
            groups = [(*each.past, own) for each, own in zip(prepared, versions, strict=True)]
            places = await self.recorder.record([version for group in groups for version in group])
        except HistoryFailed as failure:
            return [failure] * len(prepared)
        results = await self._apply_at_once(prepared, ())
        whose = zip(groups, results, strict=True)
        await self.recorder.settle(places, [result for group, result in whose for _ in group])
        return results

    async def _apply_at_once(
        self, prepared: Sequence[Prepared], versions: Sequence[NewVersion]
    ) -> Sequence[FileState | Exception | None]:
        intents = {
            each.entry.note.id: each.entry.standing for each in prepared if isinstance(each.operation, Put)
        }
        for note_id, standing in intents.items():
            self._records.intend(note_id, standing)
        results: Sequence[FileState | Exception | None] = []
        kept: list[int] | HistoryFailed = []

        async def record() -> None:
            nonlocal kept
            try:
                kept = await self.recorder.record(versions)
            except HistoryFailed as failure:
                kept = failure

        with self._records.deciding(intents):
            async with trio.open_nursery() as nursery:
                if versions:
                    nursery.start_soon(record)
                # Saving the intents does not run in a separate task, because starting and ending a task takes
                # an additional turn of the event loop.
                committed = await self._save_intents()
                results = await self.blocking.run(lambda: self._carry_out(prepared))
            await self._wait_saved(committed)
        for each, result in zip(prepared, results, strict=True):
            if result is None:
                self._records.fulfil(each.entry.note.id)  # removed
            elif is_undone(result):
                self._records.withdraw(each.entry.note.id, each.entry.standing)
        if isinstance(kept, HistoryFailed):
            failure = kept
            return [
                result if isinstance(result, Exception) else NotKept(failure, result) for result in results
            ]
        if kept:
            await self.recorder.settle(kept, results)
        return results

    async def _save_intents(self) -> Committed:
        """Start to commit the intents. Return a function that waits for the commit.

        Files are written even if the commit fails, because the journal will report the broken database.
        """
        try:
            return await self._records.save_intents()
        except _UNSAVED as failure:
            log.error("write intents not recorded", reason=repr(failure))
            return trio.lowlevel.checkpoint_if_cancelled

    async def _wait_saved(self, committed: Committed) -> None:
        try:
            await committed()
        except _UNSAVED as failure:
            log.error("write intents not recorded", reason=repr(failure))

    def _carry_out(self, changes: Sequence[Prepared]) -> list[FileState | Exception | None]:
        """Journal the intents of moves, then change the files. Return the results in order. Blocks."""
        for database in self.needed:
            database.look()
            if database.loss is not None:
                return [StorageFailed(f"{database.loss}. No note was changed.")] * len(changes)
        failures: dict[int, Exception] = {}
        for number, change in enumerate(changes):
            try:
                if change.intent is not None:
                    self._moves.write(change.intent)
            except OSError as failure:
                failures[number] = failure
        operations = [
            each.operation
            for number, each in enumerate(changes)
            if number not in failures and not isinstance(each.operation, Passed)
        ]
        done = list(self.files.apply(operations))
        results: list[FileState | Exception | None] = []
        for number, change in reversed([*enumerate(changes)]):
            # Passed states are placed directly before the last change of their note, and get the result of
            # this change.
            if not isinstance(change.operation, Passed):
                result = failures[number] if number in failures else done.pop()
            results.append(result)
        results.reverse()
        for change, result in zip(changes, results, strict=True):
            if change.intent is not None and is_undone(result):
                with suppress(OSError):  # The next start finds the move undone and drops its intent.
                    self._moves.remove(change.intent.id)
        return results
