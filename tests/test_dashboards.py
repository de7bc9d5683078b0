"""Metrics in the files of docker/, all of which must exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import lithos.server.service_state as lithos_state
from lithos.kernel.metrics import CONTENT_TYPE, GAUGES, GaugeSample, Metrics, metric_names
from lithos.notes.watching.watcher import Watcher
from lithos.server.service_state import Gauges
from tests.server.whole import whole_server
from tests.servers import serving

DOCKER = Path(__file__).parent.parent / "docker"


def names_in(expression: str) -> set[str]:
    """Return the metric names in a query. The series of a histogram count as the histogram."""
    found = re.findall(r"\b(?:lithos|process)_[a-z_]+", expression)
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in found}


def known_names() -> set[str]:
    families = text_string_to_metric_families(Metrics().render([]).decode())
    return metric_names() | {family.name for family in families}


def expressions() -> list[str]:
    dashboard = json.loads((DOCKER / "grafana-dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((DOCKER / "alerts.yml").read_text())["groups"]
    return list(group["rules"])


async def test_new_server_has_all_series_of_dashboard_and_alerts(tmp_path: Path) -> None:
    """A panel or alert whose series appears later shows nothing. It also misses the first increase."""
    async with whole_server(tmp_path) as whole, httpx2.AsyncClient(base_url=whole.url) as client:
        text = (await client.get("/metrics")).text
    shown = {
        re.sub(r"_(bucket|sum|count)$", "", sample.name)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    used = set().union(*map(names_in, [*expressions(), *(rule["expr"] for rule in rules())]))
    assert used - shown == set()
    components = set(re.findall(r'^lithos_component_status\{component="(\w+)"\} 0\.0$', text, re.MULTILINE))
    assert {"watcher", "events", "search", "knowledge_base"} <= components
    assert re.search(r"^lithos_disk_free_bytes [1-9]", text, re.MULTILINE)


async def test_component_status_metric_follows_health(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as lithos:
        gauges = lithos.server.get(Gauges)
        await gauges.scrape()
        monkeypatch.setattr(Watcher, "failure", property(lambda _: "no notices come"))
        assert 'component="watcher"} 0.0' in (await gauges.scrape()).decode(), "looked at a moment ago"
        monkeypatch.setattr(lithos_state, "HEALTH_AGE", 0.0)
        assert 'component="watcher"} 1.0' in (await gauges.scrape()).decode()


def test_alerts_cover_important_failures_and_advise_the_operator() -> None:
    assert {rule["alert"] for rule in rules()} >= {
        "LithosDown", "LithosDegraded", "LithosMailboxFull", "LithosDiskNearlyFull", "LithosWatcherBlind",
    }  # fmt: skip
    for rule in rules():
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert names_in(rule["expr"]) <= known_names()


def test_prometheus_loads_the_alerts_and_compose_mounts_both_files() -> None:
    assert yaml.safe_load((DOCKER / "prometheus.yml").read_text())["rule_files"] == ["alerts.yml"]
    compose = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]["prometheus"]
    mounted = [volume.split(":")[0] for volume in compose["volumes"]]
    assert {"./prometheus.yml", "./alerts.yml"} <= set(mounted)
    assert compose["profiles"] == ["watch"], "only who asks for it gets it"


def test_dashboard_panels_do_not_overlap_and_show_important_metrics() -> None:
    panels = json.loads((DOCKER / "grafana-dashboard.json").read_text())["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len({panel["id"] for panel in panels}) == len(set(places)) == len(panels)
    used = " ".join(expressions())
    shown = ("component_status", "semantic_state", "event_journal_events", "actor_mailbox_depth", "lcma_")
    assert [name for name in shown if f"lithos_{name}" not in used] == []


def test_all_metrics_in_the_dashboard_exist() -> None:
    used = set().union(*map(names_in, expressions()))
    assert len(used) > 20
    assert used <= known_names()


def test_prometheus_scrapes_the_compose_service_by_name_and_port() -> None:
    (job,) = yaml.safe_load((DOCKER / "prometheus.yml").read_text())["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"] == [{"targets": ["lithos:8765"]}]


def test_every_metric_is_rendered_as_prometheus_text() -> None:
    """Behaviour 207."""
    metrics = Metrics()
    metrics.count("tool_calls", "lithos_read")
    metrics.observe("tool_duration_seconds", 0.002, "lithos_read", "ok")
    samples = [GaugeSample(name, 1, tuple("x" for _ in labels)) for name, (_, labels) in GAUGES.items()]
    text = metrics.render(samples).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {f"lithos_{name}" for name in GAUGES} <= set(families)
    (calls,) = [s for s in families["lithos_tool_calls"].samples if s.name.endswith("_total")]
    assert (calls.labels, calls.value) == ({"tool": "lithos_read"}, 1.0)
    (count,) = [s for s in families["lithos_tool_duration_seconds"].samples if s.name.endswith("_count")]
    assert count.value == 1.0
    assert "0.0.4" in CONTENT_TYPE


def test_counter_increases_by_the_given_amount() -> None:
    metrics = Metrics()
    for name, labels in (("tool_calls", ("lithos_read",)), ("sse_events_delivered", ())):
        metrics.count(name, *labels, by=3)
        lines = metrics.render([]).decode().splitlines()
        (line,) = [line for line in lines if line.startswith(f"lithos_{name}_total")]
        assert line.endswith(" 3.0")
