"""Composition of the actors over open stores: construction, start order, the start scan and its events.

Also the watcher, the deletion guard, and the conversion of configuration sections to settings of the core.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
import trio

from lithos.actors.blocking import BackgroundThread, Blocking, Threads
from lithos.actors.coordinating.broadcaster import Broadcaster
from lithos.actors.coordinating.coordinator import Coordinator
from lithos.actors.coordinating.messages import AppendEvents, Journalled, make_id
from lithos.actors.indexing.accurate import ACCURATE, AccurateParts, AccurateTier
from lithos.actors.indexing.graph_cache import GraphCache
from lithos.actors.indexing.indexer import Indexer, Visibility
from lithos.actors.indexing.list_keeper import ListKeeper
from lithos.actors.indexing.ports import ChunkSizes, FulltextPort, VectorPort
from lithos.actors.indexing.semantic import SemanticBackend
from lithos.actors.indexing.tiers import QueryEmbedder
from lithos.actors.kit import Mailbox, supervise
from lithos.actors.remembering.actor import Memory
from lithos.actors.watching.guard import DeletionGuard
from lithos.actors.watching.watcher import Watcher
from lithos.actors.writing.catching_up import CatchingUp, settle_pending
from lithos.actors.writing.editing import Outlines
from lithos.actors.writing.keeper import Keeper
from lithos.actors.writing.preparation import Preparation
from lithos.actors.writing.publisher import Publisher
from lithos.actors.writing.recording import Recorder
from lithos.actors.writing.writer import Writer, WriterMailbox
from lithos.app.stores import SettledClock, Stores
from lithos.app.style import style_of
from lithos.catalogue.catalogue import Catalogue
from lithos.catalogue.lineage import Lineage
from lithos.catalogue.note_records import NoteRecords
from lithos.catalogue.scan import ScanResult, scan_folder
from lithos.config.catalogue import Config
from lithos.config.sections import LcmaConfig
from lithos.core.events import Event
from lithos.core.learning.salience import LearningSettings, UsageSettings
from lithos.core.plan import Place
from lithos.core.tasks.model import ClaimTimes
from lithos.metrics import Metrics
from lithos.services.opening import Opening
from lithos.services.retrieve.feedback import Learning
from lithos.stores.coordination.schema import NoteRows
from lithos.stores.history.schema import HistoryFailed
from lithos.stores.indexes.embedder import Embedder
from lithos.stores.orders import VanishedFiles
from lithos.telemetry import get_logger

log = get_logger("lithos.start")

S = TypeVar("S", LearningSettings, UsageSettings)


def learning_settings(config: LcmaConfig) -> LearningSettings:
    """How fast salience moves."""
    return _pick(LearningSettings, config)


def usage_settings(config: LcmaConfig) -> UsageSettings:
    """What counts as use."""
    return _pick(UsageSettings, config)


def _pick(kind: type[S], config: LcmaConfig) -> S:
    """The settings that have the names of the fields."""
    return kind(**{each.name: getattr(config, each.name) for each in attrs.fields(kind)})


def make_guard(config: Config, stores: Stores, catalogue: Catalogue) -> DeletionGuard:
    """The guard, which the start scan asks first."""
    vanished = VanishedFiles(config.storage.data_dir / ".lithos")
    return DeletionGuard(catalogue, stores.files, vanished, Threads(), config.index.max_vanished_fraction)


def make_watcher(
    config: Config,
    stores: Stores,
    catalogue: Catalogue,
    writer: WriterMailbox,
    guard: DeletionGuard,
    indexers: Sequence[Indexer],
    metrics: Metrics,
) -> Watcher:
    """The watcher; switched off, it still ends what the guard began."""
    return Watcher(
        config.index.watch_mode if config.server.watch_files else "off",
        config.index.watch_debounce_ms / 1_000,
        catalogue,
        stores.files,
        writer,
        guard,
        indexers,
        Threads(),
        partial(metrics.count, "file_watcher_events"),
    )


def _recorded(stores: Stores, ids: Collection[str]) -> Mapping[str, Place]:
    """Where notes were according to the history, as far as there is one. Blocks."""
    try:
        return stores.history.places(ids) if stores.history is not None else {}
    except HistoryFailed as failure:
        log.warning("history not asked whose id it is", reason=failure.message)
        return {}


def place_moved(stores: Stores, catalogue: Catalogue) -> None:
    """Let the scan know notes without ids in their files that a killed process was moving. Blocks."""
    for intent in stores.moves.pending():
        moved = intent.relinking
        is_moved = stores.files.is_file(moved.new) and not stores.files.is_file(moved.old)
        if is_moved and not intent.identified:
            catalogue.records.place(moved.new, intent.id)


#: A commit takes some 20 ms for one note and 200 ms for so many, so that a rebuild wants few of them.
FULLTEXT_SLICE = 1_000
#: Seconds that the model waits for the libraries of the front.
FIRST_THINGS = 2.0
#: A commit costs more than everything else about a write, so that many writes should share one. Nobody
#: waits that long: whoever needs a change in the index hurries it.
FULLTEXT_LINGER = 0.2
FULLTEXT_BATCH = 256


class Actors:
    """The actors and what they own; the services read from here."""

    def __init__(
        self,
        config: Config,
        stores: Stores,
        clock: Callable[[], datetime],
        reading: Threads,
        load_embedder: Callable[[str], Embedder],
        load_accurate: Callable[[int], QueryEmbedder],
    ) -> None:
        self.config = config
        self.stores = stores
        self.clock = clock
        #: What retention goes by.
        self.settled = SettledClock(clock, stores.coordination.settled())
        self.reading = reading
        self._load_embedder = load_embedder
        self._load_accurate = load_accurate
        self.metrics = Metrics()
        #: Set once no client has to wait for a library of the front, or there is none.
        self.front_loaded = trio.Event()
        #: Kept until the start scan.
        self._rows = stores.coordination.note_rows()
        self.catalogue = Catalogue(NoteRecords(self._rows), style_of(config.storage))
        #: What the notes rest on, and the warnings that follow: one for all, as it remembers what it found.
        self.lineage = Lineage(self.catalogue)
        self.outlines = Outlines()
        self.opening = Opening(stores.fulltext.document_count)
        self.graph_cache = GraphCache(self.catalogue.graph, config.storage.data_dir, Threads())
        self.broadcaster = Broadcaster(config.events.event_buffer_size, config.events.subscriber_queue_size)
        self.coordinator = self._make_coordinator()
        #: One thread for the one read connection of the coordination database.
        self.coordination_reading = Threads()
        self.memory = self._make_memory()
        self.learning = Learning(self.memory.mailbox, stores.stats, Threads())
        self.sizes = ChunkSizes(config.search.chunk_size, config.search.chunk_max)
        self._embedding = Threads()
        self.semantic = self._make_semantic()
        self.list_keeper = ListKeeper(self.semantic.indexes, BackgroundThread("lithos-lists"))
        self.semantic.port.on_rows = self.list_keeper.look
        self.fulltext_port = FulltextPort(stores.fulltext, self.sizes, self.catalogue.entities)
        self.fulltext_indexer, self.vector_indexer = self._make_indexers()
        indexers = (self.fulltext_indexer, self.vector_indexer)
        self.publisher = Publisher(
            self.coordinator.mailbox, indexers, stores.manifest, Threads(), self.catalogue.records
        )
        # The words of a first index are everybody's first answer: the model takes what they leave.
        self.semantic.port.leaves_a_core = lambda: not self.fulltext_indexer.is_converged
        self.visibility = Visibility(self.fulltext_indexer, self.vector_indexer)
        self.recorder = Recorder(stores.history, Threads())
        self.keeper = Keeper(
            stores.files, stores.displaced, Threads(), clock, self.settled, self.recorder.look_again
        )
        self.writer = self._make_writer(indexers)
        self.catching_up = CatchingUp(
            self.recorder,
            self.catalogue,
            stores.files,
            stores.displaced,
            self.writer.mailbox,
            Threads(),
            clock,
        )
        self.guard = make_guard(config, stores, self.catalogue)
        self.watcher = make_watcher(
            config, stores, self.catalogue, self.writer.mailbox, self.guard, indexers, self.metrics
        )

    def _make_indexers(self) -> tuple[Indexer, Indexer]:
        files = self.stores.files
        fulltext = Indexer(
            "fulltext",
            self.fulltext_port,
            self.catalogue,
            files,
            Threads(),
            reading=Threads(),
            repair_slice=FULLTEXT_SLICE,
            batch=FULLTEXT_BATCH,
            linger=FULLTEXT_LINGER,
            on_behind=self.stores.fulltext.tell_behind,
        )
        port = self.semantic.port
        return fulltext, Indexer(
            "vectors",
            port,
            self.catalogue,
            files,
            self._embedding,
            reading=Threads(),
            on_behind=port.tell_behind,
        )

    def _make_writer(self, indexers: Sequence[Indexer]) -> Writer:
        limit = self.config.storage.max_content_size_bytes
        preparation = Preparation(self.catalogue, limit, self.clock, make_id, self.stores.files.ignored)
        files, publisher = self.stores.files, self.publisher.mailbox
        keep = self.keeper.take
        moves = self.stores.moves
        return Writer(
            self.catalogue,
            files,
            Threads(),
            indexers,
            publisher,
            preparation,
            keep,
            moves,
            self.recorder,
            self.outlines,
        )

    def _make_coordinator(self) -> Coordinator:
        config = self.config
        return Coordinator(
            self.stores.coordination,
            Threads(),
            self.broadcaster,
            self.clock,
            events_enabled=config.events.enabled,
            journal_size=config.events.journal_size,
            claim_times=ClaimTimes(
                config.coordination.claim_default_ttl_minutes, config.coordination.claim_max_ttl_minutes
            ),
            strict=config.coordination.strict,
            on_commit=self._count_events,
            records=self.catalogue.records,
        )

    def _make_memory(self) -> Memory:
        stores = self.stores
        journal, reading = stores.coordination, self.coordination_reading
        return Memory(
            stores.edges,
            stores.stats,
            Threads(),
            self.coordinator,
            journal,
            reading,
            self.clock,
            settings=learning_settings(self.config.lcma),
            on_salience=lambda notes: self.metrics.count("lcma_salience_updates", by=notes),
            relations=self.catalogue.relations,
            entities=self.catalogue.entities,
        )

    def _make_semantic(self) -> SemanticBackend:
        model = self.config.search.embedding_model
        directory = self.config.storage.data_dir / ".usearch"
        port = VectorPort(self.sizes)
        accurate = self._make_accurate(port, directory)
        return SemanticBackend(port, self._embedding, self._load_embedder, directory, model, accurate)

    def _make_accurate(self, port: VectorPort, directory: Path) -> AccurateTier | None:
        search = self.config.search
        if search.tier == "static":
            return None
        parts = AccurateParts(
            port=port,
            catalogue=self.catalogue,
            files=self.stores.files,
            load=partial(self._load_accurate, search.accurate_threads),
            directory=directory / ACCURATE,
            sizes=self.sizes,
            thread=BackgroundThread("lithos-accurate"),
            reading=Threads(),
        )
        return AccurateTier(parts, search.tier)

    def recall(self) -> Sequence[Event]:
        """Read the graph's cache, and the events that the manifest lacks; blocks. Call it before `start`."""
        self.graph_cache.read()
        position = self.stores.manifest.seq
        # Without a manifest the journal is all that tells which versions were given.
        return self.stores.coordination.events_after(0 if position is None else position)

    async def scan(self, announced: Sequence[Event], blocking: Blocking) -> ScanResult:
        """Fill the catalogue from the folder, `announced` being the events that the manifest lacks.

        The catalogue is empty until then: what readers see changes at once, on the event loop.
        """
        stores, rows = self.stores, self._rows
        tell = self.opening.teller()

        def fill() -> tuple[Catalogue, ScanResult]:
            filled = Catalogue(NoteRecords(rows), self.catalogue.style)
            rule = self.guard.start_rule()
            now = self.clock()
            place_moved(stores, filled)
            recorded = partial(_recorded, stores)
            return filled, scan_folder(
                stores.files, stores.manifest, filled, announced, now, rule, tell, recorded
            )

        filled, scanned = await blocking.run(fill)
        self.catalogue.take_over(filled)
        self._rows = NoteRows()
        await settle_pending(self.recorder, self.catalogue, stores.files, announced)
        return scanned

    async def announce(self, scanned: ScanResult) -> None:
        """Journal what the scan found, then let the manifest remember it."""
        await self.catalogue.records.save()
        seq = self.coordinator.head
        if scanned.events:
            journalled = await self.coordinator.mailbox.ask(AppendEvents(scanned.events), within=600.0)
            if journalled is Journalled.LATER:  # the manifest must not run ahead of the journal
                self.publisher.record_later(scanned.rows, scanned.removed)
                await self.guard.begin(scanned.vanished, is_settled=False)
                return
            seq = journalled if isinstance(journalled, int) else seq
        if scanned.rows or scanned.removed or self.stores.manifest.seq is None:
            await self.reading.run(lambda: self.stores.manifest.store(scanned.rows, scanned.removed, seq))
        self.catalogue.records.fulfil_all()
        await self.guard.begin(scanned.vanished, is_settled=True)

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Notice outside changes until cancelled; however often the watcher fails, it is started again."""
        watcher = self.watcher
        await supervise(watcher.mailbox, watcher.start, crashes=sys.maxsize, task_status=task_status)

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the actors, downstream first; until `open` nothing but tasks and agents is asked for."""
        publisher, coordinator = self.publisher.mailbox, self.coordinator.mailbox
        downstream: list[Mailbox[Any]] = [
            self.fulltext_indexer.mailbox,
            self.vector_indexer.mailbox,
            coordinator,
        ]
        await nursery.start(partial(supervise, coordinator, self.coordinator.start))
        memory, writer = self.memory.mailbox, self.writer.mailbox
        await nursery.start(partial(supervise, memory, self.memory.start, closes=[writer]))
        for indexer in (self.fulltext_indexer, self.vector_indexer):
            await nursery.start(partial(supervise, indexer.mailbox, indexer.start))
        await nursery.start(partial(supervise, publisher, self.publisher.start, closes=downstream))
        await nursery.start(partial(supervise, writer, self.writer.start, closes=[publisher]))

    async def open(self, background: trio.Nursery) -> None:
        """Index the scanned notes, and wait for the first repair of the full-text index."""
        self.keeper.take(self.stores.files.take_kept())
        await background.start(self.keeper.run)
        background.start_soon(self.semantic.load, self.vector_indexer, self._first_things)
        background.start_soon(self.vector_indexer.converge)
        background.start_soon(self.list_keeper.run)
        if self.semantic.accurate is not None:
            background.start_soon(self.semantic.accurate.run, self.semantic.settled)
        background.start_soon(self.graph_cache.keep, self._first_things)
        await background.start(self.fulltext_indexer.converge)

    async def _first_things(self) -> None:
        """Leave the processor to what clients wait for first, unless there are notes to embed."""
        with trio.move_on_after(0 if self.stores.manifest.is_new else FIRST_THINGS):
            await self.front_loaded.wait()

    def mailboxes(self) -> tuple[Mailbox[Any], ...]:
        """Of all actors."""
        return (
            self.writer.mailbox,
            self.fulltext_indexer.mailbox,
            self.vector_indexer.mailbox,
            self.publisher.mailbox,
            self.memory.mailbox,
            self.coordinator.mailbox,
            self.watcher.mailbox,
        )

    def _count_events(self, events: Sequence[Event], seconds: float) -> None:
        self.metrics.observe("journal_append_duration_seconds", seconds)
        for event in events:
            self.metrics.count("events", event.draft.type)
