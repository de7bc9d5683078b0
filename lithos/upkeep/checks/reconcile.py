"""The scopes `graph` and `provenance_projection` of `lithos reconcile`.

If a scope fails, `run_scope` returns the failure, and the next scope still runs.

The link graph exists only in the server's memory, so the server compares it with the notes. The projected
edges in `edges.db` are compared with the provenance in the frontmatter of the notes. While a server runs, its
files are some seconds behind, so `--dry-run` also compares the server's own indexes and edges
(`Installed.live`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import trio

from lithos.kernel.actors.threads import Threads
from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed, snapshot
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import IndexFailed, leaves_of
from lithos.kernel.values.findings import RECONCILE, Check, check, checks_of
from lithos.memory.enrich.projection import IncompleteScan, check_complete, desired_edges
from lithos.memory.learning.actor import make_edge_id
from lithos.memory.model.memory import ProjectionOutcome, ProjectProvenance
from lithos.memory.rows.edges import EdgeStore, LearnedEdges
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.catalogue.note_graph import NoteGraph, Resolved
from lithos.upkeep.checks.checks import Installed, RunningServer
from lithos.upkeep.checks.reconcile_indices import (
    DANGLING,
    FAILURE_CODES,
    GRAPH,
    INDICES,
    INTERNAL_ERROR,
    NOT_ENABLED,
    PROVENANCE,
    Action,
    Failure,
    Progress,
    ScopeResult,
    find_index_faults,
    index_differences,
    repair_indices,
)
from lithos.upkeep.checks.validation import CheckedVault

log = get_logger("lithos.reconcile")

_EXPECTED = (CorruptDatabase, DatabaseFailed, IncompleteScan, IndexFailed, OSError)
#: Maximum number of unresolved link targets that a report names.
_NAMED = 20
#: Seconds to wait for the first indexing or a model change to finish.
PATIENCE: Final = 5.0


ReconcileResult = tuple[Sequence[Action], Sequence[Failure]]


async def reconcile(
    patient: Installed, scopes: Sequence[str], *, dry_run: bool, progress: Progress | None = None
) -> list[ScopeResult]:
    """Check derived state scope by scope, and repair it unless `dry_run` is set.

    If a scope fails, the next scopes still run.
    """
    known = {each.name: each for each in checks_of(RECONCILE)}
    return [await run_scope(known[scope], patient, dry_run=dry_run, progress=progress) for scope in scopes]


async def run_scope(
    scope: Check, patient: Installed, *, dry_run: bool, progress: Progress | None
) -> ScopeResult:
    """Run one scope and return its result.

    If storage is broken, the result has the failure code of the scope. A bug gives `internal_error`.
    """
    actions: Sequence[Action] = ()
    failures: Sequence[Failure] = ()
    try:
        if dry_run or scope.mend is None:
            actions = await scope.look(patient)
        else:
            actions, failures = await scope.mend(patient, progress)
    except Exception as failure:
        failures = tuple(_explain(scope.name, leaf) for leaf in leaves_of(failure))
        if any(each.code == INTERNAL_ERROR for each in failures):
            log.error("reconciling failed", scope=scope.name, reason=repr(failure), exc_info=True)
    return ScopeResult(
        scope=scope.name,
        dry_run=dry_run,
        scanned=len(patient.survey.catalogue),
        actions=tuple(actions),
        failures=tuple(failures),
    )


def _explain(scope: str, failure: BaseException) -> Failure:
    if isinstance(failure, _EXPECTED):
        return Failure(FAILURE_CODES[scope], str(failure))
    return Failure(INTERNAL_ERROR, f"{type(failure).__name__}: {failure}. Report this with the log.")


async def _mend_indices(patient: Installed, progress: Progress | None) -> ReconcileResult:
    return await repair_indices(patient, progress)


@check(INDICES, RECONCILE, place=1, mend=_mend_indices)
async def look_at_indices(patient: Installed) -> Sequence[Action]:
    """Return the differences between the indexes and the notes."""
    if patient.live is None:
        return await Threads().run(lambda: find_index_faults(patient, patient.load))
    live = patient.live
    with trio.move_on_after(PATIENCE):
        await live.semantic.settled.wait()
    # A change during the check is not an error. Only differences that the second check confirms count.
    return await _compare_held(live) and await _compare_held(live)


async def _compare_held(live: RunningServer) -> list[Action]:
    """Compare the indexes of a running server with the notes. Return missing and surplus entries."""
    await live.visibility.reach()
    entries, fulltext, port = list(live.catalogue), live.fulltext_port, live.semantic.port

    def compare() -> list[Action]:
        words = {entry.serial: fulltext.expected(entry) for entry in entries}
        found = list(index_differences("fulltext", words, fulltext.stamps()))
        if port.target is not None:
            meaning = {entry.serial: port.expected(entry) for entry in entries}
            return [*found, *index_differences("vectors", meaning, port.stamps())]
        reason = live.semantic.reason or "the model is still loading; try again in a moment"
        return [*found, Action("check_failed", {"index": "vectors", "detail": reason})]

    return await Threads().run(compare)


@check(GRAPH, RECONCILE, place=2)
async def look_at_graph(patient: Installed) -> Sequence[Action]:
    """Return broken links, and differences between the server's link graph and the links in the notes."""
    if patient.live is None:
        return await Threads().run(lambda: list(_unresolved(patient.survey.catalogue.graph.resolved())))
    entries: list[Entry] = list(patient.survey.catalogue)
    held = patient.survey.catalogue.graph.resolved()

    def compare() -> list[Action]:
        graph = NoteGraph()
        graph.load(entries)
        fresh = graph.resolved()
        return [*_differences(held, fresh), *_unresolved(fresh)]

    return await Threads().run(compare)


