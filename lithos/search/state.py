"""The state of search, as part of the server state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import asdict

from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.metrics import GaugeSample
from lithos.kernel.state import Component, Number
from lithos.kernel.values.times import format_optional
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.watching.guard import WAY_OUT, DeletionGuard
from lithos.notes.writing.actor_publisher import Publisher
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.indexing.accurate_models import AccurateModels
from lithos.search.indexing.indexer import FulltextIndexer, VectorIndexer, Visibility
from lithos.search.indexing.semantic import SemanticBackend, SemanticState
from lithos.search.indexing.tiers import TIER
from lithos.search.ranking.calibrations import STATIC


def look_at_search(words: FulltextIndexer, meaning: VectorIndexer) -> Component:
    """Return the component that reports whether the indexes accept changes."""
    failures = [indexer.failure for indexer in (words, meaning) if indexer.failure]
    return Component("degraded", "; ".join(failures)) if failures else Component("ok")


def look_at_model(semantic: SemanticBackend) -> Component:
    """Return the component that reports whether semantic searches are answered."""
    details = {"model": semantic.model_name, "state": semantic.state.value, **asdict(semantic.progress())}
    details |= _tell_choice(semantic.accurate)
    if semantic.state is SemanticState.DEGRADED:
        return Component("degraded", semantic.reason, details)
    if semantic.accurate is not None and semantic.accurate.reason is not None:
        answering = semantic.accurate.answering_model
        others = "the static tier" if answering is None else f"the {answering} model"
        reason = f"the accurate tier cannot be used, so {others} answers: {semantic.accurate.reason}"
        return Component("degraded", reason, details)
    return Component("ok" if semantic.is_answering else "warming", None, details)


def _tell_choice(accurate: AccurateModels | None) -> dict[str, str]:
    """Return the model of the accurate tier, the reason for it, and the former model during a switch."""
    if accurate is None or accurate.choice is None:
        return {}
    told = {"accurate_model": accurate.choice.model.title, "accurate_because": accurate.choice.because}
    former = accurate.answering_model
    if former not in (None, accurate.choice.model.title):
        told["accurate_former"] = str(former)
    return told


def look_at_index(
    catalogue: Catalogue,
    guard: DeletionGuard,
    publisher: Publisher,
    opening: Opening,
    words: FulltextIndexer,
) -> Component:
    """Return the component that reports whether every note is indexed."""
    skipped = len(catalogue.skipped)
    details: dict[str, Any] = {"skipped_files": skipped} if skipped else {}
    vanished = guard.vanished
    if vanished:
        details["vanished"] = vanished
        return Component("degraded", f"{vanished} note files have vanished: {WAY_OUT}", details)
    if publisher.withheld:
        details["pending_repairs"] = publisher.withheld
        return Component("degraded", "stored notes are waiting for an index", details)
    started = opening.status()
    if started is not None:
        failure = opening.failure
        return Component("degraded" if failure else "warming", failure, {**details, **started})
    if not words.is_converged:
        return Component("warming", None, details)
    return Component("ok", None, details)


async def reach_index(visibility: Visibility) -> tuple[Number, ...]:
    """Wait until the counted indexes contain all earlier writes."""
    await visibility.reach()
    return ()


def count_index(catalogue: Catalogue, fulltext: FulltextIndex, semantic: SemanticBackend) -> Iterator[Number]:
    """Count the indexed notes and chunks."""
    documents, indexed = len(catalogue), fulltext.document_count()
    vectors, embedding = semantic.port.vectors, semantic.progress()
    vector_time = format_optional(vectors.last_updated if vectors else None)
    yield Number(20, "chunks", semantic.chunk_count)
    yield Number(21, "chroma_chunk_count", semantic.chunk_count)
    yield Number(60, "index_drift_detected", indexed != documents)
    yield Number(61, "tantivy_doc_count", indexed)
    yield Number(90, "tantivy_last_updated", format_optional(fulltext.last_updated))
    yield Number(91, "chroma_last_updated", vector_time)
    yield Number(92, "vector_last_updated", vector_time)
    yield Number(110, "embedding_tier", embedding.tier)
    yield Number(111, "embedding_done", embedding.done)
    yield Number(112, "embedding_total", embedding.total)


def measure_index(fulltext: FulltextIndex, semantic: SemanticBackend) -> Iterator[GaugeSample]:
    """Return the gauges of both indexes."""
    yield GaugeSample("fulltext_documents", fulltext.document_count())
    yield GaugeSample("vector_chunks", semantic.chunk_count)


def measure_model(semantic: SemanticBackend) -> Iterator[GaugeSample]:
    """Return the gauges of the model state and the embedding progress."""
    for each in SemanticState:
        yield GaugeSample("semantic_state", float(each is semantic.state), (each.value,))
    embedding = semantic.progress()
    for tier in (STATIC, TIER):
        yield GaugeSample("embedding_tier", float(tier == embedding.tier), (tier,))
    yield GaugeSample("embedding_done_chunks", embedding.done)
    yield GaugeSample("embedding_chunks", embedding.total)
