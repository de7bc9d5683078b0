"""Composition of the services and tools over the actors into a `Server`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

import trio

from lithos import __version__
from lithos.actors.blocking import Threads
from lithos.actors.indexing.ports import ChunkSizes
from lithos.app.actors import Actors
from lithos.app.server import Server
from lithos.app.services import (
    begin_series,
    make_context,
    make_enrichment,
    make_history_upkeep,
    make_importing,
    make_library,
    make_question_memory,
    make_question_upkeep,
    make_retrieve,
    make_upkeep,
    watch_disk,
    watch_history,
    watch_learning,
)
from lithos.app.stores import Stores
from lithos.config.catalogue import Config
from lithos.services.enrich.entities import EntityExtraction
from lithos.services.enrich.projection import Projection
from lithos.services.keyring import TokenRing
from lithos.services.notes.edges import Edges
from lithos.services.notes.history import NoteHistory
from lithos.services.notes.knowledge import Knowledge
from lithos.services.notes.merging import Merging
from lithos.services.notes.moving import Moving
from lithos.services.notes.relations import Graph, no_edges
from lithos.services.notes.restoring import Restoring
from lithos.services.notes.texts import NoteTexts
from lithos.services.retrieve.feedback import Feedback, Lessons
from lithos.services.retrieve.questions import QuestionMemory
from lithos.services.search.hybrid import SearchSettings
from lithos.services.search.search import Search
from lithos.services.state import Gauges, ServerState
from lithos.services.tasks.agents import AccessLog, Agents, Cursors
from lithos.services.tasks.board import Board
from lithos.services.tasks.coordination import Coordination
from lithos.services.tasks.dossier import Dossiers
from lithos.services.tasks.event_stream import EventStreams
from lithos.services.tasks.impact import Impact
from lithos.services.tasks.timeline import Timelines
from lithos.services.upkeep.live_check import LiveCheck
from lithos.stores.indexes.embedder import load_embedder
from lithos.stores.indexes.transformer import load_transformer
from lithos.tools.contract.declaring import Services
from lithos.tools.contract.registry import ToolMeter, Tools
from lithos.tools.contract.rows import Warner


class Assembly:
    """Actors over open stores, and the services over both."""

    def __init__(
        self, config: Config, stores: Stores, clock: Callable[[], datetime], reading: Threads
    ) -> None:
        self.actors = Actors(config, stores, clock, reading, load_embedder, load_transformer)
        self.startup_seconds = 0.0
        private, auth_token = config.storage.data_dir / ".lithos", config.server.auth_token
        self.keyring = TokenRing(private, clock, auth_token)

    async def start(self, nursery: trio.Nursery) -> Server:
        """Start the actors; the server knows no note yet."""
        await self.actors.start(nursery)
        return self._serve()

    def _serve(self) -> Server:
        stores, clock = self.actors.stores, self.actors.clock
        texts = NoteTexts(stores.files, self.actors.catalogue)
        search = Search(
            self.actors.catalogue,
            texts,
            stores.fulltext,
            self.actors.semantic,
            self.actors.visibility,
            self.actors.coordinator,
            _search_settings(self.actors.config, self.actors.sizes),
            clock,
            self.actors.reading,
        )
        questions = make_question_memory(self.actors, texts)
        history = NoteHistory(stores.history, Threads(2), self.actors.catalogue)
        knowledge = Knowledge(
            self.actors.catalogue,
            self.actors.writer.mailbox,
            self.actors.coordinator,
            search,
            texts,
            clock,
            questions.cited_before,
            self.actors.opening,
            merging=Merging(self.actors.catalogue, stores.history, Threads()),
            history=history,
            outlines=self.actors.outlines,
        )
        restoring = Restoring(history, knowledge, self.actors.catalogue, texts, Threads())
        moving = Moving(
            self.actors.catalogue,
            self.actors.writer.mailbox,
            self.actors.coordinator,
            stores.moves,
            Threads(),
        )
        entities = self._make_entities(texts, knowledge)
        question_upkeep = make_question_upkeep(self.actors, texts, questions)
        feedback = self._make_feedback(knowledge, questions)
        projection = Projection(self.actors.catalogue, self.actors.learning)
        state = self._make_state()
        streams = EventStreams(self.actors.broadcaster, stores.coordination, self.actors.coordination_reading)
        edges = self._make_edges(knowledge)
        access_log = AccessLog(
            self.actors.coordinator.mailbox, stores.coordination, self.actors.coordination_reading
        )
        board_rows = stores.coordination.board_rows()
        board_parts = (
            stores.coordination.readable_task_rows(),
            board_rows,
            self.actors.coordination_reading,
            clock,
        )
        return Server(
            tools=self._make_tools(
                knowledge, moving, history, restoring, search, texts, state, feedback, questions, edges
            ),
            state=state,
            knowledge=knowledge,
            moving=moving,
            search=search,
            learning=self.actors.learning,
            edges=edges,
            catalogue=self.actors.catalogue,
            files=stores.files,
            coordinator=self.actors.coordinator,
            broadcaster=self.actors.broadcaster,
            streams=streams,
            library=make_library(self.actors, texts, knowledge),
            cursors=Cursors(
                self.actors.coordinator.mailbox, stores.coordination, self.actors.coordination_reading
            ),
            coordination=self._make_coordination(feedback),
            board=Board(*board_parts),
            dossiers=Dossiers(*board_parts),
            timelines=Timelines(
                board_rows,
                self.actors.coordination_reading,
                access_log,
                history,
                self.actors.learning,
                clock,
            ),
            importing=make_importing(self.actors, knowledge, edges, texts),
            entities=entities,
            projection=projection,
            live_check=LiveCheck(
                catalogue=self.actors.catalogue,
                visibility=self.actors.visibility,
                fulltext=self.actors.fulltext_port,
                semantic=self.actors.semantic,
                projection=projection,
            ),
            enrichment=make_enrichment(self.actors, texts, entities, projection, feedback, question_upkeep),
            questions=question_upkeep,
            access_log=access_log,
            upkeep=make_upkeep(self.actors),
            catching_up=self.actors.catching_up,
            history_upkeep=make_history_upkeep(self.actors),
            semantic=self.actors.semantic,
            visibility=self.actors.visibility,
            fulltext_indexer=self.actors.fulltext_indexer,
            vector_indexer=self.actors.vector_indexer,
            writer=self.actors.writer,
            watcher=self.actors.watcher,
            opening=self.actors.opening,
            guard=self.actors.guard,
            lock=stores.lock,
            front_loaded=self.actors.front_loaded,
            metrics=self.actors.metrics,
            gauges=self._make_gauges(state),
            config=self.actors.config,
            lineage=self.actors.lineage,
            console_agent=self.actors.config.server.console_agent,
            keyring=self.keyring,
            clock=clock,
        )

    def _make_tools(
        self,
        knowledge: Knowledge,
        moving: Moving,
        history: NoteHistory,
        restoring: Restoring,
        search: Search,
        texts: NoteTexts,
        state: ServerState,
        feedback: Feedback,
        questions: QuestionMemory,
        edges: Edges,
    ) -> Tools:
        lcma = self.actors.config.lcma.enabled
        coordination = self._make_coordination(feedback)
        graph = Graph(self.actors.catalogue, edges.list_edges if lcma else no_edges)
        retrieve = make_retrieve(self.actors, edges, coordination, texts, search, questions)
        lineage, coordinator = self.actors.lineage, self.actors.coordinator
        impact = Impact(self.actors.catalogue, lineage, knowledge, coordination, coordinator)
        services = Services(
            clock=self.actors.clock,
            catalogue=self.actors.catalogue,
            knowledge=knowledge,
            moving=moving,
            history=history,
            restoring=restoring,
            search=search,
            graph=graph,
            impact=impact,
            edges=edges,
            learning=self.actors.learning,
            retrieve=retrieve,
            context=make_context(self.actors, retrieve, search, texts, coordination, lineage),
            agents=Agents(coordinator),
            coordination=coordination,
            state=state,
            warner=Warner(lineage, self.actors.clock),
            is_plain=self.actors.config.server.write_outcomes == "status",
        )
        return Tools(
            services,
            self.actors.config.server.tools,
            has_legacy=self.actors.config.server.legacy_tools,
            outcome_status=services.is_plain,
            max_answer_chars=self.actors.config.server.answer_limit,
            meter=ToolMeter(self.actors.metrics),
            opening=self.actors.opening,
            locate=knowledge.locate,
        )

    def _make_coordination(self, feedback: Feedback) -> Coordination:
        actors = self.actors
        rows = actors.stores.coordination.readable_task_rows()
        taught = feedback if actors.config.lcma.enabled else None
        return Coordination(actors.coordinator, rows, actors.coordination_reading, actors.clock, taught)

    def _make_feedback(self, knowledge: Knowledge, questions: QuestionMemory) -> Feedback:
        actors = self.actors
        rows = actors.stores.coordination.readable_task_rows()
        lessons = Lessons(actors.coordinator.mailbox, rows, actors.coordination_reading)
        return Feedback(actors.learning, knowledge, actors.catalogue, lessons, questions.prepare)

    def _make_entities(self, texts: NoteTexts, knowledge: Knowledge) -> EntityExtraction:
        actors, lcma = self.actors, self.actors.config.lcma
        ledger, index = actors.learning, actors.fulltext_indexer
        patch = knowledge.patch if lcma.write_entities else None
        limit = lcma.entity_max_per_doc
        return EntityExtraction(actors.catalogue, texts, Threads(), limit, ledger, patch=patch, index=index)

    def _make_edges(self, knowledge: Knowledge) -> Edges:
        memory, store = self.actors.memory.mailbox, self.actors.stores.edges
        return Edges(memory, store, Threads(), self.actors.coordinator, knowledge, self.actors.catalogue)

    def _make_gauges(self, state: ServerState) -> Gauges:
        mailboxes = self.actors.mailboxes()
        for mailbox in mailboxes:
            mailbox.stats.on_batch = partial(self._observe_batch, mailbox.name)
            self.actors.metrics.begin("actor_processing_seconds", mailbox.name)
        gauges = Gauges(
            self.actors.metrics,
            state,
            mailboxes,
            self.actors.broadcaster,
            startup_seconds=lambda: self.startup_seconds,
        )
        watch_history(gauges, self.actors.stores.history)
        watch_disk(gauges, self.actors.config.storage.data_dir)
        begin_series(self.actors.metrics)
        watch_learning(gauges, self.actors.learning, self.actors.config.lcma.salience_floor)
        return gauges

    def _observe_batch(self, actor: str, seconds: float) -> None:
        self.actors.metrics.observe("actor_processing_seconds", seconds, actor)

    def _make_state(self) -> ServerState:
        config, stores = self.actors.config, self.actors.stores
        return ServerState(
            catalogue=self.actors.catalogue,
            visibility=self.actors.visibility,
            fulltext=stores.fulltext,
            fulltext_indexer=self.actors.fulltext_indexer,
            vector_indexer=self.actors.vector_indexer,
            semantic=self.actors.semantic,
            coordinator=self.actors.coordinator,
            coordination=stores.coordination,
            memory=self.actors.memory,
            publisher=self.actors.publisher,
            knowledge_folder=config.storage.notes_folder,
            guard=self.actors.guard,
            watcher=self.actors.watcher,
            opening=self.actors.opening,
            writer=self.actors.writer,
            history=stores.history,
            events_enabled=config.events.enabled,
            lock_trouble=lambda: stores.lock.trouble,
            token_trouble=lambda: self.keyring.trouble,
            reading=self.actors.coordination_reading,
            clock=self.actors.clock,
            version=__version__,
        )


def _search_settings(config: Config, sizes: ChunkSizes) -> SearchSettings:
    search = config.search
    return SearchSettings(
        search.semantic_threshold,
        search.cache_confidence,
        search.max_results,
        search.fusion,
        search.semantic_weight,
        search.lead_weight,
        sizes,
    )
