"""Prometheus instruments: counters, histograms and gauges (docs/spec/events-http.md §7).

This module imports no other module of Lithos. Each server has one `Metrics` with its own registry. Label
values come from small, fixed sets, and are never note ids, agents or queries. Durations are in seconds.
Gauges show the state of the server. They are collected at each scrape and passed to `Metrics.render`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter, process_time, time
from typing import Any, Final

from attrs import frozen
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from lithos.kernel.operating_system import most_open_files, peak_memory

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX: Final = "lithos_"
#: Histogram buckets in seconds, from half a millisecond (an unchanged write) to a slow disk.
_BUCKETS: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip

#: Buckets of histograms that count objects instead of measuring seconds.
_SIZES: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0)

#: Histograms for much longer durations, such as intervals and language model calls.
_SLOW: Final = frozenset({"lcma_enrich_lag_seconds"})
_SLOW_BUCKETS: Final = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 7200.0)

_COUNTERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "tool_calls": ("Tool calls.", ("tool",)),
    "tool_errors": ("Number of tool calls that failed, by error code.", ("tool", "error")),
    "knowledge_operations": ("Number of note changes and reads.", ("op",)),
    "search_operations": ("Searches.", ("mode",)),
    "coordination_operations": ("Number of changes to tasks, claims, findings and agents.", ("op",)),
    "cache_lookups": ("Number of cache look-ups, by outcome.", ("outcome",)),
    "reconcile_operations": ("Reconcile runs.", ("scope", "status")),
    "file_watcher_events": ("Number of changes detected in the notes folder.", ("event",)),
    "events": ("Journalled events.", ("type",)),
    "sse_events_delivered": ("Number of events sent to SSE clients.", ()),
    "ws_events_delivered": ("Number of events sent to WebSocket clients.", ()),
    "event_subscriber_drops": ("Number of subscribers disconnected because they were too slow.", ("kind",)),
    "http_rejected": ("Number of requests refused before they reached an endpoint.", ("reason",)),
    "lcma_cold_start": (
        "Number of retrievals at temperature 0.5, which is the temperature of all retrievals.",
        (),
    ),
    "lcma_scout_failures": ("Number of scouts that failed during a retrieval.", ("scout",)),
    "lcma_enrich_exhausted": ("Number of enrich jobs that failed at their last attempt.", ()),
    "fulltext_dropped": ("Number of changes that the full-text index refused.", ("operation", "reason")),
}
_HISTOGRAMS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "tool_duration_seconds": ("Duration of a tool call in seconds.", ("tool", "outcome")),
    "knowledge_write_duration_seconds": ("Seconds until a change is acknowledged.", ("op", "success")),
    "search_duration_seconds": ("Duration of a search in seconds.", ("mode", "success")),
    "cache_lookup_duration_seconds": ("Duration of a cache look-up in seconds.", ()),
    "journal_append_duration_seconds": ("Duration of a journal commit in seconds.", ()),
    "actor_processing_seconds": ("Duration of one actor batch in seconds.", ("actor",)),
    "lcma_retrieve_duration_seconds": ("Duration of a retrieval in seconds.", ()),
    "lcma_retrieve_candidates": ("Number of notes that all scouts found for a retrieval.", ()),
    "lcma_retrieve_final_nodes": ("Number of results of a retrieval.", ()),
    "lcma_scout_duration_seconds": ("Duration of a scout in seconds.", ("scout",)),
    "lcma_scout_candidates": ("Number of notes that a scout found.", ("scout",)),
    "lcma_enrich_lag_seconds": ("Seconds from a trigger to the end of its enrich job.", ()),
    "lcma_enrich_attempts": ("Number of attempts per enrich job.", ()),
}
GAUGES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "build_info": ("Version.", ("version",)),
    "startup_duration_seconds": ("Duration of the start in seconds.", ()),
    "documents": ("Notes.", ()),
    "stale_documents": ("Number of expired notes.", ()),
    "fulltext_documents": ("Number of notes in the full-text index.", ()),
    "vector_chunks": ("Number of chunks in the vector index.", ()),
    "graph_nodes": ("Number of notes and placeholders in the link graph.", ()),
    "graph_edges": ("Number of links in the link graph.", ()),
    "agents": ("Known agents.", ()),
    "active_claims": ("Running claims.", ()),
    "expired_claims": ("Number of stored claims that have expired.", ()),
    "pending_proposals": ("Number of changes that wait for a person.", ()),
    "sse_active_clients": ("SSE clients.", ()),
    "ws_active_clients": ("WebSocket clients.", ()),
    "event_head_seq": ("Sequence number of the newest event.", ()),
    "event_journal_events": ("Number of events in the journal.", ()),
    "event_queue_utilisation": ("Fill level of the fullest subscriber queue, from 0 to 1.", ("slot",)),
    "actor_mailbox_depth": ("Number of messages that wait for an actor.", ("actor",)),
    "actor_restarts": ("Number of actor restarts.", ("actor",)),
    "lcma_enrich_queue_depth": ("Number of triggers that wait for enrichment.", ()),
    "semantic_state": ("1 for the current state of the embedding model, 0 for other states.", ("state",)),
    "embedding_tier": ("1 for the embedding tier that answers queries, 0 for other tiers.", ("tier",)),
    "embedding_done_chunks": ("Number of chunks with a vector of the accurate tier.", ()),
    "embedding_chunks": ("Number of chunks of all notes.", ()),
    "component_status": ("Health of a component: 0 = ok, 1 = degraded, 2 = unavailable.", ("component",)),
    "actor_mailbox_capacity": ("Maximum number of messages that may wait for an actor.", ("actor",)),
    "history_versions": ("Number of stored note versions.", ()),
    "history_bytes": ("Size of history.db in bytes.", ()),
    "disk_free_bytes": ("Free space on the data directory's disk in bytes.", ()),
    "disk_size_bytes": ("Size of the data directory's disk in bytes.", ()),
}


@frozen
class GaugeSample:
    """One value of a gauge. `labels` are in the order of the gauge's definition."""

    name: str
    value: float
    labels: tuple[str, ...] = ()


