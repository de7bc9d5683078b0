"""Metrics reach a collector as `/metrics` shows them, and no collector ever holds up the server."""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

pytest.importorskip("opentelemetry.sdk.metrics.export")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics.export import MetricExporter

from lithos import otlp
from lithos.metrics import Metrics, Sample
from tests.collector import collecting
from tests.servers import serving

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy on the way, no further attributes."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OTEL_RESOURCE_ATTRIBUTES", raising=False)


@define
class Lines:
    """A log that keeps its lines."""

    lines: list[tuple[str, dict[str, Any]]] = field(factory=list)

    def info(self, event: str, /, **fields: Any) -> None:
        self.lines.append((event, fields))

    warning = info

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.lines]


def some_metrics() -> Callable[[], Awaitable[Iterable[Metric]]]:
    metrics = Metrics()
    metrics.count("tool_calls", "lithos_read", by=3)
    metrics.count("tool_calls", "lithos_write")
    metrics.count("sse_events_delivered")
    for seconds in (0.0005, 0.003, 0.7, 99.0):
        metrics.observe("search_duration_seconds", seconds, "hybrid", "true")
    metrics.observe("search_duration_seconds", 0.2, "fulltext", "false")
    samples = [Sample("documents", 12), Sample("build_info", 1, ("1.2",))]
    samples += [Sample("actor_restarts", 2, ("writer",)), Sample("actor_restarts", 0, ("graph",))]

    async def collect() -> Iterable[Metric]:
        return metrics.families(samples)

    collect.text = lambda: metrics.render(samples).decode()  # type: ignore[attr-defined]
    return collect


def make_export(
    endpoint: str | None = None,
    log: otlp.Log | None = None,
    *,
    exporter: MetricExporter | None = None,
    **more: Any,
) -> otlp.Export:
    url = otlp.metrics_url(endpoint or "127.0.0.1:1")
    return otlp.Export(
        more.pop("collect", some_metrics()),
        exporter or otlp.collector(url, timeout=more.pop("timeout", 10.0)),
        otlp.Source(otlp.make_resource("lithos", "lab", "1.2"), began_ns=1_000),
        otlp.hide_user(url),
        more.pop("interval", 0.01),
        log or Lines(),
    )


def exported_series(request: ExportMetricsServiceRequest) -> Series:
    """The points of an export as the samples Prometheus would show."""
    found: Series = {}
    for metric in request.resource_metrics[0].scope_metrics[0].metrics:
        for point in [*metric.sum.data_points, *metric.gauge.data_points]:
            found[metric.name, labels_of(point)] = point.as_double
        for point in metric.histogram.data_points:
            labels, running = labels_of(point), 0
            found[f"{metric.name}_sum", labels] = point.sum
            found[f"{metric.name}_count", labels] = point.count
            assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
            for bound, count in zip([*point.explicit_bounds, float("inf")], point.bucket_counts, strict=True):
                running += count
                found[f"{metric.name}_bucket", labels | {("le", str(bound))}] = running
            assert running == point.count
            assert not point.HasField("min")
            assert not point.HasField("max")
    return found


def labels_of(point: Any) -> frozenset[tuple[str, str]]:
    return frozenset((attribute.key, attribute.value.string_value) for attribute in point.attributes)


def shown_series(text: str) -> Series:
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {
                name: str(float(value)) if name == "le" else value for name, value in sample.labels.items()
            }
            found[sample.name, frozenset(labels.items())] = sample.value
    return found


def parse(body: bytes) -> ExportMetricsServiceRequest:
    return ExportMetricsServiceRequest.FromString(body)


def only_lithos(series: Series) -> Series:
    """Without the memory, processor time and files of this process, which change by themselves."""
    return {key: value for key, value in series.items() if key[0].startswith("lithos_")}


