"""The state of the server as gauge values, collected for each scrape of `/metrics`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import trio
from prometheus_client.core import Metric

from lithos.actors.broadcaster import Broadcaster
from lithos.actors.kit import Mailbox
from lithos.actors.semantic import SemanticState
from lithos.metrics import Metrics, Sample
from lithos.services.state import StateParts
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.gauges")


class Gauges:
    """Collects and renders; `clients` maps a gauge's name to who knows its value."""

    def __init__(
        self,
        metrics: Metrics,
        parts: StateParts,
        mailboxes: Sequence[Mailbox[Any, Any]],
        broadcaster: Broadcaster,
        startup_seconds: Callable[[], float],
    ) -> None:
        self._metrics = metrics
        self._parts = parts
        self._mailboxes = mailboxes
        self._broadcaster = broadcaster
        self._startup_seconds = startup_seconds
        self._watched: dict[str, Callable[[], float]] = {}
        self._asked: list[Callable[[], Awaitable[Sequence[Sample]]]] = [self._database]

    def ask(self, samples: Callable[[], Awaitable[Sequence[Sample]]]) -> None:
        """Ask for these gauges at each scrape; when they raise `DatabaseFailed` they are left out."""
        self._asked.append(samples)

    def watch(self, name: str, value: Callable[[], float]) -> None:
        """Ask `value` for the unlabelled gauge `name` at each scrape."""
        self._watched[name] = value

    async def scrape(self) -> bytes:
        """Everything as Prometheus text; a failing database only drops its own gauges."""
        return await trio.to_thread.run_sync(self._metrics.render, await self._samples())

    async def families(self) -> list[Metric]:
        """What `scrape` renders, as values."""
        return await trio.to_thread.run_sync(self._metrics.families, await self._samples())

    async def _samples(self) -> list[Sample]:
        samples = [*self._state(), *self._actors()]
        for ask in self._asked:
            try:
                samples += await ask()
            except DatabaseFailed as failure:
                log.warning("gauges dropped", reason=str(failure))
        return samples + [Sample(name, value()) for name, value in self._watched.items()]

    def _state(self) -> Iterator[Sample]:
        parts = self._parts
        links, now = parts.catalogue.graph.counts(), parts.clock()
        yield Sample("build_info", 1, (parts.version,))
        yield Sample("startup_duration_seconds", self._startup_seconds())
        yield Sample("documents", len(parts.catalogue))
        yield Sample("stale_documents", sum(entry.note.is_stale(now) for entry in parts.catalogue))
        yield Sample("fulltext_documents", parts.fulltext.document_count())
        yield Sample("vector_chunks", parts.semantic.chunk_count)
        yield Sample("graph_nodes", links.nodes)
        yield Sample("graph_edges", links.edges)
        yield Sample("agents", len(parts.coordinator.agents))
        yield Sample("event_head_seq", parts.coordinator.head)
        yield Sample("event_queue_utilisation", self._broadcaster.utilisation, ("fullest",))
        for state in SemanticState:
            yield Sample("semantic_state", float(state is parts.semantic.state), (state.value,))

    def _actors(self) -> Iterator[Sample]:
        for mailbox in self._mailboxes:
            yield Sample("actor_mailbox_depth", mailbox.depth, (mailbox.name,))
            yield Sample("actor_restarts", mailbox.stats.restarts, (mailbox.name,))

    async def _database(self) -> list[Sample]:
        store, now = self._parts.coordination, self._parts.clock()
        counts, events = await self._parts.reading.run(lambda: (store.counts(now), store.event_count()))
        values: Mapping[str, int] = {
            "active_claims": counts.open_claims,
            "expired_claims": counts.expired_claims,
            "event_journal_events": events,
        }
        return [Sample(name, value) for name, value in values.items()]
