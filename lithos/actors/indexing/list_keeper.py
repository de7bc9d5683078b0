"""Keeps the inverted lists of large vector stores up to date, in a background thread.

Searches do without them until they are built, and scan the rows that they do not cover. Stopping takes a few
milliseconds: the work is given up between two pieces, and the lists stay as they were.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

import trio

from lithos.actors.blocking import Blocking
from lithos.stores.indexes.clustering import Stopped
from lithos.stores.indexes.vectors import VectorIndex
from lithos.telemetry import get_logger

log = get_logger("lithos.lists")


class ListKeeper:
    """One background task; `look` tells it that rows have changed."""

    def __init__(self, indexes: Callable[[], Sequence[VectorIndex]], thread: Blocking) -> None:
        """`indexes` gives those in use now, in any thread; `thread` has a low priority."""
        self._indexes = indexes
        self._thread = thread
        self._token: trio.lowlevel.TrioToken | None = None
        self._woken = trio.Event()

    def look(self) -> None:
        """Rows have changed; may be called in any thread."""
        if self._token is None or not any(index.lists_due for index in self._indexes()):
            return
        try:
            self._token.run_sync_soon(self._wake)
        except trio.RunFinishedError:
            log.debug("a change after the end of the event loop")

    def _wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """Background task: bring the lists up to date whenever they are due, for good."""
        self._token = trio.lowlevel.current_trio_token()
        self.look()
        while True:
            await self._woken.wait()
            self._woken = trio.Event()
            for index in self._indexes():
                if index.lists_due:
                    await self._build(index)

    async def _build(self, index: VectorIndex) -> None:
        begun, stop = trio.current_time(), threading.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_set_when_cancelled, stop)
            try:
                await self._thread.run(partial(_build, index, stop))
            except Stopped:
                await trio.lowlevel.checkpoint()  # the cancellation that stopped it
                return
            except MemoryError:
                log.error("no memory for lists of vectors; searches by meaning scan all", retry="next change")
                return
            finally:
                nursery.cancel_scope.cancel()
        log.info(
            "lists of vectors built",
            chunks=index.chunk_count(),
            seconds=round(trio.current_time() - begun, 1),
        )


def _build(index: VectorIndex, stop: threading.Event) -> None:
    def check() -> None:
        if stop.is_set():
            raise Stopped

    index.build_lists(check)
    index.save_lists()


async def _set_when_cancelled(stop: threading.Event) -> None:
    try:
        await trio.sleep_forever()
    finally:
        stop.set()
