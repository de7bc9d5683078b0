"""OTLP export of the instruments of `/metrics` (docs/spec/events-http.md §7). A leaf.

Importing it needs the packages of the extra `otlp`, so it is imported only for an export. An export runs in a
worker thread with a deadline; on timeout the thread is abandoned, and no other export starts before it has
ended, so that a slow or unreachable collector costs one idle thread and a line in the log.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import groupby, pairwise
from time import time_ns
from typing import Any, Final, Protocol

import opentelemetry.sdk.metrics.export as sdk
import trio
from attrs import define, field, frozen
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.core import Metric
from prometheus_client.samples import Sample

#: Seconds for one export, and for the last one at the stop.
DEADLINE: Final = 10.0
LAST_DEADLINE: Final = 0.8

_PATH: Final = "/v1/metrics"
_CUMULATIVE: Final = sdk.AggregationTemporality.CUMULATIVE
_UNITS: Final = {"_seconds": "s", "_seconds_total": "s", "_bytes": "By"}
_USER_INFO: Final = re.compile(r"(?<=//)[^/@\s]+@")

Collect = Callable[[], Awaitable[Iterable[Metric]]]


class Log(Protocol):
    """The logger for outages of the export."""

    def info(self, event: str, /, **fields: Any) -> None: ...
    def warning(self, event: str, /, **fields: Any) -> None: ...


class TextSink(Protocol):
    """Where the console exporter writes."""

    def write(self, text: str, /) -> int: ...
    def flush(self) -> None: ...


@frozen
class Source:
    """The OTLP resource of all metrics, and their start time (nanoseconds since 1970)."""

    resource: Resource
    began_ns: int

    def convert(self, families: Iterable[Metric], now_ns: int) -> sdk.MetricsData:
        """The families under the names of `/metrics`; counters and histograms are cumulative."""
        metrics = [metric for family in families for metric in self._metrics(family, now_ns)]
        scope = sdk.ScopeMetrics(InstrumentationScope("lithos"), metrics, schema_url="")
        return sdk.MetricsData([sdk.ResourceMetrics(self.resource, [scope], schema_url="")])

    def _metrics(self, family: Metric, now_ns: int) -> Iterator[sdk.Metric]:
        if family.type == "histogram":
            points = [self._histogram_point(samples, now_ns) for samples in _series(family)]
            if points:
                yield _metric(family.name, family, sdk.Histogram(points, _CUMULATIVE))
            return
        for name, samples in groupby(family.samples, key=lambda sample: sample.name):
            numbers = [
                sdk.NumberDataPoint(sample.labels, self.began_ns, now_ns, float(sample.value))
                for sample in samples
            ]
            counts = family.type == "counter"
            yield _metric(
                name,
                family,
                sdk.Sum(numbers, _CUMULATIVE, is_monotonic=True) if counts else sdk.Gauge(numbers),
            )

    def _histogram_point(self, samples: list[Sample], now_ns: int) -> sdk.HistogramDataPoint:
        values = {sample.name.rpartition("_")[2]: sample.value for sample in samples}
        buckets = [sample for sample in samples if "le" in sample.labels]
        totals = [0, *(int(bucket.value) for bucket in buckets)]
        return sdk.HistogramDataPoint(
            attributes=_plain_labels(samples[0]),
            start_time_unix_nano=self.began_ns,
            time_unix_nano=now_ns,
            count=totals[-1],
            sum=values["sum"],
            bucket_counts=[after - before for before, after in pairwise(totals)],
            explicit_bounds=[float(bucket.labels["le"]) for bucket in buckets[:-1]],
            # Prometheus keeps neither, and OTLP can do without.
            min=None,  # type: ignore[arg-type]
            max=None,  # type: ignore[arg-type]
        )


def _series(family: Metric) -> Iterator[list[Sample]]:
    """The samples of a histogram, one list per set of labels."""
    for _, samples in groupby(family.samples, key=_plain_labels):
        yield list(samples)


def _plain_labels(sample: Sample) -> dict[str, str]:
    return {name: value for name, value in sample.labels.items() if name != "le"}


def _metric(name: str, family: Metric, data: sdk.Sum | sdk.Gauge | sdk.Histogram) -> sdk.Metric:
    unit = next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")
    return sdk.Metric(name, family.documentation, unit, data)


def make_resource(service_name: str, environment: str | None, version: str) -> Resource:
    """Who this process is; `OTEL_RESOURCE_ATTRIBUTES` adds to it. Takes milliseconds: call it in a thread."""
    attributes: dict[str, str] = {
        "service.name": service_name,
        "service.version": version,
        "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
    }
    if environment is not None:
        attributes["deployment.environment.name"] = environment
        attributes["deployment.environment"] = environment  # as it was called before 2024
    return Resource.create(attributes)


def metrics_url(endpoint: str) -> str:
    """The metrics endpoint of a collector at this base address; `host:port` means `http`."""
    address = (endpoint if "://" in endpoint else f"http://{endpoint}").rstrip("/")
    return address if address.endswith(_PATH) else address + _PATH


def hide_user(text: str) -> str:
    """The text with user names and passwords removed from its URLs."""
    return _USER_INFO.sub("", text)


def collector(url: str, timeout: float = DEADLINE) -> sdk.MetricExporter:
    """An exporter to this collector; `OTEL_EXPORTER_OTLP_*` sets headers, certificates and compression."""
    return OTLPMetricExporter(endpoint=url, timeout=timeout)


def console(sink: TextSink) -> sdk.MetricExporter:
    """An exporter of one JSON line per export to a sink that is written to in the event loop alone."""
    return sdk.ConsoleMetricExporter(
        out=_LoopSink(sink),  # type: ignore[arg-type]
        formatter=lambda data: data.to_json(indent=None) + "\n",
    )


@frozen
class _LoopSink:
    """Hands text from a worker thread to the event loop, where the log is written to the same stream."""

    _sink: TextSink

    def write(self, text: str) -> int:
        return trio.from_thread.run_sync(self._sink.write, text)

    def flush(self) -> None:
        """`write` ends with a newline, which flushes."""


class _Complaints(logging.Handler):
    """Captures the log records of OpenTelemetry, which hold the reason of a failed export, each time."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""

    def take_over(self) -> None:
        """For good: what a thread that was left alone still says after the stop is worth no line."""
        library = logging.getLogger("opentelemetry")
        library.propagate = False
        library.handlers = [self]

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or hide_user(record.getMessage())


