"""Salience and node statistics: pure formulas of use, decay and feedback (docs/spec/memory.md §1 to §3)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Final

import attrs
from attrs import frozen

from lithos.core.learning.memory import NodeStats, Pair

#: What a citation adds to `spaced_rep_strength`.
STRENGTH_STEP: Final = 0.05
#: Notes that misled so often are quarantined.
STRIKES: Final = 3
#: Notes ignored more often than this, and more often than cited, are ignored for long.
PATIENCE: Final = 5
#: The namespace of coactivations when no result has one.
NO_NAMESPACE: Final = "default"
_DAY: Final = timedelta(days=1)


@frozen(kw_only=True)
class LearningSettings:
    """How fast salience moves, and how many questions are kept; the names are those of section `lcma`."""

    decay_inactive_days: float = 7.0
    salience_floor: float = 0.3
    salience_decay_per_day: float = 0.005
    salience_decay_daily_cap: float = 0.1
    salience_cited_boost: float = 0.02
    salience_consolidation_boost: float = 0.01
    salience_misleading_penalty: float = 0.05
    salience_ignored_penalty: float = 0.02
    questions_kept: int = 100_000


@frozen(kw_only=True)
class UsageSettings:
    """What counts as use; the names are those of section `lcma`."""

    usage_freq_norm_k: int = 20
    usage_freq_weight: float = 0.6
    usage_recency_weight: float = 0.4
    usage_recency_halflife_days: float = 14.0


def clamp(value: float) -> float:
    """The nearest number from 0 to 1."""
    return min(1.0, max(0.0, value))


def idle_days(stats: NodeStats, now: datetime) -> float | None:
    """Days since the note was used, else retrieved; None if it never was."""
    last = stats.last_used_at or stats.last_retrieved_at
    return None if last is None else max(0.0, (now - last) / _DAY)


def usage_score(stats: NodeStats, now: datetime, settings: UsageSettings) -> float:
    """How much and how lately a note is used, 0..1 (docs/spec/memory.md §1)."""
    frequency = min(1.0, math.log1p(stats.retrieval_count) / math.log1p(settings.usage_freq_norm_k))
    idle = idle_days(stats, now)
    recency = 0.0 if idle is None else 0.5 ** (idle / settings.usage_recency_halflife_days)
    return clamp(settings.usage_freq_weight * frequency + settings.usage_recency_weight * recency)


def dominant_namespace(namespaces: Iterable[str]) -> str:
    """The most frequent one; among equals the first in the alphabet."""
    counts = Counter(namespaces)
    return min(counts, key=lambda name: (-counts[name], name), default=NO_NAMESPACE)


def pairs_together(namespaces: Mapping[str, str]) -> list[Pair]:
    """The unordered pairs of notes that were retrieved together, under their dominant namespace."""
    space = dominant_namespace(namespaces.values())
    return [(first, second, space) for first, second in combinations(sorted(namespaces), 2)]


def pairs_within(node_ids: Iterable[str], namespaces: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """The pairs of these notes that share a namespace, as (from, to, namespace) with from < to."""
    known = sorted(node_id for node_id in set(node_ids) if node_id in namespaces)
    return [
        (first, second, namespaces[first])
        for first, second in combinations(known, 2)
        if namespaces[first] == namespaces[second]
    ]


def cite(stats: NodeStats, now: datetime, settings: LearningSettings) -> NodeStats:
    """The note helped with a task."""
    return attrs.evolve(
        stats,
        cited_count=stats.cited_count + 1,
        salience=clamp(stats.salience + settings.salience_cited_boost),
        spaced_rep_strength=clamp(stats.spaced_rep_strength + STRENGTH_STEP),
        last_used_at=now,
    )


def blame(stats: NodeStats, settings: LearningSettings) -> NodeStats:
    """The note misled."""
    return attrs.evolve(
        stats,
        misleading_count=stats.misleading_count + 1,
        salience=clamp(stats.salience - settings.salience_misleading_penalty),
    )


def ignore(stats: NodeStats, settings: LearningSettings) -> NodeStats:
    """The note was of no use; only one that is ignored for long loses salience."""
    counted = attrs.evolve(stats, ignored_count=stats.ignored_count + 1)
    if not is_ignored_for_long(counted):
        return counted
    return attrs.evolve(counted, salience=clamp(counted.salience - settings.salience_ignored_penalty))


def is_ignored_for_long(stats: NodeStats) -> bool:
    """Whether a note is ignored more than a few times, and more often than cited."""
    return stats.ignored_count > PATIENCE and stats.ignored_count > stats.cited_count


def decay(stats: NodeStats, now: datetime, settings: LearningSettings) -> NodeStats | None:
    """The note after a day's decay; None when it does not fade (today, or at all)."""
    idle = idle_days(stats, now)
    last = stats.last_decay_applied_at
    if idle is None or idle <= settings.decay_inactive_days or stats.salience <= settings.salience_floor:
        return None
    # A day in the future is by another clock, and counts as long ago; tomorrow may be a matter of seconds.
    if last is not None and 0 <= (last.astimezone(UTC).date() - now.astimezone(UTC).date()).days <= 1:
        return None
    loss = min(settings.salience_decay_daily_cap, settings.salience_decay_per_day * idle)
    salience = max(settings.salience_floor, stats.salience - loss)
    return attrs.evolve(stats, salience=salience, last_decay_applied_at=now)


def lift(stats: NodeStats, floor: float) -> NodeStats | None:
    """The note at the floor; None if it is not below, or feedback put it there."""
    if stats.salience >= floor or stats.misleading_count > 0 or is_ignored_for_long(stats):
        return None
    return attrs.evolve(stats, salience=floor)
