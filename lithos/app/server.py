"""`Server`: the running server's services, as the front and tests use them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from datetime import datetime

import trio
from attrs import frozen

from lithos.actors.coordinating.broadcaster import Broadcaster
from lithos.actors.coordinating.coordinator import Coordinator
from lithos.actors.indexing.indexer import Indexer, Visibility
from lithos.actors.indexing.semantic import SemanticBackend
from lithos.actors.watching.guard import DeletionGuard
from lithos.actors.watching.watcher import Watcher
from lithos.actors.writing.catching_up import CatchingUp
from lithos.actors.writing.writer import Writer
from lithos.app.stores import utc_now
from lithos.catalogue.catalogue import Catalogue
from lithos.catalogue.lineage import Lineage
from lithos.config.catalogue import Config
from lithos.core.times import format_time
from lithos.metrics import Metrics
from lithos.services.enrich.entities import EntityExtraction
from lithos.services.enrich.projection import Projection
from lithos.services.enrich.questions import QuestionUpkeep
from lithos.services.enrich.worker import Enrichment
from lithos.services.importing.importing import Importing
from lithos.services.keyring import TokenRing
from lithos.services.notes.edges import Edges
from lithos.services.notes.knowledge import Knowledge
from lithos.services.notes.moving import Moving
from lithos.services.notes.resources import Library
from lithos.services.opening import Opening
from lithos.services.retrieve.feedback import Learning
from lithos.services.search.search import Search
from lithos.services.state import Gauges, ServerState
from lithos.services.tasks.agents import AccessLog, Cursors
from lithos.services.tasks.board import Board
from lithos.services.tasks.coordination import Coordination
from lithos.services.tasks.dossier import Dossiers
from lithos.services.tasks.event_stream import EventStreams
from lithos.services.tasks.retention import Upkeep
from lithos.services.tasks.timeline import Timelines
from lithos.services.upkeep.history import HistoryUpkeep
from lithos.services.upkeep.live_check import LiveCheck
from lithos.stores.lock import OwnerLock
from lithos.stores.notes.files import NoteFiles
from lithos.stores.owner_record import OwnerRecord
from lithos.tools.contract.registry import Tools


@frozen
class Server:
    """A running server as its front and tests see it."""

    tools: Tools
    state: ServerState
    knowledge: Knowledge
    moving: Moving
    search: Search
    learning: Learning
    #: Typed edges.
    edges: Edges
    catalogue: Catalogue
    files: NoteFiles
    coordinator: Coordinator
    broadcaster: Broadcaster
    streams: EventStreams
    library: Library
    cursors: Cursors
    coordination: Coordination
    board: Board
    dossiers: Dossiers
    timelines: Timelines
    importing: Importing
    #: Reads the key that `lithos import` left for this server.
    entities: EntityExtraction
    projection: Projection
    live_check: LiveCheck
    #: None where `lcma.enabled` is false.
    enrichment: Enrichment | None
    questions: QuestionUpkeep
    access_log: AccessLog
    upkeep: Upkeep
    catching_up: CatchingUp
    #: None where `history.enabled` is off.
    history_upkeep: HistoryUpkeep | None
    semantic: SemanticBackend
    visibility: Visibility
    fulltext_indexer: Indexer
    vector_indexer: Indexer
    writer: Writer
    watcher: Watcher
    #: How far the start is: what clients are served before it is complete says so.
    opening: Opening
    guard: DeletionGuard
    lock: OwnerLock
    #: Set by the front, once no client has to wait for a library of its.
    front_loaded: trio.Event
    metrics: Metrics
    gauges: Gauges
    lineage: Lineage
    config: Config
    #: The agent name of changes that a person makes in the console.
    console_agent: str
    #: The tokens that are accepted; the front has it follow their file.
    keyring: TokenRing
    clock: Callable[[], datetime]

    def publish_address(self, url: str, *, private: bool = False) -> None:
        """Write this server's address to the lock file, with the token for commands of the same user.

        `private`: the address is for those commands alone.
        """
        token = self.keyring.own_token
        now = format_time(utc_now())
        self.lock.publish(OwnerRecord(os.getpid(), socket.gethostname(), url, now, token, private))

    async def searchable(self) -> None:
        """Wait until full text and meaning cover every note (or there is no model)."""
        await self.opening.complete.wait()
        await self.fulltext_indexer.converged()
        await self.semantic.settled.wait()
