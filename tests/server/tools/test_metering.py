"""Metrics of tool calls, and gauges of the server state at `/metrics`."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.values.errors import IndexFailed
from lithos.search.indexing.indexer import Visibility
from lithos.search.indexing.semantic import SemanticBackend
from lithos.server.service_state import Gauges
from lithos.server.tools.arguments import ArgumentFault, UnknownTool
from tests.servers import Lithos

Sample = tuple[str, frozenset[tuple[str, str]]]


async def scrape(lithos: Lithos) -> dict[Sample, float]:
    text = (await lithos.server.get(Gauges).scrape()).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def at(samples: dict[Sample, float], name: str, **labels: str) -> float:
    return samples.get((f"lithos_{name}", frozenset(labels.items())), 0.0)


async def test_tool_call_increments_its_counter_and_histogram(lithos: Lithos) -> None:
    """Behaviour 207."""
    specs = lithos.server.tools.listed()
    for spec in specs:
        given = dict.fromkeys(spec.input_schema.get("required", ()), "1")
        subject = {"id", "node_id"} & spec.input_schema["properties"].keys()
        await lithos.call(spec.name, **given | dict.fromkeys(subject, "1"))
    samples = await scrape(lithos)
    for spec in specs:
        assert at(samples, "tool_calls_total", tool=spec.name) == 1
        outcomes = [
            at(samples, "tool_duration_seconds_count", tool=spec.name, outcome=outcome)
            for outcome in ("ok", "error")
        ]
        assert sum(outcomes) == 1, spec.name


async def test_refusals_and_protocol_errors_are_counted_by_code(lithos: Lithos) -> None:
    await lithos.call("lithos_read", id="missing")
    with pytest.raises(ArgumentFault):
        await lithos.call("lithos_read", nothing="x")
    with pytest.raises(UnknownTool):
        await lithos.call("lithos_nothing")
    samples = await scrape(lithos)
    assert at(samples, "tool_errors_total", tool="lithos_read", error="doc_not_found") == 1
    assert at(samples, "tool_errors_total", tool="lithos_read", error="invalid_arguments") == 1
    assert at(samples, "tool_calls_total", tool="lithos_nothing") == 0


async def test_operations_are_counted_by_kind(lithos: Lithos) -> None:
    await lithos.call("lithos_write", title="A", content="alpha words", agent="a")
    for mode in ("fulltext", "semantic", "hybrid"):
        await lithos.call("lithos_search", query="alpha", mode=mode)
    await lithos.call("lithos_search", query="alpha", mode="psychic")
    await lithos.call("lithos_cache_lookup", query="alpha words")
    await lithos.call("lithos_cache_lookup", query="zzzz qqqq", tags=["none"])
    await lithos.call("lithos_task_create", title="T", agent="a")
    samples = await scrape(lithos)
    assert at(samples, "knowledge_operations_total", op="write") == 1
    assert at(samples, "knowledge_write_duration_seconds_count", op="write", success="true") == 1
    for mode in ("fulltext", "semantic", "hybrid"):
        assert at(samples, "search_operations_total", mode=mode) == 1
        assert at(samples, "search_duration_seconds_count", mode=mode, success="true") == 1
    assert at(samples, "search_operations_total", mode="psychic") == 0
    assert at(samples, "cache_lookups_total", outcome="hit") == 1
    assert at(samples, "cache_lookups_total", outcome="miss_clean") == 1
    assert at(samples, "coordination_operations_total", op="task_create") == 1
    assert at(samples, "events_total", type="note.created") == 1
    assert at(samples, "journal_append_duration_seconds_count") >= 2
    assert at(samples, "actor_processing_seconds_count", actor="writer") == 1


async def test_failed_backend_counts_as_a_failed_lookup(
    lithos: Lithos, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lithos.call("lithos_write", title="A", content="alpha", agent="a")

    def fail(*_: object) -> None:
        raise IndexFailed("broken")

    monkeypatch.setattr(lithos.server.get(SemanticBackend), "ask", fail)
    await lithos.call("lithos_cache_lookup", query="alpha")
    samples = await scrape(lithos)
    assert at(samples, "cache_lookups_total", outcome="error_search_backend") == 1


async def test_gauges_show_the_server_state(lithos: Lithos) -> None:
    await lithos.call("lithos_write", title="A", content="alpha [[Nowhere]]", agent="a")
    task = await lithos.call("lithos_task_create", title="T", agent="a")
    await lithos.call("lithos_task_claim", task_id=task["task_id"], aspect="x", agent="a")
    await lithos.server.get(Visibility).reach()
    samples = await scrape(lithos)
    assert at(samples, "documents") == at(samples, "fulltext_documents") == 1
    assert at(samples, "graph_nodes") == 2
    assert at(samples, "active_claims") == 1
    assert at(samples, "semantic_state", state="ok") == 1
    assert at(samples, "event_head_seq") == lithos.server.get(Coordinator).head
    assert at(samples, "event_journal_events") == 4