def _buckets(name: str) -> tuple[float, ...]:
    if name in _SLOW:
        return _SLOW_BUCKETS
    return _BUCKETS if name.endswith("_seconds") else _SIZES


class Metrics:
    """All metric instruments of one server."""

    def __init__(self) -> None:
        # Without this call, each counter also gets a series with its creation time, which is not useful here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._counters = {
            name: Counter(_PREFIX + name, text, labels, registry=self._registry)
            for name, (text, labels) in _COUNTERS.items()
        }
        self._histograms = {
            name: Histogram(
                _PREFIX + name,
                text,
                labels,
                registry=self._registry,
                buckets=_buckets(name),
            )
            for name, (text, labels) in _HISTOGRAMS.items()
        }
        #: Series by name and labels. Finding a series in the library takes a lock and ten times as long.
        self._series: dict[tuple[str, ...], Any] = {}  # bounded: fixed instruments with bounded labels
        #: Series that are shown as zero from the first scrape.
        self._begun: list[tuple[Counter | Histogram, tuple[str, ...]]] = []
        self._gauges = _Gauges()
        if _PROCESS.is_dir():
            ProcessCollector(registry=self._registry)
        else:
            self._registry.register(_OwnProcess())
        self._registry.register(self._gauges)

    def begin(self, name: str, *labels: str) -> None:
        """Show a counter or histogram as zero from the start.

        Rates would otherwise miss the beginning of a series.

        The series is created at the first scrape, so that the server start does not wait for hundreds of
        series.
        """
        self._begun.append((self._counters.get(name) or self._histograms[name], labels))

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Increment a counter. `labels` are in the order of its definition."""
        self._find((name, *labels)).inc(by)

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Record a value in a histogram: a duration in seconds, or a count."""
        self._find((name, *labels)).observe(value)

    def _find(self, series: tuple[str, ...]) -> Any:
        found = self._series.get(series)
        if found is None:
            name, *labels = series
            metric = self._counters.get(name) or self._histograms[name]
            found = self._series[series] = metric.labels(*labels) if labels else metric
        return found

    @contextmanager
    def timed(self, name: str, *labels: str) -> Iterator[None]:
        """Record the duration of the block in a histogram, even if the block raises."""
        began = perf_counter()
        try:
            yield
        finally:
            self.observe(name, perf_counter() - began, *labels)

    def total(self, name: str) -> float:
        """Return the sum of a counter over all its labels."""
        (family,) = self._counters[name].collect()
        return sum(sample.value for sample in family.samples if sample.name.endswith("_total"))

    def distribution(self, *names: str, **labels: str) -> tuple[tuple[float, float], ...]:
        """Return cumulative counts by upper bound. They cover all labels of histograms with the same buckets.

        `labels` restrict the counts to series with these values. A histogram that lacks a label is not
        restricted by it. The last bound is infinite, so its count is the number of all observations.
        """
        counts: dict[float, float] = {}
        for name in names:
            (family,) = self._histograms[name].collect()
            for bound in (*_buckets(name), float("inf")):
                counts.setdefault(bound, 0.0)
            for sample in family.samples:
                fits = all(sample.labels.get(key, value) == value for key, value in labels.items())
                if fits and sample.name.endswith("_bucket"):
                    counts[float(sample.labels["le"])] += sample.value
        return tuple(sorted(counts.items()))

    def render(self, samples: Iterable[GaugeSample]) -> bytes:
        """Return all metrics in Prometheus text format. This takes milliseconds, so call it in a thread."""
        self._look(samples)
        return generate_latest(self._registry)

    def families(self, samples: Iterable[GaugeSample]) -> list[Metric]:
        """Return the metric families that `render` encodes.

        `families` takes milliseconds, so call it in a thread.
        """
        self._look(samples)
        return list(self._registry.collect())

    def _look(self, samples: Iterable[GaugeSample]) -> None:
        begun, self._begun = self._begun, []
        for metric, labels in begun:
            metric.labels(*labels)
        self._gauges.samples = list(samples)


