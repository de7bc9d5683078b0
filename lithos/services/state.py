"""What state the server is in: numbers for `lithos_stats`, components for `/health`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import trio
from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Catalogue
from lithos.actors.coordinator import Coordinator
from lithos.actors.freshness import Freshness
from lithos.actors.guard import WAY_OUT, DeletionGuard
from lithos.actors.indexer import Indexer
from lithos.actors.memory import Memory
from lithos.actors.publisher import Publisher
from lithos.actors.semantic import SemanticBackend, SemanticState
from lithos.actors.watcher import Watcher
from lithos.actors.writer import Writer
from lithos.core.times import format_optional, format_time
from lithos.stores.coordination import CoordinationStore
from lithos.stores.database import Database
from lithos.stores.fulltext import FulltextIndex
from lithos.stores.sqlite import DatabaseFailed

Status = Literal["ok", "warming", "degraded", "unavailable"]
CHECK_DEADLINE = 5.0


@frozen
class Component:
    """One line of `/health`."""

    status: Status
    error: str | None = None
    details: Mapping[str, Any] = {}

    def as_json(self) -> dict[str, Any]:
        """Its JSON form; `error` only when there is one."""
        told = {"error": self.error} if self.error else {}
        return {"status": self.status, **told, **self.details}


_OK = Component("ok")


@frozen(kw_only=True)
class StateParts:
    """Everything whose state is told."""

    catalogue: Catalogue
    freshness: Freshness
    fulltext: FulltextIndex
    fulltext_indexer: Indexer
    vector_indexer: Indexer
    semantic: SemanticBackend
    coordinator: Coordinator
    coordination: CoordinationStore
    memory: Memory
    publisher: Publisher
    knowledge_folder: Path
    guard: DeletionGuard
    watcher: Watcher
    writer: Writer
    events_enabled: bool
    reading: Blocking
    clock: Callable[[], datetime]
    version: str


class ServerState:
    """Reads the state of the parts; changes nothing."""

    def __init__(self, parts: StateParts) -> None:
        self._parts = parts

    async def stats(self) -> dict[str, Any]:
        """The answer of `lithos_stats`."""
        parts = self._parts
        now = parts.clock()
        await parts.freshness.reach()
        counts = await parts.reading.run(lambda: parts.coordination.counts(now))
        links = parts.catalogue.graph.counts()
        documents, indexed = len(parts.catalogue), parts.fulltext.document_count()
        vectors = parts.semantic.port.vectors
        vector_time = format_optional(vectors.last_updated if vectors else None)
        return {
            "documents": documents,
            "chunks": parts.semantic.chunk_count,
            "chroma_chunk_count": parts.semantic.chunk_count,
            "agents": len(parts.coordinator.agents),
            "active_tasks": counts.active_tasks,
            "open_claims": counts.open_claims,
            "tags": len(parts.catalogue.tags),
            "duplicate_urls": parts.catalogue.urls.surplus,
            "index_drift_detected": indexed != documents,
            "tantivy_doc_count": indexed,
            "unresolved_links": links.unresolved,
            "expired_docs": sum(entry.note.is_stale(now) for entry in parts.catalogue),
            "expired_claims": counts.expired_claims,
            "tantivy_last_updated": format_optional(parts.fulltext.last_updated()),
            "chroma_last_updated": vector_time,
            "vector_last_updated": vector_time,
            "graph_node_count": links.nodes,
            "graph_edge_count": links.edges,
        }

    async def report(self) -> tuple[int, dict[str, Any]]:
        """Status and body of `/health`: 503 when a component is unavailable."""
        components = await self._components()
        statuses = {component.status for component in components.values()}
        degraded = bool(statuses & {"degraded", "unavailable"})
        body = {
            "status": "degraded" if degraded else "ok",
            "timestamp": format_time(self._parts.clock()),
            "version": self._parts.version,
            "components": {name: component.as_json() for name, component in components.items()},
        }
        return 503 if "unavailable" in statuses else 200, body

    async def _components(self) -> dict[str, Component]:
        parts = self._parts
        return {
            "kb_directory": await self._knowledge_folder(),
            "knowledge_base": Component("ok", details={"documents": len(parts.catalogue)}),
            "search": self._search(),
            "embedding_model": self._model(),
            "index": self._index(),
            "watcher": self._watcher(),
            "events": self._events(),
            "coordination": await self._coordination(),
            "memory": self._memory(),
        }

    async def _knowledge_folder(self) -> Component:
        folder = self._parts.knowledge_folder
        try:
            with trio.fail_after(CHECK_DEADLINE):
                await self._parts.reading.run(lambda: next(iter(folder.iterdir()), None))
        except (OSError, trio.TooSlowError) as failure:
            return Component("unavailable", f"{folder} cannot be read: {failure}")
        return await self._writing(folder)

    async def _writing(self, folder: Path) -> Component:
        try:
            with trio.fail_after(CHECK_DEADLINE):
                trouble = await self._parts.writer.trouble()
        except trio.TooSlowError:
            trouble = "the disk does not answer"
        return Component("degraded", f"notes cannot be written to {folder}: {trouble}") if trouble else _OK

    def _search(self) -> Component:
        failures = [indexer.failure for indexer in self._indexers if indexer.failure]
        return Component("degraded", "; ".join(failures)) if failures else Component("ok")

    def _model(self) -> Component:
        semantic = self._parts.semantic
        details = {"model": semantic.model_name, "state": semantic.state.value}
        if semantic.state is SemanticState.DEGRADED:
            return Component("degraded", semantic.reason, details)
        return Component("ok" if semantic.is_answering else "warming", None, details)

    def _watcher(self) -> Component:
        watcher = self._parts.watcher
        details = {"mode": watcher.mode}
        if watcher.failure:
            return Component("degraded", watcher.failure, details)
        return Component("ok" if watcher.is_settled else "warming", None, details)

    def _index(self) -> Component:
        skipped = len(self._parts.catalogue.skipped)
        details: dict[str, Any] = {"skipped_files": skipped} if skipped else {}
        vanished = self._parts.guard.vanished
        if vanished:
            details["vanished"] = vanished
            return Component("degraded", f"{vanished} note files have vanished: {WAY_OUT}", details)
        if self._parts.publisher.withheld:
            details["pending_repairs"] = self._parts.publisher.withheld
            return Component("degraded", "stored notes wait for an index", details)
        if not self._parts.fulltext_indexer.is_converged:
            return Component("warming", None, details)
        return Component("ok", None, details)

    def _events(self) -> Component:
        coordinator = self._parts.coordinator
        details = {"head": coordinator.head}
        if coordinator.failure and self._parts.events_enabled:
            return Component("degraded", f"the journal cannot be written: {coordinator.failure}", details)
        return Component("ok", None, details)

    async def _coordination(self) -> Component:
        parts = self._parts
        try:
            with trio.fail_after(CHECK_DEADLINE):
                await parts.reading.run(lambda: parts.coordination.counts(parts.clock()))
        except (DatabaseFailed, trio.TooSlowError) as failure:
            return Component("unavailable", f"coordination.db does not answer: {failure}")
        return Component("ok")

    def _memory(self) -> Component:
        troubles = [trouble for store in self._parts.memory.databases if (trouble := _trouble_of(store))]
        return Component("degraded", ". ".join(troubles)) if troubles else _OK

    @property
    def _indexers(self) -> tuple[Indexer, Indexer]:
        return self._parts.fulltext_indexer, self._parts.vector_indexer


def _trouble_of(store: Database) -> str | None:
    """What is wrong with a database of the memory, and what to do."""
    if store.damage:
        return (
            f"{store.name} is damaged ({store.damage}). Restart the server: it reads the whole file, and "
            "may move it aside with its bytes intact. Restore it from a backup, if there is one"
        )
    if store.failure:
        return (
            f"{store.name} cannot be written ({store.failure}). Make room on its disk and see that it may be "
            "written; it is tried again every second"
        )
    return None
