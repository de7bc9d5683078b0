"""Samples of a running server: rates, durations from histogram differences, and limits."""

from __future__ import annotations

from math import inf

import pytest
import trio

from lithos.kernel.actors.threads import Inline
from lithos.kernel.metrics import Metrics
from lithos.upkeep.checks.samples import FIRST, INTERVAL, KEPT, Samples, quantile, resident_memory
from tests.fakes import Clock


def make_samples(metrics: Metrics) -> Samples:
    return Samples(metrics, Inline(), Clock(), head=lambda: 7, subscribers=lambda: 2)


@pytest.mark.autojump
async def test_sample_contains_only_events_since_the_previous_sample() -> None:
    metrics = Metrics()
    samples = make_samples(metrics)
    for _ in range(100):  # The calls in this loop are made before the first sample.
        metrics.count("tool_calls", "lithos_read")
        metrics.observe("search_duration_seconds", 9.0, "hybrid", "true")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(samples.run)
        await trio.sleep(FIRST + 1)
        (first,) = samples.taken
        assert (first.calls, first.searches, first.search_p95, first.write_p50) == (0, 0, None, None)
        assert (first.head, first.subscribers, first.seconds) == (7, 2, FIRST)
        for number in range(30):
            metrics.count("tool_calls", "lithos_write" if number % 2 else "lithos_search")
            metrics.observe("knowledge_write_duration_seconds", 0.004, "create", "true")
            metrics.observe("search_duration_seconds", 0.02, "hybrid", "true")
            metrics.observe("lcma_retrieve_duration_seconds", 0.2)
        metrics.count("tool_errors", "lithos_read", "doc_not_found")
        await trio.sleep(INTERVAL)
        second = samples.taken[-1]
        nursery.cancel_scope.cancel()
    assert (second.calls, second.errors, second.writes, second.searches) == (30, 1, 30, 60)
    assert second.a_minute(second.writes) == pytest.approx(30 * 60 / INTERVAL)
    assert second.write_p50 is not None
    assert 0.0025 <= second.write_p50 <= 0.005
    assert second.search_p50 is not None
    assert 0.01 <= second.search_p50 <= 0.025
    assert second.search_p95 is not None
    assert 0.1 <= second.search_p95 <= 0.25


@pytest.mark.autojump
async def test_samples_are_kept_for_an_hour() -> None:
    samples = make_samples(Metrics())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(samples.run)
        await trio.sleep(INTERVAL * (KEPT + 50))
        nursery.cancel_scope.cancel()
    assert len(samples.taken) == KEPT
    assert KEPT * INTERVAL == 3600


def test_quantile_is_interpolated_within_its_bucket() -> None:
    table = {  # Counts up to 1, 2 and infinity, and the fraction of the quantile.
        (0, 0, 0, 0.5): None,
        (10, 10, 10, 0.5): 0.5,
        (10, 20, 20, 0.95): pytest.approx(1.9),
        (0, 4, 4, 0.5): 1.5,
        (0, 0, 5, 0.5): 2.0,
    }
    found = {row: quantile([*zip((1.0, 2.0, inf), row[:3], strict=True)], row[3]) for row in table}
    assert found == table


def test_resident_memory_is_plausible_for_a_python_process() -> None:
    assert 5_000_000 < resident_memory() < 50_000_000_000


def test_metric_totals_are_summed_over_all_labels() -> None:
    metrics = Metrics()
    metrics.count("tool_calls", "a")
    metrics.count("tool_calls", "b", by=2)
    metrics.observe("search_duration_seconds", 0.02, "hybrid", "true")
    metrics.observe("search_duration_seconds", 20.0, "semantic", "false")
    assert metrics.distribution("search_duration_seconds", success="true")[-1][1] == 1.0
    assert metrics.total("tool_calls") == 3
    buckets = metrics.distribution("search_duration_seconds")
    assert buckets[-1] == (inf, 2.0)
    assert dict(buckets)[0.025] == 1.0
    assert dict(buckets)[0.01] == 0.0
