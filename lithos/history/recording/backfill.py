"""Catch-up: record versions in `history.db` that were made while no recorder was running.

At the start, before anything is written, pending rows are confirmed or deleted according to the files and the
journal. Then every note whose newest version differs from the version in the catalogue gets that version.
This is done in the background and in small batches. It covers all notes on the first start with an older data
directory, edits and deletions made while no server was running, and versions that could not be recorded. The
task compares states, so it can be stopped at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import attrs
import trio
from attrs import define, field, frozen

from lithos.history.recording.recorder import Recorder
from lithos.history.rows.store import HistoryFailed, HistoryStore, NewestVersion, NewVersion, PendingVersion
from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown
from lithos.kernel.actors.threads import SLICE, Threads
from lithos.kernel.log import get_logger
from lithos.kernel.values.events import NOTE_DELETED, NOTE_RENAMED, Event, origin_version
from lithos.kernel.values.principals import SCAN_AGENT
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.displaced import DisplacedFile
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import OutsideKnowledge
from lithos.notes.model.versions import DELETED, OUTSIDE, RENAMED
from lithos.notes.writing.actor_writer import WriterMailbox
from lithos.notes.writing.deferred_removal import Keeper
from lithos.notes.writing.external_changes import OutsideBytes
from lithos.notes.writing.recording import first_version, outside_version

log = get_logger("lithos.history")

#: Maximum number of notes in a commit, and maximum number of bytes of these notes. A commit takes about 20
#: ms.
STEP, STEP_BYTES = 50, 1024 * 1024
#: Pause after a commit: factor of the commit's duration, and minimum in seconds.
PAUSE_TIMES, PAUSE_LEAST = 3.0, 0.02
#: Number of notes whose newest versions are read in one query.
PAGE: Final = 1_000
#: Seconds from a failure to the next attempt.
RETRY: Final = 30.0
#: Seconds that a catch-up waits for further changes before it starts.
SOON: Final = 1.0
#: Maximum seconds to wait until the writer processes displaced bytes.
PATIENCE: Final = 120.0


@frozen
class _Announced:
    """Newest versions, deletions and moves from the journal since the manifest was stored."""

    versions: dict[str, int]
    deleted: frozenset[str]
    moved: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, events: Iterable[Event]) -> _Announced:
        versions: dict[str, int] = {}
        deleted, moved = set[str](), set[tuple[str, str]]()
        for event in events:
            draft, note_id = event.draft, str(event.draft.payload.get("id"))
            if draft.type == NOTE_DELETED:
                deleted.add(note_id)
            elif draft.type == NOTE_RENAMED:
                moved.add((note_id, str(draft.payload.get("dest_path"))))
            version = origin_version(draft.origin)
            if version is not None:
                versions[note_id] = max(version, versions.get(note_id, 0))
        return cls(versions, frozenset(deleted), frozenset(moved))


async def settle_pending(
    recorder: Recorder, catalogue: Catalogue, files: NoteFiles, events: Iterable[Event]
) -> None:
    """Confirm pending rows of the last process if their bytes reached the files.

    Pending rows whose bytes did not reach the files are deleted.

    `events` were written to the journal after the manifest was stored. If a store cannot be read, its rows
    stay pending. If it cannot be written, the recorder applies the decisions later.
    """
    store = recorder.store
    if store is None:
        return
    announced = _Announced.of(events)
    try:
        pending = await recorder.blocking.run(store.pending)
        if not pending:
            return
        entries = {each.row.note_id: catalogue.get(each.row.note_id) for each in pending}
        deletions = {each.row.path for each in pending if each.row.op == DELETED}
        there = await recorder.blocking.run(lambda: {path for path in deletions if files.is_file(path)})
        dropped = list[int]()
        happened: dict[str, bool] = {}  # For each note, whether its next recorded change happened.
        for each in reversed(pending):
            note_id = each.row.note_id
            happened[note_id] = (
                happened.get(note_id, True)
                if each.is_passed
                else _has_happened(each, entries[note_id], announced, is_there=each.row.path in there)
            )
            if not happened[note_id]:
                dropped.append(each.place)
        confirmed = [each.place for each in pending if each.place not in dropped]
        await recorder.settle_now(confirmed, dropped)
    except HistoryFailed as failure:
        log.error("pending versions not settled", reason=failure.message)
        return
    log.info("pending versions settled", kept=len(confirmed), dropped=len(dropped))


def _has_happened(
    pending: PendingVersion, entry: Entry | None, announced: _Announced, *, is_there: bool
) -> bool:
    row = pending.row
    if not pending.is_newest:
        return True  # A later change was based on this version, so the version reached the file.
    if row.op == DELETED:
        return not is_there or row.note_id in announced.deleted
    if row.op == RENAMED:
        is_moved = entry is not None and entry.path == row.path
        return is_moved or (row.note_id, row.path) in announced.moved
    if entry is not None and entry.digest == pending.mark:
        return True
    if announced.versions.get(row.note_id, 0) >= row.version or row.note_id in announced.deleted:
        return True
    # If the file no longer has its former bytes, another program has edited it since. The file may have had
    # this version before that edit.
    return (entry.digest if entry is not None else None) != pending.former


@define(eq=False)
class CatchingUp:
    """The background task that records missing versions. `run` continues until the server stops."""

    _recorder: Recorder
    _catalogue: Catalogue
    _keeper: Keeper
    #: The writer, which gets the displaced bytes that the keeper preserved.
    _writer: WriterMailbox
    _reading: Threads = field(factory=Threads, init=False)
    #: Set once the history has the newest version of every note.
    done: trio.Event = field(factory=trio.Event, init=False)

    async def run(self) -> None:
        """Catch up now, and again whenever versions may be missing. Runs until cancelled."""
        store = self._recorder.store
        if store is None:
            self.done.set()
            return
        while True:
            lacks = self._recorder.lacks = trio.Event()
            try:
                recorded = await self._catch_up(store) + await self._take_displaced(store)
            except ShuttingDown:
                return
            except (HistoryFailed, ActorDown, trio.TooSlowError) as failure:
                log.error("history catch-up failed", reason=str(failure) or repr(failure))
                await trio.sleep(RETRY)
                continue
            if recorded:
                log.info("history caught up", versions=recorded)
            self._recorder.is_caught_up = not lacks.is_set()
            self.done.set()
            await lacks.wait()
            await trio.sleep(RETRY if self._recorder.is_failing else SOON)

    async def _catch_up(self, store: HistoryStore) -> int:
        known: dict[str, NewestVersion] = {}
        after = 0
        while page := await self._reading.run(lambda after=after: store.newest(after, PAGE)):  # type: ignore[misc]
            known |= {each.note_id: each for each in page}
            after = page[-1].number
        entries = list(self._catalogue)
        recorded = 0
        for begin in range(0, len(entries), SLICE):
            await trio.lowlevel.checkpoint()
            some = entries[begin : begin + SLICE]
            lacking = [each for each in some if not _is_kept(each, known.get(each.note.id))]
            for start in range(0, len(lacking), STEP):
                recorded += await self._record(store, lacking[start : start + STEP], known)
        kept = list(known.values())
        for begin in range(0, len(kept), SLICE):
            await trio.lowlevel.checkpoint()
            gone = [each for each in kept[begin : begin + SLICE] if self._is_gone(each)]
            for start in range(0, len(gone), STEP):
                recorded += await self._record_gone(store, gone[start : start + STEP])
        return recorded

    async def _take_displaced(self, store: HistoryStore) -> int:
        """Record bytes that were displaced from files, unless a version with these bytes exists."""
        taken = 0
        for each in await self._reading.run(self._keeper.displaced.list):
            entry = self._catalogue.at_path(each.note)
            if entry is None:
                continue
            request = await self._reading.run(lambda each=each, entry=entry: _unknown(store, each, entry))  # type: ignore[misc]
            if request is not None:
                taken += len((await self._writer.ask(request, within=PATIENCE)).versions)
        return taken

    async def _record(
        self, store: HistoryStore, entries: Sequence[Entry], known: dict[str, NewestVersion]
    ) -> int:
        """Record the states of notes in the catalogue, unless the files have changed since."""
        recorded = 0
        waiting = list(entries)
        while waiting:
            some, waiting = await self._reading.run(lambda waiting=waiting: self._read(waiting))  # type: ignore[misc]
            now = self._keeper.clock()
            versions = [
                (_version(entry, data, known.get(entry.note.id), now), _place(known.get(entry.note.id)))
                for entry, data in some
                if self._catalogue.get(entry.note.id) is entry
            ]
            recorded += await self._add(store, versions)
        return recorded

    def _read(self, entries: Sequence[Entry]) -> tuple[list[tuple[Entry, bytes]], list[Entry]]:
        """Return the bytes of the notes that fit into one commit. Also return the remaining notes. Blocks."""
        found: list[tuple[Entry, bytes]] = []
        size = 0
        for number, entry in enumerate(entries):
            if size >= STEP_BYTES:
                return found, list(entries[number:])
            try:
                source = self._keeper.files.read(entry.path)
            except (OSError, OutsideKnowledge):
                continue  # The watcher reports this change of the file.
            if source.digest == entry.digest:
                found.append((entry, source.data))
                size += len(source.data)
        return found, []

    async def _record_gone(self, store: HistoryStore, gone: Sequence[NewestVersion]) -> int:
        now = self._keeper.clock()
        versions = [
            (
                NewVersion(
                    note_id=each.note_id,
                    version=each.version + 1,
                    at=now,
                    agent=SCAN_AGENT,
                    op=DELETED,
                    path=each.path,
                    title=each.title,
                    data=None,
                ),
                each.place,
            )
            for each in gone
            if self._is_gone(each)
        ]
        return await self._add(store, versions)

    def _is_gone(self, newest: NewestVersion) -> bool:
        return not (newest.is_deletion or newest.is_pending or newest.note_id in self._catalogue)

    async def _add(self, store: HistoryStore, versions: Sequence[tuple[NewVersion, int | None]]) -> int:
        if not versions:
            return 0
        began = trio.current_time()
        recorded = await self._recorder.blocking.run(lambda: store.add_lacking(versions))
        await trio.sleep(max(PAUSE_LEAST, PAUSE_TIMES * (trio.current_time() - began)))
        return recorded


def _unknown(store: HistoryStore, displaced: DisplacedFile, entry: Entry) -> OutsideBytes | None:
    """Return the displaced bytes. Return None if they are already recorded or no longer exist. Blocks."""
    if store.knows(entry.note.id, displaced.digest):
        return None
    try:
        data = displaced.path.read_bytes()
    except OSError:
        return None
    return OutsideBytes(entry.path, data, store.content(entry.note.id, entry.note.version))


def _is_kept(entry: Entry, newest: NewestVersion | None) -> bool:
    return newest is not None and (
        newest.is_pending
        or (
            not newest.is_deletion
            and (newest.version, newest.mark, newest.path) == (entry.note.version, entry.digest, entry.path)
        )
    )


def _place(newest: NewestVersion | None) -> int | None:
    return None if newest is None else newest.place


def _version(entry: Entry, data: bytes, newest: NewestVersion | None, now: datetime) -> NewVersion:
    if newest is None:
        return first_version(entry, data, now)
    version = outside_version(entry, entry, data, SCAN_AGENT, now)
    is_moved = newest.path != entry.path and newest.mark == entry.digest and not newest.is_deletion
    return attrs.evolve(version, op=RENAMED if is_moved else OUTSIDE)
