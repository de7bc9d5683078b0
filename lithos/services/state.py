"""The server's state: statistics of `lithos_stats`, component status of `/health`, gauges of `/metrics`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from shutil import disk_usage
from typing import Any, Final, Literal

import trio
from attrs import asdict, define, frozen
from prometheus_client.core import Metric

from lithos import __version__
from lithos.actors.attaching.attaching import Attaching
from lithos.actors.blocking import Threads
from lithos.actors.coordinating.broadcaster import Broadcaster
from lithos.actors.coordinating.coordinator import Coordinator
from lithos.actors.coordinating.reading import JournalThread
from lithos.actors.indexing.indexer import FulltextIndexer, Indexer, VectorIndexer, Visibility
from lithos.actors.indexing.semantic import SemanticBackend, SemanticState
from lithos.actors.indexing.tiers import STATIC, TIER
from lithos.actors.kit import Mailbox
from lithos.actors.opening import Opening
from lithos.actors.remembering.actor import Memory
from lithos.actors.watching.guard import WAY_OUT, DeletionGuard
from lithos.actors.watching.watcher import Watcher
from lithos.actors.writing.publisher import Publisher
from lithos.actors.writing.writer import Writer
from lithos.catalogue.catalogue import Catalogue
from lithos.core.findings import HEALTH, check, checks_of
from lithos.core.times import format_optional, format_time
from lithos.kernel.parts import Clock
from lithos.kernel.settings import StorageConfig
from lithos.metrics import Metrics, Sample
from lithos.services.keyring import TokenRing
from lithos.services.retrieve.feedback import Learning
from lithos.stores.coordination.store import CoordinationStore
from lithos.stores.database import LearningDatabase
from lithos.stores.history.store import HistoryFailed, HistoryStore
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.on_disk import Stores
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

Status = Literal["ok", "warming", "degraded", "unavailable"]
CHECK_DEADLINE = 5.0
#: Seconds for which a look at the components serves the scrapes of `/metrics`.
HEALTH_AGE: Final = 10.0
_SEVERITY: Final[Mapping[Status, int]] = {"ok": 0, "warming": 0, "degraded": 1, "unavailable": 2}


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


@define(eq=False)
class ServerState:
    """Reads the state of its parts; changes nothing."""

    _journal: CoordinationStore
    _versions: HistoryStore | None
    _fulltext: FulltextIndex
    _storage: StorageConfig
    _catalogue: Catalogue
    _semantic: SemanticBackend
    _reading: JournalThread
    _coordinator: Coordinator
    _clock: Clock
    _visibility: Visibility
    _memory: Memory
    _opening: Opening
    _writer: Writer
    _publisher: Publisher
    _fulltext_indexer: FulltextIndexer
    _vector_indexer: VectorIndexer
    _attaching: Attaching
    _watcher: Watcher
    _guard: DeletionGuard
    _keyring: TokenRing
    _stores: Stores

    async def stats(self) -> dict[str, Any]:
        """The answer of `lithos_stats`."""
        now = self._clock()
        await self._visibility.reach()
        counts = await self._reading.run(lambda: self._journal.counts(now))
        links = self._catalogue.graph.counts()
        expiring = self._catalogue.at_serials(self._catalogue.facets.expiring())
        documents, indexed = len(self._catalogue), self._fulltext.document_count()
        vectors, embedding = self._semantic.port.vectors, self._semantic.progress()
        vector_time = format_optional(vectors.last_updated if vectors else None)
        return {
            "documents": documents,
            "chunks": self._semantic.chunk_count,
            "chroma_chunk_count": self._semantic.chunk_count,
            "agents": len(self._coordinator.agents),
            "active_tasks": counts.active_tasks,
            "open_claims": counts.open_claims,
            "tags": len(self._catalogue.tags),
            "duplicate_urls": self._catalogue.urls.surplus,
            "index_drift_detected": indexed != documents,
            "tantivy_doc_count": indexed,
            "unresolved_links": links.unresolved,
            "expired_docs": sum(entry.note.is_stale(now) for entry in expiring),
            "expired_claims": counts.expired_claims,
            "tantivy_last_updated": format_optional(self._fulltext.last_updated),
            "chroma_last_updated": vector_time,
            "vector_last_updated": vector_time,
            "graph_node_count": links.nodes,
            "graph_edge_count": links.edges,
            "embedding_tier": embedding.tier,
            "embedding_done": embedding.done,
            "embedding_total": embedding.total,
            "pending_proposals": len(self._coordinator.proposals),
        }

    async def statuses(self) -> dict[str, Status]:
        """The status of each component."""
        return {name: component.status for name, component in (await self._components()).items()}

    async def report(self) -> tuple[int, dict[str, Any]]:
        """Status and body of `/health`: 503 when a component is unavailable."""
        components = await self._components()
        statuses = {component.status for component in components.values()}
        degraded = bool(statuses & {"degraded", "unavailable"})
        body = {
            "status": "degraded" if degraded else "ok",
            "timestamp": format_time(self._clock()),
            "version": __version__,
            "components": {name: component.as_json() for name, component in components.items()},
        }
        return 503 if "unavailable" in statuses else 200, body

    async def _components(self) -> dict[str, Component]:
        found: dict[str, Component] = {}
        for each in checks_of(HEALTH):
            told = each.look(self)
            component = await told if isinstance(told, Awaitable) else told
            if component is not None:
                found[each.name] = component
        return found

    @check("kb_directory", HEALTH, place=1)
    async def _knowledge_folder(self) -> Component:
        folder = self._storage.notes_folder
        try:
            with trio.fail_after(CHECK_DEADLINE):
                await self._reading.run(lambda: next(iter(folder.iterdir()), None))
        except (OSError, trio.TooSlowError) as failure:
            return Component("unavailable", f"{folder} cannot be read: {failure}")
        return await self._writing(folder)

    @check("attachments", HEALTH, place=12)
    def _attachments(self) -> Component | None:
        """How far the reading of attachments is; nothing where they are off."""
        if not self._attaching.is_enabled:
            return None
        known = self._attaching.backlog()
        details: dict[str, Any] = {"files": known.files, "parts": known.parts, "waiting": known.waiting}
        details |= {"unread": dict(known.unread)} if known.unread else {}
        if known.trouble is not None:
            return Component("degraded", known.trouble, details)
        return Component("warming" if known.waiting else "ok", None, details)

    @check("tokens", HEALTH, place=13)
    def _tokens(self) -> Component | None:
        """Told only where something is wrong: `/health` is open to all."""
        trouble = self._keyring.trouble
        return None if trouble is None else Component("degraded", trouble)

    @check("knowledge_base", HEALTH, place=2)
    def _notes(self) -> Component:
        """How many notes there are, and of how many the frontmatter cannot be read: those are served too.

        And of how many another file has the id, or is their conflict copy; which, tell the notes: `/health`
        is open to all.
        """
        catalogue = self._catalogue
        told: dict[str, Any] = {"documents": len(catalogue), "unreadable": len(catalogue.broken)}
        if catalogue.broken:
            told["list"] = "lithos validate, or /console/notes?status=broken"
        copied = {note_id for note_id, _, _ in catalogue.copied()}
        duplicated = sum(1 for note_id in catalogue.doubles if catalogue.duplicates_of(note_id))
        counts = {"duplicated": duplicated, "conflict_copies": len(copied)}
        return Component("ok", None, told | {name: count for name, count in counts.items() if count})

    async def _writing(self, folder: Path) -> Component:
        try:
            with trio.fail_after(CHECK_DEADLINE):
                trouble = await self._writer.trouble()
        except trio.TooSlowError:
            trouble = "the disk does not answer"
        return Component("degraded", f"notes cannot be written to {folder}: {trouble}") if trouble else _OK

    @check("search", HEALTH, place=3)
    def _search(self) -> Component:
        failures = [indexer.failure for indexer in self._indexers if indexer.failure]
        return Component("degraded", "; ".join(failures)) if failures else Component("ok")

    @check("embedding_model", HEALTH, place=4)
    def _model(self) -> Component:
        semantic = self._semantic
        told = semantic.progress()
        details = {
            "model": semantic.model_name,
            "state": semantic.state.value,
            **asdict(told),
        }
        if semantic.state is SemanticState.DEGRADED:
            return Component("degraded", semantic.reason, details)
        if semantic.accurate is not None and semantic.accurate.reason is not None:
            reason = f"the accurate tier cannot be used, the static one answers: {semantic.accurate.reason}"
            return Component("degraded", reason, details)
        return Component("ok" if semantic.is_answering else "warming", None, details)

    @check("watcher", HEALTH, place=6)
    def _watching(self) -> Component:
        watcher = self._watcher
        details = {"mode": watcher.mode}
        if watcher.failure:
            return Component("degraded", watcher.failure, details)
        return Component("ok" if watcher.is_settled else "warming", None, details)

    @check("index", HEALTH, place=5)
    def _index(self) -> Component:
        skipped = len(self._catalogue.skipped)
        details: dict[str, Any] = {"skipped_files": skipped} if skipped else {}
        vanished = self._guard.vanished
        if vanished:
            details["vanished"] = vanished
            return Component("degraded", f"{vanished} note files have vanished: {WAY_OUT}", details)
        if self._publisher.withheld:
            details["pending_repairs"] = self._publisher.withheld
            return Component("degraded", "stored notes wait for an index", details)
        opening = self._opening.status()
        if opening is not None:
            failure = self._opening.failure
            return Component("degraded" if failure else "warming", failure, {**details, **opening})
        if not self._fulltext_indexer.is_converged:
            return Component("warming", None, details)
        return Component("ok", None, details)

    @check("events", HEALTH, place=7)
    def _events(self) -> Component:
        coordinator = self._coordinator
        details = {"head": coordinator.head}
        if coordinator.failure:
            return Component("degraded", f"the journal cannot be written: {coordinator.failure}", details)
        return Component("ok", None, details)

    @check("coordination", HEALTH, place=8)
    async def _coordination(self) -> Component:
        try:
            with trio.fail_after(CHECK_DEADLINE):
                await self._reading.run(lambda: self._journal.counts(self._clock()))
        except (DatabaseFailed, trio.TooSlowError) as failure:
            return Component("unavailable", f"coordination.db does not answer: {failure}")
        pending = len(self._coordinator.proposals)
        return Component("ok", details={"pending_proposals": pending} if pending else {})

    @check("memory", HEALTH, place=9)
    def _learned(self) -> Component:
        troubles = [trouble for store in self._memory.databases if (trouble := _trouble_of(store))]
        return Component("degraded", ". ".join(troubles)) if troubles else _OK

    @check("history", HEALTH, place=10)
    def _history(self) -> Component:
        if self._versions is None:
            return Component("ok", details={"enabled": False})
        trouble = _trouble_of(self._versions)
        if trouble is None:
            return _OK
        if self._versions.failure:
            trouble += ". Until then changes of notes are refused, since no version could be kept of them"
        return Component("degraded", trouble)

    @check("ownership", HEALTH, place=11)
    def _ownership(self) -> Component:
        stores = self._stores
        troubles = [stores.lock.trouble, *(database.loss for database in stores.databases)]
        told = ". ".join(filter(None, troubles))
        return Component("degraded", told) if told else _OK

    @property
    def _indexers(self) -> tuple[Indexer, Indexer]:
        return self._fulltext_indexer, self._vector_indexer


def _trouble_of(store: LearningDatabase) -> str | None:
    """What is wrong with a database, and what to do."""
    if store.loss:
        return store.loss
    if store.damage:
        return (
            f"{store.name} is damaged ({store.damage}). Restart the server: it reads the whole file, and "
            "may move it aside with its bytes intact. Restore it from a backup, if there is one"
        )
    if store.failure:
        return (
            f"{store.name} cannot be written ({store.failure}). Make room on its disk and see that it may be "
            f"written; it is tried again every second"
        )
    return None


log = get_logger("lithos.gauges")


#: Label values of counters that dashboards and alerts show as zero before anything happened.
_BEGUN: Final[Mapping[str, Sequence[str]]] = {
    "event_subscriber_drops": ("sse", "ws"),
    "events": ("note.created", "note.updated", "note.deleted", "task.created", "task.completed"),
    "http_rejected": (
        "bad_request", "body_stalled", "body_too_large", "forbidden", "forbidden_host", "forbidden_origin",
        "head_too_large", "too_many_wrong_tokens", "unauthorized",
    ),
}  # fmt: skip


class Gauges:
    """Collects the gauge values at each scrape and renders all metrics; `ask` and `watch` add sources."""

    def __init__(
        self,
        storage: StorageConfig,
        metrics: Metrics,
        state: ServerState,
        learning: Learning,
        clock: Clock,
        opening: Opening,
        catalogue: Catalogue,
        fulltext: FulltextIndex,
        semantic: SemanticBackend,
        journal: CoordinationStore,
        journal_thread: JournalThread,
        versions: HistoryStore | None,
        broadcaster: Broadcaster,
        coordinator: Coordinator,
        memory: Memory,
        writer: Writer,
        publisher: Publisher,
        words: FulltextIndexer,
        meaning: VectorIndexer,
        watcher: Watcher,
    ) -> None:
        self._storage, self._metrics = storage, metrics
        self._clock, self._opening, self._catalogue = clock, opening, catalogue
        self._fulltext, self._semantic, self._versions = fulltext, semantic, versions
        self._journal, self._journal_thread = journal, journal_thread
        self._broadcaster, self._coordinator = broadcaster, coordinator
        self._state = state
        self._learning = learning
        self._reading = Threads()
        actors = (writer, words, meaning, publisher, memory, coordinator, watcher)
        self._mailboxes: tuple[Mailbox[Any], ...] = tuple(each.mailbox for each in actors)
        for mailbox in self._mailboxes:
            mailbox.stats.on_batch = partial(self._observe_batch, mailbox.name)
            self._metrics.begin("actor_processing_seconds", mailbox.name)
        for name, labels in _BEGUN.items():
            for label in labels:
                self._metrics.begin(name, label)
        self._watched: dict[str, Callable[[], float]] = {}  # bounded: fixed when the server starts
        self._asked: list[Callable[[], Awaitable[Sequence[Sample]]]] = [
            self._database,
            self._health,
            self._history,
            self._disk,
            self._learned,
        ]
        self._statuses: Mapping[str, Status] = {}
        self._looked_at = -HEALTH_AGE

    def ask(self, samples: Callable[[], Awaitable[Sequence[Sample]]]) -> None:
        """Register a source of samples for each scrape; left out when it raises `DatabaseFailed`."""
        self._asked.append(samples)

    def watch(self, name: str, value: Callable[[], float]) -> None:
        """Register `value` as the source of the unlabelled gauge `name`, called at each scrape."""
        self._watched[name] = value

    def watched(self, name: str) -> float:
        """The value of a gauge that was registered with `watch`; 0 when none was."""
        value = self._watched.get(name)
        return 0.0 if value is None else value()

    async def scrape(self) -> bytes:
        """All metrics in the Prometheus text format; a failing database only drops its own gauges."""
        return await trio.to_thread.run_sync(self._metrics.render, await self._samples())

    async def families(self) -> list[Metric]:
        """The metric families that `scrape` renders, unencoded."""
        return await trio.to_thread.run_sync(self._metrics.families, await self._samples())

    async def _samples(self) -> list[Sample]:
        samples = [*self._server(), *self._per_actor()]
        for ask in self._asked:
            try:
                samples += await ask()
            except DatabaseFailed as failure:
                log.warning("gauges dropped", reason=str(failure))
        return samples + [Sample(name, value()) for name, value in self._watched.items()]

    def _server(self) -> Iterator[Sample]:
        links, now = self._catalogue.graph.counts(), self._clock()
        yield Sample("build_info", 1, (__version__,))
        yield Sample("startup_duration_seconds", self._opening.seconds)
        yield Sample("documents", len(self._catalogue))
        yield Sample("stale_documents", sum(entry.note.is_stale(now) for entry in self._catalogue))
        yield Sample("fulltext_documents", self._fulltext.document_count())
        yield Sample("vector_chunks", self._semantic.chunk_count)
        yield Sample("graph_nodes", links.nodes)
        yield Sample("graph_edges", links.edges)
        yield Sample("agents", len(self._coordinator.agents))
        yield Sample("event_head_seq", self._coordinator.head)
        yield Sample("event_queue_utilisation", self._broadcaster.utilisation, ("fullest",))
        for each in SemanticState:
            yield Sample("semantic_state", float(each is self._semantic.state), (each.value,))
        embedding = self._semantic.progress()
        for tier in (STATIC, TIER):
            yield Sample("embedding_tier", float(tier == embedding.tier), (tier,))
        yield Sample("embedding_done_chunks", embedding.done)
        yield Sample("embedding_chunks", embedding.total)

    def _per_actor(self) -> Iterator[Sample]:
        for mailbox in self._mailboxes:
            yield Sample("actor_mailbox_depth", mailbox.depth, (mailbox.name,))
            yield Sample("actor_mailbox_capacity", mailbox.stats.capacity, (mailbox.name,))
            yield Sample("actor_restarts", mailbox.stats.restarts, (mailbox.name,))

    async def _health(self) -> list[Sample]:
        """The components; one look writes a file to the disk of the notes, so it serves some scrapes."""
        now = trio.current_time()
        if now >= self._looked_at + HEALTH_AGE:
            self._looked_at = now
            self._statuses = await self._state.statuses()
        return [
            Sample("component_status", _SEVERITY[status], (name,)) for name, status in self._statuses.items()
        ]

    async def _database(self) -> list[Sample]:
        store, now = self._journal, self._clock()
        counts, events = await self._journal_thread.run(lambda: (store.counts(now), store.event_count()))
        return [
            Sample("active_claims", counts.open_claims),
            Sample("expired_claims", counts.expired_claims),
            Sample("pending_proposals", len(self._coordinator.proposals)),
            Sample("event_journal_events", events),
        ]

    async def _history(self) -> list[Sample]:
        """The gauges of `history.db`, if versions are kept."""
        store = self._versions
        if store is None:
            return []
        try:
            versions, size = await self._reading.run(store.size)
        except HistoryFailed as failure:
            log.warning("gauges dropped", reason=failure.message)
            return []
        return [Sample("history_versions", versions), Sample("history_bytes", size)]

    async def _disk(self) -> list[Sample]:
        """The room on the disk of the data directory; left out where the system does not tell."""
        data = self._storage.data_dir
        try:
            found = await self._reading.run(lambda: disk_usage(data))
        except OSError as failure:
            log.warning("the disk cannot be asked", path=str(data), reason=str(failure))
            return []
        return [Sample("disk_free_bytes", found.free), Sample("disk_size_bytes", found.total)]

    async def _learned(self) -> list[Sample]:
        """The enrich queue."""
        learning = self._learning
        length = await learning.read(lambda tables: tables.queue.length())
        return [Sample("lcma_enrich_queue_depth", length)]

    def _observe_batch(self, actor: str, seconds: float) -> None:
        self._metrics.observe("actor_processing_seconds", seconds, actor)
