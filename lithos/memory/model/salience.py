"""Counters of notes, and the salience and usage derived from them (docs/spec/memory.md §2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import combinations
from typing import Final

import attrs

from lithos.memory.model.memory import NodeStats

#: Number of misleading reports after which a note is quarantined.
STRIKES: Final = 3
#: Number of times a note may be ignored without effect. After that, a note that is ignored more often than
#: cited loses salience.
PATIENCE: Final = 5
#: Salience of a note without feedback, and changes of salience per citation, misleading report and neglect.
INITIAL_SALIENCE: Final = 0.5
_CITED: Final = 0.02
_MISLEADING: Final = 0.05
_IGNORED: Final = 0.02
#: Number of retrievals that counts as full use.
_FULL_USE: Final = 20


def salience_of(stats: NodeStats) -> float:
    """Return the learned usefulness (0..1) of a note, computed from its feedback counters."""
    neglect = max(0, stats.ignored_count - max(PATIENCE, stats.cited_count))
    feedback = _CITED * stats.cited_count - _MISLEADING * stats.misleading_count - _IGNORED * neglect
    return min(1.0, max(0.0, INITIAL_SALIENCE + feedback))


def usage_of(stats: NodeStats) -> float:
    """Return how often a note was retrieved, as a number in 0..1. 20 or more retrievals give 1."""
    return min(1.0, math.log1p(stats.retrieval_count) / math.log1p(_FULL_USE))


def pairs_within(node_ids: Iterable[str], namespaces: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return all pairs of these notes within a namespace, as (from, to, namespace) with from < to."""
    known = sorted(node_id for node_id in set(node_ids) if node_id in namespaces)
    return [
        (first, second, namespaces[first])
        for first, second in combinations(known, 2)
        if namespaces[first] == namespaces[second]
    ]


def cite(stats: NodeStats, now: datetime) -> NodeStats:
    """Return the statistics of a note after a citation."""
    return attrs.evolve(stats, cited_count=stats.cited_count + 1, last_used_at=now)


def blame(stats: NodeStats) -> NodeStats:
    """Return the statistics of a note after a misleading report."""
    return attrs.evolve(stats, misleading_count=stats.misleading_count + 1)


def ignore(stats: NodeStats) -> NodeStats:
    """Return the statistics of a note after it was ignored."""
    return attrs.evolve(stats, ignored_count=stats.ignored_count + 1)
