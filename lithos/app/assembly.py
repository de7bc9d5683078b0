"""The services over the actors, and the server they make."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

import trio

from lithos import __version__
from lithos.actors.blocking import Threads
from lithos.actors.vector_port import ChunkSizes
from lithos.app.actors import Actors
from lithos.app.enrichment import EnrichmentSources, make_enrichment, watch_learning
from lithos.app.library import make_library
from lithos.app.retrieving import RetrieveSources, make_retrieve
from lithos.app.server import Server
from lithos.app.stores import Stores
from lithos.config import Config
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
from lithos.services.lessons import Lessons
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


class Assembly:
    """Actors over open stores, and the services over both."""

    def __init__(
        self, config: Config, stores: Stores, clock: Callable[[], datetime], reading: Threads
    ) -> None:
        self.actors = Actors(config, stores, clock, reading, load_embedder)
        self.startup_seconds = 0.0

    async def start(self, nursery: trio.Nursery, background: trio.Nursery) -> Server:
        """Start the actors, and wait until full text covers every note."""
        await self.actors.start(nursery, background)
        return self._serve()

    def _serve(self) -> Server:
        stores, clock = self.actors.stores, self.actors.clock
        texts = NoteTexts(stores.files)
        retrieval = Retrieval(
            self.actors.catalogue,
            texts,
            stores.fulltext,
            self.actors.semantic,
            self.actors.freshness,
            self.actors.coordinator,
            _retrieval_settings(self.actors.config, self.actors.sizes),
            clock,
            self.actors.reading,
        )
        knowledge = Knowledge(
            self.actors.catalogue,
            self.actors.writer.mailbox,
            self.actors.coordinator,
            retrieval,
            texts,
            clock,
        )
        entities = self._make_entities(texts, knowledge)
        feedback = self._make_feedback(knowledge)
        projection = Projection(self.actors.catalogue, self.actors.learning)
        parts = self._state_parts()
        state = ServerState(parts)
        streams = EventStreams(self.actors.broadcaster, stores.coordination, self.actors.coordination_reading)
        return Server(
            tools=self._make_tools(knowledge, retrieval, texts, state, feedback),
            state=state,
            knowledge=knowledge,
            retrieval=retrieval,
            learning=self.actors.learning,
            catalogue=self.actors.catalogue,
            coordinator=self.actors.coordinator,
            broadcaster=self.actors.broadcaster,
            streams=streams,
            library=self._make_library(texts, knowledge),
            cursors=Cursors(
                self.actors.coordinator.mailbox, stores.coordination, self.actors.coordination_reading
            ),
            entities=entities,
            projection=projection,
            enrichment=self._make_enrichment(texts, entities, projection, feedback),
            access_log=AccessLog(
                self.actors.coordinator.mailbox, stores.coordination, self.actors.coordination_reading
            ),
            semantic=self.actors.semantic,
            freshness=self.actors.freshness,
            fulltext_indexer=self.actors.fulltext_indexer,
            vector_indexer=self.actors.vector_indexer,
            writer=self.actors.writer,
            watcher=self.actors.watcher,
            guard=self.actors.guard,
            lock=stores.lock,
            front_loaded=self.actors.front_loaded,
            metrics=self.actors.metrics,
            gauges=self._make_gauges(parts),
        )

    def _make_library(self, texts: NoteTexts, knowledge: Knowledge) -> Library:
        return make_library(
            self.actors.catalogue,
            texts,
            knowledge,
            self.actors.coordinator,
            self.actors.stores.coordination.readable_task_rows(),
            self.actors.coordination_reading,
            self.actors.clock,
            self.actors.broadcaster if self.actors.config.events.enabled else None,
        )

    def _make_tools(
        self,
        knowledge: Knowledge,
        retrieval: Retrieval,
        texts: NoteTexts,
        state: ServerState,
        feedback: Feedback,
    ) -> Tools:
        rows = self.actors.stores.coordination.readable_task_rows()
        lcma = self.actors.config.lcma.enabled
        reading = self.actors.coordination_reading
        taught = feedback if lcma else None
        coordination = Coordination(self.actors.coordinator, rows, reading, self.actors.clock, taught)
        edges = self._make_edges(knowledge)
        graph = Graph(self.actors.catalogue, edges.list_edges if lcma else no_edges)
        families = (
            NoteTools(knowledge, self.actors.clock).tools(),
            SearchTools(retrieval, knowledge, self.actors.clock).tools(),
            GraphTools(graph).tools(),
            EdgeTools(edges).tools(),
            MemoryTools(self.actors.learning, self.actors.catalogue).tools(),
            RetrieveTools(self._make_retrieve(edges, coordination, texts), self.actors.clock).tools(),
            AgentTools(Agents(self.actors.coordinator)).tools(),
            TaskTools(coordination).tools(),
            TaskGraphTools(coordination).tools(),
            SystemTools(state).tools(),
            LegacyTools(graph, retrieval).tools() if self.actors.config.server.legacy_tools else (),
        )
        return Tools(
            in_order(tool for family in families for tool in family),
            self.actors.config.server.tools,
            outcome_status=self.actors.config.server.write_outcomes == "status",
            meter=ToolMeter(self.actors.metrics),
        )

    def _make_feedback(self, knowledge: Knowledge) -> Feedback:
        actors = self.actors
        rows = actors.stores.coordination.readable_task_rows()
        lessons = Lessons(actors.coordinator.mailbox, rows, actors.coordination_reading)
        return Feedback(actors.learning, knowledge, actors.catalogue, lessons)

    def _make_entities(self, texts: NoteTexts, knowledge: Knowledge) -> EntityExtraction:
        limit = self.actors.config.lcma.entity_max_per_doc
        actors = self.actors
        return EntityExtraction(actors.catalogue, texts, knowledge.patch, Threads(), limit, actors.learning)

    def _make_enrichment(
        self, texts: NoteTexts, entities: EntityExtraction, projection: Projection, feedback: Feedback
    ) -> Enrichment | None:
        sources = EnrichmentSources(
            catalogue=self.actors.catalogue,
            learning=self.actors.learning,
            coordinator=self.actors.coordinator,
            broadcaster=self.actors.broadcaster,
            coordination=self.actors.stores.coordination,
            coordination_reading=self.actors.coordination_reading,
            semantic=self.actors.semantic,
            texts=texts,
            entities=entities,
            projection=projection,
            feedback=feedback,
            metrics=self.actors.metrics,
            clock=self.actors.clock,
        )
        return make_enrichment(self.actors.config, sources)

    def _make_retrieve(self, edges: Edges, coordination: Coordination, texts: NoteTexts) -> Retrieve:
        sources = RetrieveSources(
            catalogue=self.actors.catalogue,
            freshness=self.actors.freshness,
            fulltext=self.actors.stores.fulltext,
            semantic=self.actors.semantic,
            edges=edges,
            coordination=coordination,
            learning=self.actors.learning,
            texts=texts,
            working=self.actors.reading,
            metrics=self.actors.metrics,
            clock=self.actors.clock,
        )
        return make_retrieve(self.actors.config, sources)

    def _make_edges(self, knowledge: Knowledge) -> Edges:
        memory, store = self.actors.memory.mailbox, self.actors.stores.edges
        return Edges(memory, store, Threads(), self.actors.coordinator, knowledge, self.actors.catalogue)

    def _make_gauges(self, parts: StateParts) -> Gauges:
        mailboxes = self.actors.mailboxes()
        for mailbox in mailboxes:
            mailbox.stats.on_batch = partial(self._observe_batch, mailbox.name)
        gauges = Gauges(
            self.actors.metrics,
            parts,
            mailboxes,
            self.actors.broadcaster,
            startup_seconds=lambda: self.startup_seconds,
        )
        watch_learning(gauges, self.actors.learning, self.actors.config.lcma.salience_floor)
        return gauges

    def _observe_batch(self, actor: str, seconds: float) -> None:
        self.actors.metrics.observe("actor_processing_seconds", seconds, actor)

    def _state_parts(self) -> StateParts:
        config, stores = self.actors.config, self.actors.stores
        return StateParts(
            catalogue=self.actors.catalogue,
            freshness=self.actors.freshness,
            fulltext=stores.fulltext,
            fulltext_indexer=self.actors.fulltext_indexer,
            vector_indexer=self.actors.vector_indexer,
            semantic=self.actors.semantic,
            coordinator=self.actors.coordinator,
            coordination=stores.coordination,
            memory=self.actors.memory,
            publisher=self.actors.publisher,
            knowledge_folder=config.storage.data_dir / config.storage.knowledge_subdir,
            guard=self.actors.guard,
            watcher=self.actors.watcher,
            writer=self.actors.writer,
            events_enabled=config.events.enabled,
            reading=self.actors.coordination_reading,
            clock=self.actors.clock,
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
