"""Write-behind of the link graph's cache file: debounced after changes, and once more at shutdown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from lithos.actors.blocking import Blocking
from lithos.catalogue.note_graph import NoteGraph
from lithos.stores.indexes.linkgraph import Remembered, read_remembered, write_remembered
from lithos.telemetry import get_logger

log = get_logger("lithos.graph")

#: Changes after which the file is written, and seconds after the first of them (docs/spec/lifecycle.md §7).
CHANGES = 50
SECONDS = 5.0


class GraphCache:
    """Persists the resolved link targets, so that the next start need not resolve every link."""

    def __init__(self, graph: NoteGraph, data: Path, blocking: Blocking) -> None:
        """`data`: the data directory."""
        self._graph = graph
        self._path = data / ".graph" / "graph.json"
        self._blocking = blocking
        self._pending = 0
        self._is_due, self._is_urgent = trio.Event(), trio.Event()
        graph.on_change = self._note_change

    def read(self) -> None:
        """Load the cache file into the graph, which uses it if its fingerprint fits the notes. Blocks."""
        self._graph.recall(read_remembered(self._path))

    async def keep(self, after: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint) -> None:
        """Background task: after awaiting `after` complete the graph, then write the file after changes."""
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
        """Write the file if anything changed since, and nothing does meanwhile.

        Otherwise the change, which has made any snapshot useless, leads to the next attempt.
        """
        if not self._pending:
            return
        self._pending = 0
        self._is_due, self._is_urgent = trio.Event(), trio.Event()
        remembered: Remembered | None = None
        for remembered in self._graph.remember_in_steps():
            if remembered is None:
                await trio.lowlevel.checkpoint()
        if remembered is None:
            return
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