def _differences(held: Resolved, fresh: Resolved) -> Iterator[Action]:
    """Yield the differences between a link graph and a graph newly built from the notes."""
    if held.fingerprint != fresh.fingerprint:
        yield Action("node_set_mismatch")
    differing = {
        target
        for target in held.targets.keys() | fresh.targets.keys()
        if held.targets.get(target, "") != fresh.targets.get(target, "")
    }
    if differing:
        yield Action("edge_set_mismatch", {"targets": len(differing)})


def _unresolved(fresh: Resolved) -> Iterator[Action]:
    """Yield broken links. They are only reported, because only a person knows the intended targets."""
    targets = sorted(target for target, found in fresh.targets.items() if found is None)
    if targets:
        yield Action(DANGLING, {"targets": targets[:_NAMED]}, len(targets))


async def _mend_provenance(patient: Installed, _: Progress | None) -> ReconcileResult:
    return await _project_notes(patient, dry_run=False), ()


@check(PROVENANCE, RECONCILE, place=3, mend=_mend_provenance)
async def look_at_provenance(patient: Installed) -> Sequence[Action]:
    """Return the differences between the projected edges and the provenance in the notes."""
    if patient.live is None:
        return await _project_notes(patient, dry_run=True)
    return projection_actions(await patient.live.projection.reconcile(dry_run=True))


async def _project_notes(patient: Installed, *, dry_run: bool) -> Sequence[Action]:
    """Update the projected edges from the notes. With `dry_run`, only report the changes.

    The function never creates the database.

    An unreadable file raises `IncompleteScan` before any change.
    """
    survey, now = patient.survey, patient.clock()
    if not (survey.private / "edges.db").exists():
        return [Action(NOT_ENABLED)]
    return projection_actions(
        await Threads().run(lambda: _project(survey, _whole_corpus(survey, dry_run=dry_run), now))
    )


def projection_actions(outcome: ProjectionOutcome) -> tuple[Action, ...]:
    """Return one action for each kind of edge change that occurred."""
    counts = {"created": outcome.created, "removed": outcome.removed, "resynced": outcome.resynced}
    return tuple(Action(reason, count=count) for reason, count in counts.items() if count)


def _whole_corpus(survey: CheckedVault, *, dry_run: bool) -> ProjectProvenance:
    """Return the command that projects the edges of all notes.

    Raises `IncompleteScan` if a file is unreadable.
    """
    check_complete(survey.catalogue)
    derived = (entry for entry in survey.catalogue if entry.note.derived_from_ids)
    desired = desired_edges(survey.catalogue, derived)
    return ProjectProvenance(desired=desired, complete=True, dry_run=dry_run)


def _project(survey: CheckedVault, command: ProjectProvenance, now: datetime) -> ProjectionOutcome:
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
