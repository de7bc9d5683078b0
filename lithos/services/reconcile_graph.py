"""Reconciling the cache of the link graph with the notes."""

from __future__ import annotations

from collections.abc import Iterator

from lithos.core.reconcile import FAILURE_CODES, GRAPH, Action, Failure, ScopeResult
from lithos.services.survey import Survey
from lithos.stores.linkgraph import Remembered, read_remembered, write_remembered

#: Unresolved targets that are named.
_NAMED = 20


def reconcile_graph(survey: Survey, *, dry_run: bool) -> ScopeResult:
    """Compare the cache with the links in the notes, and write it anew if it differs. Blocks."""
    path = survey.data / ".graph" / "graph.json"
    fresh = survey.catalogue.graph.remembered()
    actions = [*_differences(survey, fresh), *_unresolved(fresh)]
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


def _differences(survey: Survey, fresh: Remembered) -> Iterator[Action]:
    path = survey.data / ".graph" / "graph.json"
    if not path.exists():
        yield Action("cache_missing")
        return
    cached = read_remembered(path)
    if cached is None:
        yield Action("cache_unreadable")
        return
    if cached.fingerprint != fresh.fingerprint:
        yield Action("node_set_mismatch")
    differing = {
        target
        for target in cached.targets.keys() | fresh.targets.keys()
        if cached.targets.get(target, "") != fresh.targets.get(target, "")
    }
    if differing:
        yield Action("edge_set_mismatch", {"targets": len(differing)})


def _unresolved(fresh: Remembered) -> Iterator[Action]:
    """Links to nothing: only told, since only a person knows what they should mean."""
    targets = sorted(target for target, found in fresh.targets.items() if found is None)
    if targets:
        named = {"targets": targets[:_NAMED]}
        yield Action("target_slug_not_found", named, is_repair=False, count=len(targets))
