"""Actors and services over open stores, and the server they make."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import trio

from lithos import __version__
from lithos.actors.blocking import Threads
from lithos.actors.broadcaster import Broadcaster
from lithos.actors.catalogue import Catalogue
from lithos.actors.coordinator import AppendEvents, Coordinator, Journalled, make_id
from lithos.actors.fulltext import FulltextPort
from lithos.actors.graph_cache import GraphCache
from lithos.actors.indexer import Indexer, IndexMailbox
from lithos.actors.kit import Mailbox, supervise
from lithos.actors.memory import Memory
from lithos.actors.preparation import Preparation
from lithos.actors.publisher import Publisher
from lithos.actors.scan import ScanResult, scan_folder
from lithos.actors.semantic import SemanticBackend
from lithos.actors.vector_port import ChunkSizes, VectorPort
from lithos.actors.writer import Writer
from lithos.app.enrichment import EnrichmentSources, make_enrichment, watch_learning
from lithos.app.library import make_library
from lithos.app.retrieving import RetrieveSources, make_retrieve
from lithos.app.server import Server
from lithos.app.settings import learning_settings
from lithos.app.stores import Stores
from lithos.app.watching import make_guard, make_watcher
from lithos.config import Config
from lithos.core.claims import ClaimTimes
from lithos.core.events import Event
from lithos.metrics import Metrics
from lithos.services.agents import Agents
from lithos.services.audit import AccessLog
from lithos.services.coordination import Coordination
from lithos.services.cursors import Cursors
from lithos.services.enrichment import Enrichment
from lithos.services.entities import EntityExtraction
from lithos.services.event_stream import EventStreams
from lithos.services.feedback import Feedback
from lithos.services.gauges import Gauges
from lithos.services.graph import Graph, no_edges
from lithos.services.knowledge import Knowledge
from lithos.services.learning import Learning
from lithos.services.library import Library
from lithos.services.memory import Edges
from lithos.services.projection import Projection
from lithos.services.retrieval import Retrieval, RetrievalSettings
from lithos.services.retrieve import Retrieve
from lithos.services.state import ServerState, StateParts
from lithos.services.texts import NoteTexts
from lithos.stores.embedder import load_embedder
from lithos.tools.agents import AgentTools
from lithos.tools.edges import EdgeTools
from lithos.tools.graph import GraphTools
from lithos.tools.legacy import LegacyTools
from lithos.tools.memory import MemoryTools
from lithos.tools.metering import ToolMeter
from lithos.tools.notes import NoteTools
from lithos.tools.order import in_order
from lithos.tools.registry import Tools
from lithos.tools.retrieve import RetrieveTools
from lithos.tools.search import SearchTools
from lithos.tools.system import SystemTools
from lithos.tools.task_graph import TaskGraphTools
from lithos.tools.tasks import TaskTools

#: A commit takes some 20 ms for one note and 200 ms for so many, so that a rebuild wants few of them.
FULLTEXT_SLICE = 1_000
#: About as long as a commit takes, half of which is waiting for the disk: with 16 agents writing at once
#: it halves the number of commits and of merges, and the slowest writes come through sooner.
FULLTEXT_LINGER = 0.02


class Assembly:
    """Actors and services over open stores."""

    def __init__(
        self, config: Config, stores: Stores, clock: Callable[[], datetime], reading: Threads
    ) -> None:
        self._config = config
        self._stores = stores
        self._clock = clock
        self._reading = reading
        self.metrics = Metrics()
        self.startup_seconds = 0.0
        self.catalogue = Catalogue()
        self.graph_cache = GraphCache(self.catalogue.graph, config.storage.data_dir, Threads())
        self.broadcaster = Broadcaster(config.events.event_buffer_size, config.events.subscriber_queue_size)
        self.coordinator = self._make_coordinator()
        #: One thread for the one read connection of the coordination database.
        self._coordination_reading = Threads()
        self.memory = self._make_memory()
        self.learning = Learning(self.memory.mailbox, stores.stats, Threads())
        self._sizes = ChunkSizes(config.search.chunk_size, config.search.chunk_max)
        self._embedding = Threads()
        self.semantic = self._make_semantic()
        self.fulltext_indexer, self.vector_indexer = self._make_indexers()
        indexers = (self.fulltext_indexer, self.vector_indexer)
        self.publisher = Publisher(self.coordinator.mailbox, indexers, stores.manifest, Threads())
        self.writer = self._make_writer([indexer.mailbox for indexer in indexers])
        self.guard = make_guard(config, stores, self.catalogue)
        self.watcher = make_watcher(
            config, stores, self.catalogue, self.writer.mailbox, self.guard, indexers, self.metrics
        )

    def _make_indexers(self) -> tuple[Indexer, Indexer]:
        files = self._stores.files
        fulltext = Indexer(
            "fulltext",
            FulltextPort(self._stores.fulltext),
            self.catalogue,
            files,
            Threads(),
            repair_slice=FULLTEXT_SLICE,
            linger=FULLTEXT_LINGER,
            on_behind=self._stores.fulltext.tell_behind,
        )
        port = self.semantic.port
        return fulltext, Indexer(
            "vectors", port, self.catalogue, files, self._embedding, on_behind=port.tell_behind
        )

    def _make_writer(self, indexes: Sequence[IndexMailbox]) -> Writer:
        limit = self._config.storage.max_content_size_bytes
        preparation = Preparation(self.catalogue, limit, self._clock, make_id)
        files, publisher = self._stores.files, self.publisher.mailbox
        return Writer(self.catalogue, files, Threads(), indexes, publisher, preparation)

    def _make_coordinator(self) -> Coordinator:
        config = self._config
        return Coordinator(
            self._stores.coordination,
            Threads(),
            self.broadcaster,
            self._clock,
            events_enabled=config.events.enabled,
            journal_size=config.events.journal_size,
            claim_times=ClaimTimes(
                config.coordination.claim_default_ttl_minutes, config.coordination.claim_max_ttl_minutes
            ),
            on_commit=self._count_events,
        )

    def _make_memory(self) -> Memory:
        stores = self._stores
        journal, reading = stores.coordination, self._coordination_reading
        return Memory(
            stores.edges,
            stores.stats,
            Threads(),
            self.coordinator,
            journal,
            reading,
            self._clock,
            settings=learning_settings(self._config.lcma),
        )

    def _make_semantic(self) -> SemanticBackend:
        model = self._config.search.embedding_model
        directory = self._config.storage.data_dir / ".usearch"
        return SemanticBackend(VectorPort(self._sizes), self._embedding, load_embedder, directory, model)

    def scan(self) -> ScanResult:
        """Fill the catalogue from the folder. Blocks."""
        stores = self._stores
        self.graph_cache.read()
        position = stores.manifest.seq
        announced = [] if position is None else stores.coordination.events_after(position)
        rule = self.guard.start_rule()
        return scan_folder(stores.files, stores.manifest, self.catalogue, announced, self._clock(), rule)

    async def announce(self, scanned: ScanResult) -> None:
        """Journal what the scan found, then let the manifest remember it."""
        seq = self.coordinator.head
        if scanned.events:
            journalled = await self.coordinator.mailbox.ask(AppendEvents(scanned.events), within=600.0)
            if journalled is Journalled.LATER:
                await self.guard.begin(scanned.vanished, is_settled=False)
                return  # the manifest must not run ahead of the journal
            seq = journalled if isinstance(journalled, int) else seq
        if scanned.rows or scanned.removed or self._stores.manifest.seq is None:
            await self._reading.run(lambda: self._stores.manifest.store(scanned.rows, scanned.removed, seq))
        await self.guard.begin(scanned.vanished, is_settled=True)

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Notice outside changes until cancelled; however often the watcher fails, it is started again."""
        watcher = self.watcher
        await supervise(watcher.mailbox, watcher.start, crashes=sys.maxsize, task_status=task_status)

    async def start(self, nursery: trio.Nursery, background: trio.Nursery) -> Server:
        """Start the actors, downstream first, and wait until full text covers every note."""
        publisher, coordinator = self.publisher.mailbox, self.coordinator.mailbox
        downstream: list[Mailbox[Any, Any]] = [
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
        background.start_soon(self.semantic.load, self.vector_indexer, self.fulltext_indexer.converged)
        background.start_soon(self.vector_indexer.converge)
        background.start_soon(self.graph_cache.keep)
        await background.start(self.fulltext_indexer.converge)
        return self._serve()

    def _serve(self) -> Server:
        stores, clock = self._stores, self._clock
        texts = NoteTexts(stores.files)
        retrieval = Retrieval(
            self.catalogue,
            texts,
            stores.fulltext,
            self.semantic,
            self.coordinator,
            _retrieval_settings(self._config, self._sizes),
            clock,
            self._reading,
        )
        knowledge = Knowledge(self.catalogue, self.writer.mailbox, self.coordinator, retrieval, texts, clock)
        entities = self._make_entities(texts, knowledge)
        projection = Projection(self.catalogue, self.learning)
        parts = self._state_parts()
        state = ServerState(parts)
        streams = EventStreams(self.broadcaster, stores.coordination, self._coordination_reading)
        return Server(
            tools=self._make_tools(knowledge, retrieval, texts, state),
            state=state,
            knowledge=knowledge,
            retrieval=retrieval,
            learning=self.learning,
            catalogue=self.catalogue,
            coordinator=self.coordinator,
            broadcaster=self.broadcaster,
            streams=streams,
            library=self._make_library(texts, knowledge),
            cursors=Cursors(self.coordinator.mailbox, stores.coordination, self._coordination_reading),
            entities=entities,
            projection=projection,
            enrichment=self._make_enrichment(texts, entities, projection),
            access_log=AccessLog(self.coordinator.mailbox, stores.coordination, self._coordination_reading),
            semantic=self.semantic,
            fulltext_indexer=self.fulltext_indexer,
            vector_indexer=self.vector_indexer,
            writer=self.writer,
            watcher=self.watcher,
            guard=self.guard,
            lock=stores.lock,
            metrics=self.metrics,
            gauges=self._make_gauges(parts),
        )

    def _make_library(self, texts: NoteTexts, knowledge: Knowledge) -> Library:
        return make_library(
            self.catalogue,
            texts,
            knowledge,
            self.coordinator,
            self._stores.coordination.readable_task_rows(),
            self._coordination_reading,
            self._clock,
            self.broadcaster if self._config.events.enabled else None,
        )

    def _make_tools(
        self, knowledge: Knowledge, retrieval: Retrieval, texts: NoteTexts, state: ServerState
    ) -> Tools:
        rows = self._stores.coordination.readable_task_rows()
        lcma = self._config.lcma.enabled
        feedback = Feedback(self.learning, knowledge, self.catalogue) if lcma else None
        reading = self._coordination_reading
        coordination = Coordination(self.coordinator, rows, reading, self._clock, feedback)
        edges = self._make_edges(knowledge)
        graph = Graph(self.catalogue, edges.list_edges if lcma else no_edges)
        families = (
            NoteTools(knowledge, self._clock).tools(),
            SearchTools(retrieval, knowledge, self._clock).tools(),
            GraphTools(graph).tools(),
            EdgeTools(edges).tools(),
            MemoryTools(self.learning, self.catalogue).tools(),
            RetrieveTools(self._make_retrieve(edges, coordination, texts), self._clock).tools(),
            AgentTools(Agents(self.coordinator)).tools(),
            TaskTools(coordination).tools(),
            TaskGraphTools(coordination).tools(),
            SystemTools(state).tools(),
            LegacyTools(graph, retrieval).tools() if self._config.server.legacy_tools else (),
        )
        return Tools(
            in_order(tool for family in families for tool in family),
            self._config.server.tools,
            outcome_status=self._config.server.write_outcomes == "status",
            meter=ToolMeter(self.metrics),
        )

    def _make_entities(self, texts: NoteTexts, knowledge: Knowledge) -> EntityExtraction:
        limit = self._config.lcma.entity_max_per_doc
        return EntityExtraction(self.catalogue, texts, knowledge.patch, Threads(), limit)

    def _make_enrichment(
        self, texts: NoteTexts, entities: EntityExtraction, projection: Projection
    ) -> Enrichment | None:
        sources = EnrichmentSources(
            catalogue=self.catalogue,
            learning=self.learning,
            coordinator=self.coordinator,
            broadcaster=self.broadcaster,
            coordination=self._stores.coordination,
            coordination_reading=self._coordination_reading,
            semantic=self.semantic,
            texts=texts,
            entities=entities,
            projection=projection,
            metrics=self.metrics,
            clock=self._clock,
        )
        return make_enrichment(self._config, sources)

    def _make_retrieve(self, edges: Edges, coordination: Coordination, texts: NoteTexts) -> Retrieve:
        sources = RetrieveSources(
            catalogue=self.catalogue,
            fulltext=self._stores.fulltext,
            semantic=self.semantic,
            edges=edges,
            coordination=coordination,
            learning=self.learning,
            texts=texts,
            working=self._reading,
            metrics=self.metrics,
            clock=self._clock,
        )
        return make_retrieve(self._config, sources)

    def _make_edges(self, knowledge: Knowledge) -> Edges:
        memory, store = self.memory.mailbox, self._stores.edges
        return Edges(memory, store, Threads(), self.coordinator, knowledge, self.catalogue)

    def _make_gauges(self, parts: StateParts) -> Gauges:
        mailboxes = self._mailboxes()
        for mailbox in mailboxes:
            mailbox.stats.on_batch = partial(self._observe_batch, mailbox.name)
        gauges = Gauges(
            self.metrics, parts, mailboxes, self.broadcaster, startup_seconds=lambda: self.startup_seconds
        )
        watch_learning(gauges, self.learning)
        return gauges

    def _mailboxes(self) -> tuple[Mailbox[Any, Any], ...]:
        return (
            self.writer.mailbox,
            self.fulltext_indexer.mailbox,
            self.vector_indexer.mailbox,
            self.publisher.mailbox,
            self.memory.mailbox,
            self.coordinator.mailbox,
            self.watcher.mailbox,
        )

    def _observe_batch(self, actor: str, seconds: float) -> None:
        self.metrics.observe("actor_processing_seconds", seconds, actor)

    def _count_events(self, events: Sequence[Event], seconds: float) -> None:
        self.metrics.observe("journal_append_duration_seconds", seconds)
        for event in events:
            self.metrics.count("events", event.draft.type)

    def _state_parts(self) -> StateParts:
        config, stores = self._config, self._stores
        return StateParts(
            catalogue=self.catalogue,
            fulltext=stores.fulltext,
            fulltext_indexer=self.fulltext_indexer,
            vector_indexer=self.vector_indexer,
            semantic=self.semantic,
            coordinator=self.coordinator,
            coordination=stores.coordination,
            publisher=self.publisher,
            knowledge_folder=config.storage.data_dir / config.storage.knowledge_subdir,
            guard=self.guard,
            watcher=self.watcher,
            writer=self.writer,
            events_enabled=config.events.enabled,
            reading=self._coordination_reading,
            clock=self._clock,
            version=__version__,
        )


def _retrieval_settings(config: Config, sizes: ChunkSizes) -> RetrievalSettings:
    search = config.search
    return RetrievalSettings(
        search.semantic_threshold,
        search.cache_threshold,
        search.max_results,
        search.fusion,
        search.semantic_weight,
        sizes,
    )
