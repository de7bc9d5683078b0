"""The Prometheus instruments: counters, histograms, gauges (docs/spec/events-http.md §7).

A leaf: every layer but `core` may use it. One `Metrics` per server, with a registry of its own. Label values
come from bounded sets (low cardinality): never note ids, agents or queries. Durations are in seconds. Gauges
mirror state: they are collected at each scrape and passed to `Metrics.render`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from resource import RLIMIT_NOFILE, RUSAGE_SELF, getrlimit, getrusage
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

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX: Final = "lithos_"
#: From a tenth of a millisecond (a noop) to a slow disk.
_BUCKETS: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip

#: For histograms that count things instead of seconds.
_SIZES: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0)

#: For durations on another scale: intervals and language models.
_SLOW: Final = frozenset({"lcma_enrich_lag_seconds"})
_SLOW_BUCKETS: Final = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 7200.0)

_COUNTERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "tool_calls": ("Tool calls.", ("tool",)),
    "tool_errors": ("Tool calls that ended with an error, by its code.", ("tool", "error")),
    "knowledge_operations": ("Changes and reads of notes.", ("op",)),
    "search_operations": ("Searches.", ("mode",)),
    "coordination_operations": ("Changes of tasks, claims, findings and agents.", ("op",)),
    "cache_lookups": ("Cache look-ups by their outcome.", ("outcome",)),
    "reconcile_operations": ("Reconcile runs.", ("scope", "status")),
    "file_watcher_events": ("Changes seen in the notes folder.", ("event",)),
    "events": ("Journalled events.", ("type",)),
    "sse_events_delivered": ("Events sent to SSE clients.", ()),
    "ws_events_delivered": ("Events sent to WebSocket clients.", ()),
    "event_subscriber_drops": ("Subscribers cut off for being too slow.", ("kind",)),
    "http_rejected": ("Requests refused before they reached an endpoint.", ("reason",)),
    "lcma_cold_start": ("Retrievals at a temperature of 0.5, which all have.", ()),
    "lcma_scout_failures": ("Scouts that failed during a retrieval.", ("scout",)),
    "lcma_enrich_exhausted": ("Enrich jobs given up after their last attempt.", ()),
    "fulltext_dropped": ("Changes the full-text index refused.", ("operation", "reason")),
}
_HISTOGRAMS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "tool_duration_seconds": ("Time of a tool call.", ("tool", "outcome")),
    "knowledge_write_duration_seconds": ("Time until a change is acknowledged.", ("op", "success")),
    "search_duration_seconds": ("Time of a search.", ("mode", "success")),
    "cache_lookup_duration_seconds": ("Time of a cache look-up.", ()),
    "journal_append_duration_seconds": ("Time of a journal commit.", ()),
    "actor_processing_seconds": ("Time of one batch of an actor.", ("actor",)),
    "lcma_retrieve_duration_seconds": ("Time of a retrieval.", ()),
    "lcma_retrieve_candidates": ("Notes that scouts found for a retrieval.", ()),
    "lcma_retrieve_final_nodes": ("Results of a retrieval.", ()),
    "lcma_scout_duration_seconds": ("Time of a scout.", ("scout",)),
    "lcma_scout_candidates": ("Notes that a scout found.", ("scout",)),
    "lcma_enrich_lag_seconds": ("Time from a trigger to the end of its job.", ()),
    "lcma_enrich_attempts": ("Attempts that enrich jobs took.", ()),
}
GAUGES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "build_info": ("Version.", ("version",)),
    "startup_duration_seconds": ("Time of the start.", ()),
    "documents": ("Notes.", ()),
    "stale_documents": ("Notes past their expiry.", ()),
    "fulltext_documents": ("Notes in the full-text index.", ()),
    "vector_chunks": ("Chunks in the vector index.", ()),
    "graph_nodes": ("Notes and placeholders in the link graph.", ()),
    "graph_edges": ("Links between them.", ()),
    "agents": ("Known agents.", ()),
    "active_claims": ("Running claims.", ()),
    "expired_claims": ("Stored claims past their time.", ()),
    "pending_proposals": ("Changes that wait for a person.", ()),
    "sse_active_clients": ("SSE clients.", ()),
    "ws_active_clients": ("WebSocket clients.", ()),
    "event_head_seq": ("Position of the newest event.", ()),
    "event_journal_events": ("Events in the journal.", ()),
    "event_queue_utilisation": ("Fullest share of a subscriber's queue.", ("slot",)),
    "actor_mailbox_depth": ("Messages waiting for an actor.", ("actor",)),
    "actor_restarts": ("Restarts of an actor.", ("actor",)),
    "lcma_enrich_queue_depth": ("Triggers that wait for enrichment.", ()),
    "semantic_state": ("1 for the state the embedding model is in.", ("state",)),
    "embedding_tier": ("1 for the tier of embeddings that answers queries.", ("tier",)),
    "embedding_done_chunks": ("Chunks with a vector of the accurate tier.", ()),
    "embedding_chunks": ("Chunks of all notes.", ()),
    "component_status": ("Health of a component: 0 ok, 1 degraded, 2 unavailable.", ("component",)),
    "actor_mailbox_capacity": ("Messages that may wait for an actor.", ("actor",)),
    "history_versions": ("Kept versions of notes.", ()),
    "history_bytes": ("Size of history.db.", ()),
    "disk_free_bytes": ("Free space on the disk of the data directory.", ()),
    "disk_size_bytes": ("Size of the disk of the data directory.", ()),
}


@frozen
class GaugeSample:
    """One value of a gauge; `labels` in the order of the gauge's definition."""

    name: str
    value: float
    labels: tuple[str, ...] = ()


