"""Three agents and two notes that contradict each other, from the first retrieval to quarantine, over MCP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from lithos.app.stores import utc_now
from lithos.stores.learning.stats import StatsStore
from tests.e2e.clients import call, connected
from tests.e2e.process import running_lithos

QUESTION = "how long does the edge cache keep a page"
OTHERS = (
    ("Edge servers", "The edge servers stand in four cities and keep logs for a week."),
    ("Page layout", "A page has a header, a body and a footer; the header is long."),
    ("Browser cache", "A browser does keep a page it has seen, unless it is told not to."),
    ("Deployments", "A deployment takes nine minutes and can be rolled back."),
    ("Cache warming", "After a deployment a job asks for every page, so that the cache is warm."),
)


async def retrieve(client: Client, task: str) -> dict[str, Any]:
    return await call(
        client, "lithos_retrieve", query=QUESTION, agent_id="cleo", task_id=task, surface_conflicts=True
    )


async def start_task(client: Client, title: str) -> str:
    created = await call(client, "lithos_task_create", title=title, agent="cleo")
    return str(created["task_id"])


async def write(client: Client, agent: str, title: str, content: str) -> str:
    written = await call(client, "lithos_write", title=title, content=content, agent=agent)
    return str(written["id"])


def place(answer: dict[str, Any], note: str) -> int:
    return [row["id"] for row in answer["results"]].index(note)


@pytest.mark.slow
async def test_feedback_moves_the_ranking_and_receipts_explain_it(tmp_path: Path) -> None:
    """behaviours 85, 86, 148, 150, 151 and 153"""
    data = tmp_path / "data"
    with running_lithos(data) as server:
        async with connected("mcp", url=server.url) as client:
            for title, content in OTHERS:
                await write(client, "ana", title, content)
            wrong = await write(
                client, "ana", "Edge cache lifetime", "The edge cache does keep a page for 60 seconds."
            )
            right = await write(
                client,
                "ben",
                "Lifetime in the edge cache",
                "The edge cache does keep a page for 300 seconds.",
            )
            contradiction = await call(
                client, "lithos_edge_upsert", from_id=wrong, to_id=right, type="contradicts", weight=0.9,
                namespace="default", provenance_actor="cleo",
            )  # fmt: skip

            task = await start_task(client, "Answer the ticket")
            first = await retrieve(client, task)
            assert [conflict["edge_id"] for conflict in first["conflicts"]] == [contradiction["edge_id"]]
            assert place(first, wrong) < place(first, right), "nothing is known of them yet"
            assert {row["salience"] for row in first["results"]} == {0.5}

            resolved = await call(
                client, "lithos_conflict_resolve", edge_id=contradiction["edge_id"], resolution="superseded",
                resolver="cleo", winner_id=right,
            )  # fmt: skip
            assert resolved["conflict_state"] == "superseded"
            assert (await call(client, "lithos_read", id=right))["metadata"]["supersedes"] == wrong
            assert (await retrieve(client, task))["conflicts"] == []

            receipts = [first["receipt_id"]]
            for number in range(3):
                seen = await retrieve(client, task)
                receipts.append(seen["receipt_id"])
                await call(
                    client, "lithos_task_complete", task_id=task, agent="cleo", receipt_id=seen["receipt_id"],
                    cited_nodes=[right], misleading_nodes=[wrong],
                )  # fmt: skip
                task = await start_task(client, f"Another ticket {number}")
                if number == 1:
                    swapped = await retrieve(client, task)
                    assert place(swapped, right) < place(swapped, wrong), "what was cited comes first"

            good = await call(client, "lithos_node_stats", node_id=right)
            bad = await call(client, "lithos_node_stats", node_id=wrong)
            assert (good["cited_count"], good["misleading_count"]) == (3, 0)
            assert (bad["cited_count"], bad["misleading_count"]) == (0, 3)
            assert round(good["salience"], 6) == 0.56
            assert round(bad["salience"], 6) == 0.35
            assert good["retrieval_count"] == bad["retrieval_count"] == 6
            assert (await call(client, "lithos_read", id=wrong))["metadata"]["status"] == "quarantined"
            last = await retrieve(client, task)
            assert wrong not in [row["id"] for row in last["results"]], "the third strike hides it"
            edges = await call(client, "lithos_edge_list", type="contradicts")
            assert round(edges["edges"][0]["weight"], 6) == 0.75, "three times 0.05, once for each feedback"
    store = StatsStore.open(data / ".lithos" / "stats.db", utc_now())
    kept = [store.reading.receipts.get(receipt) for receipt in receipts]
    store.close()
    for receipt in kept:
        assert receipt is not None
        node = next(each for each in receipt.final_nodes if each.id == right)
        assert node.reasons
        assert {"scout_lexical", "scout_vector"} <= set(node.scouts)
