"""Startup of one server: starts the actors in order, scans the notes, and starts the tasks that follow."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import trio
from attrs import define

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import AppendEvents, Journalled
from lithos.events.rows.store import CoordinationStore
from lithos.history.recording.backfill import settle_pending
from lithos.history.recording.recorder import Recorder
from lithos.history.rows.store import HistoryStore
from lithos.kernel.actors.front_signals import FrontSignals
from lithos.kernel.actors.mailboxes import Mailbox, supervise
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.actors.threads import Blocking, NoteThreads
from lithos.kernel.parts import Clock
from lithos.kernel.values.events import Event
from lithos.memory.learning.actor import Memory
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.catalogue.scan import ScanResult, scan_folder
from lithos.notes.files.displaced import Moves
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.manifest import Manifest
from lithos.notes.scan_ports import ScannedRows, kept_versions, place_moved, recorded_places
from lithos.notes.watching.guard import DeletionGuard
from lithos.notes.watching.watcher import Watcher
from lithos.notes.writing.actor_publisher import Publisher
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.deferred_removal import Keeper
from lithos.search.indexing.indexer import FulltextIndexer, VectorIndexer
from lithos.search.indexing.semantic import SemanticBackend

#: Maximum seconds for which the model and the link graph wait for a first client, once the front listens.
FIRST_CLIENT: Final = 0.1
#: Maximum seconds for which the model and the link graph wait until the front listens, and then until the
#: libraries for a client are loaded.
FIRST_THINGS: Final = 2.0


@define(eq=False)
class Startup:
    """Startup of a server. It starts the actors and fills the catalogue."""

    _clock: Clock
    _rows: ScannedRows
    _journal: CoordinationStore
    _versions: HistoryStore | None
    _manifest: Manifest
    _files: NoteFiles
    _moves: Moves
    _catalogue: Catalogue
    _opening: Opening
    _front: FrontSignals
    _threads: NoteThreads
    _coordinator: Coordinator
    _memory: Memory
    _semantic: SemanticBackend
    _words: FulltextIndexer
    _meaning: VectorIndexer
    _publisher: Publisher
    _recorder: Recorder
    _keeper: Keeper
    _writer: Writer
    _guard: DeletionGuard
    _watcher: Watcher

    def recall(self) -> Sequence[Event]:
        """Return the events that the manifest does not include yet.

        Call this method before `start`. Blocks.
        """
        position = self._manifest.seq
        # If there is no manifest, only the journal lists the existing versions.
        return self._journal.events_after(0 if position is None else position)

    async def scan(self, announced: Sequence[Event], blocking: Blocking) -> ScanResult:
        """Fill the catalogue from the folder.

        `announced` are the events that the manifest does not include yet.

        The catalogue is empty before the scan. Readers get all notes at once, in a single change on the event
        loop.
        """
        rows, files, versions = self._rows.rows, self._files, self._versions
        tell = self._opening.teller()
        token = trio.lowlevel.current_trio_token()
        if self._manifest.is_new:
            self._opening.recalled.set()

        def show(known: Catalogue) -> None:
            token.run_sync_soon(self._show, known)

        def fill() -> tuple[Catalogue, ScanResult]:
            filled = self._catalogue.like(NoteRecords(rows))
            rule = self._guard.start_rule()
            now = self._clock()
            place_moved(self._moves, files, filled)
            recorded, kept = partial(recorded_places, versions), partial(kept_versions, versions)
            return filled, scan_folder(
                files, self._manifest, filled, announced, now, rule, tell, recorded, show, kept
            )

        filled, scanned = await blocking.run(fill)
        self._catalogue.take_over(filled)
        self._rows.forget()
        await settle_pending(self._recorder, self._catalogue, files, announced)
        return scanned

    def _show(self, known: Catalogue) -> None:
        if not self._opening.known.is_set():
            self._catalogue.show(known)
            self._opening.show(len(known))

    async def announce(self, scanned: ScanResult) -> None:
        """Journal the scan results, then store them in the manifest."""
        await self._catalogue.records.save()
        seq = self._coordinator.head
        if scanned.events:
            journalled = await self._coordinator.mailbox.ask(AppendEvents(scanned.events), within=600.0)
            if journalled is Journalled.LATER:  # The manifest must never be newer than the journal.
                self._publisher.record_later(scanned.rows, scanned.removed)
                await self._guard.begin(scanned.vanished, is_settled=False)
                return
            seq = journalled if isinstance(journalled, int) else seq
        manifest = self._manifest
        if scanned.rows or scanned.removed or manifest.seq is None or manifest.has_old_links:
            await self._threads.run(lambda: manifest.store_scan(scanned.rows, scanned.removed, seq))
        self._catalogue.records.fulfil_all()
        await self._guard.begin(scanned.vanished, is_settled=True)

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Detect external edits until cancelled.

        A failed watcher is restarted, however often it fails.
        """
        watcher = self._watcher
        await supervise(watcher.mailbox, watcher.start, crashes=sys.maxsize, task_status=task_status)

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the actors.

        Receivers start before their senders. Until `open`, only tasks and agents are available.
        """
        publisher, coordinator = self._publisher.mailbox, self._coordinator.mailbox
        downstream: list[Mailbox[Any]] = [
            *(each.mailbox for each in (self._words, self._meaning)),
            coordinator,
        ]
        await nursery.start(partial(supervise, coordinator, self._coordinator.start))
        memory, writer = self._memory.mailbox, self._writer.mailbox
        await nursery.start(partial(supervise, memory, self._memory.start, closes=[writer]))
        for indexer in (self._words, self._meaning):
            await nursery.start(partial(supervise, indexer.mailbox, indexer.start))
        await nursery.start(partial(supervise, publisher, self._publisher.start, closes=downstream))
        await nursery.start(partial(supervise, writer, self._writer.start, closes=[publisher]))

    async def open(self, background: trio.Nursery) -> None:
        """Index the scanned notes and wait for the first repair of the full-text index."""
        self._keeper.take(self._files.take_kept())
        await background.start(self._keeper.run)
        background.start_soon(self._semantic.load, self._meaning, self._first_things)
        background.start_soon(self._meaning.converge)
        if self._semantic.accurate is not None:
            background.start_soon(self._semantic.accurate.run, self._semantic.settled)
        background.start_soon(self._complete_graph)
        await background.start(self._words.converge)

    async def _complete_graph(self) -> None:
        """Complete the link graph before a caller needs it, but after the work that clients wait for."""
        await self._first_things()
        while not self._catalogue.graph.settle(1):
            await trio.lowlevel.checkpoint()

    async def _first_things(self) -> None:
        """Wait for the start-up work that clients need first.

        Return at once if the manifest is new or the libraries are already loaded.
        """
        if self._manifest.is_new or self._front.loaded.is_set():
            return
        with trio.move_on_after(FIRST_THINGS):
            await self._front.listens.wait()
        with trio.move_on_after(FIRST_CLIENT):
            await self._front.wanted.wait()
        with trio.move_on_after(FIRST_THINGS if self._front.wanted.is_set() else 0):
            await self._front.loaded.wait()
