"""The actors over open stores: construction, start order, start scan and its events; what is open on disk.

Services take what they use from `Actors`, and from `Stores` through it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

import attrs
import trio
from attrs import frozen

from lithos.actors.attaching.attaching import Attaching
from lithos.actors.attaching.captions import Captions
from lithos.actors.blocking import Blocking, Threads
from lithos.actors.coordinating.broadcaster import Broadcaster
from lithos.actors.coordinating.coordinator import Coordinator
from lithos.actors.coordinating.messages import AppendEvents, Journalled, make_id
from lithos.actors.indexing.accurate import ACCURATE, AccurateTier
from lithos.actors.indexing.indexer import Indexer, Visibility
from lithos.actors.indexing.models import Models
from lithos.actors.indexing.ports import ChunkSizes, FulltextPort, VectorPort
from lithos.actors.indexing.semantic import SemanticBackend
from lithos.actors.kit import Mailbox, supervise
from lithos.actors.opening import Opening
from lithos.actors.remembering.actor import Memory
from lithos.actors.watching.guard import DeletionGuard
from lithos.actors.watching.watcher import Watcher
from lithos.actors.writing.applying import Applying
from lithos.actors.writing.catching_up import CatchingUp, settle_pending
from lithos.actors.writing.editing import Outlines
from lithos.actors.writing.keeper import Keeper
from lithos.actors.writing.preparation import Preparation
from lithos.actors.writing.proposing import Proposing
from lithos.actors.writing.publisher import Publisher
from lithos.actors.writing.recording import Recorder
from lithos.actors.writing.writer import Writer
from lithos.catalogue.catalogue import Catalogue
from lithos.catalogue.first_looks import FirstLooks
from lithos.catalogue.kinship import MOST_VERSIONS
from lithos.catalogue.lineage import Lineage
from lithos.catalogue.note_records import NoteRecords
from lithos.catalogue.scan import ScanResult, scan_folder
from lithos.config.catalogue import Config
from lithos.core.events import Event
from lithos.core.notes.style import VaultStyle
from lithos.core.plan import Place
from lithos.core.scopes import WriteScopes, check_globs, scopes_of_agents
from lithos.core.tasks.model import ClaimTimes
from lithos.core.times import format_time, settled_time
from lithos.metrics import Metrics
from lithos.stores.coordination.schema import NoteRows
from lithos.stores.coordination.store import CoordinationStore
from lithos.stores.database import Database
from lithos.stores.history.schema import HistoryFailed
from lithos.stores.history.store import HistoryStore
from lithos.stores.indexes.embedder import load_embedder
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.indexes.transformer import load_transformer
from lithos.stores.learning.edges import EdgeStore
from lithos.stores.learning.stats import StatsStore
from lithos.stores.lock import OwnerLock
from lithos.stores.manifest import Manifest
from lithos.stores.notes.displaced import CopyMerges, Displaced, Moves
from lithos.stores.notes.files import NoteFiles
from lithos.stores.orders import VanishedFiles
from lithos.telemetry import get_logger

log = get_logger("lithos.start")

S = TypeVar("S", bound=attrs.AttrsInstance)


@frozen
class Stores:
    """What is open on disk; closed in reverse order."""

    lock: OwnerLock
    files: NoteFiles
    displaced: Displaced
    coordination: CoordinationStore
    edges: EdgeStore
    stats: StatsStore
    manifest: Manifest
    fulltext: FulltextIndex
    #: The journal of moves that are under way.
    moves: Moves
    #: The merge of a conflict copy that is under way.
    copy_merges: CopyMerges
    #: None where `history.enabled` is off.
    history: HistoryStore | None
    #: How the notes are understood and written.
    style: VaultStyle
    #: Closes everything, the last one first, whatever of it fails.
    closing: ExitStack

    @property
    def databases(self) -> tuple[Database, ...]:
        """Databases that are checked for removal by other programs while they are open."""
        kept = (self.coordination, self.edges, self.stats, self.manifest)
        return kept if self.history is None else (*kept, self.history)


class SettledClock:
    """The clock that retention goes by: one wrong reading of the other clock deletes nothing.

    Called on the event loop. It starts from the time that `CoordinationStore` kept of an earlier run.
    """

    def __init__(self, clock: Callable[[], datetime], last: datetime | None) -> None:
        self._clock = clock
        self._last = clock() if last is None else last
        self._since = trio.current_time()
        self._is_ahead = False

    @property
    def reached(self) -> datetime:
        """The latest time that was believed: what is stored now is no older, whatever the clock says."""
        return self._last

    def __call__(self) -> datetime:
        """The time as far as it is believed; it stands still while the clock is behind."""
        now, at = self._clock(), trio.current_time()
        settled = settled_time(self._last, timedelta(seconds=at - self._since), now)
        if settled < now and not self._is_ahead:
            get_logger("lithos.app").warning(
                "the clock is far ahead of what was last seen: what is old is kept until that is made up for",
                clock=format_time(now),
                last_seen=format_time(self._last),
            )
        self._is_ahead = settled < now
        if settled > self._last:
            self._last, self._since = settled, at
        return settled


def settings_of(kind: type[S], config: object) -> S:
    """The settings that have the names of the fields of a class."""
    return kind(**{each.name: getattr(config, each.name) for each in attrs.fields(kind)})


def _recorded(stores: Stores, ids: Collection[str]) -> Mapping[str, Place]:
    """Where notes were according to the history, as far as there is one. Blocks."""
    try:
        return stores.history.places(ids) if stores.history is not None else {}
    except HistoryFailed as failure:
        log.warning("history not asked whose id it is", reason=failure.message)
        return {}


def _kept(stores: Stores, note_id: str) -> Iterator[bytes]:
    """The kept versions of a note, the newest first, as far as there is a history. Blocks."""
    try:
        if stores.history is not None:
            yield from stores.history.contents(note_id, MOST_VERSIONS)
    except HistoryFailed as failure:
        log.warning("history not asked for the versions of a note", reason=failure.message)


def place_moved(stores: Stores, catalogue: Catalogue) -> None:
    """Let the scan know notes without ids in their files that a killed process was moving. Blocks."""
    for intent in stores.moves.pending():
        moved = intent.relinking
        is_moved = stores.files.is_file(moved.new) and not stores.files.is_file(moved.old)
        if is_moved and not intent.identified:
            catalogue.records.place(moved.new, intent.id)


#: A commit takes some 20 ms for one note and 200 ms for so many, so that a rebuild wants few of them.
FULLTEXT_SLICE = 1_000
#: Seconds that the model and the link graph leave to a first client once the front listens.
FIRST_CLIENT: Final = 0.1
#: Seconds that they wait at most for the front to listen, and then for libraries that a client wants.
FIRST_THINGS: Final = 2.0
#: A commit costs more than everything else about a write, so that many writes should share one. Nobody
#: waits that long: whoever needs a change in the index hurries it.
FULLTEXT_LINGER = 0.2
FULLTEXT_BATCH = 256


class Actors:
    """The actors and what they own; the services read from here."""

    def __init__(
        self, config: Config, stores: Stores, clock: Callable[[], datetime], models: Models | None = None
    ) -> None:
        """`models` are those that the vaults of this process share."""
        self.models = models or Models()
        self.config = config
        self.stores = stores
        self.clock = clock
        #: What retention goes by.
        self.settled = SettledClock(clock, stores.coordination.settled())
        self.reading = Threads(2)
        self.metrics = Metrics()
        #: Set once the front listens.
        self.front_listens = trio.Event()
        #: Set once somebody waits for a library of the front.
        self.front_wanted = trio.Event()
        #: Set once no client has to wait for a library of the front, or there is none.
        self.front_loaded = trio.Event()
        #: Kept until the start scan.
        self._rows = stores.coordination.note_rows()
        self.catalogue = Catalogue(NoteRecords(self._rows), stores.style)
        #: What the notes rest on, and the warnings that follow: one for all, as it remembers what it found.
        self.lineage = Lineage(self.catalogue)
        self.outlines = Outlines()
        self.opening = Opening(stores.fulltext.document_count)
        #: Titles and first lines, until all notes are indexed.
        self.first_looks = FirstLooks(stores.files, stores.style)
        self.broadcaster = Broadcaster(config.events.event_buffer_size, config.events.subscriber_queue_size)
        self.coordinator = self._make_coordinator()
        #: One thread for the one read connection of the coordination database.
        self.coordination_reading = Threads()
        self.memory = self._make_memory()
        self.sizes = ChunkSizes(config.search.chunk_size)
        self._embedding = Threads()
        self.semantic = self._make_semantic()
        self.fulltext_port = FulltextPort(stores.fulltext, self.sizes, self.catalogue.entities)
        self.fulltext_indexer, self.vector_indexer = self._indexers = self._make_indexers()
        self.publisher = Publisher(
            self.coordinator.mailbox, self._indexers, stores.manifest, Threads(), self.catalogue.records
        )
        # The words of a first index are everybody's first answer: the model takes what they leave.
        self.semantic.port.leaves_a_core = lambda: not self.fulltext_indexer.is_converged
        self.visibility = Visibility(*self._indexers)
        self.recorder = Recorder(stores.history, Threads())
        self.keeper = Keeper(
            stores.files,
            stores.displaced,
            Threads(),
            clock,
            self.settled,
            self.recorder.look_again,
            lambda: self.settled.reached,
        )
        self.writer = self._make_writer()
        self.catching_up = CatchingUp(self.recorder, self.catalogue, self.keeper, self.writer.mailbox)
        vanished = VanishedFiles(config.storage.data_dir / ".lithos")
        self.guard = DeletionGuard(self.catalogue, stores.files, vanished, Threads())
        self.watcher = self._make_watcher()
        self.attaching = self._make_attaching()
        self.watcher.on_noticed = self.attaching.notice

    def _make_indexers(self) -> tuple[Indexer, Indexer]:
        files, port = self.stores.files, self.semantic.port
        return Indexer(
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
        ), Indexer(
            "vectors",
            port,
            self.catalogue,
            files,
            self._embedding,
            reading=Threads(),
            on_behind=port.tell_behind,
        )

    def _make_writer(self) -> Writer:
        stores, limit = self.stores, self.config.storage.max_content_size_bytes
        preparation = Preparation(self.catalogue, limit, self.clock, make_id, lambda: stores.files.ignored)
        needed = (stores.coordination,) if stores.history is None else (stores.coordination, stores.history)
        applying = Applying(
            self.catalogue.records, stores.files, stores.moves, Threads(), self.recorder, needed
        )
        proposing = Proposing(
            self.coordinator,
            stores.coordination.readable_proposals(),
            self.coordination_reading,
            self.reading,
            self.catalogue,
            self.clock,
        )
        versions = partial(_kept, stores)
        writer = Writer(
            preparation, applying, self.publisher, self.keeper.take, self.outlines, proposing, versions
        )
        protected = check_globs(self.config.storage.protected)
        writer.scopes = WriteScopes(protected, scopes_of_agents(self.config.agents))
        return writer

    def _make_watcher(self) -> Watcher:
        """The watcher; switched off, it still ends what the guard began."""
        config = self.config
        return Watcher(
            config.index.watch_mode if config.server.watch_files else "off",
            config.index.watch_debounce_ms / 1_000,
            self.guard,
            self.writer.mailbox,
            self._indexers,
            partial(self.metrics.count, "file_watcher_events"),
        )

    def _make_attaching(self) -> Attaching:
        files = self.stores.files
        return Attaching(
            files,
            self.config.storage.data_dir / ".lithos",
            self.semantic,
            self.sizes,
            Captions(self.catalogue, files),
            self.clock,
            is_told=lambda: self.watcher.is_told,
            notes_first=self.notes_searchable,
            changes=lambda: self.writer.mailbox.stats.handled,
            is_enabled=self.config.reads_attachments,
        )

    async def notes_searchable(self) -> None:
        """Wait until full text and meaning cover every note, or there is no model."""
        await self.opening.complete.wait()
        await self.fulltext_indexer.converged()
        await self.semantic.settled.wait()

    def _make_coordinator(self) -> Coordinator:
        config = self.config
        return Coordinator(
            self.stores.coordination,
            Threads(),
            self.broadcaster,
            self.clock,
            journal_size=config.events.journal_size,
            claim_times=ClaimTimes(
                config.coordination.claim_default_ttl_minutes,
                config.coordination.claim_max_ttl_minutes,
                config.coordination.max_attempts,
                config.coordination.retry_minutes,
            ),
            strict=config.coordination.strict,
            proposal_days=config.proposals.days,
            on_commit=self._count_events,
            records=self.catalogue.records,
        )

    def _make_memory(self) -> Memory:
        stores = self.stores
        return Memory(
            stores.edges,
            stores.stats,
            Threads(),
            self.coordinator,
            stores.coordination,
            self.coordination_reading,
            self.clock,
            questions_kept=self.config.lcma.questions_kept,
            relations=self.catalogue.relations,
            entities=self.catalogue.entities,
        )

    def _make_semantic(self) -> SemanticBackend:
        search, directory = self.config.search, self.config.storage.data_dir / ".usearch"
        port, accurate, models = VectorPort(self.sizes), None, self.models
        if search.tier != "static":
            load = partial(models.transformer, load_transformer, search.accurate_threads)
            files, below = self.stores.files, directory / ACCURATE
            accurate = AccurateTier(port, self.catalogue, files, load, below, search.tier, models.embedding)
        return SemanticBackend(
            port,
            self._embedding,
            partial(models.static, load_embedder),
            directory,
            search.embedding_model,
            accurate,
        )

    def recall(self) -> Sequence[Event]:
        """Read the events that the manifest lacks; blocks. Call it before `start`."""
        position = self.stores.manifest.seq
        # Without a manifest the journal is all that tells which versions were given.
        return self.stores.coordination.events_after(0 if position is None else position)

    async def scan(self, announced: Sequence[Event], blocking: Blocking) -> ScanResult:
        """Fill the catalogue from the folder, `announced` being the events that the manifest lacks.

        The catalogue is empty until then: what readers see changes at once, on the event loop.
        """
        stores, rows = self.stores, self._rows
        tell = self.opening.teller()
        token = trio.lowlevel.current_trio_token()
        if stores.manifest.is_new:
            self.opening.recalled.set()

        def show(known: Catalogue) -> None:
            token.run_sync_soon(self._show, known)

        def fill() -> tuple[Catalogue, ScanResult]:
            filled = Catalogue(NoteRecords(rows), self.catalogue.style)
            rule = self.guard.start_rule()
            now = self.clock()
            place_moved(stores, filled)
            recorded, versions = partial(_recorded, stores), partial(_kept, stores)
            return filled, scan_folder(
                stores.files, stores.manifest, filled, announced, now, rule, tell, recorded, show, versions
            )

        filled, scanned = await blocking.run(fill)
        self.catalogue.take_over(filled)
        self._rows = NoteRows()
        await settle_pending(self.recorder, self.catalogue, stores.files, announced)
        return scanned

    def _show(self, known: Catalogue) -> None:
        if not self.opening.known.is_set():
            self.catalogue.show(known)
            self.opening.show(len(known))

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
        manifest = self.stores.manifest
        if scanned.rows or scanned.removed or manifest.seq is None or manifest.has_old_links:
            await self.reading.run(lambda: manifest.store_scan(scanned.rows, scanned.removed, seq))
        self.catalogue.records.fulfil_all()
        await self.guard.begin(scanned.vanished, is_settled=True)

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Notice outside changes until cancelled; however often the watcher fails, it is started again."""
        watcher = self.watcher
        await supervise(watcher.mailbox, watcher.start, crashes=sys.maxsize, task_status=task_status)

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the actors, downstream first; until `open` nothing but tasks and agents is asked for."""
        publisher, coordinator = self.publisher.mailbox, self.coordinator.mailbox
        downstream: list[Mailbox[Any]] = [*(each.mailbox for each in self._indexers), coordinator]
        await nursery.start(partial(supervise, coordinator, self.coordinator.start))
        memory, writer = self.memory.mailbox, self.writer.mailbox
        await nursery.start(partial(supervise, memory, self.memory.start, closes=[writer]))
        for indexer in self._indexers:
            await nursery.start(partial(supervise, indexer.mailbox, indexer.start))
        await nursery.start(partial(supervise, publisher, self.publisher.start, closes=downstream))
        await nursery.start(partial(supervise, writer, self.writer.start, closes=[publisher]))

    async def open(self, background: trio.Nursery) -> None:
        """Index the scanned notes, and wait for the first repair of the full-text index."""
        self.keeper.take(self.stores.files.take_kept())
        await background.start(self.keeper.run)
        background.start_soon(self.semantic.load, self.vector_indexer, self._first_things)
        background.start_soon(self.vector_indexer.converge)
        if self.semantic.accurate is not None:
            background.start_soon(self.semantic.accurate.run, self.semantic.settled)
        background.start_soon(self._complete_graph)
        await background.start(self.fulltext_indexer.converge)

    async def _complete_graph(self) -> None:
        """Complete the link graph before somebody asks for it, but after what clients wait for first."""
        await self._first_things()
        while not self.catalogue.graph.settle(1):
            await trio.lowlevel.checkpoint()

    async def _first_things(self) -> None:
        """Leave the processor to what clients wait for first, unless there are notes to embed."""
        if self.stores.manifest.is_new or self.front_loaded.is_set():
            return
        with trio.move_on_after(FIRST_THINGS):
            await self.front_listens.wait()
        with trio.move_on_after(FIRST_CLIENT):
            await self.front_wanted.wait()
        with trio.move_on_after(FIRST_THINGS if self.front_wanted.is_set() else 0):
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