async def test_names_labels_and_values_equal_those_of_the_metrics_page() -> None:
    collect = some_metrics()
    async with collecting() as collector:
        await make_export(collector.endpoint, collect=collect).export(10.0)
        exported = exported_series(parse(await collector.body()))
    shown = shown_series(collect.text())  # type: ignore[attr-defined]
    assert only_lithos(exported) == only_lithos(shown)
    assert exported.keys() == shown.keys()
    assert exported["lithos_tool_calls_total", frozenset({("tool", "lithos_read")})] == 3
    assert collector.paths == ["/v1/metrics"]


async def test_a_real_server_exports_every_series_it_shows(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos, collecting() as collector:
        await lithos.create("Exported")
        await make_export(collector.endpoint, collect=lithos.server.gauges.families).export(10.0)
        exported = exported_series(parse(await collector.body()))
        shown = shown_series((await lithos.server.gauges.scrape()).decode())
    assert exported.keys() == shown.keys()
    assert exported["lithos_documents", frozenset()] == 1
    changing = ("lithos_actor_processing_seconds", "lithos_actor_mailbox_depth", "lithos_disk_free_bytes")
    for key in only_lithos(exported):
        assert key[0].startswith(changing) or exported[key] == shown[key], key


async def test_counters_and_histograms_are_cumulative_since_counting_began() -> None:
    async with collecting() as collector:
        await make_export(collector.endpoint).export(10.0)
        (resource,) = parse(await collector.body()).resource_metrics
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    calls, searches = metrics["lithos_tool_calls_total"], metrics["lithos_search_duration_seconds"]
    assert calls.sum.is_monotonic
    assert {calls.sum.aggregation_temporality, searches.histogram.aggregation_temporality} == {2}
    assert {point.start_time_unix_nano for point in calls.sum.data_points} == {1_000}
    assert {point.start_time_unix_nano for point in searches.histogram.data_points} == {1_000}
    assert metrics["lithos_documents"].WhichOneof("data") == "gauge"
    assert (searches.unit, metrics["process_resident_memory_bytes"].unit, calls.unit) == ("s", "By", "")


async def test_the_resource_names_service_environment_and_instance() -> None:
    async with collecting() as collector:
        await make_export(collector.endpoint).export(10.0)
        (resource,) = parse(await collector.body()).resource_metrics
    named = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert named["service.name"] == "lithos"
    assert named["service.version"] == "1.2"
    assert named["deployment.environment.name"] == named["deployment.environment"] == "lab"
    assert named["service.instance.id"].startswith(socket.gethostname())


def test_a_resource_without_environment_names_none() -> None:
    attributes = otlp.make_resource("notes", None, "1.2").attributes
    assert attributes["service.name"] == "notes"
    assert not [name for name in attributes if name.startswith("deployment")]


def test_an_endpoint_is_a_base_address() -> None:
    due = {
        "http://collector:4318": "http://collector:4318/v1/metrics",
        "http://collector:4318/": "http://collector:4318/v1/metrics",
        "http://collector:4318/v1/metrics": "http://collector:4318/v1/metrics",
        "https://example.org/otlp": "https://example.org/otlp/v1/metrics",
        "collector:4318": "http://collector:4318/v1/metrics",
    }
    assert {endpoint: otlp.metrics_url(endpoint) for endpoint in due} == due


async def test_exports_repeat_and_the_stop_sends_the_last_numbers() -> None:
    metrics = Metrics()

    async def collect() -> Iterable[Metric]:
        return metrics.families([])

    async with collecting() as collector, trio.open_nursery() as nursery:
        nursery.start_soon(make_export(collector.endpoint, collect=collect, interval=3_600).run)
        assert not [key for key in exported_series(parse(await collector.body())) if "tool_calls" in key[0]]
        metrics.count("tool_calls", "lithos_read")
        nursery.cancel_scope.cancel()
    body = await collector.body()
    assert exported_series(parse(body))["lithos_tool_calls_total", frozenset({("tool", "lithos_read")})] == 1


async def test_an_outage_and_its_end_are_one_line_each() -> None:
    log = Lines()
    async with collecting(status=400) as collector:
        export = make_export(collector.endpoint, log)
        for status in (400, 403, 500, 200, 200, 500, 200):
            collector.status = status
            await export.export(10.0)
    assert log.events == ["metrics are not exported", "metrics are exported again"] * 2
    assert "400" in log.lines[0][1]["reason"]
    assert log.lines[1][1]["missed"] == 3
    assert log.lines[3][1]["missed"] == 1


async def test_exports_go_on_after_failures_without_a_word_of_the_library(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = Lines()
    async with collecting(status=500) as collector, trio.open_nursery() as nursery:
        nursery.start_soon(make_export(collector.endpoint, log).run)
        for _ in range(4):
            await collector.body()
        collector.status = 200
        while len(log.events) < 2:
            await collector.body()
        nursery.cancel_scope.cancel()
    assert log.events == ["metrics are not exported", "metrics are exported again"]
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


async def test_a_collector_that_is_not_there_is_told_with_its_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        endpoint = f"http://me:secret@127.0.0.1:{unused.getsockname()[1]}"
    log = Lines()
    await make_export(endpoint, log, timeout=1.5).export(10.0)  # long enough to be tried twice
    ((event, fields),) = log.lines
    assert event == "metrics are not exported"
    assert "refused" in fields["reason"]
    assert fields["to"].startswith("http://127.0.0.1:")
    assert "secret" not in str(fields)


async def test_an_endpoint_that_is_no_address_is_an_outage() -> None:
    log = Lines()
    await make_export("http://[nonsense:", log).export(10.0)
    assert log.events == ["metrics are not exported"]


async def test_the_grpc_port_is_hinted_at() -> None:
    log = Lines()
    await make_export("127.0.0.1:4317", log, timeout=0.2).export(10.0)
    assert "4318" in log.lines[0][1]["next"]


async def test_a_hanging_collector_is_an_outage_and_occupies_one_thread() -> None:
    log = Lines()
    async with collecting(status=None) as collector:
        export = make_export(collector.endpoint, log)
        for _ in range(3):
            await export.export(0.05)
        await collector.body()
    assert export.failures == 3
    assert log.events == ["metrics are not exported"]
    assert log.lines[0][1]["reason"] == "no answer within 0.05 s"
    assert len(collector.paths) == 1


async def test_a_stop_leaves_a_hanging_export_alone_after_the_last_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp, "LAST_DEADLINE", 0.05)
    log = Lines()
    async with collecting(status=None) as collector:
        with trio.fail_after(otlp.DEADLINE / 2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(make_export(collector.endpoint, log).run)
                await collector.body()
                nursery.cancel_scope.cancel()
    assert len(collector.paths) == 1
    assert log.lines[0][1]["reason"] == "no answer within 0.05 s"


async def test_a_collector_that_begins_to_hang_holds_the_stop_for_the_last_deadline_only() -> None:
    assert otlp.LAST_DEADLINE < 1
    async with collecting() as collector:
        export = make_export(collector.endpoint, interval=3_600)
        with trio.fail_after(otlp.DEADLINE / 2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(export.run)
                await collector.body()
                while export._one.borrowed_tokens:
                    await trio.lowlevel.checkpoint()
                collector.status = None
                nursery.cancel_scope.cancel()
    assert len(collector.paths) == 2


async def test_the_console_gets_one_json_line_per_export() -> None:
    written: list[str] = []

    class Sink:
        def write(self, text: str, /) -> int:
            trio.lowlevel.current_task()  # raises outside the event loop
            written.append(text)
            return len(text)

        def flush(self) -> None:
            raise AssertionError("from a worker thread")

    await make_export(exporter=otlp.console(Sink())).export(10.0)
    (line,) = written
    assert line.count("\n") == 1
    (resource,) = json.loads(line)["resource_metrics"]
    assert "lithos_documents" in {metric["name"] for metric in resource["scope_metrics"][0]["metrics"]}


async def test_a_console_that_is_gone_is_an_outage() -> None:
    class Closed:
        def write(self, text: str, /) -> int:
            raise BrokenPipeError("nobody reads")

        def flush(self) -> None:
            """Nothing."""

    log = Lines()
    await make_export(exporter=otlp.console(Closed()), log=log).export(10.0)
    assert log.lines[0][1]["reason"] == "nobody reads"
