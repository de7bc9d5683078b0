"""What was learned, in `/metrics` (docs/spec/events-http.md §7)."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.servers import Lithos, serving


async def learned(lithos: Lithos) -> dict[str, float]:
    text = (await lithos.server.gauges.scrape()).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    prefixes = ("lithos_lcma_salience", "lithos_lcma_coactivation")
    return {
        sample.name.removeprefix("lithos_lcma_"): sample.value
        for sample in samples
        if sample.name.startswith(prefixes)
    }


async def test_salience_is_counted_and_summarised(tmp_path: Path) -> None:
    """behaviour 207"""
    async with serving(tmp_path) as lithos:
        nothing = {"salience_updates_total": 0, "coactivation_pairs": 0, "salience_nodes": 0}
        assert await learned(lithos) == nothing | {"salience_mean": 0.5, "salience_below_floor_ratio": 0}
        notes = [await lithos.create(f"Zebra {name}", "zebras are striped") for name in "abc"]
        task = (await lithos.call("lithos_task_create", title="T", agent="a"))["task_id"]
        await lithos.call("lithos_retrieve", query="zebras", agent_id="a", task_id=task)
        assert (await learned(lithos))["coactivation_pairs"] == 3
        await lithos.call(
            "lithos_task_complete",
            task_id=task,
            agent="a",
            cited_nodes=notes[:1],
            misleading_nodes=notes[1:2],
        )
        found = await learned(lithos)
        assert (found["salience_nodes"], found["salience_updates_total"]) == (3, 2)
        assert round(found["salience_mean"], 6) == round((0.52 + 0.45 + 0.5) / 3, 6)
