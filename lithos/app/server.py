"""The composition root: the stores of all capabilities, their parts, the start, then the front.

Start and stop are one nursery deep: the actors and the front run in it. Stopping closes
the memory's mailbox, and the end of mail walks downstream: memory, writer, publisher, indexers,
coordinator.
Never here: rules, queries or protocols; only `cli` imports it.
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
    """A running server as its front and tests see it: its parts, and its tools."""

    def __init__(
        self,
        config: Config,
        stores: Stores,
        clock: Clock,
        *,
        given: Mapping[Any, object] = {},
        models: Models | None = None,
    ) -> None:
        """`given` are parts that outlive this server, as those of a vault among several; so do `models`."""
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
        """The tools that clients call."""
        return self.get(Tools)

    async def searchable(self) -> None:
        """Wait until full text and meaning cover every note (or there is no model)."""
        await self.get(WholeIndex).complete()

    async def complete_reindex(self) -> None:
        """Wait until every note is searchable, then journal `reindex_complete`, once in a server's life."""
        await self.get(WholeIndex).complete_reindex()


__all__ = ["Server", "running_server"]

log = get_logger("lithos.app")

#: Seconds for the actors to finish what is queued at a stop, and for the last snapshot.
DRAIN = 20.0
#: Seconds until a vault that could not be read is tried again.
RESCAN = 1.0
#: Seconds for which the history leaves the processor to the embedding of the notes.
EMBEDDING = 20.0
#: The collector scans the newest containers after 5,000 more of them, and all that came since the start
#: after 2.5 million: one long listing makes a hundred thousand, and a scan of them delays all callers.
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
    """A server without a front: full text is searchable on entry, everything is durable on leaving.

    `lock`, when given, holds the data directory already; it is released on leaving. One that `gets_front`
    is entered before its notes are read, when there are many to read, and loads the model after the
    libraries of its front. `switch_interval` is that of Python's threads, in seconds. Raises what
    `open_stores` raises; `ActorGaveUp` ends the body when an actor cannot be kept alive.
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
    """One server in a process that is tuned already: one of several; else as `running_server`."""
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
                if models is None:  # else once for all of them: it delays the allocations of all threads
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
    """Read the notes, announce what changed, index them, and start what follows them."""
    start, opening = server.get(Startup), server.get(Opening)
    background.start_soon(_let_read, server)
    scanned = await _scan(server, announced, writing)
    await start.announce(scanned)
    examined = scanned.examined
    del scanned  # it holds what the manifest had to learn: after a first scan, of every note
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
    """Record what the history lacks, once searches have every note: no caller waits for it."""
    await server.get(Opening).complete.wait()
    with trio.move_on_after(EMBEDDING):
        await server.get(SemanticBackend).settled.wait()
    await server.get(CatchingUp).run()


async def _scan(server: Server, announced: Sequence[Event], writing: Threads) -> ScanResult:
    """Scan; a vault that cannot be read now, as on a disk that is gone, is tried again."""
    start, opening = server.get(Startup), server.get(Opening)
    while True:
        try:
            scanned = await start.scan(announced, writing)
        except StartStopped:
            await trio.sleep_forever()  # until the cancellation that comes with the stop
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
    """Let a long start read once clients can be answered meanwhile."""
    await server.get(Opening).is_long.wait()
    server.get(FrontSignals).wanted.set()
    await server.get(FrontSignals).loaded.wait()
    server.get(Opening).let_read()
    if server.get(Manifest).is_new:  # else the notes of the last start are shown
        await Threads().run(server.get(FirstLooks).read)


async def _show_collector(server: Server) -> None:
    """Take what stays for good out of the collector's sight; everything else is freed as ever.

    It would walk all notes again and again, a fifth of a second for 10,000 of them.
    """
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()
    await server.searchable()
    gc.freeze()
    await Threads().run(return_memory)  # a first index takes a third of what stays
