"""The enrich worker over the actors and services of a server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from attrs import frozen

from lithos.actors.blocking import Blocking, Threads
from lithos.actors.broadcaster import Broadcaster
from lithos.actors.catalogue import Catalogue
from lithos.actors.coordinator import Coordinator
from lithos.actors.semantic import SemanticBackend
from lithos.config import Config
from lithos.config.lcma import LlmConfig
from lithos.metrics import Metrics, Sample
from lithos.services.chat_client import ChatClient, ChatSettings
from lithos.services.cursors import Cursors
from lithos.services.enrichment import Enrichment
from lithos.services.enrichment_drain import DrainParts
from lithos.services.enrichment_feed import DirectFeed, Feed, JournalFeed
from lithos.services.entities import EntityExtraction
from lithos.services.feedback import Feedback
from lithos.services.gauges import Gauges
from lithos.services.inference import EdgeInference
from lithos.services.learning import Learning
from lithos.services.nearest import Nearest
from lithos.services.projection import Projection
from lithos.services.retention import Retention
from lithos.services.task_states import TaskStates
from lithos.services.texts import NoteTexts
from lithos.stores.coordination import CoordinationStore


@frozen(kw_only=True)
class EnrichmentSources:
    """What the worker reads from and works with."""

    catalogue: Catalogue
    learning: Learning
    coordinator: Coordinator
    broadcaster: Broadcaster
    coordination: CoordinationStore
    coordination_reading: Blocking
    semantic: SemanticBackend
    texts: NoteTexts
    entities: EntityExtraction
    projection: Projection
    feedback: Feedback
    metrics: Metrics
    clock: Callable[[], datetime]


def make_enrichment(config: Config, sources: EnrichmentSources) -> Enrichment | None:
    """The worker, ready to run; None when `lcma.enabled` is false."""
    if not config.lcma.enabled:
        return None
    tasks = TaskStates(sources.coordination.readable_task_rows(), sources.coordination_reading)
    parts = DrainParts(
        feed=_make_feed(config, sources, tasks),
        memory=sources.learning,
        catalogue=sources.catalogue,
        projection=sources.projection,
        entities=sources.entities,
        inference=_make_inference(config.lcma.llm, sources),
        metrics=sources.metrics,
        clock=sources.clock,
    )
    retention = Retention(
        sources.learning,
        tasks.unsettled,
        sources.clock,
        receipts_kept=config.lcma.receipts_kept,
        pair_days=config.lcma.coactivation_days,
    )
    return Enrichment(
        parts, config.lcma, sources.learning, tasks.closed, retention, sources.feedback.catch_up
    )


def watch_learning(gauges: Gauges, learning: Learning, floor: float) -> None:
    """Show how much waits to be learned from, and what was learned; `floor` is `lcma.salience_floor`."""

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


def _make_feed(config: Config, sources: EnrichmentSources, tasks: TaskStates) -> Feed:
    coordinator, reading = sources.coordinator, sources.coordination_reading
    if not config.events.enabled:
        feed = DirectFeed(sources.catalogue, sources.learning)
        coordinator.on_unjournalled = feed.offer
        return feed
    return JournalFeed(
        sources.broadcaster,
        sources.coordination,
        reading,
        Cursors(coordinator.mailbox, sources.coordination, reading),
        sources.catalogue,
        sources.learning,
        tasks.completed,
    )


def _make_inference(llm: LlmConfig, sources: EnrichmentSources) -> EdgeInference | None:
    if llm.base_url is None or llm.model is None:
        return None
    settings = ChatSettings(llm.base_url, llm.model, llm.api_key, llm.timeout_seconds, llm.max_output_tokens)
    return EdgeInference(
        llm,
        ChatClient(settings),
        sources.catalogue,
        sources.texts,
        Nearest(sources.catalogue, sources.semantic),
        lambda: sources.semantic.state,
        sources.learning,
        sources.clock,
        sources.metrics,
        Threads(),
    )
