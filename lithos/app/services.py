"""Composition of single services: enrich worker, MCP resources, retention of `coordination.db`, retrieval."""

from __future__ import annotations

from pathlib import Path
from shutil import disk_usage
from typing import Final

from lithos.actors.blocking import Threads
from lithos.app.actors import Actors, usage_settings
from lithos.catalogue.catalogue import Catalogue
from lithos.catalogue.lineage import Lineage
from lithos.config.sections import LcmaConfig
from lithos.core.history.retention import VersionLimits
from lithos.core.learning.ranking import RerankWeights
from lithos.metrics import Metrics, Sample
from lithos.services.context.candidates import Candidates
from lithos.services.context.changes import JournalChanges
from lithos.services.context.context import Context, ContextParts
from lithos.services.enrich.chat_client import ChatClient, ChatSettings
from lithos.services.enrich.drain import DrainParts
from lithos.services.enrich.entities import EntityExtraction
from lithos.services.enrich.feed import DirectFeed, Feed, JournalFeed
from lithos.services.enrich.inference import EdgeInference
from lithos.services.enrich.projection import Projection
from lithos.services.enrich.questions import QuestionUpkeep
from lithos.services.enrich.worker import Enrichment, Retention, TaskStates
from lithos.services.importing.importing import Importing
from lithos.services.importing.tables import Tables
from lithos.services.notes.edges import Edges
from lithos.services.notes.knowledge import Knowledge
from lithos.services.notes.resource_changes import Changes
from lithos.services.notes.resources import Library, Resources
from lithos.services.notes.texts import NoteTexts, Snippets
from lithos.services.retrieve.candidates import Ranking
from lithos.services.retrieve.evidence import EvidencePipeline
from lithos.services.retrieve.feedback import Feedback, Learning
from lithos.services.retrieve.questions import QuestionMemory
from lithos.services.retrieve.retrieve import Pipeline, Retrieve, RetrieveParts, RetrieveSettings
from lithos.services.retrieve.scout_relations import RelationScouts
from lithos.services.retrieve.scout_team import NameScouts, SearchScouts, make_team
from lithos.services.retrieve.scouts import Dispatcher
from lithos.services.retrieve.weighing import WeighingPipeline
from lithos.services.search.graph_search import Nearest
from lithos.services.search.search import Search
from lithos.services.state import Gauges
from lithos.services.tasks.agents import Cursors
from lithos.services.tasks.coordination import Coordination
from lithos.services.tasks.retention import Upkeep, UpkeepBounds
from lithos.services.upkeep.history import HistoryUpkeep
from lithos.stores.history.store import HistoryFailed, HistoryStore
from lithos.stores.importing.attachments import ImportLedger
from lithos.stores.indexes.tokenizer import load_pieces
from lithos.stores.orders import ForgetOrders
from lithos.telemetry import get_logger
from lithos.tools.contract.registry import begin_tools


def make_importing(actors: Actors, knowledge: Knowledge, edges: Edges, texts: NoteTexts) -> Importing:
    """The service behind `lithos import`."""
    storage, files = actors.config.storage, actors.stores.files
    return Importing(
        actors.catalogue,
        knowledge,
        edges,
        texts,
        ImportLedger(storage.data_dir / ".lithos"),
        Threads(),
        actors.clock,
        tables=Tables(actors.coordinator.mailbox, actors.memory.mailbox),
        notes_folder=files.root.absolute(),
        ignored=files.ignored,
        content_limit=storage.max_content_size_bytes,
        gather=actors.fulltext_indexer.gather,
    )


log = get_logger("lithos.gauges")


def make_library(actors: Actors, texts: NoteTexts, knowledge: Knowledge) -> Library:
    """The library of a server; without events nobody is told of changes."""
    rows, clock = actors.stores.coordination.readable_task_rows(), actors.clock
    tasks = Coordination(actors.coordinator, rows, actors.coordination_reading, clock)
    resources = Resources(actors.catalogue, texts, knowledge, tasks, actors.coordinator, clock)
    return Library(resources, Changes(actors.broadcaster) if actors.config.events.enabled else None)


def make_upkeep(actors: Actors) -> Upkeep:
    """The configured retention of `coordination.db`, ready to run."""
    events, catalogue = actors.config.events, actors.catalogue
    return Upkeep(
        actors.coordinator,
        actors.stores.coordination.readable_old_rows(),
        actors.coordination_reading,
        actors.settled,
        UpkeepBounds(
            audit_days=events.audit_days, audit_rows=events.audit_rows, journal_size=events.journal_size
        ),
        has_note=lambda note_id: note_id in catalogue,
        writers=lambda: _writers(catalogue),
    )


