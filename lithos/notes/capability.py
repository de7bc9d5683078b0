"""Notes as a capability: their catalogue, the actors that write and watch them, and what tools ask."""

from __future__ import annotations

from functools import partial

from lithos.actors.blocking import NoteThreads, Threads
from lithos.actors.coordinating.broadcaster import Broadcaster
from lithos.actors.coordinating.coordinator import Coordinator
from lithos.actors.coordinating.messages import make_id
from lithos.actors.coordinating.reading import JournalThread
from lithos.actors.front_signals import FrontSignals
from lithos.actors.indexing.indexer import FulltextIndexer, VectorIndexer
from lithos.actors.opening import Opening
from lithos.actors.settled_clock import SettledClock
from lithos.actors.watching.guard import DeletionGuard
from lithos.actors.watching.watcher import Watcher
from lithos.actors.writing.applying import Applying
from lithos.actors.writing.editing import Outlines
from lithos.actors.writing.keeper import Keeper
from lithos.actors.writing.preparation import Preparation
from lithos.actors.writing.proposing import Proposing
from lithos.actors.writing.publisher import Publisher
from lithos.actors.writing.recording import Recorder
from lithos.actors.writing.writer import Writer
from lithos.catalogue.catalogue import Catalogue
from lithos.catalogue.first_looks import FirstLooks
from lithos.catalogue.lineage import Lineage
from lithos.catalogue.note_records import NoteRecords
from lithos.core.scopes import WriteScopes
from lithos.kernel.capability import Background, Capability
from lithos.kernel.parts import Clock
from lithos.kernel.settings import StorageConfig
from lithos.metrics import Metrics
from lithos.notes.scanning import ScannedRows, kept_versions
from lithos.notes.settings import IndexConfig
from lithos.server.settings import ServerConfig
from lithos.services.notes.browsing import Browsing, VaultFiles
from lithos.services.notes.knowledge import Knowledge
from lithos.services.notes.moving import Moving
from lithos.services.notes.resources import Changes, Library, Resources
from lithos.services.notes.texts import NoteTexts, Snippets
from lithos.services.writing.cut_reads import CutReads
from lithos.services.writing.pasting import Pasting
from lithos.stores.coordination.store import CoordinationStore
from lithos.stores.history.store import HistoryStore
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.manifest import Manifest
from lithos.stores.notes.displaced import Displaced, Moves
from lithos.stores.notes.files import NoteFiles
from lithos.stores.orders import VanishedFiles


def make_records(rows: ScannedRows) -> NoteRecords:
    """Make what is remembered of note files."""
    return NoteRecords(rows.rows)


def make_opening(fulltext: FulltextIndex) -> Opening:
    """Make what tells how far the start is."""
    return Opening(fulltext.document_count)


def make_publisher(
    coordinator: Coordinator,
    words: FulltextIndexer,
    meaning: VectorIndexer,
    manifest: Manifest,
    records: NoteRecords,
) -> Publisher:
    """Make the actor that tells indexes and journal of a change."""
    return Publisher(coordinator.mailbox, (words, meaning), manifest, Threads(), records)


def make_keeper(
    files: NoteFiles, displaced: Displaced, clock: Clock, settled: SettledClock, recorder: Recorder
) -> Keeper:
    """Make the keeper of bytes that a change took from their place."""
    return Keeper(files, displaced, Threads(), clock, settled, recorder.look_again, lambda: settled.reached)


def make_preparation(
    catalogue: Catalogue, storage: StorageConfig, clock: Clock, files: NoteFiles
) -> Preparation:
    """Make what checks a change before it is written."""
    return Preparation(catalogue, storage.max_content_size_bytes, clock, make_id, lambda: files.ignored)


def make_applying(
    records: NoteRecords,
    files: NoteFiles,
    moves: Moves,
    recorder: Recorder,
    journal: CoordinationStore,
    versions: HistoryStore | None,
) -> Applying:
    """Make what carries a change out."""
    needed = (journal,) if versions is None else (journal, versions)
    return Applying(records, files, moves, Threads(), recorder, needed)


def make_proposing(
    coordinator: Coordinator,
    journal: CoordinationStore,
    journal_thread: JournalThread,
    threads: NoteThreads,
    catalogue: Catalogue,
    clock: Clock,
) -> Proposing:
    """Make what keeps a change for a person."""
    return Proposing(coordinator, journal.readable_proposals(), journal_thread, threads, catalogue, clock)


def make_writer(
    preparation: Preparation,
    applying: Applying,
    publisher: Publisher,
    keeper: Keeper,
    outlines: Outlines,
    proposing: Proposing,
    versions: HistoryStore | None,
    scopes: WriteScopes,
) -> Writer:
    """Make the one writer of notes."""
    kept = partial(kept_versions, versions)
    writer = Writer(preparation, applying, publisher, keeper.take, outlines, proposing, kept)
    writer.scopes = scopes
    return writer


def make_vanished(storage: StorageConfig) -> VanishedFiles:
    """Make the list of files that went while nobody looked."""
    return VanishedFiles(storage.data_dir / ".lithos")


def make_guard(catalogue: Catalogue, files: NoteFiles, vanished: VanishedFiles) -> DeletionGuard:
    """Make the guard against mass deletions."""
    return DeletionGuard(catalogue, files, vanished, Threads())


def make_watcher(
    index: IndexConfig,
    server: ServerConfig,
    guard: DeletionGuard,
    writer: Writer,
    words: FulltextIndexer,
    meaning: VectorIndexer,
    metrics: Metrics,
) -> Watcher:
    """Make the watcher; switched off, it still ends what the guard began."""
    return Watcher(
        index.watch_mode if server.watch_files else "off",
        index.watch_debounce_ms / 1_000,
        guard,
        writer.mailbox,
        (words, meaning),
        partial(metrics.count, "file_watcher_events"),
    )


def make_vault_files(files: NoteFiles, catalogue: Catalogue) -> VaultFiles:
    """Make the reader of files beside notes."""
    return VaultFiles(files, catalogue, Threads(2))


def make_changes(broadcaster: Broadcaster) -> Changes:
    """Make what tells clients of changed resources."""
    return Changes(broadcaster)


NOTES = Capability(
    name="notes",
    makers=(
        FrontSignals,
        NoteThreads,
        ScannedRows,
        make_records,
        Catalogue,
        Lineage,
        Outlines,
        FirstLooks,
        make_opening,
        make_publisher,
        make_keeper,
        make_preparation,
        make_applying,
        make_proposing,
        make_writer,
        make_vanished,
        make_guard,
        make_watcher,
        NoteTexts,
        Snippets,
        Knowledge,
        Pasting,
        CutReads,
        Moving,
        Browsing,
        make_vault_files,
        Resources,
        make_changes,
        Library,
    ),
    background=(Background(Moving, Moving.run),),
)
