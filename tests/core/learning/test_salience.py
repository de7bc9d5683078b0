"""Salience and use, as numbers."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from lithos.core.learning.memory import NodeStats
from lithos.core.learning.salience import (
    LearningSettings,
    UsageSettings,
    blame,
    cite,
    decay,
    dominant_namespace,
    ignore,
    is_ignored_for_long,
    lift,
    pairs_within,
    usage_score,
)
from tests.fakes import START

SETTINGS = LearningSettings()
PLAIN = NodeStats(node_id="a")


def stats(**changes) -> NodeStats:
    return attrs.evolve(PLAIN, **changes)


def days_ago(days: float):
    return START - timedelta(days=days)


def test_a_citation_lifts_salience_and_strength_up_to_one():
    """behaviour 153"""
    once = cite(PLAIN, START, SETTINGS)
    assert (once.salience, once.spaced_rep_strength) == (pytest.approx(0.52), 0.05)
    assert (once.cited_count, once.last_used_at) == (1, START)
    often = PLAIN
    for _ in range(40):
        often = cite(often, START, SETTINGS)
    assert (often.salience, often.spaced_rep_strength, often.cited_count) == (1.0, 1.0, 40)


def test_misleading_goes_below_the_floor_and_down_to_zero():
    """behaviour 153"""
    low = blame(stats(salience=0.3), SETTINGS)
    assert (low.salience, low.misleading_count) == (pytest.approx(0.25), 1)
    assert blame(stats(salience=0.01), SETTINGS).salience == 0.0


@pytest.mark.parametrize(
    ("ignored", "cited", "salience"),
    [(4, 0, 0.5), (5, 0, 0.48), (5, 6, 0.5), (9, 10, 0.5), (10, 10, 0.48), (100, 0, 0.48)],
)
def test_only_what_is_ignored_more_than_five_times_and_more_than_cited_loses(ignored, cited, salience):
    """behaviour 152"""
    after = ignore(stats(ignored_count=ignored, cited_count=cited), SETTINGS)
    assert (after.ignored_count, after.salience) == (ignored + 1, pytest.approx(salience))
    assert is_ignored_for_long(after) == (salience < 0.5)


@pytest.mark.parametrize(
    ("used", "retrieved", "salience", "after"),
    [
        (None, None, 0.5, None),
        (7, None, 0.5, None),
        (8, None, 0.5, 0.46),
        (None, 10, 0.5, 0.45),
        (1, 100, 0.5, None),
        (8, 1, 0.5, 0.46),
        (20, None, 0.5, 0.4),
        (1000, None, 0.9, 0.8),
        (1000, None, 0.35, 0.3),
        (1000, None, 0.3, None),
        (1000, None, 0.1, None),
    ],
)
def test_decay_needs_seven_idle_days_is_capped_and_keeps_the_floor(used, retrieved, salience, after):
    """behaviour 154"""
    before = stats(
        salience=salience,
        last_used_at=None if used is None else days_ago(used),
        last_retrieved_at=None if retrieved is None else days_ago(retrieved),
    )
    faded = decay(before, START, SETTINGS)
    if after is None:
        assert faded is None
    else:
        assert faded == attrs.evolve(before, salience=faded.salience, last_decay_applied_at=START)
        assert faded.salience == pytest.approx(after)


def test_decay_comes_once_per_utc_day():
    """behaviour 154"""
    idle = stats(last_used_at=days_ago(30), last_decay_applied_at=START)
    midnight = START.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    assert decay(idle, midnight - timedelta(microseconds=1), SETTINGS) is None
    assert decay(idle, midnight, SETTINGS) is not None


def test_decay_goes_on_after_the_clock_was_far_ahead_and_takes_one_step_there():
    far = START + timedelta(days=60 * 365)
    there = decay(stats(salience=0.9, last_used_at=days_ago(8)), far, SETTINGS)
    assert there is not None
    assert there.salience == pytest.approx(0.8)
    assert decay(there, far, SETTINGS) is None
    back = decay(there, START, SETTINGS)
    assert back is not None
    assert back.last_decay_applied_at == START
    assert decay(back, START - timedelta(seconds=1), SETTINGS) is None


def test_lifting_spares_what_feedback_put_below_the_floor():
    low = stats(salience=0.1)
    lifted = lift(low, 0.3)
    assert lifted == attrs.evolve(low, salience=0.3)
    assert lift(lifted, 0.3) is None
    assert lift(attrs.evolve(low, misleading_count=1), 0.3) is None
    assert lift(attrs.evolve(low, ignored_count=6), 0.3) is None
    assert lift(attrs.evolve(low, ignored_count=6, cited_count=6), 0.3) is not None


@pytest.mark.parametrize(
    ("retrievals", "idle", "score"),
    [(0, None, 0.0), (20, None, 0.6), (500, None, 0.6), (20, 0, 1.0), (0, 14, 0.2), (0, 28, 0.1)],
)
def test_use_is_frequency_and_recency(retrievals, idle, score):
    last = None if idle is None else days_ago(idle)
    for field in ("last_used_at", "last_retrieved_at"):
        given = stats(retrieval_count=retrievals, **{field: last})
        assert usage_score(given, START, UsageSettings()) == pytest.approx(score)


def test_the_namespace_of_most_results_is_dominant():
    assert dominant_namespace([]) == "default"
    assert dominant_namespace(["b", "a", "b"]) == "b"
    assert dominant_namespace(["b", "a"]) == "a"


def test_pairs_stay_within_a_namespace_and_are_ordered():
    spaces = {"c": "x", "a": "x", "b": "y", "d": "x"}
    assert pairs_within(["d", "c", "a", "b", "a", "unknown"], spaces) == [
        ("a", "c", "x"),
        ("a", "d", "x"),
        ("c", "d", "x"),
    ]
