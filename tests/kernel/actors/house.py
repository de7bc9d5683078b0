"""All actors that write notes, with fake indexes but real files, journal and manifest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.journal.coordinator import Coordinator
from lithos.events.rows.store import CoordinationStore
from lithos.history.recording.recorder import Recorder
from lithos.history.rows.store import HistoryStore
from lithos.kernel.actors.mailboxes import supervise
from lithos.kernel.actors.threads import Inline
from lithos.kernel.values.events import Event
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.catalogue.scan import ScanResult, scan_folder
from lithos.notes.files.displaced import Displaced, Moves
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.manifest import Manifest
from lithos.notes.model.plan import VanishRule
from lithos.notes.rows_coordination import KeptNotes
from lithos.notes.writing.actor_publisher import RECORD_DELAY, Publisher
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.applying import Applying
from lithos.notes.writing.deferred_removal import Keeper
from lithos.notes.writing.editing import Outlines
from lithos.notes.writing.messages import DeleteNote, WriteNote, WriteOutcome, WriteRequest
from lithos.notes.writing.preparation import Preparation
from tests.fakes import Clock, FakeIndex, Gate, LateCalls, make_indexer
from tests.kernel.actors.desks import all_boards


class House:
    """The stores and actors of one data directory. `killed` drops everything that is only in memory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = Clock()
        self._ids = 0
        self.open()

    def open(self) -> None:
        self.files = NoteFiles(self.root / "knowledge", LateCalls())
        self.files.create_root()
        self.store = CoordinationStore.open(self.root / "coordination.db", self.clock())
        self.history = HistoryStore.open(self.root / "history.db", self.clock())
        self.manifest = Manifest.open(self.root / "manifest.db", self.clock())
        self.catalogue = Catalogue(NoteRecords(self.store.rows(KeptNotes).load()))
        self.gate = Gate()
        self.indexes = [FakeIndex(), FakeIndex()]
        self.indexers = [
            make_indexer(f"index{n}", index, self.catalogue, self.files)
            for n, index in enumerate(self.indexes)
        ]
        self.broadcaster = Broadcaster(1000, 1000)
        self.coordinator = Coordinator(
            self.store,
            all_boards(self.store),
            Inline(),
            self.broadcaster,
            self.clock,
            journal_size=1000,
            records=self.catalogue.records,
        )
        self.publisher = Publisher(
            self.coordinator.mailbox, self.indexers, self.manifest, Inline(), self.catalogue.records
        )
        self.preparation = Preparation(self.catalogue, 1000, self.clock, self._new_id)
        self.displaced = Displaced(self.root / "displaced")
        self.keeper = Keeper(self.files, self.displaced, Inline(), self.clock, self.clock)
        recorder = Recorder(self.history, Inline())
        applying = Applying(self.catalogue.records, self.files, Moves(self.root), self.gate, recorder)
        keep = self.keeper.take
        self.writer = Writer(self.preparation, applying, self.publisher, keep, Outlines())

    def close(self) -> None:
        self.manifest.close()
        self.history.close()
        self.store.close()

    def restart(self) -> ScanResult:
        """Close, open and scan. The scan results are journalled in the same way as at a start."""
        self.close()
        self.open()
        return self.scan()

    def _new_id(self) -> str:
        self._ids += 1
        return f"00000000-0000-4000-9000-{self._ids:012}"

    def scan(self, rule: VanishRule | None = None) -> ScanResult:
        """Scan into a new catalogue without announcing the changes."""
        position = self.manifest.seq
        announced = self.store.events_after(position or 0)
        return scan_folder(
            self.files,
            self.manifest,
            self.catalogue,
            announced,
            self.clock(),
            rule or VanishRule(),
            recorded=self.history.places,
        )

    def settle(self, result: ScanResult) -> None:
        """Write the results of a scan to the journal and the manifest."""
        first = self.store.next_seq()
        events = [Event(seq=first + n, draft=draft) for n, draft in enumerate(result.events)]
        with self.store.transaction():
            self.store.append_events(events)
            self.store.put_along(self.catalogue.records.take_unsaved())
        self.manifest.store_scan(result.rows, result.removed, self.store.next_seq() - 1)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[trio.Nursery]:
        """Run all actors. On exit, the writer's mailbox is closed and the actors drain."""
        downstream: list[Any] = [indexer.mailbox for indexer in self.indexers]
        downstream.append(self.coordinator.mailbox)
        publisher, writer = self.publisher.mailbox, self.writer.mailbox
        async with trio.open_nursery() as actors:
            await actors.start(partial(supervise, self.coordinator.mailbox, self.coordinator.start))
            for indexer in self.indexers:
                await actors.start(partial(supervise, indexer.mailbox, indexer.start))
            await actors.start(partial(supervise, publisher, self.publisher.start, closes=downstream))
            await actors.start(partial(supervise, writer, self.writer.start, closes=[publisher]))
            async with trio.open_nursery() as background:
                await background.start(self.keeper.run)
                for indexer in self.indexers:
                    background.start_soon(indexer.converge)
                yield background
                background.cancel_scope.cancel()
            writer.close()
        await self.keeper.finish()

    async def ask(self, request: WriteRequest) -> WriteOutcome:
        """Send a request to the writer and return the outcome. Raise the error if the request is refused."""
        accepted = await self.writer.mailbox.ask(request)
        return await accepted.reply()

    async def create(self, title: str, content: str = "text", **fields: Any) -> WriteOutcome:
        return await self.ask(WriteNote(agent="a", title=title, content=content, **fields))

    async def update(self, note_id: str, title: str, content: str = "text", **fields: Any) -> WriteOutcome:
        return await self.ask(WriteNote(agent="a", id=note_id, title=title, content=content, **fields))

    async def delete(self, note_id: str) -> WriteOutcome:
        return await self.ask(DeleteNote(id=note_id, agent="a"))

    def told(self) -> list[tuple[str, str]]:
        """Return the type and path of every journalled event."""
        return [
            (event.draft.type, str(event.draft.payload.get("path") or event.draft.payload["dest_path"]))
            for event in self.store.events_after(0)
        ]

    async def becomes_consistent(self) -> bool:
        """Wait until everything, including the manifest, is consistent.

        Return whether the state is still consistent a moment later.
        """
        with trio.move_on_after(60):
            while not self.is_consistent():
                await trio.sleep(0.02)
        await trio.sleep(2 * RECORD_DELAY)
        return self.is_consistent()

    def is_consistent(self) -> bool:
        """Return whether files, catalogue, indexes and manifest agree."""
        entries = {entry.path: entry for entry in self.catalogue}
        states = {file.path: file.state for file in self.files.list_notes()}
        return (
            states == {path: entry.state for path, entry in entries.items()}
            and all(index.held == self.catalogue.stamps() for index in self.indexes)
            and self.manifest.load() == [entries[path] for path in sorted(entries)]
        )
