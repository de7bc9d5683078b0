"""A search right after an acknowledged write finds it, on every transport."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
import trio
from mcp.client import Client

from lithos.services.notes.resources import QUIET
from tests.e2e.clients import call, connected
from tests.e2e.process import running_lithos


async def write_and_search(client: Client, agent: int, count: int) -> int:
    """Write `count` notes, search each right away (every fifth time hybrid); how many were found."""
    found = 0
    for number in range(count):
        token = f"tok{agent}x{number}q"
        written = await call(
            client,
            "lithos_write",
            title=f"Report {agent} {number}",
            content=f"What agent {agent} saw: {token} beside the harbour.",
            agent=f"agent-{agent}",
            path=f"reports/{agent}",
        )
        mode = "fulltext" if number % 5 else "hybrid"
        answer = await call(client, "lithos_search", query=token, mode=mode)
        rows = [row["id"] for row in answer["results"]]
        found += written["id"] in (rows if mode == "hybrid" else rows[:1])
    return found


@pytest.mark.slow
@pytest.mark.deadline(120)
@pytest.mark.parametrize(
    ("transport", "clients", "each"),
    [
        ("mcp", 8, 15),
        ("sse", 4, 10),
        ("stdio", 1, 25),
        pytest.param("mcp", 16, 63, marks=pytest.mark.nightly),
        pytest.param("stdio", 1, 100, marks=pytest.mark.nightly),
    ],
)
async def test_every_acknowledged_write_is_found_at_once(
    transport: str, clients: int, each: int, tmp_path: Path
) -> None:
    """behaviour 194"""
    data = tmp_path / "data"
    found: dict[int, int] = {}
    all_done = trio.Event()

    async def work(url: str, agent: int) -> None:
        async with connected(transport, url=url, data=data) as client:
            found[agent] = await write_and_search(client, agent, each)
            if len(found) == clients:
                all_done.set()
            await all_done.wait()
            # The SDK's SSE client fails when it is notified while it closes; the last notice is due by then.
            await trio.sleep(1.5 * QUIET)

    with ExitStack() as stack:
        url = "" if transport == "stdio" else stack.enter_context(running_lithos(data)).url
        async with trio.open_nursery() as nursery:
            for agent in range(clients):
                nursery.start_soon(work, url, agent)
    assert found == dict.fromkeys(range(clients), each)