def _writers(catalogue: Catalogue) -> set[str]:
    notes = [entry.note for entry in catalogue]
    return {note.author for note in notes}.union(*(note.contributors for note in notes))


def make_question_memory(actors: Actors, texts: NoteTexts) -> QuestionMemory:
    """The memory of questions in use."""
    matrix = actors.stores.stats.remembered
    return QuestionMemory(actors.learning, matrix, actors.semantic, actors.catalogue, texts)


def make_question_upkeep(actors: Actors, texts: NoteTexts, memory: QuestionMemory) -> QuestionUpkeep:
    """What has the memory of questions follow the notes and the model."""
    orders = ForgetOrders(actors.config.storage.data_dir / ".lithos")
    return QuestionUpkeep(
        memory, actors.learning, actors.semantic, actors.catalogue, texts, orders, Threads()
    )


def make_retrieve(
    actors: Actors,
    edges: Edges,
    coordination: Coordination,
    texts: NoteTexts,
    search: Search,
    questions: QuestionMemory,
) -> Retrieve:
    """The service behind `lithos_retrieve`."""
    configured, lcma, catalogue = actors.config.search, actors.config.lcma, actors.catalogue
    searches = SearchScouts(catalogue, actors.stores.fulltext, actors.semantic, configured.semantic_threshold)
    relations = RelationScouts(catalogue, edges.touching, actors.learning, coordination)
    dispatcher = Dispatcher(catalogue, actors.metrics)
    team = make_team(searches, NameScouts(catalogue), relations)
    ranking = Ranking(catalogue, actors.learning, _weights(lcma), usage_settings(lcma), actors.reading)
    pipeline: Pipeline = (
        WeighingPipeline(catalogue, dispatcher, team, ranking)
        if lcma.ranking == "weights"
        else EvidencePipeline(catalogue, search, questions, dispatcher, team, ranking, actors.lineage)
    )
    parts = RetrieveParts(
        catalogue=catalogue,
        visibility=actors.visibility,
        dispatcher=dispatcher,
        team=team,
        pipeline=pipeline,
        ranking=ranking,
        snippets=Snippets(texts, actors.sizes),
        recorder=actors.learning,
        metrics=actors.metrics,
        clock=actors.clock,
    )
    settings = RetrieveSettings(
        enabled=lcma.enabled,
        max_results=configured.max_results,
        temperature=lcma.temperature_default,
        defers_pairs=lcma.ranking == "evidence",
    )
    return Retrieve(parts, settings)


def make_context(
    actors: Actors,
    retrieve: Retrieve,
    search: Search,
    texts: NoteTexts,
    coordination: Coordination,
    lineage: Lineage,
) -> Context:
    """The service behind `lithos_context`."""
    journal = actors.stores.coordination if actors.config.events.enabled else None
    return Context(
        ContextParts(
            candidates=Candidates(retrieve, search, actors.catalogue, actors.visibility),
            catalogue=actors.catalogue,
            lineage=lineage,
            texts=texts,
            sizes=actors.sizes,
            semantic=actors.semantic,
            coordination=coordination,
            changes=JournalChanges(journal, actors.coordination_reading),
            head=lambda: actors.coordinator.head,
            load_pieces=load_pieces,
            working=Threads(2),
            clock=actors.clock,
        )
    )


def _weights(config: LcmaConfig) -> RerankWeights:
    return RerankWeights(
        scouts=config.rerank_weights,
        priors=config.note_type_priors,
        note_type=config.rerank_note_type_weight,
        salience=config.rerank_salience_weight,
        usage=config.rerank_usage_weight,
    )


def make_enrichment(
    actors: Actors,
    texts: NoteTexts,
    entities: EntityExtraction,
    projection: Projection,
    feedback: Feedback,
    questions: QuestionUpkeep,
) -> Enrichment | None:
    """The worker, ready to run; None when `lcma.enabled` is false."""
    config, catalogue = actors.config.lcma, actors.catalogue
    if not config.enabled:
        return None
    tasks = TaskStates(actors.stores.coordination.readable_task_rows(), actors.coordination_reading)
    parts = DrainParts(
        feed=_make_feed(actors, tasks),
        memory=actors.learning,
        catalogue=catalogue,
        projection=projection,
        entities=entities,
        questions=questions,
        inference=_make_inference(actors, texts),
        metrics=actors.metrics,
        clock=actors.clock,
    )
    retention = Retention(
        actors.learning,
        tasks.unsettled,
        actors.settled,
        receipts_kept=config.receipts_kept,
        pair_days=config.coactivation_days,
        has_note=lambda note_id: note_id in catalogue,
    )
    return Enrichment(parts, config, actors.learning, tasks.closed, retention, feedback.catch_up)


