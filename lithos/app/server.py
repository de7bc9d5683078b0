"""The parts of a running server that others hold on to."""

from __future__ import annotations

import os
import socket

import trio
from attrs import frozen

from lithos.actors.broadcaster import Broadcaster
from lithos.actors.catalogue import Catalogue
from lithos.actors.coordinator import Coordinator
from lithos.actors.freshness import Freshness
from lithos.actors.guard import DeletionGuard
from lithos.actors.indexer import Indexer
from lithos.actors.semantic import SemanticBackend
from lithos.actors.watcher import Watcher
from lithos.actors.writer import Writer
from lithos.app.clock import utc_now
from lithos.core.times import format_time
from lithos.metrics import Metrics
from lithos.services.audit import AccessLog
from lithos.services.cursors import Cursors
from lithos.services.enrichment import Enrichment
from lithos.services.entities import EntityExtraction
from lithos.services.event_stream import EventStreams
from lithos.services.gauges import Gauges
from lithos.services.knowledge import Knowledge
from lithos.services.learning import Learning
from lithos.services.library import Library
from lithos.services.projection import Projection
from lithos.services.retrieval import Retrieval
from lithos.services.state import ServerState
from lithos.stores.lock import OwnerLock, OwnerRecord
from lithos.tools.registry import Tools


@frozen
class Server:
    """A running server as its front and tests see it."""

    tools: Tools
    state: ServerState
    knowledge: Knowledge
    retrieval: Retrieval
    learning: Learning
    catalogue: Catalogue
    coordinator: Coordinator
    broadcaster: Broadcaster
    streams: EventStreams
    library: Library
    cursors: Cursors
    entities: EntityExtraction
    projection: Projection
    #: None where `lcma.enabled` is false.
    enrichment: Enrichment | None
    access_log: AccessLog
    semantic: SemanticBackend
    freshness: Freshness
    fulltext_indexer: Indexer
    vector_indexer: Indexer
    writer: Writer
    watcher: Watcher
    guard: DeletionGuard
    lock: OwnerLock
    #: Set by the front, once no client has to wait for a library of its.
    front_loaded: trio.Event
    metrics: Metrics
    gauges: Gauges

    def publish_address(self, url: str, token: str | None = None) -> None:
        """Tell others through the lock where this server answers."""
        self.lock.publish(OwnerRecord(os.getpid(), socket.gethostname(), url, format_time(utc_now()), token))

    async def searchable(self) -> None:
        """Wait until full text and meaning cover every note (or there is no model)."""
        await self.fulltext_indexer.converged()
        await self.semantic.settled.wait()
