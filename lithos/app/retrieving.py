"""Retrieval that learns, put together from its parts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Catalogue
from lithos.actors.freshness import Freshness
from lithos.actors.semantic import SemanticBackend
from lithos.actors.vector_port import ChunkSizes
from lithos.app.settings import usage_settings
from lithos.config import Config, LcmaConfig
from lithos.core.rerank import RerankWeights
from lithos.metrics import Metrics
from lithos.services.coordination import Coordination
from lithos.services.learning import Learning
from lithos.services.memory import Edges
from lithos.services.retrieve import Retrieve, RetrieveParts, RetrieveSettings
from lithos.services.scouts.dispatch import Dispatcher
from lithos.services.scouts.names import NameScouts
from lithos.services.scouts.relations import RelationScouts
from lithos.services.scouts.searches import SearchScouts
from lithos.services.scouts.team import make_team
from lithos.services.snippets import Snippets
from lithos.services.standing import Ranking
from lithos.services.texts import NoteTexts
from lithos.stores.fulltext import FulltextIndex


@frozen(kw_only=True)
class RetrieveSources:
    """What a retrieval reads, and who keeps its receipts."""

    catalogue: Catalogue
    freshness: Freshness
    fulltext: FulltextIndex
    semantic: SemanticBackend
    edges: Edges
    coordination: Coordination
    learning: Learning
    texts: NoteTexts
    working: Blocking
    metrics: Metrics
    clock: Callable[[], datetime]


def make_retrieve(config: Config, sources: RetrieveSources) -> Retrieve:
    """The service behind `lithos_retrieve`."""
    search, lcma, catalogue = config.search, config.lcma, sources.catalogue
    sizes = ChunkSizes(search.chunk_size, search.chunk_max)
    searches = SearchScouts(catalogue, sources.fulltext, sources.semantic, search.semantic_threshold)
    relations = RelationScouts(catalogue, sources.edges.touching, sources.learning, sources.coordination)
    parts = RetrieveParts(
        catalogue=catalogue,
        freshness=sources.freshness,
        dispatcher=Dispatcher(catalogue, sources.metrics),
        team=make_team(searches, NameScouts(catalogue), relations),
        ranking=Ranking(catalogue, sources.learning, _weights(lcma), usage_settings(lcma), sources.working),
        snippets=Snippets(sources.texts, sizes),
        recorder=sources.learning,
        metrics=sources.metrics,
        clock=sources.clock,
    )
    settings = RetrieveSettings(
        enabled=lcma.enabled, max_results=search.max_results, temperature=lcma.temperature_default
    )
    return Retrieve(parts, settings)


def _weights(config: LcmaConfig) -> RerankWeights:
    return RerankWeights(
        scouts=config.rerank_weights,
        priors=config.note_type_priors,
        note_type=config.rerank_note_type_weight,
        salience=config.rerank_salience_weight,
        usage=config.rerank_usage_weight,
    )
