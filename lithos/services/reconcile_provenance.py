"""Reconciling the provenance edges in `edges.db` with what notes say they are derived from."""

from __future__ import annotations

from datetime import datetime

from lithos.actors.memory import make_edge_id
from lithos.core.memory import ProjectionOutcome, ProjectProvenance
from lithos.core.reconcile import FAILURE_CODES, PROVENANCE, Action, Failure, ScopeResult
from lithos.services.projection import IncompleteScan, check_complete, desired_edges
from lithos.services.survey import Survey
from lithos.stores.edges import EdgeStore
from lithos.stores.edges_learning import LearnedEdges
from lithos.stores.snapshots import snapshot
from lithos.stores.sqlite import CorruptDatabase, DatabaseFailed


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
    counts = {"created": outcome.created, "removed": outcome.removed, "resynced": outcome.resynced}
    return ScopeResult(
        scope=PROVENANCE,
        dry_run=dry_run,
        scanned=scanned,
        actions=tuple(Action(reason, count=count) for reason, count in counts.items() if count),
        failures=tuple(failures),
    )


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