def _buckets(name: str) -> tuple[float, ...]:
    if name in _SLOW:
        return _SLOW_BUCKETS
    return _BUCKETS if name.endswith("_seconds") else _SIZES


class Metrics:
    """All instruments of one server."""

    def __init__(self) -> None:
        # A series of creation times for every counter is useless.
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
        #: By name and labels: the libraries' own look-up takes a lock and ten times as long.
        self._series: dict[tuple[str, ...], Any] = {}  # bounded: fixed instruments with bounded labels
        #: Series that show zero from the first scrape.
        self._begun: list[tuple[Counter | Histogram, tuple[str, ...]]] = []
        self._gauges = _Gauges()
        if _PROCESS.is_dir():
            ProcessCollector(registry=self._registry)
        else:
            self._registry.register(_OwnProcess())
        self._registry.register(self._gauges)

    def begin(self, name: str, *labels: str) -> None:
        """Make a counter or histogram show zero from the start: rates miss the beginning of a series.

        It is created at the first scrape, so that a start need not wait for hundreds of series.
        """
        self._begun.append((self._counters.get(name) or self._histograms[name], labels))

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Increment a counter; `labels` in the order of the definition."""
        self._find((name, *labels)).inc(by)

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Observe a value of a histogram: a duration in seconds, or a count."""
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
        """Observe the duration of the block in a histogram, also when it raises."""
        began = perf_counter()
        try:
            yield
        finally:
            self.observe(name, perf_counter() - began, *labels)

    def total(self, name: str) -> float:
        """A counter over all its labels."""
        (family,) = self._counters[name].collect()
        return sum(sample.value for sample in family.samples if sample.name.endswith("_total"))

    def distribution(self, *names: str, **labels: str) -> tuple[tuple[float, float], ...]:
        """Cumulative counts by upper bound, over all labels of histograms with the same buckets.

        Only those with these `labels`, where they have such labels. The last bound is infinite: its count is
        that of all observations.
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
        """All metrics in the Prometheus text format. Takes milliseconds: call it in a thread."""
        self._look(samples)
        return generate_latest(self._registry)

    def families(self, samples: Iterable[GaugeSample]) -> list[Metric]:
        """The metric families that `render` encodes. Takes milliseconds: call it in a thread."""
        self._look(samples)
        return list(self._registry.collect())

    def _look(self, samples: Iterable[GaugeSample]) -> None:
        begun, self._begun = self._begun, []
        for metric, labels in begun:
            metric.labels(*labels)
        self._gauges.samples = list(samples)


#: The process information of Linux, and the descriptors of this process on other systems.
_PROCESS: Final = Path("/proc/self")
_DESCRIPTORS: Final = Path("/dev/fd")


class _OwnProcess:
    """The process metrics without `/proc`: memory is the peak, virtual memory is not known."""

    def __init__(self) -> None:
        self._began = time()

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily("process_cpu_seconds", "Processor time.", value=process_time())
        yield GaugeMetricFamily("process_start_time_seconds", "Start since 1970.", value=self._began)
        peak = getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        yield GaugeMetricFamily("process_resident_memory_bytes", "Peak memory use.", value=peak)
        yield GaugeMetricFamily("process_max_fds", "Limit of open files.", value=getrlimit(RLIMIT_NOFILE)[0])
        with suppress(OSError):
            yield GaugeMetricFamily("process_open_fds", "Open files.", value=len(os.listdir(_DESCRIPTORS)))


class _Gauges:
    """A custom collector: the gauges of the current scrape."""

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
    """Every name `/metrics` may show, without the process ones; histograms by their base name."""
    counters = {f"{_PREFIX}{name}_total" for name in _COUNTERS}
    return counters | {_PREFIX + name for name in (*_HISTOGRAMS, *GAUGES)}


def labelled(families: Mapping[str, Sequence[Metric]]) -> bytes:
    """The metrics of several vaults, by their names, as Prometheus text, each with the label `vault`.

    Takes milliseconds: call it in a thread.
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
    """Families that are collected already."""

    _families: Sequence[Metric]

    def collect(self) -> Sequence[Metric]:
        return self._families
