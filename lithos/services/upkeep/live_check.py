"""What `lithos reconcile --dry-run` tells beside a running server: its own indexes, graph and edges compared.

The files lag behind a server by seconds (vectors, link graph), so comparing them would tell of faults that
are none. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import trio

from lithos.actors.actors import Actors
from lithos.actors.blocking import Threads
from lithos.catalogue.catalogue import Entry
from lithos.catalogue.note_graph import NoteGraph
from lithos.core.findings import FAILURE_CODES, GRAPH, INDICES, PROVENANCE, Action, Failure, ScopeResult
from lithos.services.enrich.projection import IncompleteScan, Projection
from lithos.services.upkeep.reconcile import (
    graph_differences,
    projection_actions,
    run_scope,
    unresolved_links,
)
from lithos.services.upkeep.reconcile_indices import index_differences
from lithos.stores.indexes.linkgraph import Remembered

#: Seconds that the first indexing, or a change of the model, is waited for.
PATIENCE: Final = 5.0


class LiveCheck:
    """Compares the derived state of a running server with its notes."""

    def __init__(self, actors: Actors, projection: Projection) -> None:
        self.catalogue = actors.catalogue
        self.visibility = actors.visibility
        self.fulltext = actors.fulltext_port
        self.semantic = actors.semantic
        self.projection = projection

    async def run(self, scopes: Sequence[str]) -> list[ScopeResult]:
        """A result for each scope, as of a dry run; a failing one does not stop the others."""
        checks: Mapping[str, Callable[[], Awaitable[ScopeResult]]] = {
            INDICES: self._indices,
            GRAPH: self._graph,
            PROVENANCE: self._provenance,
        }
        return [await run_scope(scope, checks[scope], dry_run=True) for scope in scopes]

    async def _indices(self) -> ScopeResult:
        await self.visibility.reach()
        with trio.move_on_after(PATIENCE):
            await self.semantic.settled.wait()
        entries, port = list(self.catalogue), self.semantic.port

        def compare() -> list[Action]:
            words = {entry.serial: self.fulltext.expected(entry) for entry in entries}
            found = list(index_differences("fulltext", words, self.fulltext.stamps()))
            if port.target is not None:
                meaning = {entry.serial: port.expected(entry) for entry in entries}
                found += index_differences("vectors", meaning, port.stamps())
            else:
                reason = self.semantic.reason or "the model is being loaded; ask again in a moment"
                found.append(Action("check_failed", {"index": "vectors", "detail": reason}))
            return found

        # What changed meanwhile is no fault: only what a second look finds as well.
        actions = await Threads().run(compare)
        if actions:
            await self.visibility.reach()
            entries = list(self.catalogue)
            actions = await Threads().run(compare)
        return ScopeResult(scope=INDICES, dry_run=True, scanned=len(entries), actions=tuple(actions))

    async def _graph(self) -> ScopeResult:
        entries: list[Entry] = list(self.catalogue)
        held = self.catalogue.graph.remembered()

        def make() -> Remembered:
            graph = NoteGraph()
            graph.load(entries)
            return graph.remembered()

        fresh = await Threads().run(make)
        actions = [*graph_differences(held, fresh), *unresolved_links(fresh)]
        return ScopeResult(
            scope=GRAPH,
            dry_run=True,
            scanned=len(entries),
            skipped=sum(action.count for action in actions if not action.is_repair),
            actions=tuple(actions),
        )

    async def _provenance(self) -> ScopeResult:
        actions: tuple[Action, ...] = ()
        failures: tuple[Failure, ...] = ()
        try:
            actions = projection_actions(await self.projection.reconcile(dry_run=True))
        except IncompleteScan as failure:
            failures = (Failure(FAILURE_CODES[PROVENANCE], str(failure)),)
        return ScopeResult(
            scope=PROVENANCE, dry_run=True, scanned=len(self.catalogue), actions=actions, failures=failures
        )
