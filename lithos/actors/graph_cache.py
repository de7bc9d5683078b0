"""Keeps the cache file of the link graph: written seldom, and once more at a stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from lithos.actors.blocking import Blocking
from lithos.actors.graph import NoteGraph
from lithos.stores.linkgraph import read_remembered, write_remembered
from lithos.telemetry import get_logger

log = get_logger("lithos.graph")

#: Changes after which the file is written, and seconds after the first of them (lifecycle spec, section 7).
CHANGES = 50
SECONDS = 5.0


class GraphCache:
    """Writes what links mean, so that the next start need not look every link up."""

    def __init__(self, graph: NoteGraph, data: Path, blocking: Blocking) -> None:
        """`data`: the data directory."""
        self._graph = graph
        self._path = data / ".graph" / "graph.json"
        self._blocking = blocking
        self._pending = 0
        self._is_due, self._is_urgent = trio.Event(), trio.Event()
        graph.on_change = self._note_change

    def read(self) -> None:
        """Hand the file's content to the graph, which uses it if it fits the notes. Blocks."""
        self._graph.recall(read_remembered(self._path))

    async def keep(self, after: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint) -> None:
        """Complete the graph `after` that wait; write the file some time after changes, until cancelled."""
        await after()
        while not self._graph.settle(1):
            await trio.lowlevel.checkpoint()
        if not self._graph.was_recalled:
            self._note_change()
        while True:
            await self._is_due.wait()
            with trio.move_on_after(SECONDS):
                await self._is_urgent.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write the file if anything changed since."""
        if not self._pending:
            return
        self._pending = 0
        self._is_due, self._is_urgent = trio.Event(), trio.Event()
        remembered = self._graph.remembered()
        try:
            await self._blocking.run(lambda: write_remembered(self._path, remembered))
        except OSError as failure:
            # The next start does without it; the next change tries again.
            log.warning("link graph cache not written", path=str(self._path), reason=str(failure))

    def _note_change(self) -> None:
        self._pending += 1
        self._is_due.set()
        if self._pending >= CHANGES:
            self._is_urgent.set()