@define(eq=False)
class Export:
    """Exports what `collect` collects every `interval` seconds, and once more at the stop.

    `place` names the destination in the log. A failure is logged when it begins and when it is over.
    """

    _collect: Collect
    _exporter: sdk.MetricExporter
    _source: Source
    _place: str
    _interval: float
    _log: Log
    failures: int = field(default=0, init=False)
    _complaints: _Complaints = field(factory=_Complaints, init=False)
    _one: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(1), init=False)

    def __attrs_post_init__(self) -> None:
        self._complaints.take_over()

    async def run(self) -> None:
        """Export until cancelled; then for at most `LAST_DEADLINE`, unless the destination fails anyway."""
        try:
            while True:
                await self.export(DEADLINE)
                await trio.sleep(self._interval)
        finally:
            with trio.CancelScope(shield=True):  # `export` has the deadline, and tells when it was passed
                if not self.failures:
                    await self.export(LAST_DEADLINE)
            self._exporter.shutdown()

    async def export(self, deadline: float) -> None:
        """Collect and send once; after `deadline` seconds it counts as failed."""
        failure = f"no answer within {deadline:g} s"
        with trio.move_on_after(deadline):
            families = await self._collect()
            failure = await trio.to_thread.run_sync(
                self._send, families, abandon_on_cancel=True, limiter=self._one
            )
        self._note(failure)

    def _send(self, families: Iterable[Metric]) -> str:
        """Export the families; returns the reason of a failure, or an empty text."""
        self._complaints.first = ""
        try:
            result = self._exporter.export(self._source.convert(families, time_ns()))
        except (OSError, ValueError) as failure:  # a closed or full stream
            return str(failure)
        if result is sdk.MetricExportResult.SUCCESS:
            return ""
        return self._complaints.first or "the exporter does not say why"

    def _note(self, failure: str) -> None:
        if not failure:
            if self.failures:
                self._log.info("metrics are exported again", to=self._place, missed=self.failures)
            self.failures = 0
            return
        self.failures += 1
        if self.failures == 1:
            self._log.warning(
                "metrics are not exported",
                to=self._place,
                reason=failure,
                next=f"see that the collector takes OTLP over HTTP there{_port_hint(self._place)}; "
                f"Lithos tries again every {self._interval:g} s, and /metrics shows the same",
            )


def _port_hint(place: str) -> str:
    return " (4317 is usually for gRPC, 4318 for HTTP)" if ":4317/" in place else ""
