"""The files in docker/ speak of metrics that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from lithos.metrics import CONTENT_TYPE, GAUGES, Metrics, Sample, metric_names

DOCKER = Path(__file__).parent.parent / "docker"


def names_in(expression: str) -> set[str]:
    """The metric names of a query; a histogram's series count as the histogram."""
    found = re.findall(r"\b(?:lithos|process)_[a-z_]+", expression)
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in found}


def known_names() -> set[str]:
    families = text_string_to_metric_families(Metrics().render([]).decode())
    return metric_names() | {family.name for family in families}


def expressions() -> list[str]:
    dashboard = json.loads((DOCKER / "grafana-dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_every_metric_of_the_dashboard_exists() -> None:
    used = set().union(*map(names_in, expressions()))
    assert len(used) > 20
    assert used <= known_names()


def test_a_metric_that_does_not_exist_would_be_noticed() -> None:
    assert not names_in("rate(lithos_tool_cals_total[5m])") <= known_names()


def test_prometheus_scrapes_the_path_and_port_of_the_default_configuration() -> None:
    (job,) = yaml.safe_load((DOCKER / "prometheus.yml").read_text())["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"] == [{"targets": ["localhost:8765"]}]


def test_every_instrument_renders_as_prometheus_text() -> None:
    """Behaviour 207."""
    metrics = Metrics()
    metrics.count("tool_calls", "lithos_read")
    metrics.observe("tool_duration_seconds", 0.002, "lithos_read", "ok")
    samples = [Sample(name, 1, tuple("x" for _ in labels)) for name, (_, labels) in GAUGES.items()]
    text = metrics.render(samples).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {f"lithos_{name}" for name in GAUGES} <= set(families)
    (calls,) = [s for s in families["lithos_tool_calls"].samples if s.name.endswith("_total")]
    assert (calls.labels, calls.value) == ({"tool": "lithos_read"}, 1.0)
    (count,) = [s for s in families["lithos_tool_duration_seconds"].samples if s.name.endswith("_count")]
    assert count.value == 1.0
    assert "0.0.4" in CONTENT_TYPE


@pytest.mark.parametrize("name", ["tool_calls", "sse_events_delivered"])
def test_counting_moves_a_counter_by_the_amount(name: str) -> None:
    metrics = Metrics()
    labels = ("lithos_read",) if name == "tool_calls" else ()
    metrics.count(name, *labels, by=3)
    assert f"lithos_{name}_total" in metrics.render([]).decode()
    (line,) = [
        line for line in metrics.render([]).decode().splitlines() if line.startswith(f"lithos_{name}_total")
    ]
    assert line.endswith(" 3.0")
