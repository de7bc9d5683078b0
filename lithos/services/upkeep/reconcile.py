"""The scopes `graph` and `provenance` of `lithos reconcile`; `run_scope` isolates the failures of each scope.

The cache of the link graph is compared with the links in the notes, the projected edges in `edges.db` with
the provenance in their frontmatter. Beside a running server `--dry-run` compares its own indexes, graph and
edges (`LiveCheck`): files lag behind it by seconds, and comparing them would tell of faults that are none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import trio

from lithos.actors.actors import Actors
from lithos.actors.blocking import Threads
from lithos.actors.remembering.actor import make_edge_id
from lithos.catalogue.catalogue import Entry
from lithos.catalogue.note_graph import NoteGraph
from lithos.core.errors import leaves_of
from lithos.core.findings import (
    FAILURE_CODES,
    GRAPH,
    INDICES,
    INTERNAL_ERROR,
    PROVENANCE,
    Action,
    Failure,
    ScopeResult,
)
from lithos.core.learning.memory import ProjectionOutcome, ProjectProvenance
from lithos.services.enrich.projection import IncompleteScan, Projection, check_complete, desired_edges
from lithos.services.upkeep.reconcile_indices import index_differences
from lithos.services.upkeep.validation import Survey
from lithos.stores.indexes import IndexFailed
from lithos.stores.indexes.linkgraph import Remembered, read_remembered, write_remembered
from lithos.stores.learning.edges import EdgeStore, LearnedEdges
from lithos.stores.sqlite import CorruptDatabase, DatabaseFailed, snapshot
from lithos.telemetry import get_logger

log = get_logger("lithos.reconcile")

_EXPECTED = (CorruptDatabase, DatabaseFailed, IndexFailed, OSError)
#: Unresolved targets that are named.
_NAMED = 20
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


async def run_scope(scope: str, run: Callable[[], Awaitable[ScopeResult]], *, dry_run: bool) -> ScopeResult:
    """The result of `run`, or a failed one: broken storage by the scope's code, a bug as `internal_error`."""
    try:
        return await run()
    except Exception as failure:
        failures = tuple(_explain(scope, leaf) for leaf in leaves_of(failure))
        if any(each.code == INTERNAL_ERROR for each in failures):
            log.error("reconciling failed", scope=scope, reason=repr(failure), exc_info=True)
        return ScopeResult(scope=scope, dry_run=dry_run, failures=failures)


def _explain(scope: str, failure: BaseException) -> Failure:
    if isinstance(failure, _EXPECTED):
        return Failure(FAILURE_CODES[scope], str(failure))
    return Failure(INTERNAL_ERROR, f"{type(failure).__name__}: {failure}. Report this with the log.")


def reconcile_graph(survey: Survey, *, dry_run: bool) -> ScopeResult:
    """Compare the cache with the links in the notes, and write it anew if it differs. Blocks."""
    path = survey.data / ".graph" / "graph.json"
    fresh = survey.catalogue.graph.remembered()
    actions = [*_cache_faults(survey, fresh), *unresolved_links(fresh)]
    failures: tuple[Failure, ...] = ()
    if not dry_run and any(action.is_repair for action in actions):
        try:
            write_remembered(path, fresh)
        except OSError as failure:
            actions = [action for action in actions if not action.is_repair]
            failures = (Failure(FAILURE_CODES[GRAPH], f"The link graph cache cannot be written: {failure}"),)
    return ScopeResult(
        scope=GRAPH,
        dry_run=dry_run,
        scanned=len(survey.catalogue),
        skipped=sum(action.count for action in actions if not action.is_repair),
        actions=tuple(actions),
        failures=failures,
    )


def _cache_faults(survey: Survey, fresh: Remembered) -> Iterator[Action]:
    path = survey.data / ".graph" / "graph.json"
    if not path.exists():
        yield Action("cache_missing")
        return
    cached = read_remembered(path)
    if cached is None:
        yield Action("cache_unreadable")
        return
    yield from graph_differences(cached, fresh)


def graph_differences(cached: Remembered, fresh: Remembered) -> Iterator[Action]:
    """What a link graph has that differs from one that was made from the notes just now."""
    if cached.fingerprint != fresh.fingerprint:
        yield Action("node_set_mismatch")
    differing = {
        target
        for target in cached.targets.keys() | fresh.targets.keys()
        if cached.targets.get(target, "") != fresh.targets.get(target, "")
    }
    if differing:
        yield Action("edge_set_mismatch", {"targets": len(differing)})


def unresolved_links(fresh: Remembered) -> Iterator[Action]:
    """Dangling links: reported only, since only a person knows what they should mean."""
    targets = sorted(target for target, found in fresh.targets.items() if found is None)
    if targets:
        named = {"targets": targets[:_NAMED]}
        yield Action("target_slug_not_found", named, is_repair=False, count=len(targets))


def reconcile_provenance(survey: Survey, now: datetime, *, dry_run: bool) -> ScopeResult:
    """Make the projected edges what the notes say; the database is never created. Blocks.

    Files that cannot be read end it before anything is changed.
    """
    scanned = len(survey.catalogue)
    if not (survey.private / "edges.db").exists():
        actions = (Action("not_enabled", is_repair=False),)
        return ScopeResult(
            scope=PROVENANCE, dry_run=dry_run, supported=False, scanned=scanned, skipped=1, actions=actions
        )
    outcome, failures = ProjectionOutcome(), list[Failure]()
    try:
        outcome = _project(survey, _whole_corpus(survey, dry_run=dry_run), now)
    except (IncompleteScan, CorruptDatabase, DatabaseFailed, OSError) as failure:
        failures.append(Failure(FAILURE_CODES[PROVENANCE], str(failure)))
    return ScopeResult(
        scope=PROVENANCE,
        dry_run=dry_run,
        scanned=scanned,
        actions=projection_actions(outcome),
        failures=tuple(failures),
    )


def projection_actions(outcome: ProjectionOutcome) -> tuple[Action, ...]:
    """An action for each kind of edge change, without those of which there are none."""
    counts = {"created": outcome.created, "removed": outcome.removed, "resynced": outcome.resynced}
    return tuple(Action(reason, count=count) for reason, count in counts.items() if count)


def _whole_corpus(survey: Survey, *, dry_run: bool) -> ProjectProvenance:
    """Raises `IncompleteScan`."""
    check_complete(survey.catalogue)
    derived = (entry for entry in survey.catalogue if entry.note.derived_from_ids)
    desired = desired_edges(survey.catalogue, derived)
    return ProjectProvenance(desired=desired, complete=True, dry_run=dry_run)


def _project(survey: Survey, command: ProjectProvenance, now: datetime) -> ProjectionOutcome:
    path = survey.private / "edges.db"
    if command.dry_run:
        with snapshot(path, is_live=survey.is_live) as connection:
            assert connection is not None
            return LearnedEdges(connection).project(command, make_edge_id, now)
    store = EdgeStore.open(path, now)
    try:
        with store.transaction():
            return store.learned.project(command, make_edge_id, now)
    finally:
        store.close()
