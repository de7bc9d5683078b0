"""Composition root: creates the stores and parts of all capabilities, starts them, and then starts the front.

Start and stop use a single nursery, in which the actors and the front run. A stop closes the mailbox of
memory. When an actor ends, it closes the next mailbox. The order is memory, writer, publisher, indexers,
coordinator. This module contains no rules, queries or protocols, and only the package `app` imports it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cached_property
from typing import Any

import trio

from lithos.app import capabilities
from lithos.app.capabilities import makers
from lithos.app.start import Startup
from lithos.app.stores import close_stores, open_stores
from lithos.history.recording.backfill import CatchingUp
from lithos.kernel.actors.allocator import keep_returning, limit_arenas, return_memory
from lithos.kernel.actors.front_signals import FrontSignals
from lithos.kernel.actors.ownership import keep_owning
from lithos.kernel.actors.start_progress import Opening, StartStopped
from lithos.kernel.actors.threads import Threads
from lithos.kernel.actors.tuning import SWITCH_INTERVAL, tuned_process
from lithos.kernel.capability import Capabilities
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.lock import OwnerLock
from lithos.kernel.databases.open_stores import Stores
from lithos.kernel.log import get_logger
from lithos.kernel.parts import Clock, Parts, utc_now
from lithos.kernel.values.events import Event
from lithos.memory.learning.actor import Memory
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.first_lines import FirstLooks
from lithos.notes.catalogue.scan import ScanResult
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.manifest import Manifest
from lithos.notes.settings import IndexConfig
from lithos.notes.writing.deferred_removal import Keeper
from lithos.search.indexing.models import Models
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.whole_index import WholeIndex
from lithos.server.tools.registry import Tools


class Server(Parts):
    """A running server for its front and for tests: its parts and its tools."""

    def __init__(
        self,
        config: Config,
        stores: Stores,
        clock: Clock,
        *,
        given: Mapping[Any, object] = {},
        models: Models | None = None,
    ) -> None:
        """Create a server.

        The caller owns `given` parts and `models`, which outlive a server for one of several vaults.
        """
        parts: dict[Any, object] = {
            Clock: clock,
            Models: models or Models(),
            Config: config,
            **config.by_class,
        }
        parts |= {Stores: stores, OwnerLock: stores.lock, **stores.opened}
        parts[Capabilities] = Capabilities(capabilities.CAPABILITIES)
        super().__init__((Startup, *makers()), {**parts, **given})

    @cached_property
    def tools(self) -> Tools:
        """Return the tools that clients call."""
        return self.get(Tools)

    async def searchable(self) -> None:
        """Wait until full-text and semantic search cover every note.

        If there is no model, only full-text search must cover every note.
        """
        await self.get(WholeIndex).complete()

    async def complete_reindex(self) -> None:
        """Wait until every note is searchable, then journal `reindex_complete`.

        The event `reindex_complete` is journalled only once per server.
        """
        await self.get(WholeIndex).complete_reindex()


__all__ = ["Server", "running_server"]

log = get_logger("lithos.app")

#: Maximum seconds during a stop for actors to process queued messages, and for the last snapshot.
DRAIN = 20.0
#: Seconds until a vault that could not be read is read again.
RESCAN = 1.0
#: Maximum seconds for which the history work waits while notes are embedded.
EMBEDDING = 20.0
#: Garbage collector thresholds. After 5,000 new containers the newest ones are scanned. After 2.5 million new
#: containers all containers since the start are scanned. One long listing creates a hundred thousand, and
#: scanning them delays all callers.
COLLECT_AFTER = (5_000, 10, 50)


@asynccontextmanager
async def running_server(
    config: Config,
    *,
    clock: Callable[[], datetime] = utc_now,
    lock: OwnerLock | None = None,
    gets_front: bool = False,
    switch_interval: float = SWITCH_INTERVAL,
) -> AsyncIterator[Server]:
    """Run a server without a front.

    When the block begins, full-text search covers every note. When the block ends, all changes are durable.

    A given `lock` already holds the data directory; it is released on exit. With `gets_front`, the block
    begins before a server with many notes has read them, and the server loads the model after the libraries
    of its front. `switch_interval` is Python's thread switch interval in seconds. Raises the errors of
    `open_stores`. If an actor crashes too often, `ActorGaveUp` ends the block.
    """
    with tuned_process(switch_interval):
        async with running_vault(config, clock=clock, lock=lock, gets_front=gets_front) as server:
            yield server


@asynccontextmanager
async def running_vault(
    config: Config,
    *,
    clock: Callable[[], datetime] = utc_now,
    lock: OwnerLock | None = None,
    gets_front: bool = False,
    given: Mapping[Any, object] = {},
    models: Models | None = None,
) -> AsyncIterator[Server]:
    """Run one of several servers in a process that is already tuned. Otherwise equal to `running_server`."""
    began = time.perf_counter()
    limit_arenas()
    writing = Threads()
    stores = await writing.run(lambda: open_stores(config, lock))
    try:
        server = Server(config, stores, clock, given=given, models=models)
        start = server.get(Startup)
        if not gets_front:
            server.get(FrontSignals).loaded.set()
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as background:
                background.start_soon(keep_owning, stores.lock, stores.databases)
                announced = await writing.run(start.recall)
                await start.start(nursery)
                server.make_all()
                background.start_soon(_open, server, announced, writing, background, began)
                if models is None:  # Several servers share one such task, because it delays all threads.
                    background.start_soon(keep_returning)
                try:
                    if gets_front:
                        await server.get(Opening).worth_waiting()
                    else:
                        await server.get(Opening).complete.wait()
                    yield server
                finally:
                    server.get(Opening).stop()
                    server.get(FirstLooks).forget()
                    background.cancel_scope.cancel()
            server.get(Memory).mailbox.close()
            nursery.cancel_scope.deadline = trio.current_time() + DRAIN
        with trio.CancelScope(shield=True, deadline=trio.current_time() + DRAIN):
            await server.get(Keeper).finish()
            await server.get(SemanticBackend).close()
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + DRAIN):
            await writing.run(lambda: close_stores(stores))
    log.info("stopped")


async def _open(
    server: Server,
    announced: Sequence[Event],
    writing: Threads,
    background: trio.Nursery,
    began: float,
) -> None:
    """Read the notes, announce changes, index the notes, and start the background tasks."""
    start, opening = server.get(Startup), server.get(Opening)
    background.start_soon(_let_read, server)
    scanned = await _scan(server, announced, writing)
    await start.announce(scanned)
    examined = scanned.examined
    del scanned  # The result may contain every note, so its memory is released.
    opening.recalled.set()
    opening.known.set()
    await start.open(background)
    await background.start(start.watch)
    background.start_soon(_show_collector, server)
    for each in capabilities.background(of_front=False):
        if (part := server.find(each.kind)) is not None:
            background.start_soon(each.run, part)
    background.start_soon(_catch_up, server)
    if server.get(IndexConfig).rebuild_on_start:
        background.start_soon(server.complete_reindex)
    opening.seconds = time.perf_counter() - began
    log.info(
        "ready",
        notes=len(server.get(Catalogue)),
        examined=examined,
        seconds=round(opening.seconds, 3),
    )
    opening.complete.set()
    server.get(FirstLooks).forget()


async def _catch_up(server: Server) -> None:
    """Add what the history lacks, once searches cover every note. No caller waits for this task."""
    await server.get(Opening).complete.wait()
    with trio.move_on_after(EMBEDDING):
        await server.get(SemanticBackend).settled.wait()
    await server.get(CatchingUp).run()


async def _scan(server: Server, announced: Sequence[Event], writing: Threads) -> ScanResult:
    """Scan the notes.

    A vault that cannot be read, for example because its disk is missing, is scanned again until the scan
    succeeds.
    """
    start, opening = server.get(Startup), server.get(Opening)
    while True:
        try:
            scanned = await start.scan(announced, writing)
        except StartStopped:
            await trio.sleep_forever()  # Sleep until the stop cancels this task.
        except OSError as failure:
            if not server.get(NoteFiles).is_foreign:
                raise
            if opening.failure is None:
                log.error("notes cannot be read", reason=str(failure))
            opening.failure = f"the notes cannot be read: {failure}"
            await trio.sleep(RESCAN)
        else:
            opening.failure = None
            return scanned


async def _let_read(server: Server) -> None:
    """Let a long start read the notes as soon as clients can be answered meanwhile."""
    await server.get(Opening).is_long.wait()
    server.get(FrontSignals).wanted.set()
    await server.get(FrontSignals).loaded.wait()
    server.get(Opening).let_read()
    # If the manifest is not new, clients already see the notes of the last start.
    if server.get(Manifest).is_new:
        await Threads().run(server.get(FirstLooks).read)


async def _show_collector(server: Server) -> None:
    """Exclude long-lived objects from garbage collection. All other objects are still collected.

    Without this function the collector would scan all notes repeatedly, which takes a fifth of a second for
    10,000 notes.
    """
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()
    await server.searchable()
    gc.freeze()
    await Threads().run(return_memory)  # Return the memory that the first indexing has freed.