def watch_learning(gauges: Gauges, learning: Learning, floor: float) -> None:
    """Register the gauges of the enrich queue and of the statistics; `floor` is `lcma.salience_floor`."""

    async def ask() -> list[Sample]:
        known = await learning.summary(floor)
        return [
            Sample("lcma_salience_nodes", known.notes),
            Sample("lcma_salience_mean", known.mean),
            Sample("lcma_salience_below_floor_ratio", known.below / known.notes if known.notes else 0.0),
            Sample("lcma_coactivation_pairs", known.pairs),
            Sample("lcma_enrich_queue_depth", await learning.queue_length()),
            Sample("lcma_working_memory_tasks", len(await learning.working_tasks())),
        ]

    gauges.ask(ask)


_REJECTIONS: Final = (
    "bad_request", "body_stalled", "body_too_large", "forbidden", "forbidden_host", "forbidden_origin",
    "head_too_large", "too_many_wrong_tokens", "unauthorized",
)  # fmt: skip


def watch_disk(gauges: Gauges, data: Path) -> None:
    """Register the room on the disk of the data directory; left out where the system does not tell."""
    reading = Threads()

    async def ask() -> list[Sample]:
        try:
            found = await reading.run(lambda: disk_usage(data))
        except OSError as failure:
            log.warning("the disk cannot be asked", path=str(data), reason=str(failure))
            return []
        return [Sample("disk_free_bytes", found.free), Sample("disk_size_bytes", found.total)]

    gauges.ask(ask)


def watch_history(gauges: Gauges, store: HistoryStore | None) -> None:
    """Register the gauges of `history.db`, if versions are kept."""
    if store is None:
        return
    reading = Threads()

    async def ask() -> list[Sample]:
        try:
            versions, size = await reading.run(store.size)
        except HistoryFailed as failure:
            log.warning("gauges dropped", reason=failure.message)
            return []
        return [Sample("history_versions", versions), Sample("history_bytes", size)]

    gauges.ask(ask)


def make_history_upkeep(actors: Actors) -> HistoryUpkeep | None:
    """The configured retention of `history.db`, ready to run; None where no versions are kept."""
    store, limits = actors.stores.history, actors.config.history
    if store is None:
        return None
    retention = VersionLimits(
        keep_days=limits.keep_days,
        keep_versions=limits.keep_versions,
        keep_deleted_days=limits.keep_deleted_days,
    )
    return HistoryUpkeep(store, actors.recorder.blocking, Threads(), actors.settled, retention)


def begin_series(metrics: Metrics) -> None:
    """Have the counters and histograms of dashboards and alerts show zero before anything happened."""
    begin_tools(metrics)
    for kind in ("sse", "ws"):
        metrics.begin("event_subscriber_drops", kind)
    for event in ("note.created", "note.updated", "note.deleted", "task.created", "task.completed"):
        metrics.begin("events", event)
    for reason in _REJECTIONS:
        metrics.begin("http_rejected", reason)


def _make_feed(actors: Actors, tasks: TaskStates) -> Feed:
    store, reading = actors.stores.coordination, actors.coordination_reading
    if not actors.config.events.enabled:
        feed = DirectFeed(actors.catalogue, actors.learning)
        actors.coordinator.on_unjournalled = feed.offer
        return feed
    return JournalFeed(
        actors.broadcaster,
        store,
        reading,
        Cursors(actors.coordinator.mailbox, store, reading),
        actors.catalogue,
        actors.learning,
        tasks.completed,
    )


def _make_inference(actors: Actors, texts: NoteTexts) -> EdgeInference | None:
    llm, semantic = actors.config.lcma.llm, actors.semantic
    if llm.base_url is None or llm.model is None:
        return None
    settings = ChatSettings(llm.base_url, llm.model, llm.api_key, llm.timeout_seconds, llm.max_output_tokens)
    return EdgeInference(
        llm,
        ChatClient(settings),
        actors.catalogue,
        texts,
        Nearest(actors.catalogue, semantic),
        lambda: semantic.state,
        actors.learning,
        actors.clock,
        actors.metrics,
    )