#: Folder with process information on Linux, and folder with the file descriptors of this process on other
#: systems.
_PROCESS: Final = Path("/proc/self")
_DESCRIPTORS: Final = Path("/dev/fd")


class _OwnProcess:
    """Process metrics for systems without `/proc`. Memory is the peak, and virtual memory is unknown."""

    def __init__(self) -> None:
        self._began = time()

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily("process_cpu_seconds", "Processor time.", value=process_time())
        yield GaugeMetricFamily("process_start_time_seconds", "Start since 1970.", value=self._began)
        peak = peak_memory()
        yield GaugeMetricFamily("process_resident_memory_bytes", "Peak memory use in bytes.", value=peak)
        yield GaugeMetricFamily("process_max_fds", "Maximum number of open files.", value=most_open_files())
        with suppress(OSError):
            yield GaugeMetricFamily("process_open_fds", "Open files.", value=len(os.listdir(_DESCRIPTORS)))


class _Gauges:
    """Custom collector of the gauges of the current scrape."""

    def __init__(self) -> None:
        self.samples: list[GaugeSample] = []

    def collect(self) -> Iterator[Metric]:
        families: dict[str, GaugeMetricFamily] = {}
        for sample in self.samples:
            text, labels = GAUGES[sample.name]
            family = families.setdefault(
                sample.name, GaugeMetricFamily(_PREFIX + sample.name, text, labels=labels)
            )
            family.add_metric(sample.labels, sample.value)
        yield from families.values()


def metric_names() -> set[str]:
    """Return all names that `/metrics` may show, except process metrics.

    Histograms are listed by their base name.
    """
    counters = {f"{_PREFIX}{name}_total" for name in _COUNTERS}
    return counters | {_PREFIX + name for name in (*_HISTOGRAMS, *GAUGES)}


def labelled(families: Mapping[str, Sequence[Metric]]) -> bytes:
    """Return the metrics of several vaults as Prometheus text. Each metric has the label `vault`.

    `labelled` takes milliseconds, so call it in a thread.
    """
    merged: dict[str, Metric] = {}
    for vault, own in families.items():
        for family in own:
            known = merged.setdefault(
                family.name, Metric(family.name, family.documentation, family.type, family.unit)
            )
            known.samples += [
                sample._replace(labels={**sample.labels, "vault": vault}) for sample in family.samples
            ]
    return generate_latest(_Given(list(merged.values())))


@frozen
class _Given:
    """Custom collector that returns already collected families."""

    _families: Sequence[Metric]

    def collect(self) -> Sequence[Metric]:
        return self._families
